"""Sparse tensors of positions and values, and of dense tensors."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.modes import no_grad
from ..core.overriding import covers
from ..core.tensor import Tensor
from ..devices import DeviceLike
from ..dtypes import DTypeLike
from ..errors import ArgumentError, ShapeError
from ..layouts import layout as Layout
from ..layouts import sparse_coo, sparse_csc, sparse_csr, strided
from ..ops.create.creation import arange, zeros
from ..ops.create.from_data import as_tensor
from ..ops.index.scatter import index_select
from ..ops.index.selection import index_put
from ..ops.nn.embedding import require_within
from ..ops.shape.joining import cat, stack
from ..shapes import Ints
from .checking import check_sparse_tensor_invariants
from .compressed import (
    KINDS,
    SparseBSC,
    SparseBSR,
    SparseCompressed,
    SparseCSC,
    SparseCSR,
    in_layout,
)
from .coo import SparseCOO
from .elementwise import lookup
from .pattern import Pattern
from .tensor import SparseTensor


def _given(
    values: Any, dtype: DTypeLike | None, device: DeviceLike | None, requires_grad: bool
) -> Tensor:
    """The values as a tensor: with their history, or as a leaf that requires gradients."""
    found = as_tensor(values, dtype, device)
    return found.detach().requires_grad_() if requires_grad else found


def _positions(op: str, name: str, given: Any, ndim: int, values: Tensor) -> Tensor:
    found = as_tensor(given, device=values.device).detach()
    whole = found.dtype.category == 2 and bool((found == found.trunc()).all())  # torch's too
    if found.dtype.category != 1 and found.numel() and not whole:
        raise ArgumentError(f"[{op}] {name} are integers, got {found.dtype}")
    if found.ndim != ndim:
        raise ShapeError(f"[{op}] {name} have {ndim} dimensions, got shape {found.shape}")
    return found.to(dtypes.int64)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Ints | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseCOO:
    """A sparse tensor: `values[n]` stands at the coordinates `indices[:, n]`, all else is zero.

    Without a size it is as small as the coordinates allow. `sparse_coo_tensor(size)` is empty.
    The tensor is differentiable in its values; with `requires_grad` it is a leaf itself.

    >>> import undertow as ut
    >>> ut.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    op = "sparse_coo_tensor"
    if values is None and size is None and indices is not None:
        indices, size = None, indices  # one argument is the size, as in torch
    if size is not None:
        size = (size,) if isinstance(size, int) else tuple(size)
    if indices is None:
        if size is None:
            raise ArgumentError(f"[{op}] needs indices and values, or a size")
        indices, values = zeros((len(size), 0), dtype=dtypes.int64), zeros((0,))
    found = _given(values, dtype, device, requires_grad)
    places = _positions(op, "indices", indices, 2, found)
    if not found.ndim:
        found = found.expand(places.shape[1])
    if found.shape[0] != places.shape[1]:
        raise ShapeError(
            f"[{op}] {places.shape[1]} coordinates need as many values, got shape {found.shape}"
        )
    if size is None:
        least = (places.amax(1) + 1).tolist() if places.shape[1] else [0] * places.shape[0]
        size = (*least, *found.shape[1:])
    sparse = places.shape[0]
    if len(size) != sparse + found.ndim - 1 or tuple(size[sparse:]) != tuple(found.shape[1:]):
        raise ShapeError(
            f"[{op}] size {tuple(size)} does not fit {sparse} rows of coordinates and values of "
            f"shape {found.shape}"
        )
    for d in range(sparse):
        message = f"[{op}] index {{}} is out of range for dimension {d} of size {size[d]}"
        require_within(places[d], 0, size[d], message)
    return SparseCOO(places, found, size, bool(is_coalesced) or places.shape[1] < 2)


