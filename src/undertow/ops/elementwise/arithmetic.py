"""Arithmetic on elements: add, mul, div, pow, lerp …"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...backends.registry import backend_of
from ...core.dispatch import cast, compute_dtype, elementwise, operand
from ...core.fast import assignment, binary_function, inplace_elementwise, operation, unary_function
from ...core.inplace import zeros_of
from ...core.op import Op, elementwise_op
from ...core.register import alias, attach, elementwise_function, function
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import ArgumentError, DTypeError, UndertowError
from ...kernel.expr import Expr, call
from ...kernel.expr import where as choose
from .comparison import where

_NUMBERS = (int, float, complex)


def no_slope(g: Tensor) -> Tensor:
    """The rule of a function that is constant wherever it has a derivative."""
    return zeros_of(g)


# Sums and differences ------------------------------------------------------------------------
_plus_op = elementwise_op(
    "add", lambda a, b: a + b, inputs="a b", vjp={"a": lambda g: g, "b": lambda g: g}
)
_plus = binary_function(_plus_op)
_added = binary_function(_plus_op, operator=True)
attach("__add__", _added)
attach("__radd__", _added)


@function()
def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`input + alpha * other`, elementwise.

    >>> import undertow as ut
    >>> ut.add(ut.tensor([1, 2]), ut.tensor([10, 20]), alpha=2)
    tensor([21, 42])
    """
    return _plus(input, other if alpha == 1 else _scaled("add", alpha, other, input))


_minus_op = elementwise_op(
    "sub", lambda a, b: a - b, inputs="a b", vjp={"a": lambda g: g, "b": lambda g: -g}, domain="ifc"
)
_minus = binary_function(_minus_op)
_from_op = elementwise_op(
    "rsub",
    lambda a, b: b - a,
    inputs="a b",
    vjp={"a": lambda g: -g, "b": lambda g: g},
    domain="ifc",
)
_from = binary_function(_from_op)
attach("__sub__", binary_function(_minus_op, operator=True))
attach("__rsub__", binary_function(_from_op, operator=True))


@function()
def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`input - alpha * other`, elementwise.

    >>> import undertow as ut
    >>> ut.sub(ut.tensor([5.0]), ut.tensor([1.0]), alpha=2)
    tensor([3.])
    """
    return _minus(input, other if alpha == 1 else _scaled("sub", alpha, other, input))


_plus_scaled = elementwise_op("add_scaled", lambda a, b, alpha: a + b * alpha, inputs="a b alpha")


def _publish_scaled(fn: Callable[..., Tensor], op: Op, sign: int) -> None:
    """The in-place form of `add` or `sub`; with a factor, too, it is one kernel."""
    name = f"{fn.__name__}_"
    plain = inplace_elementwise(op, fn, name)
    scaled = inplace_elementwise(
        _plus_scaled, lambda a, b, alpha: fn(a, b, alpha=sign * alpha), name
    )

    def method(self: Tensor, other: Any, *more: Any, alpha: Any = 1) -> Tensor:
        if more:
            return plain(self, other, *more)  # see core/old_orders
        if alpha.__class__ in (int, float) and alpha != 1:
            return scaled(self, other, sign * alpha)
        return plain(self, other) if alpha.__class__ is int else plain(self, other, alpha=alpha)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = plain.__doc__
    attach(name, method)


_publish_scaled(add, _plus_op, 1)
_publish_scaled(sub, _minus_op, -1)


@function(method=False, guard=False)
def rsub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`other - alpha * input`, elementwise.

    >>> import undertow as ut
    >>> ut.rsub(ut.tensor([1, 2]), 10)
    tensor([9, 8])
    """
    return _from(input if alpha == 1 else _scaled("rsub", alpha, input, other), other)


def _scaled(op: str, alpha: Any, term: Any, beside: Any) -> Tensor:
    """`alpha * term` in the dtype that the sum has without the factor."""
    kind = 1 if isinstance(alpha, int) else 2 if isinstance(alpha, float) else 3
    lower = isinstance(term, Tensor) and term.dtype.category < kind
    if isinstance(alpha, (int, float, complex)) and (kind > 1 or lower):
        dtype = compute_dtype(op, (operand(op, term), operand(op, beside)), "promote")
        if kind > 1 and dtype.category < 2:
            raise ArgumentError(
                f"[{op}] alpha must be an integer for {dtype} tensors, got {alpha}; "
                "convert the tensors to a floating dtype first"
            )
        if lower:
            term = cast(term, dtype)
        if dtype is dtypes.bool:
            alpha = bool(alpha)
    return mul(term, alpha)


