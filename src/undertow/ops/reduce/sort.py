"""Order: sort, topk, kthvalue, unique, searchsorted."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.dispatch import apply, cast, compute_dtype
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, wrap
from ...dtypes import Number
from ...errors import ArgumentError, BoundsError, DimError, DTypeError, ShapeError
from ...kernel.expr import trace
from ...shapes import as_int, reduced_shape, wrap_dim
from ..shape.movement import movedim, reshaped
from .reduction import ordered
from .scan import Selection, place

# Sorting ---------------------------------------------------------------------------------------


_sort = Op(
    "sort",
    lambda k, x, dim, descending, count: k.sort(x, dim, descending, count),
    inputs="x",
    params="dim descending count",
    outputs=2,
    differentiable=1,
    vjp={"x": lambda g, x_shape, dim, out1: place(g, x_shape, dim, out1)},
)


_rank_position = Op(
    "rank_position",
    lambda k, x, dim, rank: k.copy(k.ranked(x, dim, rank)[1]),
    inputs="x",
    params="dim rank",
)


def sorted_along(input: Tensor, dim: int, descending: bool, count: int | None = None) -> Selection:
    """The first `count` elements along `dim` in order, NaN as the largest, and their indices."""
    if not input.ndim:
        values, indices = sorted_along(reshaped(input, (1,)), 0, descending)
        return Selection(reshaped(values, ()), reshaped(indices, ()))
    return Selection(*apply(_sort, (input,), (dim, descending, count)))


def pick(input: Tensor, dim: int, index: Tensor, keepdim: bool) -> Selection:
    """The elements at `index`, one along `dim`, and that index, with or without the dimension."""
    values = input.gather(dim, index)
    if keepdim:
        return Selection(values, index)
    shape = reduced_shape(input.shape, (dim,), False)
    return Selection(reshaped(values, shape), reshaped(index, shape))


@function()
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Selection:
    """The elements in order along `dim`, and their indices; NaN counts as largest.

    Equal elements keep their order whether `stable` is asked for or not.

    >>> import undertow as ut
    >>> values, indices = ut.tensor([3.0, 1.0, 2.0]).sort()
    >>> values, indices
    (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    d = wrap_dim("sort", dim, input.ndim)
    ordered("sort", input, ())
    return sorted_along(input, d, descending)


@function()
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that put the elements in order along `dim`.

    >>> import undertow as ut
    >>> ut.tensor([3.0, 1.0, 2.0]).argsort(descending=True)
    tensor([0, 2, 1])
    """
    d = wrap_dim("argsort", dim, input.ndim)
    ordered("argsort", input, ())
    return sorted_along(input.detach(), d, descending).indices


@function()
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension.

    >>> import undertow as ut
    >>> ut.tensor([[3, 1], [2, 4]]).msort()
    tensor([[2, 1],
            [3, 4]])
    """
    ordered("msort", input, ())
    return sorted_along(input, 0, False).values


@function()
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Selection:
    """The k largest (or smallest) elements along `dim` in order, and their indices.

    >>> import undertow as ut
    >>> values, indices = ut.tensor([3.0, 1.0, 4.0, 1.5]).topk(2)
    >>> values, indices
    (tensor([4., 3.]), tensor([2, 0]))
    """
    d = wrap_dim("topk", dim, input.ndim)
    ordered("topk", input, ())
    count = _rank("topk", k, 0, input, d)
    return sorted_along(input, d, largest, count)


@function()
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Selection:
    """The k-th smallest element along `dim`, counted from 1, and its index.

    >>> import undertow as ut
    >>> value, index = ut.tensor([3.0, 1.0, 2.0]).kthvalue(2)
    >>> value, index
    (tensor(2.), tensor(2))
    """
    d = wrap_dim("kthvalue", dim, input.ndim)
    ordered("kthvalue", input, ())
    rank = _rank("kthvalue", k, 1, input, d)
    if not input.ndim:
        input, keepdim = reshaped(input, (1,)), False
    return pick(input, d, apply(_rank_position, (input,), (d, rank - 1)), keepdim)


def _rank(op: str, k: Any, low: int, input: Tensor, dim: int) -> int:
    rank = as_int(op, "k", k)
    size = input._array.shape[dim] if input.ndim else 1
    if not low <= rank <= size:
        raise ArgumentError(
            f"[{op}] k={rank} is out of range for dimension {dim} of size {size}; "
            f"expected {low} to {size}"
        )
    return rank


# Distinct elements -----------------------------------------------------------------------------
_differ = trace(lambda a, b: a != b, 2)
_less_one = trace(lambda a: a - 1, 1)
_minus = trace(lambda a, b: a - b, 2)


def _unique_forward(k: Forms, rows: Array, in_order: bool, places: bool) -> Any:
    """Distinct rows (or runs of equal rows), which of them each row is, and their numbers.

    Which of them each is costs as much again, and is empty unless `places` are wanted.
    """
    count, width = rows.shape
    bool_, int64 = dtypes.bool.numpy, dtypes.int64.numpy
    order: Any = None
    if in_order:
        keys: Any = None
        for column in reversed(range(width)):  # stable sorts, the least significant key first
            keys = k.slice(rows, (slice(None), column))
            keys, found = k.sort(keys if order is None else k.take(keys, (order,)), 0, False)
            order = found if order is None else k.take(order, (found,))
        rows = k.reshape(keys, (count, 1)) if width == 1 else k.take(rows, (order,))
    pair = [k.slice(rows, (slice(1, None),)), k.slice(rows, (slice(0, max(count - 1, 0)),))]
    differ = k.map(_differ, pair, bool_)
    one = width == 1
    changes = k.reshape(differ, (differ.size,)) if one else k.reduce("any", differ, (1,), False)
    new = k.concat([k.full((min(count, 1),), True, bool_), changes], 0)
    starts = k.nonzero(new)
    starts = k.reshape(starts, (starts.size,))
    inverse = k.full((0,), 0, int64)
    if places:
        inverse = k.map(_less_one, [k.scan("sum", k.cast(new, int64), 0)], int64)
        if order is not None:
            inverse = k.scatter("set", k.full((count,), 0, int64), 0, order, inverse)
    ends = k.concat([k.slice(starts, (slice(1, None),)), k.full((min(count, 1),), count, int64)], 0)
    return k.take(rows, (starts,)), inverse, k.map(_minus, [ends, starts], int64)


_unique = Op("unique", _unique_forward, inputs="x", params="in_order places", outputs=3)


def _distinct(op: str, input: Tensor, in_order: bool, inverse: bool, counts: bool, dim: Any) -> Any:
    if in_order:
        ordered(op, input, ())
    shape = input.shape
    if dim is None:
        column = reshaped(input, (input.numel(), 1))
        values, where_, number = apply(_unique, (column,), (in_order, inverse))
        values = reshaped(values, (values.numel(),))
        where_ = reshaped(where_, shape) if inverse else where_
    else:
        if not shape:
            raise DimError(f"[{op}] a tensor of 0 dimensions has no dim {dim}; leave dim out")
        d = wrap_dim(op, dim, len(shape))
        first = movedim(input, d, 0)
        rest = first.shape[1:]
        if 0 in rest:
            raise ShapeError(
                f"[{op}] the slices along dim {d} of a tensor of shape {shape} have no elements"
            )
        rows = reshaped(first, (shape[d], max(input.numel() // max(shape[d], 1), 1)))
        values, where_, number = apply(_unique, (rows,), (in_order, inverse))
        values = movedim(reshaped(values, (number.shape[0], *rest)), 0, d)
    found = (values, *((where_,) if inverse else ()), *((number,) if counts else ()))
    return found if len(found) > 1 else values


@function()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements in order, or the distinct slices along `dim`.

    return_inverse adds where each element went, return_counts how often each occurs.

    >>> import undertow as ut
    >>> ut.tensor([2, 1, 2]).unique(return_counts=True)
    (tensor([1, 2]), tensor([1, 2]))
    """
    return _distinct("unique", input, True, return_inverse, return_counts, dim)


@function()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The elements, or the slices along `dim`, with all but the first of each run left out.

    >>> import undertow as ut
    >>> ut.tensor([1, 1, 2, 2, 1]).unique_consecutive()
    tensor([1, 2, 1])
    """
    return _distinct("unique_consecutive", input, False, return_inverse, return_counts, dim)


# Insertion points ------------------------------------------------------------------------------
_searchsorted = Op(
    "searchsorted",
    lambda k, edges, values, right: k.searchsorted(edges, values, right),
    inputs="edges values",
    params="right",
)


@function(method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where `input` would be inserted into sorted sequences along their last dimension.

    Before equal elements, or after them with `right=True` (or `side="right"`).

    >>> import undertow as ut
    >>> ut.searchsorted(ut.tensor([1, 3, 5]), ut.tensor([3, 6, 0]))
    tensor([1, 3, 0])
    """
    if side is not None:
        if side not in ("left", "right") or (side == "left" and right):
            raise ArgumentError(
                f"[searchsorted] side must be 'left' or 'right' and agree with right, "
                f"got side={side!r} and right={right}"
            )
        right = side == "right"
    return _insertion("searchsorted", sorted_sequence, input, out_int32, right, sorter)


@function(method=False)
def bucketize(
    input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Which of the buckets between sorted `boundaries` each element falls into.

    >>> import undertow as ut
    >>> ut.bucketize(ut.tensor([0.5, 3.0, 9.0]), ut.tensor([1.0, 3.0, 5.0]))
    tensor([0, 1, 3])
    """
    if boundaries.ndim != 1:
        raise ShapeError(f"[bucketize] boundaries must have 1 dimension, got {boundaries.shape}")
    return _insertion("bucketize", boundaries, input, out_int32, right, None)


def _insertion(
    op: str, edges: Tensor, values: Any, out_int32: bool, right: bool, sorter: Tensor | None
) -> Tensor:
    if not isinstance(values, Tensor):
        number = dtypes.of_scalar(values).numpy
        values = wrap(backend_of(edges._array).full((), values, number))
    if not edges.ndim:
        raise ShapeError(f"[{op}] the sorted sequence needs at least 1 dimension, got 0")
    if edges.ndim > 1 and edges.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            f"[{op}] a sequence of shape {edges.shape} needs values of shape "
            f"{(*edges.shape[:-1], '*')}, got {values.shape}"
        )
    if sorter is not None:
        if sorter.shape != edges.shape:
            raise ShapeError(
                f"[{op}] sorter must have the sequence's shape {edges.shape}, got {sorter.shape}"
            )
        if sorter.dtype is not dtypes.int64:
            raise DTypeError(f"[{op}] sorter must be int64, got {sorter.dtype}")
        if sorter.numel() and not bool(((sorter >= 0) & (sorter < edges.shape[-1])).all()):
            raise BoundsError(f"[{op}] sorter points outside the {edges.shape[-1]} elements")
        edges = edges.detach().gather(-1, sorter)
    for t in (edges, values):
        ordered(op, t, ())
    dtype = compute_dtype(op, (edges, values), "promote")
    edges, values = cast(edges.detach(), dtype), cast(values.detach(), dtype)
    found = apply(_searchsorted, (edges, values), (right,))
    return cast(found, dtypes.int32) if out_int32 else found
