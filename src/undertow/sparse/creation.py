"""Sparse tensors of positions and values, and of dense tensors."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..devices import DeviceLike
from ..dtypes import DTypeLike
from ..errors import ArgumentError, ShapeError
from ..layouts import sparse_coo, sparse_csr, strided
from ..ops.embedding import require_within
from ..ops.from_data import as_tensor
from ..shapes import Ints
from .coo import SparseCOO
from .csr import SparseCSR
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
    if found.dtype.category != 1 and found.numel():
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

    Without a size it is as small as the coordinates allow. `sparse_coo_tensor(size=…)` is empty.
    The tensor is differentiable in its values; with `requires_grad` it is a leaf itself.

    >>> import undertow as ut
    >>> ut.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    op = "sparse_coo_tensor"
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
    op = "sparse_csr_tensor"
    found = _given(values, dtype, device, requires_grad)
    begins = _positions(op, "crow_indices", crow_indices, 1, found)
    columns = _positions(op, "col_indices", col_indices, 1, found)
    count = columns.shape[0]
    if found.ndim != 1 or found.shape[0] != count:
        raise ShapeError(f"[{op}] {count} columns need as many values, got shape {found.shape}")
    if size is None:
        size = (begins.shape[0] - 1, int(columns.amax()) + 1 if count else 0)
    rows, width = size  # type: ignore[misc]
    if begins.shape[0] != rows + 1:
        raise ShapeError(f"[{op}] {rows} rows need {rows + 1} crow_indices, got {begins.shape[0]}")
    lengths = begins[1:] - begins[:-1]
    if int(begins[0]) or int(begins[-1]) != count or (rows and int(lengths.amin()) < 0):
        raise ArgumentError(
            f"[{op}] crow_indices rise from 0 to the number of elements, {count}; got "
            f"{begins.tolist() if rows < 9 else '…'}"
        )
    message = f"[{op}] column {{}} is out of range for {width} columns"
    require_within(columns, 0, width, message)
    return SparseCSR(Pattern(begins, columns, (rows, width)), found)


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
    if layout is sparse_csr:
        return to_sparse_coo(input).to_sparse_csr()
    if layout not in (None, sparse_coo):
        raise ArgumentError(f"[to_sparse] there are sparse_coo and sparse_csr, got {layout!r}")
    return to_sparse_coo(input, sparse_dim)
