"""The error function as a value of the loop IR."""

from __future__ import annotations

from .elementary_exp import expm1_sum, one_minus_exp2
from .evaluate import Table, at_most, estrin, polynomial
from .ir import Function, Value

# -log(1 - erf(a)) = a + a * table, for a up to where erf rounds to 1: -27.6, -55.3
_ERF: Table = {
    "f32": (
        -9.318577e-06,
        0.000118226155,
        -0.00063504424,
        0.0016713432,
        -0.00016509026,
        -0.01915023,
        0.10277694,
        0.6366195,
        0.12837917,
    ),
    "f64": (
        -3.6070556123096545e-15,
        1.6213018916342948e-13,
        -3.377264498633094e-12,
        4.317774611959411e-11,
        -3.7743842820511524e-10,
        2.369091109070437e-09,
        -1.0814250126140953e-08,
        3.47365356017308e-08,
        -6.617738500822066e-08,
        -1.0674622685725854e-08,
        5.687085012732823e-07,
        -2.0343237820852943e-06,
        3.129559232978557e-06,
        3.172878005973601e-06,
        -2.9578041521995596e-05,
        6.442183514440514e-05,
        2.5903903642710334e-05,
        -0.0005901322364700161,
        0.001696207624685202,
        -0.0002091948467116922,
        -0.01912844699382829,
        0.10277260330135796,
        0.6366197723675898,
        0.12837916709551256,
    ),
}
# log2(1 - erf(a)) = a * table, of which exp2's absolute error shows: -25.9
_ERFC = (
    -4.5358844e-05,
    0.0004455147,
    -0.0014894899,
    -0.00077449006,
    0.028253483,
    -0.14848147,
    -0.91841644,
    -1.6279086,
)
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


def one_plus_erf(f: Function, x: Value) -> Value:
    """1 + erf(x), of which only the absolute error shows."""
    if x.dtype != "f32":
        return 1.0 + erf(f, x)
    a = at_most(f, f.call("abs", x), _MOST[x.dtype])
    return 1.0 + f.call("copysign", one_minus_exp2(f, a, estrin(f, a, _ERFC)), x)
