"""Named forms of indexing: by positions in the whole tensor, by index tensors, by masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...backends.registry import backend_of
from ...core.dispatch import apply, expand
from ...core.inplace_examples import describe
from ...core.op import Op
from ...core.reading import READERS, tell
from ...core.register import attach, function, guarded
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import ArgumentError, DTypeError, IndexingError, ShapeError
from ...shapes import Ints, as_int, broadcast_shapes, wrap_dim
from ..elementwise.comparison import where
from ..shape.movement import reshaped, reshaped_copy, slice_view
from .indexing import (
    consumed,
    coordinates,
    fill_value,
    fitting,
    in_range,
    index_by,
    index_item,
    index_positions,
    nonzero_op,
    position_tensor,
    put,
    same_dtype,
)

_INT64, _BOOL = dtypes.int64.numpy, dtypes.bool.numpy


# By positions --------------------------------------------------------------------------------
def publish_inplace(name: str, implementation: Callable[..., Tensor]) -> None:
    """Give Tensor the method `name_` that runs `implementation("name_", self, …)`."""
    run = guarded(implementation, f"{name}_")

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        run(f"{name}_", self, *args, **kwargs)
        return self

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = describe(f"{name}_")
    attach(f"{name}_", method)


def _index_put_any(
    name: str, input: Tensor, indices: Any, values: Tensor, accumulate: bool = False
) -> Tensor:
    shape = input.shape
    items: list[Tensor] = []
    found: list[Tensor] = []
    dims: list[int] = []
    dim = 0
    for given in indices:
        if given is None:
            dim += 1
            continue
        item = given
        if not isinstance(given, Tensor) or given.ndim:
            item = index_item(name, input, given)
        elif given._array.dtype != _BOOL:
            item = position_tensor(name, given)
        if not isinstance(item, Tensor):
            raise IndexingError(f"[{name}] indices must be tensors, got {given!r:.60}")
        items.append(item)
        used = consumed(item)
        if dim + used > len(shape):
            raise IndexingError(f"[{name}] too many indices for a tensor of shape {shape}")
        found += index_positions(name, shape, dim, item)
        dims += range(dim, dim + used)
        dim += used
    if not dims:
        raise ArgumentError(f"[{name}] needs at least one index tensor")
    if accumulate:
        same_dtype(name, input, values, "values")
    else:
        values = fitting(name, input, values, items, "values")
    return put(name, input, values, found, tuple(dims), "add" if accumulate else "set")


@function()
def index_put(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`input` with `values` written (or added) at `input[indices]`.

    Of values written to the same element the last one stays, and receives the gradient.

    >>> import undertow as ut
    >>> ut.zeros(3).index_put((ut.tensor([0, 2, 0]),), ut.tensor([1.0, 2.0, 3.0]), accumulate=True)
    tensor([4., 0., 2.])
    """
    return _index_put_any("index_put", input, indices, values, accumulate)


publish_inplace("index_put", _index_put_any)


@function()
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of `input`, seen as one row, at positions of any shape.

    >>> import undertow as ut
    >>> ut.take(ut.tensor([[1, 2], [3, 4]]), ut.tensor([0, -1]))
    tensor([1, 4])
    """
    where = position_tensor("take", index)
    flat = reshaped(input, (input.numel(),))
    return index_by(flat, (in_range("take", where, flat.numel(), 0, negative=True),), (0,))


def _put_any(
    name: str, input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False
) -> Tensor:
    where = position_tensor(name, index)
    same_dtype(name, input, source, "source")
    count = where.numel()
    if source.numel() != count:
        raise IndexingError(
            f"[{name}] index and source must have as many elements, got {count} and "
            f"{source.numel()}"
        )
    where = in_range(name, reshaped(where, (count,)), input.numel(), 0, negative=True)
    values = reshaped(source, (count,))
    kind = "add" if accumulate else "set"
    if name == "put" or input.is_contiguous():
        flat = reshaped(input, (input.numel(),))
        return reshaped(put(name, flat, values, (where,), (0,), kind), input.shape)
    places: list[Tensor] = []  # coordinates of the flat positions in a strided tensor
    for size in reversed(input.shape):
        places.insert(0, where % size)
        where = where // size
    return put(name, input, values, places, tuple(range(input.ndim)), kind)


@function(name="put")
def _put_function(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with the elements of `source` written (or added) at positions in it, seen as a row.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).put(ut.tensor([0, 3]), ut.tensor([9, 8]))
    tensor([[9, 2],
            [3, 8]])
    """
    return _put_any("put", input, index, source, accumulate)


publish_inplace("put", _put_any)


