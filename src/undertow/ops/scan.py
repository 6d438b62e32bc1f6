"""Running totals along a dimension: cumulative sums, products, extremes, and their inverses."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.dispatch import apply, cast
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..shapes import wrap_dim
from .movement import along

# Note [recurrence]
# h[i] = a[i] * h[i-1] + b[i] is closed under differentiation: the cotangent of b is the same
# recurrence run from the other end, and that of a is its product with the h before. It needs no
# division, so whatever is derived from it (cumprod, prod, logcumsumexp) is right to any order
# also where elements are zero.


def _shift_forward(k: Any, x: Any, dim: int, step: int, fill: Any) -> Any:
    out = k.full(x.shape, fill, x.dtype)
    count = x.shape[dim] - abs(step)
    if count > 0:
        target, source = (step, 0) if step > 0 else (0, -step)
        k.assign(k.slice(out, along(dim, slice(target, target + count))),
                 k.slice(x, along(dim, slice(source, source + count))))  # fmt: skip
    return out


_shift = Op(
    "shift",
    _shift_forward,
    inputs="x",
    params="dim step fill",
    vjp={"x": lambda g, dim, step: shift(g, dim, -step)},
)
_recurrence = Op(
    "recurrence",
    lambda k, a, b, dim, reverse: k.recurrence(a, b, dim, reverse),
    inputs="a b",
    params="dim reverse",
)


def shift(x: Tensor, dim: int, step: int, fill: float = 0) -> Tensor:
    """`x` moved `step` positions along `dim`; what falls off is lost, what opens is `fill`."""
    return apply(_shift, (x,), (dim, step, fill))  # type: ignore[no-any-return]


def recurrence(a: Tensor, b: Tensor, dim: int, reverse: bool = False) -> Tensor:
    """`h[i] = a[i] * h[i-1] + b[i]` along `dim` (`h[i+1]` when reversed); see Note [recurrence]."""
    return apply(_recurrence, (a, b), (dim, reverse))  # type: ignore[no-any-return]


def _back_through_time(g: Tensor, a: Tensor, dim: int, reverse: bool) -> Tensor:
    return recurrence(shift(a, dim, 1 if reverse else -1), g, dim, not reverse)


@_recurrence.vjp("a")
def _recurrence_a(g: Tensor, a: Tensor, out: Tensor, dim: int, reverse: bool) -> Tensor:
    return _back_through_time(g, a, dim, reverse) * shift(out, dim, -1 if reverse else 1)


@_recurrence.vjp("b")
def _recurrence_b(g: Tensor, a: Tensor, dim: int, reverse: bool) -> Tensor:
    return _back_through_time(g, a, dim, reverse)


# Sums and products -----------------------------------------------------------------------------
_cumsum = Op(
    "cumsum",
    lambda k, x, dim: k.scan("sum", x, dim),
    inputs="x",
    params="dim",
    vjp={"x": lambda g, dim: cumsum(g.flip(dim), dim).flip(dim)},
)
_cumprod = Op("cumprod", lambda k, x, dim: k.scan("prod", x, dim), inputs="x", params="dim")


@_cumprod.vjp("x")
def _cumprod_rule(g: Tensor, x: Tensor, out: Tensor, dim: int) -> Tensor:
    return recurrence(shift(x, dim, -1), g, dim, True) * shift(out, dim, 1, 1)


def others(x: Tensor, dim: int) -> Tensor:
    """For each element the product of all the others along `dim`, without dividing."""
    before = apply(_cumprod, (shift(x, dim, 1, 1),), (dim,))
    after = apply(_cumprod, (shift(x, dim, -1, 1).flip(dim),), (dim,)).flip(dim)
    return before * after  # type: ignore[no-any-return]


def accumulator(input: Tensor, dtype: Any) -> Tensor:
    """`input` in the dtype that sums and products have: as asked, else int64 for integers."""
    if dtype is not None:
        return cast(input, dtypes.as_dtype(dtype))
    return cast(input, dtypes.int64) if input._array.dtype.kind in "iub" else input


def _scan(op: Op, input: Tensor, dim: Any) -> Any:
    d = wrap_dim(op.name, dim, input.ndim)
    if input.ndim:
        return apply(op, (input,), (d,))
    outs = apply(op, (input.reshape(1),), (d,))
    return tuple(o.reshape(()) for o in outs) if op.outputs > 1 else outs.reshape(())


@function(inplace=True)
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The running sum along `dim`; integers are summed as int64.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])
    """
    return _scan(_cumsum, accumulator(input, dtype), dim)  # type: ignore[no-any-return]


@function(inplace=True)
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The running product along `dim`; integers are multiplied as int64.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3, 4]).cumprod(0)
    tensor([ 1,  2,  6, 24])
    """
    return _scan(_cumprod, accumulator(input, dtype), dim)  # type: ignore[no-any-return]