mul = elementwise_function(
    elementwise_op(
        "mul",
        lambda a, b: a * b,
        inputs="a b",
        vjp={"a": lambda g, b: g * b, "b": lambda g, a: g * a},
    ),
    """`input * other`, elementwise.

    >>> import undertow as ut
    >>> ut.mul(ut.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """,
    inplace=True,
    dunder="__mul__ __rmul__",
)

neg = elementwise_function(
    elementwise_op("neg", lambda a: -a, inputs="a", vjp={"a": lambda g: -g}, domain="ifc"),
    """`-input`, elementwise.

    >>> import undertow as ut
    >>> ut.neg(ut.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """,
    inplace=True,
    dunder="__neg__",
)


@function(dunder="__pos__")
def positive(input: Tensor) -> Tensor:
    """`+input`: the tensor itself; bool tensors have no sign and are refused.

    >>> import undertow as ut
    >>> ut.positive(ut.tensor([-1.0]))
    tensor([-1.])
    """
    if input.dtype is dtypes.bool:
        raise DTypeError("[positive] is not defined for bool tensors")
    return input


# Quotients -----------------------------------------------------------------------------------
_over_op = elementwise_op(
    "div",
    lambda a, b: a / b,
    inputs="a b",
    kind="float",
    vjp={"a": lambda g, b: g / b, "b": lambda g, a, b: -g * ((a / b) / b)},
)
_over = binary_function(_over_op)
_under_op = elementwise_op(
    "rdiv",
    lambda a, b: b / a,
    inputs="a b",
    kind="float",
    vjp={"a": lambda g, a, b: -g * ((b / a) / a), "b": lambda g, a: g / a},
)
attach("__truediv__", binary_function(_over_op, operator=True))
attach("__rtruediv__", binary_function(_under_op, operator=True))
attach("__rdiv__", binary_function(_under_op, operator=True))  # torch's older name


def _no_zero_divisor(op: Op) -> Callable[..., Tensor]:
    """The door of a division that integers cannot do by zero."""
    door = binary_function(op)

    def by_zero(_: Any = None) -> ArgumentError:
        return ArgumentError(
            f"[{op.name}] integer division by zero; "
            "make the divisor nonzero or convert to a floating dtype first"
        )

    def checked(input: Any, other: Any) -> Tensor:
        out: Any = door(input, other)
        if isinstance(out, Tensor) and out._array.dtype.kind in "iu" and out._array.size:
            zero = other == 0
            if isinstance(zero, Tensor):
                backend_of(zero._array).require(zero._array, 0, 1, by_zero)
            elif zero:
                raise by_zero()
        return out

    return checked


_floored = _no_zero_divisor(
    elementwise_op(
        "floor_divide",
        lambda a, b: call("floor_div", a, b),
        inputs="a b",
        vjp={"a": no_slope, "b": no_slope},
        domain="if",
    )
)
_truncated = binary_function(
    elementwise_op(
        "trunc_divide",
        lambda a, b: call("trunc", a / b),
        inputs="a b",
        vjp={"a": no_slope, "b": no_slope},
        domain="f",
    )
)
_truncated_integer = _no_zero_divisor(
    elementwise_op(
        "trunc_divide_integer",
        lambda a, b: call("floor_div", a - call("fmod", a, b), b),
        inputs="a b",
        domain="i",
    )
)


@function()
def div(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None = None
) -> Tensor:
    """`input / other`, elementwise; rounded down ("floor") or towards zero ("trunc") on request.

    >>> import undertow as ut
    >>> ut.div(ut.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> ut.div(ut.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    """
    if rounding_mode is None:
        return _over(input, other)
    if rounding_mode == "floor":
        return _floored(input, other)
    if rounding_mode != "trunc":
        raise ArgumentError(
            f"[div] rounding_mode is None, 'floor' or 'trunc', got {rounding_mode!r}"
        )
    dtype = compute_dtype("div", (operand("div", input), operand("div", other)), "promote")
    return (_truncated if dtype.category != 1 else _truncated_integer)(input, other)