@function()
def repeat_interleave(
    input: Tensor,
    repeats: Ints | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Each element (or slice along `dim`) several times; of `repeats` alone, the positions.

    >>> import undertow as ut
    >>> ut.repeat_interleave(ut.tensor([1, 2, 3]), ut.tensor([2, 0, 1]))
    tensor([1, 1, 3])
    """
    op = "repeat_interleave"
    if repeats is None:
        return _repeated_positions(op, input, output_size)
    if dim is None:
        input = reshaped(input, (input.numel(),))
        dim = 0
    dim = wrap_dim(op, dim, input.ndim)
    if not input.ndim:
        input = reshaped(input, (1,))
    size = input.shape[dim]
    if isinstance(repeats, Tensor):
        if repeats.ndim > 1 or repeats.numel() not in (1, size):
            raise ShapeError(
                f"[{op}] repeats must be a number or a vector of {size} elements, one for each "
                f"slice of dimension {dim}, got shape {repeats.shape}"
            )
        if repeats.numel() != 1 or size == 1:
            where = _repeated_positions(op, reshaped(repeats, (size,)), output_size)
            return index_by(input, (where,), (dim,))
        if READERS:
            tell(repeats)
        repeats = int(backend_of(repeats._array).to_host(repeats._array).reshape(())[()])
    times = as_int(op, "repeats", repeats)
    if times < 0:
        raise ArgumentError(f"[{op}] repeats cannot be negative, got {times}")
    _check_output_size(op, size * times, output_size)
    before, after = input.shape[: dim + 1], input.shape[dim + 1 :]
    spread = expand(reshaped(input, (*before, 1, *after)), (*before, times, *after))
    return reshaped_copy(spread, (*before[:-1], size * times, *after))


_repeat_positions = Op(
    "repeat_positions",
    lambda k, ends, total: k.searchsorted(ends, k.arange(0, 1, total, _INT64), True),
    inputs="ends",
    params="total",
)
_running_total = Op("running_total", lambda k, x: k.scan("sum", x, 0), inputs="x")


def _repeated_positions(op: str, repeats: Tensor, output_size: int | None) -> Tensor:
    """Position i, repeats[i] times, for every i."""
    counts = position_tensor(op, repeats, "repeats")
    if counts.ndim != 1:
        raise ShapeError(f"[{op}] repeats must be a vector, got shape {repeats.shape}")
    if not counts.numel():
        return counts
    k = backend_of(counts._array)
    lowest = int(k.to_host(k.reduce("min", counts._array, (0,), False)))
    if lowest < 0:
        raise ArgumentError(f"[{op}] repeats cannot be negative, got {lowest}")
    ends = apply(_running_total, (counts,))
    if READERS:
        tell(ends)
    total = int(k.to_host(k.slice(ends._array, (-1,))))
    _check_output_size(op, total, output_size)
    return apply(_repeat_positions, (ends,), (total,))


def _check_output_size(op: str, found: int, given: int | None) -> None:
    if given is not None and given != found:
        raise ArgumentError(f"[{op}] output_size is {given}, but the repeats add up to {found}")


# By masks ------------------------------------------------------------------------------------
def _check_mask(op: str, mask: Any) -> Tensor:
    if not isinstance(mask, Tensor) or mask._array.dtype != _BOOL:
        found = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise DTypeError(f"[{op}] mask must be a bool tensor, got {found}")
    return mask


@function(inplace=True)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """`value`, a number or zero-dimensional tensor, where the mask is true, else `input`.

    >>> import undertow as ut
    >>> ut.masked_fill(ut.tensor([1.0, 2.0]), ut.tensor([True, False]), 9)
    tensor([9., 2.])
    """
    _check_mask("masked_fill", mask)
    if isinstance(value, Tensor) and value.is_complex() and not input.is_complex():
        raise DTypeError(
            f"[masked_fill] a complex value does not fit into {input.dtype}; use value.real"
        )
    value = fill_value("masked_fill", input, value)
    if input._array.shape != mask._array.shape:
        broadcast_shapes("masked_fill", input.shape, mask.shape)
    return where(mask, value, input)


@function()
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The coordinates of the nonzero elements: one row each, or one tensor for each dimension.

    >>> import undertow as ut
    >>> ut.nonzero(ut.tensor([[0, 3], [4, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    if as_tuple:
        return tuple(coordinates(input if input.ndim else reshaped(input, (1,))))
    return apply(nonzero_op, (input.detach(),))


@function()
def argwhere(input: Tensor) -> Tensor:
    """The coordinates of the nonzero elements, one row each.

    >>> import undertow as ut
    >>> ut.argwhere(ut.tensor([0, 5, 6]))
    tensor([[1],
            [2]])
    """
    return apply(nonzero_op, (input.detach(),))


@function()
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask, broadcast against `input`, is true, as a vector.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, -2.0, 3.0])
    >>> ut.masked_select(x, x > 0)
    tensor([1., 3.])
    """
    _check_mask("masked_select", mask)
    shape = broadcast_shapes("masked_select", input.shape, mask.shape) or (1,)
    places = coordinates(expand(mask, shape))
    return index_by(expand(input, shape), places, tuple(range(len(shape))))


@function(inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the leading elements of `source`, in order, where the mask is true.

    >>> import undertow as ut
    >>> ut.masked_scatter(ut.zeros(3), ut.tensor([True, False, True]), ut.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 2.])
    """
    op = "masked_scatter"
    _check_mask(op, mask)
    same_dtype(op, input, source, "source")
    shape = broadcast_shapes(op, input.shape, mask.shape)
    wide = shape or (1,)
    places = coordinates(expand(mask, wide))
    count = places[0].numel()
    if source.numel() < count:
        raise ShapeError(
            f"[{op}] source has {source.numel()} elements for {count} true elements of the mask"
        )
    values = slice_view(reshaped(source, (source.numel(),)), (slice(0, count),))
    out = put(op, expand(input, wide), values, places, tuple(range(len(wide))), "set")
    return reshaped(out, shape)
