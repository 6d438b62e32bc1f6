"""Exponentials, logarithms, trigonometry and special functions of elements."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

from ..core.dispatch import unary_door
from ..core.op import elementwise_op
from ..core.register import alias, elementwise_function, function
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..kernel import bessel, gamma
from ..kernel import erf as error_function
from ..kernel.expr import Expr, Operand, call, polynomial
from ..kernel.expr import where as choose
from ..shapes import as_int
from .arithmetic import clamp, sqrt
from .comparison import isinf, where

_LN2 = math.log(2)


def _unary(
    name: str,
    expr: Callable[[Expr], Operand] | None,
    rule: Callable[..., Any],
    doc: str,
    domain: str = "bifc",
) -> Callable[..., Tensor]:
    """A published function of one tensor; without an expression, the primitive of its name."""
    op = elementwise_op(
        name, expr or (lambda x: call(name, x)), inputs="x", kind="float", domain=domain,
        vjp={"x": rule},
    )  # fmt: skip
    return elementwise_function(op, doc, inplace=True)


# Exponentials and logarithms -----------------------------------------------------------------
exp = _unary(
    "exp",
    None,
    lambda g, out: g * out,
    """e to the power of each element.

    >>> import undertow as ut
    >>> ut.exp(ut.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """,
)
exp2 = _unary(
    "exp2",
    None,
    lambda g, out: g * (out * _LN2),
    """2 to the power of each element.

    >>> import undertow as ut
    >>> ut.exp2(ut.tensor([0.0, 1.0, 3.0]))
    tensor([1., 2., 8.])
    """,
)
expm1 = _unary(
    "expm1",
    None,
    lambda g, out: g * (out + 1),
    """`exp(input) - 1`, accurate also for small elements.

    >>> import undertow as ut
    >>> ut.expm1(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """,
)
log = _unary(
    "log",
    None,
    lambda g, x: g / x,
    """The natural logarithm of each element; -inf at zero, NaN below.

    >>> import undertow as ut
    >>> ut.log(ut.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """,
)
log2 = _unary(
    "log2",
    None,
    lambda g, x: g / (x * _LN2),
    """The logarithm to base 2 of each element.

    >>> import undertow as ut
    >>> ut.log2(ut.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """,
)
log10 = _unary(
    "log10",
    None,
    lambda g, x: g / (x * math.log(10)),
    """The logarithm to base 10 of each element.

    >>> import undertow as ut
    >>> ut.log10(ut.tensor([1.0, 100.0]))
    tensor([0., 2.])
    """,
)
log1p = _unary(
    "log1p",
    None,
    lambda g, x: g / (x + 1),
    """`log(1 + input)`, accurate also for small elements.

    >>> import undertow as ut
    >>> ut.log1p(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """,
)
sigmoid = _unary(
    "sigmoid",
    lambda x: 1 / (1 + call("exp", -x)),
    lambda g, out: g * ((1 - out) * out),
    """`1 / (1 + exp(-input))`, elementwise.

    >>> import undertow as ut
    >>> ut.sigmoid(ut.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """,
)

# Trigonometry --------------------------------------------------------------------------------
sin = _unary(
    "sin",
    None,
    lambda g, x: g * cos(x),
    """The sine of each element, in radians.

    >>> import undertow as ut
    >>> ut.sin(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """,
)
cos = _unary(
    "cos",
    None,
    lambda g, x: -g * sin(x),
    """The cosine of each element, in radians.

    >>> import undertow as ut
    >>> ut.cos(ut.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """,
)
tan = _unary(
    "tan",
    None,
    lambda g, out: g * (out * out + 1),
    """The tangent of each element, in radians.

    >>> import undertow as ut
    >>> ut.tan(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """,
)
asin = _unary(
    "asin",
    None,
    lambda g, x: g / sqrt((1 - x) * (1 + x)),
    """The angle from -pi/2 to pi/2 whose sine is the element; NaN outside -1 to 1.

    >>> import undertow as ut
    >>> ut.asin(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """,
)
acos = _unary(
    "acos",
    None,
    lambda g, x: -g / sqrt((1 - x) * (1 + x)),
    """The angle from 0 to pi whose cosine is the element; NaN outside -1 to 1.

    >>> import undertow as ut
    >>> ut.acos(ut.tensor([1.0, 0.0]))
    tensor([0.0000, 1.5708])
    """,
)
atan = _unary(
    "atan",
    None,
    lambda g, x: g / (x * x + 1),
    """The angle from -pi/2 to pi/2 whose tangent is the element.

    >>> import undertow as ut
    >>> ut.atan(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """,
)
sinh = _unary(
    "sinh",
    None,
    lambda g, x: g * cosh(x),
    """The hyperbolic sine of each element.

    >>> import undertow as ut
    >>> ut.sinh(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """,
)
cosh = _unary(
    "cosh",
    None,
    lambda g, x: g * sinh(x),
    """The hyperbolic cosine of each element.

    >>> import undertow as ut
    >>> ut.cosh(ut.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """,
)
tanh = _unary(
    "tanh",
    None,
    lambda g, out: g * (1 - out * out),
    """The hyperbolic tangent of each element.

    >>> import undertow as ut
    >>> ut.tanh(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """,
)
asinh = _unary(
    "asinh",
    None,
    lambda g, x: g / sqrt(x * x + 1),
    """The number whose hyperbolic sine is the element.

    >>> import undertow as ut
    >>> ut.asinh(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """,
)
acosh = _unary(
    "acosh",
    None,
    lambda g, x: g / sqrt((x - 1) * (x + 1)),
    """The number from 0 up whose hyperbolic cosine is the element; NaN below 1.

    >>> import undertow as ut
    >>> ut.acosh(ut.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """,
)
atanh = _unary(
    "atanh",
    None,
    lambda g, x: g / ((1 - x) * (1 + x)),
    """The number whose hyperbolic tangent is the element; NaN outside -1 to 1.

    >>> import undertow as ut
    >>> ut.atanh(ut.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """,
)