def _compressed(
    kind: type[SparseCompressed],
    begins: Any,
    places: Any,
    values: Any,
    size: Ints | None,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    requires_grad: bool,
    strict: bool | None,
) -> Any:
    """A matrix by rows or by columns, of parts that are held against each other."""
    op = f"{kind.layout.name}_tensor"
    names = kind.names
    lines, others = ("rows", "columns") if kind.by_rows else ("columns", "rows")
    found = _given(values, dtype, device, requires_grad)
    index = as_tensor(begins, device=found.device).dtype
    front = as_tensor(begins).ndim - 1
    if front < 0:
        raise ShapeError(f"[{op}] {names[0]} have a dimension at least, got {begins}")
    begins = _positions(op, names[0], begins, front + 1, found)
    places = _positions(op, names[1], places, front + 1, found)
    batch, count = tuple(begins.shape[:-1]), places.shape[-1]
    inner = front + 1 + 2 * kind.blocked
    if found.ndim < inner or tuple(found.shape[: front + 1]) != (*batch, count):
        raise ShapeError(
            f"[{op}] {names[1]} of shape {places.shape} need as many values, got shape "
            f"{found.shape}"
        )
    if tuple(places.shape[:-1]) != batch:
        raise ShapeError(
            f"[{op}] {names[0]} and {names[1]} belong to one batch, got shapes {begins.shape} and "
            f"{places.shape}"
        )
    block = tuple(found.shape[front + 1 : inner]) if kind.blocked else (1, 1)
    dense = tuple(found.shape[inner:])
    if size is None:
        shape = (begins.shape[-1] - 1, int(places.amax()) + 1 if places.numel() else 0)
    else:
        given = tuple(size)  # type: ignore[arg-type]
        if len(given) < 2 or given[:front] != batch or given[front + 2 :] != dense:
            raise ShapeError(
                f"[{op}] size {given} does not fit a batch of {batch} and values of shape "
                f"{found.shape}"
            )
        if min(block) < 1 or any(n % b for n, b in zip(given[front:], block, strict=False)):
            raise ShapeError(f"[{op}] blocks of {block} do not fit size {given}")
        rows, columns = (n // b for n, b in zip(given[front : front + 2], block, strict=True))
        shape = kind._turned((rows, columns))
    if begins.shape[-1] != shape[0] + 1:
        raise ShapeError(
            f"[{op}] {shape[0]} {lines} need {shape[0] + 1} {names[0]}, got {begins.shape[-1]}"
        )
    _check_begins(op, names[0], begins, count, shape)
    message = f"[{op}] {others[:-1]} {{}} is out of range for {shape[1]} {others}"
    require_within(places, 0, shape[1], message)
    pattern = Pattern(begins, places, shape, index if index.category == 1 else dtypes.int64)
    if check_sparse_tensor_invariants.is_enabled() if strict is None else strict:
        same = (pattern.rows[..., 1:] == pattern.rows[..., :-1]) if count else places
        if count and bool((same & (places[..., 1:] <= places[..., :-1])).any()):
            raise ArgumentError(f"[{op}] {names[1]} must rise within each of the {lines}")
    return kind(pattern, found)


def _check_begins(op: str, name: str, begins: Tensor, count: int, shape: tuple[int, int]) -> None:
    if not begins.numel():
        return
    wrong = bool((begins[..., 0] != 0).any()) or bool((begins[..., -1] != count).any())
    if shape[0] and not wrong:
        lengths = begins[..., 1:] - begins[..., :-1]
        wrong = int(lengths.amin()) < 0 or int(lengths.amax()) > shape[1]
    if wrong:
        raise ArgumentError(
            f"[{op}] {name} rise from 0 to the number of elements, {count}, by at most {shape[1]}; "
            f"got {begins.tolist() if begins.numel() < 20 else '…'}"
        )


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Ints | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseCSR:
    """A sparse matrix by rows: row r has the elements `crow_indices[r]` to `crow_indices[r + 1]`.

    >>> import undertow as ut
    >>> ut.sparse_csr_tensor([0, 1, 3], [1, 0, 2], [5.0, 6.0, 7.0]).to_dense()
    tensor([[0., 5., 0.],
            [6., 0., 7.]])
    """
    parts = (crow_indices, col_indices, values, size, dtype, device, requires_grad)
    return _compressed(SparseCSR, *parts, check_invariants)


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Ints | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseCSC:
    """A sparse matrix by columns: `sparse_csr_tensor` of the transposed matrix.

    >>> import undertow as ut
    >>> ut.sparse_csc_tensor([0, 1, 3], [1, 0, 2], [5.0, 6.0, 7.0]).to_dense()
    tensor([[0., 6.],
            [5., 0.],
            [0., 7.]])
    """
    parts = (ccol_indices, row_indices, values, size, dtype, device, requires_grad)
    return _compressed(SparseCSC, *parts, check_invariants)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Ints | None = None,
    *,
    dtype: DTypeLike | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseCompressed:
    """A sparse matrix by rows or columns, of elements or blocks, as `layout` says.

    >>> import undertow as ut
    >>> ut.sparse_compressed_tensor([0, 1], [0], [5.0], layout=ut.sparse_csc).layout
    undertow.sparse_csc
    """
    if layout not in KINDS:
        raise ArgumentError(
            f"[sparse_compressed_tensor] layout is one of {[k.name for k in KINDS]}, got {layout!r}"
        )
    parts = (compressed_indices, plain_indices, values, size, dtype, device, requires_grad)
    return _compressed(KINDS[layout], *parts, check_invariants)


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Ints | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseBSR:
    """A sparse matrix by rows of blocks: `sparse_csr_tensor` whose values are blocks.

    >>> import undertow as ut
    >>> ut.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0], [3.0, 4.0]]]).to_dense()
    tensor([[0., 0., 1., 2.],
            [0., 0., 3., 4.]])
    """
    parts = (crow_indices, col_indices, values, size, dtype, device, requires_grad)
    return _compressed(SparseBSR, *parts, check_invariants)


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Ints | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseBSC:
    """A sparse matrix by columns of blocks: `sparse_csc_tensor` whose values are blocks.

    >>> import undertow as ut
    >>> ut.sparse_bsc_tensor([0, 1], [1], [[[1.0, 2.0]]]).to_dense()
    tensor([[0., 0.],
            [1., 2.]])
    """
    parts = (ccol_indices, row_indices, values, size, dtype, device, requires_grad)
    return _compressed(SparseBSC, *parts, check_invariants)


covers(
    {
        fn.__name__: fn
        for fn in (
            sparse_coo_tensor,
            sparse_csr_tensor,
            sparse_csc_tensor,
            sparse_bsr_tensor,
            sparse_bsc_tensor,
            sparse_compressed_tensor,
        )
    }
)


def spdiags(
    diagonals: Tensor, offsets: Tensor, shape: Ints, layout: Layout | None = None
) -> SparseTensor:
    """The matrix whose diagonals are the rows of `diagonals`; `offsets` tells which, above 0.

    Element j of a diagonal stands in column j, as in SciPy; what has no place is left out.

    >>> import undertow as ut
    >>> d = ut.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> ut.sparse.spdiags(d, ut.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[1., 5., 0.],
            [0., 2., 6.],
            [0., 0., 3.]])
    """
    op = "sparse.spdiags"
    lines = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)
    which = as_tensor(offsets).reshape(-1).tolist()
    size = (shape,) if isinstance(shape, int) else tuple(shape)
    if len(size) != 2 or lines.ndim != 2 or lines.shape[0] != len(which):
        raise ShapeError(
            f"[{op}] needs a shape of two sizes and one row of diagonals for each offset, got "
            f"{size}, diagonals of shape {diagonals.shape} and {len(which)} offsets"
        )
    if len(set(which)) != len(which):
        raise ArgumentError(f"[{op}] offsets must differ from each other, got {which}")
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise ArgumentError(f"[{op}] layout must be a sparse one, got {layout!r}")
    rows, columns, values = [], [], []
    for offset, line in zip(which, lines, strict=True):
        first, last = max(offset, 0), min(size[1], size[0] + offset, line.shape[0])
        place = arange(first, max(first, last), device=line.device)
        rows.append(place - offset)
        columns.append(place)
        values.append(line[first : max(first, last)])
    if not which:
        none = zeros((2, 0), dtype=dtypes.int64, device=lines.device)
        return in_layout(SparseCOO(none, lines.new_zeros(0), size, True), layout)
    places = stack([cat(rows), cat(columns)])
    found = SparseCOO(places, cat(values), size, False)
    return found if layout in (None, sparse_coo) else found.to_sparse(layout=layout)


