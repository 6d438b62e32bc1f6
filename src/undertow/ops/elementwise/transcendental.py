"""Exponentials, logarithms and trigonometry of elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.dispatch import elementwise
from ...core.fast import unary_function
from ...core.op import Op, elementwise_op
from ...core.register import alias, elementwise_function, function
from ...core.tensor import Tensor
from ...kernel.expr import Expr, Operand, call
from ...kernel.expr import where as choose
from .arithmetic import sqrt
from .comparison import isinf, where
from .extremes import clamp

_LN2 = math.log(2)


def unary(
    name: str,
    expr: Callable[[Expr], Operand] | None,
    rule: Callable[..., Any],
    doc: str,
    domain: str = "bifc",
    complex_op: Op | None = None,
) -> Callable[..., Tensor]:
    """A published function of one tensor; without an expression, the primitive of its name."""
    op = elementwise_op(
        name,
        expr or (lambda x: call(name, x)),
        inputs="x",
        kind="float",
        domain=domain,
        vjp={"x": rule},
        complex_op=complex_op,
    )
    return elementwise_function(op, doc, inplace=True)


# Exponentials and logarithms -----------------------------------------------------------------
exp = unary(
    "exp",
    None,
    lambda g, out: g * out,
    """e to the power of each element.

    >>> import undertow as ut
    >>> ut.exp(ut.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """,
)
exp2 = unary(
    "exp2",
    None,
    lambda g, out: g * (out * _LN2),
    """2 to the power of each element.

    >>> import undertow as ut
    >>> ut.exp2(ut.tensor([0.0, 1.0, 3.0]))
    tensor([1., 2., 8.])
    """,
)
expm1 = unary(
    "expm1",
    None,
    lambda g, out: g * (out + 1),
    """`exp(input) - 1`, accurate also for small elements.

    >>> import undertow as ut
    >>> ut.expm1(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """,
)
log = unary(
    "log",
    None,
    lambda g, x: g / x,
    """The natural logarithm of each element; -inf at zero, NaN below.

    >>> import undertow as ut
    >>> ut.log(ut.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """,
)
log2 = unary(
    "log2",
    None,
    lambda g, x: g / (x * _LN2),
    """The logarithm to base 2 of each element.

    >>> import undertow as ut
    >>> ut.log2(ut.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """,
)
log10 = unary(
    "log10",
    None,
    lambda g, x: g / (x * math.log(10)),
    """The logarithm to base 10 of each element.

    >>> import undertow as ut
    >>> ut.log10(ut.tensor([1.0, 50.0]))
    tensor([0.0000, 1.6990])
    """,
)


def _complex_log1p(z: Expr) -> Operand:
    """Near zero by how much |1 + z|² is beyond 1, since 1 + z has lost the digits of z there."""
    x, y = call("real", z), call("imag", z)
    beyond = x * (2 + x) + y * y
    near = choose(call("eq", beyond, 0), x, call("log1p", beyond) * 0.5)
    size = choose(call("abs", z) < 0.5, near, call("log", call("hypot", 1 + x, y)))
    return size + call("atan2", y, 1 + x) * 1j


log1p = unary(
    "log1p",
    None,
    lambda g, x: g / (x + 1),
    """`log(1 + input)`, accurate also for small elements.

    >>> import undertow as ut
    >>> ut.log1p(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """,
    complex_op=elementwise_op(
        "complex_log1p", _complex_log1p, inputs="x", domain="c", vjp={"x": lambda g, x: g / (x + 1)}
    ),
)


def _complex_sigmoid(x: Expr) -> Operand:
    """The same without overflow, which would be NaN in complex numbers."""
    right = call("real", x) >= 0
    power = call("exp", choose(right, -x, x))
    return choose(right, 1, power) / (1 + power)


_complex_sigmoid_op = elementwise_op(
    "complex_sigmoid",
    _complex_sigmoid,
    inputs="x",
    domain="c",
    vjp={"x": lambda g, out: g * ((1 - out) * out)},
)
sigmoid = unary(
    "sigmoid",
    lambda x: 1 / (1 + call("exp", -x)),
    lambda g, out: g * ((1 - out) * out),
    """`1 / (1 + exp(-input))`, elementwise.

    >>> import undertow as ut
    >>> ut.sigmoid(ut.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """,
    complex_op=_complex_sigmoid_op,
)

# Trigonometry --------------------------------------------------------------------------------
sin = unary(
    "sin",
    None,
    lambda g, x: g * cos(x),
    """The sine of each element, in radians.

    >>> import undertow as ut
    >>> ut.sin(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """,
)
cos: Callable[..., Tensor] = unary(
    "cos",
    None,
    lambda g, x: -g * sin(x),
    """The cosine of each element, in radians.

    >>> import undertow as ut
    >>> ut.cos(ut.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """,
)
tan = unary(
    "tan",
    None,
    lambda g, out: g * (out * out + 1),
    """The tangent of each element, in radians.

    >>> import undertow as ut
    >>> ut.tan(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """,
)
asin = unary(
    "asin",
    None,
    lambda g, x: g / sqrt((1 - x) * (1 + x)),
    """The angle from -pi/2 to pi/2 whose sine is the element; NaN outside -1 to 1.

    >>> import undertow as ut
    >>> ut.asin(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """,
)
acos = unary(
    "acos",
    None,
    lambda g, x: -g / sqrt((1 - x) * (1 + x)),
    """The angle from 0 to pi whose cosine is the element; NaN outside -1 to 1.

    >>> import undertow as ut
    >>> ut.acos(ut.tensor([1.0, 0.0]))
    tensor([0.0000, 1.5708])
    """,
)
atan = unary(
    "atan",
    None,
    lambda g, x: g / (x * x + 1),
    """The angle from -pi/2 to pi/2 whose tangent is the element.

    >>> import undertow as ut
    >>> ut.atan(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """,
)
sinh = unary(
    "sinh",
    None,
    lambda g, x: g * cosh(x),
    """The hyperbolic sine of each element.

    >>> import undertow as ut
    >>> ut.sinh(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """,
)
cosh: Callable[..., Tensor] = unary(
    "cosh",
    None,
    lambda g, x: g * sinh(x),
    """The hyperbolic cosine of each element.

    >>> import undertow as ut
    >>> ut.cosh(ut.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """,
)
tanh = unary(
    "tanh",
    None,
    lambda g, out: g * (1 - out * out),
    """The hyperbolic tangent of each element.

    >>> import undertow as ut
    >>> ut.tanh(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """,
)
asinh = unary(
    "asinh",
    None,
    lambda g, x: g / sqrt(x * x + 1),
    """The number whose hyperbolic sine is the element.

    >>> import undertow as ut
    >>> ut.asinh(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """,
)
acosh = unary(
    "acosh",
    None,
    lambda g, x: g / (sqrt(x - 1) * sqrt(x + 1)),  # one root of the product has another branch
    """The number from 0 up whose hyperbolic cosine is the element; NaN below 1.

    >>> import undertow as ut
    >>> ut.acosh(ut.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """,
)
atanh = unary(
    "atanh",
    None,
    lambda g, x: g / ((1 - x) * (1 + x)),
    """The number whose hyperbolic tangent is the element; NaN outside -1 to 1.

    >>> import undertow as ut
    >>> ut.atanh(ut.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """,
)
alias("asin", "arcsin")
alias("acos", "arccos")
alias("atan", "arctan")
alias("asinh", "arcsinh")
alias("acosh", "arccosh")
alias("atanh", "arctanh")
deg2rad = unary(
    "deg2rad",
    lambda x: x * (math.pi / 180),
    lambda g: g * (math.pi / 180),
    """Degrees in radians.

    >>> import undertow as ut
    >>> ut.deg2rad(ut.tensor([0.0, 180.0]))
    tensor([0.0000, 3.1416])
    """,
    domain="f",
)
rad2deg = unary(
    "rad2deg",
    lambda x: x * (180 / math.pi),
    lambda g: g * (180 / math.pi),
    """Radians in degrees.

    >>> import undertow as ut
    >>> ut.rad2deg(ut.tensor([0.0, 2.0]))
    tensor([  0.0000, 114.5916])
    """,
    domain="f",
)


def _binary(
    name: str,
    expr: Callable[[Expr, Expr], Operand],
    doc: str,
    kind: str = "promote",
    inplace: bool = False,
    complex_op: Op | None = None,
    **vjp: Callable[..., Any],
) -> Callable[..., Tensor]:
    op = elementwise_op(
        name, expr, inputs="a b", kind=kind, domain="f", vjp=vjp, complex_op=complex_op
    )
    return elementwise_function(op, doc, inplace=inplace)


def _over_squares(a: Any, b: Any, c: Any) -> Any:
    """c / (a*a + b*b), and c at the origin."""
    squares = a * a + b * b
    return c / where(squares == 0, 1, squares)


atan2 = _binary(
    "atan2",
    lambda a, b: call("atan2", a, b),
    """The angle from -pi to pi of the point (`other`, `input`), in radians.

    >>> import undertow as ut
    >>> ut.atan2(ut.tensor([1.0, -1.0]), ut.tensor([0.0, -1.0]))
    tensor([ 1.5708, -2.3562])
    """,
    kind="float",
    inplace=True,
    a=lambda g, a, b: g * _over_squares(a, b, b),
    b=lambda g, a, b: -g * _over_squares(a, b, a),
)
alias("atan2", "arctan2")
hypot = _binary(
    "hypot",
    lambda a, b: call("hypot", a, b),
    """`sqrt(input**2 + other**2)` without overflow; the gradient at the origin is zero.

    >>> import undertow as ut
    >>> ut.hypot(ut.tensor([3.0]), ut.tensor([4.0]))
    tensor([5.])
    """,
    inplace=True,
    a=lambda g, a, out: g * (a / where(out == 0, 1, out)),
    b=lambda g, b, out: g * (b / where(out == 0, 1, out)),
)


# Logarithms of sums and of probabilities -----------------------------------------------------
def _difference(a: Any, b: Any) -> Any:
    """a - b, and zero for equal infinities."""
    return where(isinf(a) & (a == b), 0, a - b)


def _log_sum(exponential: str, scale: float) -> Callable[[Expr, Expr], Operand]:
    """The larger argument, plus what log1p tells of the smaller."""

    def expr(a: Expr, b: Expr) -> Operand:
        larger = call("maximum", a, b)
        gap = choose(call("eq", a, b), 0, abs(a - b))
        return larger + call("log1p", call(exponential, -gap)) * scale

    return expr


def _complex_log_sum(a: Expr, b: Expr) -> Operand:
    """The same on complex numbers, where the larger one is that with the larger real part."""
    first = call("real", a) >= call("real", b)
    larger, smaller = choose(first, a, b), choose(first, b, a)
    gap = choose(call("eq", a, b), 0, smaller - larger)
    # Of two zeros' logarithms, whatever their angles, the sum is one again.
    found = choose(
        call("real", larger) == -math.inf, larger, larger + _complex_log1p(call("exp", gap))
    )
    unknown = call("isnan", a) | call("isnan", b)
    return choose(unknown, (a + b) * math.nan, found)


def _complex_share(a: Any, b: Any) -> Any:
    """exp(a) / (exp(a) + exp(b)), by the op itself: a rule that is traced knows no dtypes."""
    return elementwise(_complex_sigmoid_op, _difference(a, b))


logaddexp = _binary(
    "logaddexp",
    _log_sum("exp", 1.0),
    """`log(exp(input) + exp(other))` without overflow.

    >>> import undertow as ut
    >>> ut.logaddexp(ut.tensor([0.0, 1000.0]), ut.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0007e+03])
    """,
    complex_op=elementwise_op(
        "complex_logaddexp",
        _complex_log_sum,
        inputs="a b",
        domain="c",
        vjp={
            "a": lambda g, a, b: g * _complex_share(a, b),
            "b": lambda g, a, b: g * _complex_share(b, a),
        },
    ),
    a=lambda g, a, b: g * sigmoid(_difference(a, b)),
    b=lambda g, a, b: g * sigmoid(_difference(b, a)),
)
logaddexp2 = _binary(
    "logaddexp2",
    _log_sum("exp2", 1 / _LN2),
    """`log2(2**input + 2**other)` without overflow.

    >>> import undertow as ut
    >>> ut.logaddexp2(ut.tensor([3.0]), ut.tensor([3.0]))
    tensor([4.])
    """,
    a=lambda g, a, b: g * sigmoid(_difference(a, b) * _LN2),
    b=lambda g, a, b: g * sigmoid(_difference(b, a) * _LN2),
)
xlogy = _binary(
    "xlogy",
    lambda a, b: choose(call("eq", a, 0) & call("eq", b, b), 0, a * call("log", b)),
    """`input * log(other)`, and 0 where `input` is 0, unless `other` is NaN.

    The gradient of `other` where both are 0 is 0.

    >>> import undertow as ut
    >>> ut.xlogy(ut.tensor([0.0, 2.0]), ut.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """,
    kind="float",
    inplace=True,
    a=lambda g, a, b: g * log(where((a == 0) & (b <= 0), 1, b)),
    b=lambda g, a, b: g * (a / where((a == 0) & (b == 0), 1, b)),
)

_logit = unary_function(
    elementwise_op(
        "logit",
        lambda x: call("log", x / (1 - x)),
        inputs="x",
        kind="float",
        domain="f",
        # abs: at -0.0 too the slope is that of the domain, +inf
        vjp={"x": lambda g, x: g / where((x < 0) | (x > 1), math.nan, abs(x * (1 - x)))},
    )
)


@function(inplace=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """`log(input / (1 - input))`, the inverse of `sigmoid`; `eps` first clamps to eps, 1 - eps.

    >>> import undertow as ut
    >>> ut.logit(ut.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    return _logit(input if eps is None else clamp(input, eps, 1 - eps))
