"""Sparse tensors of positions and values, and of dense tensors."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..devices import DeviceLike
from ..dtypes import DTypeLike
from ..errors import ArgumentError, ShapeError
from ..layouts import layout as Layout
from ..layouts import sparse_coo, sparse_csc, sparse_csr, strided
from ..ops.creation import arange
from ..ops.embedding import require_within
from ..ops.from_data import as_tensor
from ..ops.joining import cat, stack
from ..shapes import Ints
from .compressed import SparseCompressed, SparseCSC, SparseCSR
from .coo import SparseCOO
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
        indices, values = as_tensor([[] for _ in size]), as_tensor([])
    found = _given(values, dtype, device, requires_grad)
    places = _positions(op, "indices", indices, 2, found)
    if not found.ndim or found.shape[0] != places.shape[1]:
        raise ShapeError(
            f"[{op}] {places.shape[1]} coordinates need as many values, got shape {found.shape}"
        )
    if size is None:
        if not places.shape[1]:
            raise ArgumentError(f"[{op}] without coordinates it needs a size")
        size = (*(places.amax(1) + 1).tolist(), *found.shape[1:])
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
) -> Any:
    """A matrix by rows or by columns, of parts that are held against each other."""
    op = f"{kind.layout.name}_tensor"
    lines, others = ("rows", "columns") if kind is SparseCSR else ("columns", "rows")
    found = _given(values, dtype, device, requires_grad)
    begins = _positions(op, kind.names[0], begins, 1, found)
    places = _positions(op, kind.names[1], places, 1, found)
    count = places.shape[0]
    if found.ndim != 1 or found.shape[0] != count:
        raise ShapeError(f"[{op}] {count} {others} need as many values, got shape {found.shape}")
    if size is None:
        shape = (begins.shape[0] - 1, int(places.amax()) + 1 if count else 0)
    else:
        shape = kind._turned(tuple(size))  # type: ignore[arg-type]
    if begins.shape[0] != shape[0] + 1:
        raise ShapeError(
            f"[{op}] {shape[0]} {lines} need {shape[0] + 1} {kind.names[0]}, got {begins.shape[0]}"
        )
    lengths = begins[1:] - begins[:-1]
    if int(begins[0]) or int(begins[-1]) != count or (shape[0] and int(lengths.amin()) < 0):
        raise ArgumentError(
            f"[{op}] {kind.names[0]} rise from 0 to the number of elements, {count}; got "
            f"{begins.tolist() if shape[0] < 9 else '…'}"
        )
    message = f"[{op}] {others[:-1]} {{}} is out of range for {shape[1]} {others}"
    require_within(places, 0, shape[1], message)
    return kind(Pattern(begins, places, shape), found)


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
    return _compressed(SparseCSR, *parts)


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
    return _compressed(SparseCSC, *parts)


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
    """`sparse_csr_tensor` or `sparse_csc_tensor`, as `layout` says.

    >>> import undertow as ut
    >>> ut.sparse_compressed_tensor([0, 1], [0], [5.0], layout=ut.sparse_csc).layout
    undertow.sparse_csc
    """
    kinds: dict[Any, type[SparseCompressed]] = {sparse_csr: SparseCSR, sparse_csc: SparseCSC}
    if layout not in kinds:
        raise ArgumentError(
            f"[sparse_compressed_tensor] layout must be ut.sparse_csr or ut.sparse_csc, got "
            f"{layout!r}"
        )
    parts = (compressed_indices, plain_indices, values, size, dtype, device, requires_grad)
    return _compressed(kinds[layout], *parts)


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
    places = stack([cat(rows), cat(columns)])
    found = SparseCOO(places, cat(values), size, False)
    return found if layout in (None, sparse_coo) else found.to_sparse(layout=layout)


def to_sparse_coo(input: Tensor, sparse_dim: int | None = None) -> SparseCOO:
    """The elements of a dense tensor that are not zero, with their coordinates.

    With fewer sparse dimensions, its slices of which not all is zero.
    """
    count = input.ndim if sparse_dim is None else sparse_dim
    if not 0 < count <= input.ndim:
        raise ArgumentError(
            f"[to_sparse] a tensor of {input.ndim} dimensions has 1 to {input.ndim} sparse ones, "
            f"got {count}"
        )
    with no_grad():
        filled = input.detach() != 0
        places = filled if count == input.ndim else filled.flatten(count).any(-1)
        indices = places.nonzero().t().contiguous()
    values = input[tuple(indices.unbind(0))]
    return SparseCOO(indices, values, input.shape, True)


def to_sparse(
    input: Tensor, sparse_dim: int | None = None, *, layout: Any = None
) -> SparseTensor | Tensor:
    """A dense tensor in a sparse layout, or itself in that which it has."""
    if layout is strided:
        return input
    if layout in (None, sparse_coo):
        return to_sparse_coo(input, sparse_dim)
    return to_sparse_coo(input).to_sparse(layout=layout)


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
    places = mask.to_sparse_coo().coalesce()
    if isinstance(input, SparseTensor):
        input = input.to_dense()
    found = places._with(input[tuple(places._places.unbind(0))])
    return mask._like(found)
