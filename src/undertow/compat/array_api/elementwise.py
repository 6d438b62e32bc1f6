"""Elementwise functions: the library's own, with the standard's promotion and special cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import undertow as ut

from ...core.tensor import Tensor
from ...errors import ArgumentError
from .data_types import together

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]


def _binary(function: Callable[..., Any]) -> Callable[[Any, Any], Tensor]:
    """A function of two operands, tensors or numbers, in the dtype that they have in common."""

    def promoting(x1: Any, x2: Any, /) -> Tensor:
        return function(*together(x1, x2))

    promoting.__name__ = promoting.__qualname__ = function.__name__
    promoting.__doc__ = function.__doc__
    return promoting


abs = ut.abs
acos = ut.acos
acosh = ut.acosh
asin = ut.asin
asinh = ut.asinh
atan = ut.atan
atanh = ut.atanh
bitwise_invert = ut.bitwise_not
ceil = ut.ceil
conj = ut.conj
cos = ut.cos
cosh = ut.cosh
exp = ut.exp
floor = ut.floor
imag = ut.imag
isfinite = ut.isfinite
isinf = ut.isinf
isnan = ut.isnan
log = ut.log
log1p = ut.log1p
log2 = ut.log2
log10 = ut.log10
logical_not = ut.logical_not
negative = ut.neg
positive = ut.positive
real = ut.real
reciprocal = ut.reciprocal
round = ut.round
signbit = ut.signbit
sin = ut.sin
sinh = ut.sinh
square = ut.square
sqrt = ut.sqrt
tan = ut.tan
trunc = ut.trunc

add = _binary(ut.add)
atan2 = _binary(ut.atan2)
bitwise_and = _binary(ut.bitwise_and)
bitwise_left_shift = _binary(ut.bitwise_left_shift)
bitwise_or = _binary(ut.bitwise_or)
bitwise_right_shift = _binary(ut.bitwise_right_shift)
bitwise_xor = _binary(ut.bitwise_xor)
copysign = _binary(ut.copysign)
divide = _binary(ut.div)
equal = _binary(ut.eq)
greater = _binary(ut.gt)
greater_equal = _binary(ut.ge)
hypot = _binary(ut.hypot)
less = _binary(ut.lt)
less_equal = _binary(ut.le)
logaddexp = _binary(ut.logaddexp)
logical_and = _binary(ut.logical_and)
logical_or = _binary(ut.logical_or)
logical_xor = _binary(ut.logical_xor)
maximum = _binary(ut.maximum)
minimum = _binary(ut.minimum)
multiply = _binary(ut.mul)
not_equal = _binary(ut.ne)
pow = _binary(ut.pow)
remainder = _binary(ut.remainder)
subtract = _binary(ut.sub)


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next number after `x1` in the direction of `x2`; one of them may be a number.

    >>> import undertow.array_api as xp
    >>> xp.nextafter(xp.asarray([0.0]), 1) > 0
    tensor([True])
    """
    a, b = together(x1, x2)
    like = a if isinstance(a, Tensor) else b
    a, b = (t if isinstance(t, Tensor) else ut.full_like(like, t) for t in (a, b))
    return ut.nextafter(a, b)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 by sign; NaN stays NaN, and a complex number is divided by its absolute value.

    >>> import undertow.array_api as xp
    >>> xp.sign(xp.asarray([-2.0, 0.0, xp.nan]))
    tensor([-1.,  0., nan])
    """
    if x.dtype.category < 2:
        return ut.sign(x)
    found = ut.where(ut.isnan(x), x, ut.sgn(x))
    return ut.where(x == 0, 0, found) if x.dtype.is_complex else found


def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, exactly near zero; of complex numbers with the standard's limits at infinity.

    >>> import undertow.array_api as xp
    >>> xp.expm1(xp.asarray([complex(0, 0), complex(-xp.inf, xp.nan)]))
    tensor([ 0.+0.j, -1.+0.j])
    """
    if not x.dtype.is_complex:
        return ut.expm1(x)
    a, b = ut.real(x), ut.imag(x)
    lost = (a == -math.inf) & ~ut.isfinite(b)  # the angle of what vanishes does not matter
    b = ut.where(lost, 0, b)
    real = ut.expm1(a) * ut.cos(b) - 2 * ut.sin(b / 2) ** 2 + 0.0  # which is no negative zero
    real = ut.where(a == math.inf, ut.where(ut.isfinite(b), real, a), real)
    return ut.complex(real, ut.where(b == 0, b, ut.exp(a) * ut.sin(b)))


def tanh(x: Tensor, /) -> Tensor:
    """The hyperbolic tangent; of complex numbers with the standard's zeros at infinity.

    >>> import undertow.array_api as xp
    >>> xp.tanh(xp.asarray([complex(xp.inf, 2), complex(xp.inf, -2)]))
    tensor([1.+0.j, 1.-0.j])
    """
    found = ut.tanh(x)
    if not x.dtype.is_complex:
        return found
    zero = ut.copysign(0 * ut.imag(found), ut.imag(x))
    limit = ut.complex(ut.real(found), zero)
    return ut.where(ut.isinf(ut.real(x)) & ut.isfinite(ut.imag(x)), limit, found)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotient, rounded down; where an operand is infinite, the quotient as it is.

    >>> import undertow.array_api as xp
    >>> xp.floor_divide(xp.asarray([7.0, xp.inf, 1.0]), xp.asarray([2.0, 2.0, -xp.inf]))
    tensor([3., inf, -0.])
    """
    a, b = together(x1, x2)
    quotient = ut.floor_divide(a, b)
    if quotient.dtype.category < 2:
        return quotient
    finite = ut.isfinite(0 * a + 0 * b)
    return ut.where(finite, quotient, a / b)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """`x` between two bounds, numbers or arrays, in its own dtype; a NaN bound gives NaN.

    >>> import undertow.array_api as xp
    >>> xp.clip(xp.arange(5), 1, xp.asarray(3))
    tensor([1, 1, 2, 3, 3])
    """
    bounds = [b.to(x.dtype) if isinstance(b, Tensor) else b for b in (min, max)]
    for number in bounds:
        if isinstance(number, float) and x.dtype.category < 2:
            raise ArgumentError(f"[clip] {number} is no bound of {x.dtype}; write an integer")
    out = x
    if bounds[0] is not None:
        out = ut.clamp(out, min=bounds[0])
    if bounds[1] is not None:
        out = ut.clamp(out, max=bounds[1])
    return out.clone() if out is x else out