attach("div_", inplace_elementwise(_over_op, div, "div_"))


@function(inplace=True, guard=False)
def true_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`input / other`, elementwise; integers give the default floating dtype.

    >>> import undertow as ut
    >>> ut.true_divide(ut.tensor([1, 2]), 2)
    tensor([0.5000, 1.0000])
    """
    return _over(input, other)


@function(inplace=True, dunder="__floordiv__", guard=False)
def floor_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`input / other` rounded down; integers stay integers.

    >>> import undertow as ut
    >>> ut.floor_divide(ut.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return _floored(input, other)


attach("__rfloordiv__", operation(lambda self, other: _floored(other, self)))

_modulo = _no_zero_divisor(
    elementwise_op(
        "remainder",
        lambda a, b: call("mod", a, b),
        inputs="a b",
        vjp={"a": lambda g: g, "b": lambda g, a, b: -g * _floored(a, b)},
        domain="if",
    )
)
_c_modulo = _no_zero_divisor(
    elementwise_op(
        "fmod",
        lambda a, b: call("fmod", a, b),
        inputs="a b",
        vjp={"a": lambda g: g, "b": lambda g, a, b: -g * _truncated(a, b)},
        domain="if",
    )
)


@function(inplace=True, dunder="__mod__", guard=False)
def remainder(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """What `floor_divide` leaves over; it has the sign of `other`, as in Python.

    >>> import undertow as ut
    >>> ut.remainder(ut.tensor([5, -5]), 3)
    tensor([2, 1])
    """
    return _modulo(input, other)


attach("__rmod__", operation(lambda self, other: _modulo(other, self)))


@function(inplace=True, guard=False)
def fmod(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """What division towards zero leaves over; it has the sign of `input`, as in C.

    >>> import undertow as ut
    >>> ut.fmod(ut.tensor([5, -5]), 3)
    tensor([ 2, -2])
    """
    return _c_modulo(input, other)


reciprocal = elementwise_function(
    elementwise_op(
        "reciprocal",
        lambda x: 1 / x,
        inputs="x",
        kind="float",
        vjp={"x": lambda g, out: -g * (out * out)},
    ),
    """`1 / input`, elementwise.

    >>> import undertow as ut
    >>> ut.reciprocal(ut.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """,
    inplace=True,
)

# Powers --------------------------------------------------------------------------------------
square = elementwise_function(
    elementwise_op(
        "square", lambda x: x * x, inputs="x", kind="number", vjp={"x": lambda g, x: g * (x * 2)}
    ),
    """`input * input`, elementwise.

    >>> import undertow as ut
    >>> ut.square(ut.tensor([2.0, -3.0]))
    tensor([4., 9.])
    """,
    inplace=True,
)
_cube = unary_function(
    elementwise_op(
        "cube",
        lambda x: x * x * x,
        inputs="x",
        kind="number",
        vjp={"x": lambda g, x: g * (x * x * 3)},
    )
)
sqrt = elementwise_function(
    elementwise_op(
        "sqrt",
        lambda x: call("sqrt", x),
        inputs="x",
        kind="float",
        vjp={"x": lambda g, out: g / (out * 2)},
    ),
    """The square root of each element; NaN below zero.

    >>> import undertow as ut
    >>> ut.sqrt(ut.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """,
    inplace=True,
)
rsqrt = elementwise_function(
    elementwise_op(
        "rsqrt",
        lambda x: 1 / call("sqrt", x),
        inputs="x",
        kind="float",
        vjp={"x": lambda g, out: g * (out * out * out * -0.5)},
    ),
    """`1 / sqrt(input)`, elementwise.

    >>> import undertow as ut
    >>> ut.rsqrt(ut.tensor([4.0, 16.0]))
    tensor([0.5000, 0.2500])
    """,
    inplace=True,
)


def _pow_base(g: Any, a: Any, b: Any) -> Any:
    """b a**(b - 1), and zero for a**0 also where that would be 0 * inf, or NaN."""
    if isinstance(b, _NUMBERS):
        return zeros_of(g) if b == 0 else g * (b * a ** (b - 1))
    return g * (b * where((b == 0) & ((a == 0) | (a != a)), 1, a) ** (b - 1))


def _pow_exponent(g: Any, a: Any, b: Any, out: Any) -> Any:
    """a**b log(a), and zero for powers of zero, where that would be 0 * inf."""
    if isinstance(a, _NUMBERS):
        if a == 0:
            return g * where(b >= 0, 0, out * -math.inf)
        return g * (out * (math.log(a) if not isinstance(a, complex) and a > 0 else math.nan))
    from .transcendental import log

    return g * (out * log(where((a == 0) & (b >= 0), 1, a)))


def _complex_exponent(g: Any, a: Any, b: Any, out: Any) -> Any:
    """The same on complex numbers, which have no order: the real part of b decides."""
    from .transcendental import log

    if isinstance(a, _NUMBERS):
        if a != 0:
            return g * (out * cmath.log(a))
        return where(b.real >= 0, 0, g * (out * complex(-math.inf)))
    part = b.real if isinstance(b, (Tensor, *_NUMBERS)) else call("real", b)
    return g * (out * log(where((a == 0) & (part >= 0), 1, a)))


_complex_pow = elementwise_op(
    "complex_pow",
    lambda a, b: call("pow", a, b),
    inputs="a b",
    domain="c",
    vjp={"a": _pow_base, "b": _complex_exponent},
)
_pow = elementwise_op(
    "pow",
    lambda a, b: call("pow", a, b),
    inputs="a b",
    domain="ifc",
    vjp={"a": _pow_base, "b": _pow_exponent},
    complex_op=_complex_pow,
)
_power = binary_function(_pow)
_power_of_number = binary_function(
    elementwise_op(
        "pow_number",
        lambda x, n: call("pow", x, n),
        inputs="x n",
        domain="ifc",
        vjp={"x": lambda g, x, n: g * (n * x ** (n - 1))},
    )
)


def _integer_power(a: Expr, b: Expr) -> Expr:
    """NumPy refuses negative exponents of integers; a**b is then 0, or 1 or -1 if a is."""
    odd = call("ne", call("mod", b, 2), 0)
    unit = choose(call("eq", a, 1) | (call("eq", a, -1) & ~odd), 1, 0)
    inverse = choose(call("eq", a, -1) & odd, -1, unit)
    return choose(b < 0, inverse, call("pow", a, call("maximum", b, 0)))


_pow_integer = elementwise_op("pow_integer", _integer_power, inputs="a b", domain="i")


@function(inplace=True, guard=False)
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """`input ** exponent`, elementwise.

    >>> import undertow as ut
    >>> ut.pow(ut.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """
    kind = exponent.__class__
    if kind is int or kind is float:
        if not isinstance(input, Tensor):
            return _power(input, exponent)
        floating = input._array.dtype.kind in "fV"
        if floating or kind is int:
            if exponent == 2:
                return square(input)
            if exponent == 3:
                return _cube(input)
        if floating and exponent == 0.5:
            return sqrt(input)
        if exponent == 0:
            return _power(input, exponent)
        if isinstance(exponent, int) and exponent < 0 and input._array.dtype.kind in "iub":
            raise ArgumentError(
                f"[pow] integers cannot be raised to the negative power {exponent}; "
                "convert to a floating dtype first"
            )
        return _power_of_number(input, exponent)
    try:
        return _power(input, exponent)
    except ValueError as error:
        if isinstance(error, UndertowError):
            raise
        return elementwise(_pow_integer, input, exponent)


attach("__pow__", operation(pow))
attach("__rpow__", operation(lambda self, other: pow(other, self)))


@function(inplace=True, guard=False)
def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """`input ** exponent` in double precision.

    >>> import undertow as ut
    >>> ut.float_power(ut.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=undertow.float64)
    """
    a, b = operand("float_power", input), operand("float_power", exponent)
    dtype = compute_dtype("float_power", (a, b), "promote")
    wide = dtypes.complex128 if dtype.is_complex else dtypes.float64
    a, b = (cast(x, wide) if isinstance(x, Tensor) else wide.numpy.type(x).item() for x in (a, b))
    return pow(a, b)


# Several at once -----------------------------------------------------------------------------
def _in_one_dtype(op: str, *given: Any) -> tuple[Any, ...]:
    """Operands in the dtype of all together: that of pairs of them may be another one."""
    if len({x.dtype for x in given if isinstance(x, Tensor)}) < 2:
        return given
    dtype = compute_dtype(op, [operand(op, x) for x in given], "promote")
    return tuple(cast(x, dtype) if isinstance(x, Tensor) else x for x in given)


@function(inplace=True)
def addcmul(
    input: Tensor | Number, tensor1: Tensor | Number, tensor2: Tensor | Number, *, value: Number = 1
) -> Tensor:
    """`input + value * tensor1 * tensor2`, elementwise.

    >>> import undertow as ut
    >>> ut.addcmul(ut.tensor([1.0]), ut.tensor([2.0]), ut.tensor([3.0]), value=0.5)
    tensor([4.])
    """
    input, tensor1, tensor2 = _in_one_dtype("addcmul", input, tensor1, tensor2)
    product = mul(tensor1, tensor2)
    return _plus(input, product if value == 1 else _scaled("addcmul", value, product, input))


@function(inplace=True)
def addcdiv(
    input: Tensor | Number, tensor1: Tensor | Number, tensor2: Tensor | Number, *, value: Number = 1
) -> Tensor:
    """`input + value * tensor1 / tensor2`, elementwise, of floating tensors.

    >>> import undertow as ut
    >>> ut.addcdiv(ut.tensor([1.0]), ut.tensor([6.0]), ut.tensor([3.0]), value=0.5)
    tensor([2.])
    """
    operands = [operand("addcdiv", x) for x in (tensor1, tensor2)]
    if compute_dtype("addcdiv", operands, "promote").category < 2:
        raise DTypeError(
            "[addcdiv] does not divide integers; convert tensor1 or tensor2 to a floating dtype, "
            "or use input + value * div(tensor1, tensor2, rounding_mode='trunc')"
        )
    input, tensor1, tensor2 = _in_one_dtype("addcdiv", input, tensor1, tensor2)
    quotient = _over(tensor1, tensor2)
    return _plus(input, quotient if value == 1 else mul(quotient, value))


_lerp = elementwise_op(
    "lerp",
    # From the nearer end, so that weight 1 gives exactly the end.
    lambda a, b, w: choose(call("abs", w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w)),
    inputs="a b w",
    domain="fc",
    vjp={"a": lambda g, w: g * (1 - w), "b": lambda g, w: g * w, "w": lambda g, a, b: g * (b - a)},
)


@function(inplace=True, guard=False)
def lerp(input: Tensor | Number, end: Tensor | Number, weight: Tensor | Number) -> Tensor:
    """`input + weight * (end - input)`, elementwise; the weight is a number or a tensor.

    >>> import undertow as ut
    >>> ut.lerp(ut.tensor([1.0, 2.0]), ut.tensor([3.0, 6.0]), 0.5)
    tensor([2., 4.])
    """
    return elementwise(_lerp, input, end, weight)


@function(inplace=True, guard=False)
def ldexp(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`input * 2 ** other`, elementwise.

    >>> import undertow as ut
    >>> ut.ldexp(ut.tensor([1.0, 3.0]), ut.tensor([2, 3]))
    tensor([ 4., 24.])
    """
    if not isinstance(other, Tensor) or other.is_floating_point() or other.is_complex():
        return mul(input, pow(2.0, other))
    dtype = input.dtype if isinstance(input, Tensor) else dtypes.get_default_dtype()
    if dtype.category < 2:
        dtype = dtypes.get_default_dtype()
    # A power may be out of range where the product is not, so it is taken in three steps.
    step = round(math.log2(dtypes.finfo(dtype).max)) - 2
    left: Any = cast(other, dtypes.int64).clamp(-3 * step, 3 * step)
    found: Any = input
    for parts in (3, 2, 1):
        now = _floored(left, parts)
        left = left - now
        found = mul(found, pow(2.0, cast(now, dtype)))
    return found


# Further names -------------------------------------------------------------------------------
alias("sub", "subtract")
alias("mul", "multiply")
alias("neg", "negative")
alias("div", "divide")
for _operator, _name in {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
}.items():
    attach(_operator, assignment(Tensor.__dict__[_name]))
