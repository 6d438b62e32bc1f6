"""Arithmetic on elements: add, mul, div, pow, clamp, rounding …"""

from __future__ import annotations

from typing import Any

from ..core.dispatch import binary_door
from ..core.op import elementwise_op
from ..core.register import attach, elementwise_function, function
from ..core.tensor import Tensor
from ..kernel.expr import call

_add = elementwise_op(
    "add", lambda a, b: a + b, inputs="a b", vjp={"a": lambda g: g, "b": lambda g: g}
)
_plus = binary_door(_add)
attach("__add__", _plus)
attach("__radd__", _plus)


@function(inplace=True)
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """`input + alpha * other`, elementwise.

    >>> import undertow as ut
    >>> ut.add(ut.tensor([1, 2]), ut.tensor([10, 20]), alpha=2)
    tensor([21, 42])
    """
    return _plus(input, other if alpha == 1 else mul(other, alpha))


_mul = elementwise_op(
    "mul",
    lambda a, b: a * b,
    inputs="a b",
    vjp={"a": lambda g, b: g * b, "b": lambda g, a: g * a},
)
mul = elementwise_function(
    _mul,
    """`input * other`, elementwise.

    >>> import undertow as ut
    >>> ut.mul(ut.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """,
    inplace=True,
    dunder="__mul__ __rmul__",
)

_neg = elementwise_op("neg", lambda a: -a, inputs="a", vjp={"a": lambda g: -g})
neg = elementwise_function(
    _neg,
    """`-input`, elementwise.

    >>> import undertow as ut
    >>> ut.neg(ut.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """,
    inplace=True,
    dunder="__neg__",
)

_sub = elementwise_op(
    "sub", lambda a, b: a - b, inputs="a b", vjp={"a": lambda g: g, "b": lambda g: -g}
)
_minus = binary_door(_sub)
attach("__sub__", _minus)
attach("__rsub__", lambda self, other: _minus(other, self))


@function(inplace=True)
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """`input - alpha * other`, elementwise.

    >>> import undertow as ut
    >>> ut.sub(ut.tensor([5.0]), ut.tensor([1.0]), alpha=2)
    tensor([3.])
    """
    return _minus(input, other if alpha == 1 else mul(other, alpha))


_true_divide = elementwise_op(
    "div",
    lambda a, b: a / b,
    inputs="a b",
    kind="float",
    vjp={"a": lambda g, b: g / b, "b": lambda g, b, out: -g * (out / b)},
)
_over = binary_door(_true_divide)
attach("__truediv__", _over)
attach("__rtruediv__", lambda self, other: _over(other, self))

