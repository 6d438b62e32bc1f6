"""Reductions and running sums, with the standard's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import undertow as ut

from ... import dtypes
from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...errors import ArgumentError
from ...shapes import Ints, wrap_dims

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

_Axis = Ints | None


def _axes(op: str, x: Tensor, axis: _Axis) -> tuple[int, ...]:
    """The axes of a reduction in order; all of them for None, none for ()."""
    return () if axis == () else wrap_dims(op, axis, x.ndim)


def _over(reduce: Callable[..., Tensor], op: str, x: Tensor, axis: _Axis, keepdims: bool) -> Tensor:
    """A reduction that takes one axis or several, of which () is none at all."""
    axes = _axes(op, x, axis)
    if not axes:
        return reduce(x.unsqueeze(0), 0)
    return reduce(x, axes, keepdims)


def sum(
    x: Tensor, /, *, axis: _Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """The sum over axes; of integers in int64, unless a dtype is asked for.

    >>> import undertow.array_api as xp
    >>> xp.sum(xp.ones((2, 3)), axis=1)
    tensor([3., 3.])
    """
    return _over(lambda *how: ut.sum(*how, dtype=dtype), "sum", x, axis, keepdims)


def prod(
    x: Tensor, /, *, axis: _Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """The product over axes; of integers in int64, unless a dtype is asked for.

    >>> import undertow.array_api as xp
    >>> xp.prod(xp.asarray([[1, 2], [3, 4]]), axis=(0, 1))
    tensor(24)
    """
    axes = _axes("prod", x, axis)
    out = x.unsqueeze(-1) if dtype is None else x.to(dtypes.as_dtype(dtype)).unsqueeze(-1)
    for a in axes:
        out = ut.prod(out, a, keepdim=True, dtype=dtype)
    out = ut.prod(out, -1, dtype=dtype)
    return out if keepdims or not axes else ut.squeeze(out, axes)


def mean(x: Tensor, /, *, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over axes.

    >>> import undertow.array_api as xp
    >>> xp.mean(xp.asarray([1.0, 2.0, 6.0]))
    tensor(3.)
    """
    return _over(ut.mean, "mean", x, axis, keepdims)


def var(
    x: Tensor, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance over axes: the squares are divided by their number minus `correction`.

    >>> import undertow.array_api as xp
    >>> xp.var(xp.asarray([1.0, 3.0]))
    tensor(1.)
    """

    def reduce(x: Tensor, *how: Any) -> Tensor:
        dim, keepdim = (*how, False)[:2]
        return ut.var(x, dim, keepdim=keepdim, correction=correction)

    return _over(reduce, "var", x, axis, keepdims)


def std(
    x: Tensor, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The standard deviation over axes, the root of `var`.

    >>> import undertow.array_api as xp
    >>> xp.std(xp.asarray([1.0, 3.0]), correction=1)
    tensor(1.4142)
    """
    return ut.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Tensor, /, *, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes; NaN if there is one.

    >>> import undertow.array_api as xp
    >>> xp.max(xp.asarray([1, 3, 2]))
    tensor(3)
    """
    return _over(ut.amax, "max", x, axis, keepdims)


def min(x: Tensor, /, *, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes; NaN if there is one.

    >>> import undertow.array_api as xp
    >>> xp.min(xp.asarray([[1, 3], [2, 0]]), axis=0)
    tensor([1, 0])
    """
    return _over(ut.amin, "min", x, axis, keepdims)


def all(x: Tensor, /, *, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over axes are true.

    >>> import undertow.array_api as xp
    >>> xp.all(xp.asarray([[True, False], [True, True]]), axis=0)
    tensor([ True, False])
    """
    return _over(ut.all, "all", x.to(dtypes.bool), axis, keepdims)


def any(x: Tensor, /, *, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element over axes is true.

    >>> import undertow.array_api as xp
    >>> xp.any(xp.asarray([0, 0, 2]))
    tensor(True)
    """
    return _over(ut.any, "any", x.to(dtypes.bool), axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements over axes are not zero.

    >>> import undertow.array_api as xp
    >>> xp.count_nonzero(xp.asarray([0, 3, 2]))
    tensor(2)
    """
    return sum(x.to(dtypes.bool), axis=axis, keepdims=keepdims)


def _running(
    op: Callable[..., Tensor],
    start: int,
    x: Tensor,
    axis: int | None,
    dtype: DTypeLike | None,
    include_initial: bool,
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            name = op.__name__.replace("cum", "cumulative_")
            raise ArgumentError(f"[{name}] needs an axis for an array of shape {x.shape}")
        axis = 0
    out = op(x, axis, dtype=dtype)
    if include_initial:
        first = ut.full_like(out.narrow(axis, 0, 1) if out.shape[axis] else out.sum(axis, True), 0)
        out = ut.cat([first.to(out.dtype) + start, out], axis)
    return out


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """The sums of everything up to each element; `include_initial` begins with 0.

    >>> import undertow.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    return _running(ut.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """The products of everything up to each element; `include_initial` begins with 1.

    >>> import undertow.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([2, 2, 3]))
    tensor([ 2,  4, 12])
    """
    return _running(ut.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along an axis, `n` times.

    >>> import undertow.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9]))
    tensor([3, 5])
    """
    return ut.diff(x, n, axis, prepend, append)
