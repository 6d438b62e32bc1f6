"""The normal distribution, the scaled error function and entropies, of `ut.special`."""

from __future__ import annotations

import math

from ...core.op import elementwise_op
from ...core.register import elementwise_function
from ...kernel import normal
from ...kernel.expr import call
from ...kernel.expr import where as choose
from .bessel import special
from .comparison import where
from .special import Family
from .transcendental import exp, log, log1p

_DENSITY = 1 / math.sqrt(2 * math.pi)

_erfcx: Family = Family(
    "erfcx", normal.erfcx_derivative, lambda n: {"x": lambda g, x: g * _erfcx(n + 1, x)}
)
erfcx = special(
    "erfcx",
    normal.erfcx,
    lambda g, x: g * _erfcx(1, x),
    """`exp(input**2) * erfc(input)`, which decays slowly where erfc underflows.

    >>> import undertow as ut
    >>> ut.special.erfcx(ut.tensor([-1.0, 0.0, 100.0]))
    tensor([5.0090, 1.0000, 0.0056])
    """,
)
ndtr = special(
    "ndtr",
    normal.ndtr,
    lambda g, x: g * (exp(-0.5 * (x * x)) * _DENSITY),
    """The probability that a standard normal number is below the element.

    >>> import undertow as ut
    >>> ut.special.ndtr(ut.tensor([-1.0, 0.0, 2.0]))
    tensor([0.1587, 0.5000, 0.9772])
    """,
)
log_ndtr = special(
    "log_ndtr",
    normal.log_ndtr,
    lambda g, x: g * (2 * _DENSITY / erfcx(x * -math.sqrt(0.5))),
    """`log(ndtr(input))`, also where that underflows.

    >>> import undertow as ut
    >>> ut.special.log_ndtr(ut.tensor([-100.0, 0.0, 2.0]))
    tensor([-5.0055e+03, -6.9315e-01, -2.3013e-02])
    """,
)
ndtri = special(
    "ndtri",
    normal.ndtri,
    lambda g, out: g * (exp(0.5 * (out * out)) / _DENSITY),
    """The inverse of `ndtr`: infinite at 0 and 1, NaN beyond.

    >>> import undertow as ut
    >>> ut.special.ndtri(ut.tensor([0.1, 0.5, 0.975]))
    tensor([-1.2816,  0.0000,  1.9600])
    """,
)
entr = special(
    "entr",
    lambda x: choose(x > 0.0, -(x * call("log", x)), choose(x < 0.0, -math.inf, x)),
    lambda g, x: -g * (log(x) + 1),
    """`-input * log(input)`, an entropy: 0 at zero, -inf below.

    >>> import undertow as ut
    >>> ut.special.entr(ut.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.3466, -0.0000])
    """,
)
_xlog1py = elementwise_op(
    "xlog1py",
    lambda a, b: choose(call("eq", a, 0) & call("eq", b, b), 0, a * call("log1p", b)),
    inputs="a b",
    kind="float",
    domain="f",
    vjp={
        "a": lambda g, a, b: g * log1p(where((a == 0) & (b <= -1), 0, b)),
        "b": lambda g, a, b: g * (a / (where((a == 0) & (b == -1), 0, b) + 1)),
    },
)
xlog1py = elementwise_function(
    _xlog1py,
    """`input * log1p(other)`, and 0 where `input` is 0, unless `other` is NaN.

    >>> import undertow as ut
    >>> ut.special.xlog1py(ut.tensor([0.0, 2.0]), ut.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """,
    space="special",
)
