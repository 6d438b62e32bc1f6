"""Several tensors into one, and one into several."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, overload

from ... import dtypes, shapes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.dispatch import apply, cast
from ...core.modes import no_grad
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...core.views import viewed_together
from ...errors import ArgumentError, DeviceError, DimError, DTypeError, ShapeError
from ...shapes import Ints, as_int, wrap_dim
from ..create.creation import zeros
from ..create.from_data import tensor
from .movement import (
    _slice,
    along,
    embed,
    expanded,
    narrowed,
    own_dim,
    reshaped,
    selected,
    slice_view,
)

# Joining -------------------------------------------------------------------------------------
_cat = Op(
    "cat",
    lambda k, *given: k.concat(given[:-2], given[-2]),
    inputs="*tensors",
    params="dim edges",
    vjp={
        "tensors": lambda g, dim, edges, position: narrowed(
            g, dim, edges[position], edges[position + 1] - edges[position]
        )
    },
)
_stack = Op(
    "stack",
    lambda k, *given: k.concat([k.slice(x, along(given[-1], None)) for x in given[:-1]], given[-1]),
    inputs="*tensors",
    params="dim",
    vjp={"tensors": lambda g, dim, position: selected(g, dim, position)},
)
_flat = Op(  # outside the graph only
    "flat", lambda k, *tensors: k.concat([_line(k, x) for x in tensors], 0), inputs="*tensors"
)


def _line(k: Forms, x: Array) -> Array:
    """An array in one dimension, as a view if that can be."""
    view = k.reshape(x, (x.size,))
    return k.reshape(k.copy(x), (x.size,)) if view is None else view


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of tensors of one dtype and device, one after the other, without a history.

    For many small ones this is much cheaper than `cat` of reshaped ones.

    >>> import undertow as ut
    >>> flat([ut.ones(2), ut.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    with no_grad():
        return apply(_flat, tensors)


# The pieces of a tensor are views, each with its own step from the base (Note [views]), but they
# share one node: their gradients are joined at once instead of each being embedded in zeros.
def _recorded_only(k: Forms, x: Array, dim: int) -> Any:
    raise AssertionError("the pieces are made as views; this op only records them")


def _rejoin(gs: Any, dim: int) -> Tensor:
    return cat(gs, dim)


def _restack(gs: Any, dim: int) -> Tensor:
    return stack(gs, dim)


_split = Op("split", _recorded_only, inputs="x", params="dim", vjp={"x": _rejoin})
_unbind = Op("unbind", _recorded_only, inputs="x", params="dim", vjp={"x": _restack})


def _together(op: Op, x: Tensor, dim: int, entries: Sequence[Any]) -> tuple[Tensor, ...]:
    """The views at each of the entries along `dim`, which fill `x`, as outputs of one node."""
    before = (slice(None),) * dim
    places = [(*before, entry) for entry in entries]
    return viewed_together(op, x, (dim,), _slice, backend_of(x._array).slice, places)


def listed(op: str, tensors: Any) -> list[Tensor]:
    """The tensors of an argument that takes several, at least one."""
    if isinstance(tensors, Tensor):
        raise DTypeError(f"[{op}] expects a list or tuple of tensors, got one Tensor")
    found = list(tensors)
    if not found:
        raise ArgumentError(f"[{op}] expects at least one tensor, got an empty list")
    for t in found:
        if not isinstance(t, Tensor):
            raise DTypeError(f"[{op}] expects tensors, got {type(t).__name__}")
    return found


def promoted(tensors: list[Tensor]) -> list[Tensor]:
    """The tensors in their common dtype."""
    first = tensors[0]._array.dtype
    if all(t._array.dtype is first for t in tensors):
        return tensors
    dtype = dtypes.result_type(*((t.dtype, 2 if t._array.shape else 1) for t in tensors))
    return [cast(t, dtype) for t in tensors]


def _join(op: str, tensors: list[Tensor], dim: Any) -> Tensor:
    first = tensors[0]._array
    if first.shape and first.shape != (0,):  # as a rule they fit as they are
        d = wrap_dim(op, dim, len(first.shape))
        rank, before, after = len(first.shape), first.shape[:d], first.shape[d + 1 :]
        ends = [0]
        for t in tensors:
            array = t._array
            shape = array.shape
            if array.dtype is not first.dtype or len(shape) != rank:
                break
            if shape[:d] != before or shape[d + 1 :] != after:
                break
            ends.append(ends[-1] + shape[d])
        else:
            return apply(_cat, tensors, (d, tuple(ends)))
    tensors = promoted(tensors)
    shape = next((s for t in tensors if (s := t._array.shape) != (0,)), (0,))
    d = 0 if shape == (0,) else own_dim(op, dim, len(shape))  # along any dim, as in torch
    if len(shape) != 1:  # a vector of no elements joins with anything, as in torch
        none = (*shape[:d], 0, *shape[d + 1 :])
        tensors = [reshaped(t, none) if t._array.shape == (0,) else t for t in tensors]
    for t in tensors:
        other = t._array.shape
        if len(other) != len(shape) or other[:d] != shape[:d] or other[d + 1 :] != shape[d + 1 :]:
            raise ShapeError(
                f"[{op}] shapes {tuple(shape)} and {tuple(other)} must agree in every dimension "
                f"but {d}, along which they are joined"
            )
    edges = tuple(accumulate((t._array.shape[d] for t in tensors), initial=0))
    return apply(_cat, tensors, (d, edges))


@function(method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after the other along an existing dimension.

    >>> import undertow as ut
    >>> ut.cat([ut.tensor([1, 2]), ut.tensor([3])])
    tensor([1, 2, 3])
    """
    return _join("cat", listed("cat", tensors), dim)


