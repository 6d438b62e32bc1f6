"""The error function as a value of the loop IR."""

from __future__ import annotations

from .elementary_exp import expm1_sum
from .evaluate import Table, at_most, polynomial
from .ir import Function, Value

# -log(1 - erf(a)) = a + a * table, for a up to where erf rounds to 1: -27.6, -56.0
_ERF: Table = {
        "f32": (-9.318577e-06, 0.000118226155, -0.00063504424, 0.0016713432, -0.00016509026,
            -0.01915023, 0.10277694, 0.6366195, 0.12837917),
        "f64": (7.730604124744563e-16, -3.802661257294878e-14, 8.742612660892406e-13,
            -1.2473995231923022e-11, 1.2357699692806428e-10, -8.996330034055713e-10,
            4.953115195450482e-09, -2.078169461697113e-08, 6.515061626051853e-08,
            -1.4025757162269923e-07, 1.3405414252132837e-07, 3.416146575054558e-07,
            -1.748653417668317e-06, 2.8428665953739095e-06, 3.4005625798817147e-06,
            -2.9719453083628952e-05, 6.448940939764118e-05, 2.5879604344252763e-05,
            -0.0005901258569015064, 0.0016962064522641472, -0.00020919470482201908,
            -0.01912844700411455, 0.10277260330173657, 0.6366197723675849, 0.12837916709551256),
}  # fmt: skip
_MOST = {"f32": 3.93, "f64": 5.93}


def erf(f: Function, x: Value) -> Value:
    """The error function: 1 - exp(-p) with a polynomial p of |x|.

    As the negative of exp(-p) - 1 it is as accurate near 0, where p is nearly 2/sqrt(pi) * |x|;
    what rounding takes from p is kept.
    """
    a = at_most(f, f.call("abs", x), _MOST[x.dtype])
    table = polynomial(f, a, _ERF[x.dtype])
    p = f.fma(a, table, a)
    low = f.fma(a, table, a - p)
    return f.call("copysign", expm1_sum(f, -p, -low), x)
