"""Sparse tensors element by element: functions that keep zeros, sums and products of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..dtypes import promote_types
from ..errors import DTypeError, ShapeError
from ..ops.index.scatter import index_select
from ..ops.reduce.sort import searchsorted
from ..ops.shape.joining import cat
from ..shapes import broadcast_shapes
from .coo import SparseCOO
from .tensor import SparseTensor

# f(0) = 0, so that they are functions of what is stored.
KEEPING_ZERO = """
abs absolute angle arcsin arcsinh arctan arctanh asin asinh atan atanh ceil conj_physical deg2rad
erf erfinv expm1 fix floor frac isinf isnan isneginf isposinf log1p nan_to_num neg negative positive
rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc
""".split()  # noqa: SIM905


def _keeping(name: str) -> Callable[..., Any]:
    def method(input: Any, *args: Any, **kwargs: Any) -> Any:
        stored = input._summed()
        return stored._with(FUNCTIONS[name](stored._stored, *args, **kwargs))

    method.__name__ = name
    method.__doc__ = f"`ut.{name}` of the elements that are stored; the others stay zero."
    return method


def _number(b: Any) -> bool:
    """Whether it is a number, or a dense tensor of one."""
    return not isinstance(b, (Tensor, SparseTensor)) or (isinstance(b, Tensor) and not b.ndim)


def add(input: Any, other: Any, alpha: Any = 1) -> Any:
    """`input + alpha * other`: sparse if both are, else dense."""
    a, b = input, other
    for x, y in ((a, b), (b, a)):
        if not isinstance(x, (Tensor, SparseTensor)):
            raise y._undefined("add", "is added to tensors, since a number has no zeros")
    if isinstance(alpha, (float, complex)) and not promote_types(a.dtype, b.dtype).category > 1:
        raise DTypeError(f"[add] alpha={alpha} is no number for {a.dtype} and {b.dtype}")
    if not isinstance(alpha, int) or alpha != 1:
        b = b * alpha
    if isinstance(a, Tensor):
        return a + b.to_dense()
    if isinstance(b, Tensor):
        return a.to_dense() + b
    if a.shape != b.shape:
        raise ShapeError(
            f"[add] sparse tensors do not broadcast: {tuple(a.shape)} + {tuple(b.shape)}"
        )
    if a._places is b._places:
        return a._with(a._stored + b._stored)
    left, right = a.to_sparse_coo(), b.to_sparse_coo()
    if left.sparse_dim() != right.sparse_dim():
        raise a._undefined("add", "is added to one with as many sparse dimensions")
    places = cat([left._places, right._places], 1)
    values = cat([left._stored, right._stored])
    return a._like(SparseCOO(places, values, a.shape, False).coalesce())


def sub(input: Any, other: Any, alpha: Any = 1) -> Any:
    """`input - alpha * other`: sparse if both are, else dense."""
    return add(input, other, -alpha)


def mul(input: Any, other: Any) -> Any:
    """The product of a sparse tensor with a number, a dense tensor or a sparse one: sparse."""
    a, b = (input, other) if isinstance(input, SparseTensor) else (other, input)
    if _number(b):
        return a._with(a._stored * b)
    if isinstance(b, Tensor):
        if b.ndim > a.ndim or broadcast_shapes("mul", a.shape, b.shape) != tuple(a.shape):
            raise ShapeError(
                f"[mul] a sparse tensor of shape {tuple(a.shape)} keeps it, and does not broadcast "
                f"to that of a dense one, {tuple(b.shape)}"
            )
        stored = a._summed()
        return stored._with(stored._stored * stored._beside(b.expand(a.shape)))
    if not b.ndim or not a.ndim:
        one, many = (a, b) if not a.ndim else (b, a)
        return many._with(many._stored * one.to_dense())
    return a._like(_common(a.to_sparse_coo().coalesce(), b.to_sparse_coo().coalesce()))


def lookup(x: SparseCOO, places: Tensor) -> tuple[Tensor, Tensor]:
    """Which of some places, numbered in row-major order, a coalesced tensor stores; and where."""
    there = x._linear(range(x.sparse_dim()))
    if not there.shape[0]:
        places = places[:0]
    at = searchsorted(there, places).clamp(max=max(there.shape[0] - 1, 0))
    which = (index_select(there, 0, at) == places).nonzero().squeeze(1)
    return which, index_select(at, 0, which)


def _common(a: SparseCOO, b: SparseCOO) -> SparseCOO:
    """The product of two at the coordinates that both have."""
    count = a.sparse_dim()
    if a.shape[:count] != b.shape[:count] or count != b.sparse_dim():
        raise ShapeError(
            f"[mul] sparse tensors do not broadcast: {tuple(a.shape)} * {tuple(b.shape)}, with "
            f"{a.sparse_dim()} and {b.sparse_dim()} sparse dimensions"
        )
    which, at = lookup(b, a._linear(range(count)))
    values = index_select(a._stored, 0, which) * index_select(b._stored, 0, at)
    shape = (*a.shape[:count], *values.shape[1:])
    return SparseCOO(index_select(a._places, 1, which), values, shape, True)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """A sparse tensor divided by a number, or a tensor of one."""
    if not isinstance(input, SparseTensor):
        raise other._undefined("div", "divides nothing: most of it is zero")
    if isinstance(other, SparseTensor) or not _number(other):
        raise input._undefined("div", "is divided by numbers")
    once = input if rounding_mode is None else input._summed()
    return once._with(FUNCTIONS["div"](once._stored, other, rounding_mode=rounding_mode))


def floor_divide(input: Any, other: Any) -> Any:
    """`div` with the quotients rounded down."""
    return div(input, other, rounding_mode="floor")


def pow(input: Any, exponent: Any) -> Any:
    """A power of each element, which is positive lest zeros change."""
    if not isinstance(input, SparseTensor):
        raise exponent._undefined("pow", "is no exponent")
    if isinstance(exponent, (Tensor, SparseTensor)) or not exponent > 0:
        raise input._undefined("pow", f"is raised to positive numbers, got {exponent!r}")
    once = input._summed()
    return once._with(once._stored**exponent)


def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape."""
    return tuple(input.shape) == tuple(other.shape)


ANSWERS: dict[str, Callable[..., Any]] = {
    **{name: _keeping(name) for name in KEEPING_ZERO},
    "add": add,
    "sub": sub,
    "subtract": sub,
    "mul": mul,
    "multiply": mul,
    "div": div,
    "divide": div,
    "true_divide": div,
    "floor_divide": floor_divide,
    "pow": pow,
    "is_same_size": is_same_size,
}
# What has a form that changes its first operand.
IN_PLACE = frozenset(ANSWERS) - {
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "signbit",
    "is_same_size",
}