@function(method=False)
def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as `cat`.

    >>> import undertow as ut
    >>> ut.concat([ut.tensor([1, 2]), ut.tensor([3])])
    tensor([1, 2, 3])
    """
    return _join("concat", listed("concat", tensors), dim)


@function(method=False)
def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as `cat`.

    >>> import undertow as ut
    >>> ut.concatenate([ut.tensor([1, 2]), ut.tensor([3])])
    tensor([1, 2, 3])
    """
    return _join("concatenate", listed("concatenate", tensors), dim)


@function(method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension.

    >>> import undertow as ut
    >>> ut.stack([ut.tensor([1, 2]), ut.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    parts = promoted(listed("stack", tensors))
    shape = parts[0]._array.shape
    d = wrap_dim("stack", dim, len(shape) + 1)
    for t in parts:
        if t._array.shape != shape:
            raise ShapeError(
                f"[stack] expects tensors of one shape, got {tuple(shape)} and {t.shape}; "
                "use cat to join along an existing dimension"
            )
    return apply(_stack, parts, (d,))


def _stacked(op: str, tensors: Any, least: Any, dim: int) -> Tensor:
    return _join(op, [least(t) for t in listed(op, tensors)], dim)


@function(method=False)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side: along dimension 1, vectors along dimension 0.

    >>> import undertow as ut
    >>> ut.hstack([ut.tensor([1, 2]), ut.tensor([3])])
    tensor([1, 2, 3])
    """
    parts = [_at_least_1d(t) for t in listed("hstack", tensors)]
    return _join("hstack", parts, 0 if parts[0].ndim == 1 else 1)


@function(method=False)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors as rows: along dimension 0, with at least two dimensions.

    >>> import undertow as ut
    >>> ut.vstack([ut.tensor([1, 2]), ut.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return _stacked("vstack", tensors, _at_least_2d, 0)


@function(method=False)
def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The same as `vstack`.

    >>> import undertow as ut
    >>> ut.row_stack([ut.tensor([1, 2]), ut.tensor([3, 4])]).shape
    (2, 2)
    """
    return _stacked("row_stack", tensors, _at_least_2d, 0)


@function(method=False)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors in depth: along dimension 2, with at least three dimensions.

    >>> import undertow as ut
    >>> ut.dstack([ut.tensor([1, 2]), ut.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return _stacked("dstack", tensors, _at_least_3d, 2)


@function(method=False)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as columns beside each other and beside matrices.

    >>> import undertow as ut
    >>> ut.column_stack([ut.tensor([1, 2]), ut.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """

    def columns(t: Tensor) -> Tensor:
        return t if t.ndim > 1 else reshaped(t, (t._array.size, 1))

    return _stacked("column_stack", tensors, columns, 1)


@function(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices (vectors are rows) along its diagonal, zeros elsewhere.

    >>> import undertow as ut
    >>> ut.block_diag(ut.tensor([[1, 2]]), ut.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    if not tensors:
        return zeros(1, 0)
    for t in listed("block_diag", tensors):
        if t.ndim > 2:
            raise DimError(f"[block_diag] expects at most 2 dimensions, got {t.ndim}")
    blocks = promoted([_at_least_2d(t) for t in tensors])
    width = sum(t._array.shape[1] for t in blocks)
    rows = []
    column = 0
    for t in blocks:
        height, size = t._array.shape
        rows.append(embed(t, (height, width), along(1, slice(column, column + size))))
        column += size
    return _join("block_diag", rows, 0)


# Grids ---------------------------------------------------------------------------------------
def gathered(tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Tensors given as `a, b` or as `[a, b]`."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(tensors[0])
    return tensors


@function(method=False)
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors, as expanded views; "xy" exchanges the first two dimensions.

    >>> import undertow as ut
    >>> ut.meshgrid(ut.tensor([1, 2]), ut.tensor([3, 4, 5]), indexing="ij")[0]
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    vectors = listed("meshgrid", gathered(tensors))
    for t in vectors:
        if t.ndim > 1 or t.dtype is not vectors[0].dtype:
            raise ArgumentError(
                f"[meshgrid] expects vectors of one dtype, got {vectors[0].dtype} and a tensor of "
                f"shape {t.shape} and {t.dtype}"
            )
        if t.device != vectors[0].device:
            raise DeviceError(
                f"[meshgrid] expects tensors on one device, got {vectors[0].device} and {t.device}"
            )
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f'[meshgrid] indexing is "ij" or "xy", got {indexing!r}')
    swap = indexing == "xy" and len(vectors) > 1
    if swap:
        vectors[:2] = vectors[1::-1]
    lengths = tuple([t._array.size for t in vectors])
    grids = []
    for i, t in enumerate(vectors):
        shape = [1] * len(vectors)
        shape[i] = lengths[i]
        grids.append(expanded("meshgrid", reshaped(t, tuple(shape)), lengths))
    if swap:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@function(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each vector, as rows; of one vector, itself.

    >>> import undertow as ut
    >>> ut.cartesian_prod(ut.tensor([1, 2]), ut.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    vectors = listed("cartesian_prod", tensors)
    for t in vectors:
        if t.ndim != 1:
            raise ShapeError(f"[cartesian_prod] expects vectors, got shape {t.shape}")
    if len(vectors) == 1:
        return vectors[0]
    grids = meshgrid(*vectors, indexing="ij")
    return stack([reshaped(g, (g._array.size,)) for g in grids], 1)


@function()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector in order, as rows.

    >>> import undertow as ut
    >>> ut.combinations(ut.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    count = as_int("combinations", "r", r)
    if input.ndim != 1 or count < 0:
        raise ArgumentError(
            f"[combinations] expects a vector and r >= 0, got shape {input.shape} and r {count}"
        )
    if count == 0:
        return input.new_zeros(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input._array.shape[0]), count))
    index = tensor(rows, dtype=dtypes.int64, device=input.device)
    return reshaped(input.index_select(0, index.reshape(-1)), (len(rows), count))


# At least so many dimensions, and one shape for all --------------------------------------------
def _at_least_1d(t: Tensor) -> Tensor:
    return t if t.ndim else reshaped(t, (1,))


def _at_least_2d(t: Tensor) -> Tensor:
    return t if t.ndim > 1 else reshaped(t, (1, t._array.size))


def _at_least_3d(t: Tensor) -> Tensor:
    if t.ndim > 2:
        return t
    return reshaped(t, (*t.shape, 1) if t.ndim == 2 else (1, t._array.size, 1))


def _each(op: str, least: Any, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return least(tensors[0])
    return tuple([least(t) for t in listed(op, gathered(tensors))])


@overload
def atleast_1d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@function(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Views with at least one dimension; of one tensor one, of several a tuple.

    >>> import undertow as ut
    >>> ut.atleast_1d(ut.tensor(1.0))
    tensor([1.])
    """
    return _each("atleast_1d", _at_least_1d, tensors)


@overload
def atleast_2d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@function(method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Views with at least two dimensions; vectors become rows.

    >>> import undertow as ut
    >>> ut.atleast_2d(ut.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """
    return _each("atleast_2d", _at_least_2d, tensors)


@overload
def atleast_3d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@function(method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Views with at least three dimensions; a vector becomes (1, n, 1), a matrix (m, n, 1).

    >>> import undertow as ut
    >>> ut.atleast_3d(ut.zeros(2, 3)).shape
    (2, 3, 1)
    """
    return _each("atleast_3d", _at_least_3d, tensors)


@function(method=False)
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of all tensors in the shape that they broadcast to.

    >>> import undertow as ut
    >>> [t.shape for t in ut.broadcast_tensors(ut.zeros(2, 1), ut.zeros(3))]
    [(2, 3), (2, 3)]
    """
    parts = listed("broadcast_tensors", gathered(tensors))
    shape = shapes.broadcast_shapes("broadcast_tensors", *(t.shape for t in parts))
    return tuple([expanded("broadcast_tensors", t, shape) for t in parts])


@function(method=False)
def broadcast_shapes(*shapes_: Ints) -> shapes.Shape:
    """The shape that all shapes broadcast to.

    >>> import undertow as ut
    >>> ut.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    given = [shapes.as_shape("broadcast_shapes", (s,)) for s in shapes_]
    return shapes.broadcast_shapes("broadcast_shapes", *given)


# Splitting: the parts are views ---------------------------------------------------------------
def cut(x: Tensor, dim: int, lengths: Sequence[int]) -> tuple[Tensor, ...]:
    """Consecutive views of the given lengths along `dim`."""
    entries = []
    start = 0
    for length in lengths:
        entries.append(slice(start, start + length))
        start += length
    if start != x._array.shape[dim]:
        return tuple([slice_view(x, along(dim, entry)) for entry in entries])
    return _together(_split, x, dim, entries)


@function(method=False)
def split(tensor: Tensor, split_size_or_sections: Ints, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of equal size (the last may be smaller), or of the sizes listed, along `dim`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).split(2)
    (tensor([1, 2]), tensor([3]))
    """
    d = own_dim("split", dim, tensor.ndim)
    size = tensor._array.shape[d]
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, d)
    step = as_int("split", "split_size", split_size_or_sections)
    if step < 0 or (step == 0 and size):
        raise ArgumentError(f"[split] the size of a part must be positive, got {step}")
    return _equal_parts(tensor, d, step)


@function(name="split", top=False)
def _split_method(self: Tensor, split_size: Ints, dim: int = 0) -> tuple[Tensor, ...]:
    """`ut.split` of this tensor; torch's method has another word for the sizes.

    >>> import undertow as ut
    >>> ut.arange(5).split(2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> ut.arange(5).split([1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return split(self, split_size, dim)


def _equal_parts(x: Tensor, dim: int, step: int) -> tuple[Tensor, ...]:
    """Views of `step` positions each, the last of what is left; at least one."""
    size = x._array.shape[dim]
    starts = range(0, size, step) if size else (0,)
    places = [slice(start, start + step) for start in starts]
    places[-1] = slice(starts[-1], size)
    return _together(_split, x, dim, places)


@function()
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive views of the sizes listed along `dim`, which they must fill.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).split_with_sizes([1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    d = own_dim("split_with_sizes", dim, input.ndim)
    size = input._array.shape[d]
    lengths = [as_int("split_with_sizes", "a size", n) for n in split_sizes]
    if any(n < 0 for n in lengths) or sum(lengths) != size:
        raise ArgumentError(
            f"[split_with_sizes] sizes {lengths} must not be negative and add up to {size}, "
            f"the size of dimension {d}; they add up to {sum(lengths)}"
        )
    return cut(input, d, lengths)


@function()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size (the last may be smaller) along `dim`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).chunk(2)
    (tensor([1, 2]), tensor([3]))
    """
    count = as_int("chunk", "chunks", chunks)
    shape = input._array.shape
    d = own_dim("chunk", dim, len(shape))
    if count <= 0:
        raise ArgumentError(f"[chunk] chunks must be positive, got {count}")
    size = shape[d]
    if not size:
        return cut(input, d, [0] * count)
    return _equal_parts(input, d, -(-size // count))


@function()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of every position along `dim`, without that dimension.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).unbind()
    (tensor([1, 2]), tensor([3, 4]))
    """
    shape = input._array.shape
    d = own_dim("unbind", dim, len(shape))
    return _together(_unbind, input, d, range(shape[d]))


@function()
def tensor_split(
    input: Tensor,
    indices_or_sections: Ints | Tensor | None = None,
    dim: int = 0,
    *,
    indices: Sequence[int] | Tensor | None = None,
    sections: int | None = None,
) -> tuple[Tensor, ...]:
    """Views of almost equal size, the first ones larger by one, or views between the indices.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).tensor_split(2)
    (tensor([1, 2]), tensor([3]))
    >>> ut.tensor([1, 2, 3]).tensor_split((1,))
    (tensor([1]), tensor([2, 3]))
    """
    where = next(w for w in (indices_or_sections, indices, sections, ()) if w is not None)
    return _tensor_split("tensor_split", input, where, own_dim("tensor_split", dim, input.ndim))


def _tensor_split(op: str, x: Tensor, where: Any, dim: int) -> tuple[Tensor, ...]:
    size = x._array.shape[dim]
    if isinstance(where, Tensor):
        where = where.tolist()
    if isinstance(where, (tuple, list)):
        # Each part is the slice between two indices, as Python takes it.
        bounds = [None, *[as_int(op, "an index", i) for i in where], None]
        slices = [slice(*slice(a, b).indices(size)) for a, b in itertools.pairwise(bounds)]
        return tuple([slice_view(x, along(dim, s)) for s in slices])
    count = as_int(op, "sections", where)
    if count <= 0:
        raise ArgumentError(f"[{op}] the number of sections must be positive, got {count}")
    return cut(x, dim, [size // count + (i < size % count) for i in range(count)])


def _named_split(op: str, x: Tensor, where: Any, dim: int, least: int) -> tuple[Tensor, ...]:
    if x.ndim < least:
        raise DimError(f"[{op}] expects at least {least} dimensions, got {x.ndim}")
    if not isinstance(where, (tuple, list, Tensor)):
        count = as_int(op, "sections", where)
        if count <= 0 or x._array.shape[dim] % count:
            raise ArgumentError(
                f"[{op}] dimension {dim} of size {x._array.shape[dim]} does not divide into "
                f"{count} equal sections; tensor_split allows unequal ones"
            )
    return _tensor_split(op, x, where, dim)


@function()
def hsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Views side by side: along dimension 1, of a vector along dimension 0.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3, 4]).hsplit(2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    return _named_split("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1, 1)


@function()
def vsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Views of rows: along dimension 0 of at least two.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).vsplit(2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _named_split("vsplit", input, indices_or_sections, 0, 2)


@function()
def dsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Views in depth: along dimension 2 of at least three.

    >>> import undertow as ut
    >>> [t.shape for t in ut.zeros(1, 2, 4).dsplit(2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _named_split("dsplit", input, indices_or_sections, 2, 3)