def to_sparse_coo(input: Tensor, sparse_dim: int | None = None) -> SparseCOO:
    """The elements of a dense tensor that are not zero, with their coordinates.

    With fewer sparse dimensions, its slices of which not all is zero.

    >>> import undertow as ut
    >>> ut.sparse.to_sparse_coo(ut.tensor([[0.0, 2.0], [3.0, 0.0]])).values()
    tensor([2., 3.])
    """
    count = input.ndim if sparse_dim is None else sparse_dim
    if not min(input.ndim, 1) <= count <= input.ndim:
        raise ArgumentError(
            f"[to_sparse] a tensor of {input.ndim} dimensions has 1 to {input.ndim} sparse ones, "
            f"got {count}"
        )
    with no_grad():
        filled = input.detach() != 0
        places = filled if count == input.ndim else filled.flatten(count).any(-1)
        indices = places.nonzero().t().contiguous()
    if not count:
        values = input.reshape(1)[: indices.shape[1]]
    else:
        values = input[tuple(indices.unbind(0))]
    return SparseCOO(indices, values, input.shape, True)


def to_sparse(
    input: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> SparseTensor | Tensor:
    """A dense tensor in a sparse layout, or itself in that which it has.

    >>> import undertow as ut
    >>> ut.sparse.to_sparse(ut.eye(3), layout=ut.sparse_csr).crow_indices()
    tensor([0, 1, 2, 3])
    """
    if layout is strided or layout in (None, sparse_coo):
        if blocksize is not None:
            raise ArgumentError(f"[to_sparse] {layout!r} has no blocks, got blocksize {blocksize}")
        if sparse_dim is None and dense_dim is not None:
            sparse_dim = input.ndim - dense_dim
        return input if layout is strided else to_sparse_coo(input, sparse_dim)
    if sparse_dim not in (None, 2):
        raise ArgumentError(f"[to_sparse] {layout!r} has 2 sparse dimensions, got {sparse_dim}")
    dense = 0 if dense_dim is None else dense_dim
    if not 0 <= dense <= input.ndim - 2:
        raise ArgumentError(
            f"[to_sparse] of {input.ndim} dimensions, 2 are sparse in {layout!r}, got "
            f"{dense} dense dimensions"
        )
    found = to_sparse_coo(input, input.ndim - dense)
    return in_layout(found, layout, blocksize)


def sparse_mask(input: Any, mask: Any) -> SparseTensor:
    """The elements of a tensor at the positions of `mask`, whatever is stored there.

    >>> import undertow as ut
    >>> x = ut.arange(4.0).reshape(2, 2)
    >>> x.sparse_mask(ut.eye(2).to_sparse()).values()
    tensor([0., 3.])
    """
    if not isinstance(mask, SparseTensor) or tuple(mask.shape) != tuple(input.shape):
        raise ShapeError(
            f"[sparse_mask] the mask must be a sparse tensor of shape {tuple(input.shape)}, got "
            f"{type(mask).__name__} of shape {tuple(getattr(mask, 'shape', ()))}"
        )
    if isinstance(input, Tensor):
        found: SparseTensor = mask._with(mask._beside(input))
        return found
    stored, at = input.to_sparse_coo().coalesce(), mask.to_sparse_coo()
    if stored.sparse_dim() != at.sparse_dim():
        raise input._undefined("sparse_mask", "has as many sparse dimensions as its mask")
    which, where = lookup(stored, at._linear(range(at.sparse_dim())))
    values = stored._stored.new_zeros(at._nnz(), *stored._stored.shape[1:])
    chosen = at._with(index_put(values, (which,), index_select(stored._stored, 0, where)))
    return mask._like(chosen)


def nothing(
    op: str,
    *sizes: Any,
    size: Any = None,
    layout: Any,
    blocksize: Any = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> SparseTensor:
    """A tensor of that shape and layout that stores nothing: `ut.zeros(size, layout=…)`."""
    given = sizes if size is None else (size,)
    shape = tuple(given[0]) if len(given) == 1 and not isinstance(given[0], int) else given
    if layout is sparse_coo:
        return sparse_coo_tensor(shape, dtype=dtype, device=device, requires_grad=requires_grad)
    kind = KINDS[layout]
    if len(shape) < 2 or (kind.blocked and blocksize is None):
        raise ArgumentError(
            f"[{op}] {layout!r} is for matrices, and has a blocksize if it has blocks"
        )
    block = tuple(blocksize) if kind.blocked else (1, 1)
    rows, columns = (n // b for n, b in zip(shape[-2:], block, strict=True))
    lines, others = kind._turned((rows, columns))
    batch = tuple(shape[:-2])
    begins = zeros((*batch, lines + 1), dtype=dtypes.int64, device=device)
    places = zeros((*batch, 0), dtype=dtypes.int64, device=device)
    inner = block if kind.blocked else ()
    values = zeros((*batch, 0, *inner), dtype=dtype, device=device, requires_grad=requires_grad)
    return kind(Pattern(begins, places, (lines, others)), values)


ANSWERS = {"sparse_mask": sparse_mask}
