"""Sparse matrices by rows or by columns: where each begins, and for its elements the other place.

CSC is CSR of the transposed matrix, so that both hold one `Pattern` and transposing costs nothing.
BSR and BSC are the same of blocks of elements. Further dimensions in front are those of a batch,
and behind they are dense: (*batch, rows, columns, *dense).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.tensor import Tensor
from ..errors import ArgumentError, DimError, ShapeError
from ..layouts import layout as Layout
from ..layouts import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..ops.create.creation import arange
from ..ops.index.scatter import index_select
from ..ops.index.selection import index_put
from ..ops.shape.joining import stack
from ..shapes import as_int, wrap_dim
from .pattern import Pattern
from .tensor import SparseTensor

if TYPE_CHECKING:
    from .coo import SparseCOO


class SparseCompressed(SparseTensor):
    """What CSR, CSC, BSR and BSC have in common; see Note [sparse tensors]."""

    __slots__ = ("_places",)

    names: ClassVar[tuple[str, str]]  # of the two tensors of positions
    by_rows: ClassVar[bool]
    blocked: ClassVar[bool]
    _places: Pattern

    def __init__(self, pattern: Pattern, values: Tensor) -> None:
        front = len(pattern.batch) + 1
        block = tuple(values.shape[front : front + 2]) if self.blocked else (1, 1)
        dense = values.shape[front + 2 * self.blocked :]
        sizes = (n * b for n, b in zip(self._turned(pattern.shape), block, strict=True))
        super().__init__(values, (*pattern.batch, *sizes, *dense))
        self._places = pattern

    @classmethod
    def _turned(cls, shape: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns, given those of the pattern, and the other way round."""
        return shape if cls.by_rows else shape[::-1]

    def _with(self, values: Tensor) -> Any:
        return type(self)(self._places, values)

    def _parts(self) -> list[tuple[str, Tensor]]:
        return [*zip(self.names, self._pointers(), strict=True), ("values", self._stored)]

    def _pointers(self) -> tuple[Tensor, Tensor]:
        """The two tensors of positions, in the dtype in which they were given."""
        p = self._places
        return p.begins.to(p.kind), p.columns.to(p.kind)

    def _saved(self) -> tuple[Any, ...]:
        """What a checkpoint keeps of it, besides the layout."""
        return *self._pointers(), self._stored.detach(), self.shape

    def _nnz(self) -> int:
        return self._places.columns.shape[-1]

    @property
    def _batch(self) -> int:
        """The number of dimensions of the batch."""
        return len(self._places.batch)

    @property
    def _block(self) -> tuple[int, int] | None:
        """The shape of the blocks, if there are such."""
        front = self._batch + 1
        if not self.blocked:
            return None
        return self._stored.shape[front], self._stored.shape[front + 1]

    def _other(self) -> tuple[Pattern, Tensor]:
        """The pattern and the values in the other order."""
        p, values = self._places, self._stored
        if not p.batch:
            return p.transposed, index_select(values, 0, p.order)
        count = prod(p.batch)
        first = arange(count, device=values.device) * self._nnz()
        order = (p.order.reshape(count, self._nnz()) + first.unsqueeze(1)).reshape(-1)
        found = index_select(values.flatten(0, self._batch), 0, order)
        return p.transposed, found.reshape(values.shape)

    def _plain(self) -> tuple[Pattern, Tensor]:
        """The pattern and the values, row by row, of a matrix of numbers."""
        if self.blocked:
            found: SparseCSR = self.to_sparse_csr()
            return found._plain()
        if self.ndim != 2:
            raise self._undefined("matmul", "is multiplied if it is a matrix of numbers")
        return (self._places, self._stored) if self.by_rows else self._other()

    def values(self) -> Tensor:
        """The elements, in the order in which they are stored."""
        return self._stored

    def sparse_dim(self) -> int:
        """The number of dimensions that have coordinates: 2."""
        return 2

    def dense_dim(self) -> int:
        """The number of dimensions of each value: 0, as a rule."""
        return self.ndim - 2 - self._batch

    def _at(self) -> tuple[Tensor, ...]:
        """Indices for all dimensions but dense ones; together they have the shape of the values."""
        p = self._places
        device = self._stored.device
        count = 1 + 2 * self.blocked
        found = []
        for d, size in enumerate(p.batch):
            room = [1] * (self._batch + count)
            room[d] = size
            found.append(arange(size, device=device).reshape(room))
        for place, along in zip(self._turned_pair(p.rows, p.columns), (0, 1), strict=True):
            if self._block is not None:
                size = self._block[along]
                inside = arange(size, device=device)
                inside = inside.unsqueeze(1) if along == 0 else inside
                place = place.unsqueeze(-1).unsqueeze(-1) * size + inside
            found.append(place)
        return tuple(found)

    @classmethod
    def _turned_pair(cls, lines: Any, others: Any) -> tuple[Any, Any]:
        return (lines, others) if cls.by_rows else (others, lines)

    def to_sparse_coo(self) -> SparseCOO:
        """The same matrix by coordinates."""
        from .coo import SparseCOO

        places = self._at()
        leading = self._stored.shape[: self._stored.ndim - self.dense_dim()]
        rows = [place.expand(leading).reshape(-1) for place in places]
        values = self._stored.reshape(prod(leading), *self.shape[self.ndim - self.dense_dim() :])
        return SparseCOO(stack(rows), values, self.shape, False).coalesce()

    def transpose(self, dim0: int, dim1: int) -> Any:
        """Rows and columns exchanged, or two dimensions of the batch; nothing is copied.

        By rows becomes by columns, and the other way round.
        """
        a, b = sorted(wrap_dim("transpose", d, self.ndim) for d in (dim0, dim1))
        batch = self._batch
        if a == b:
            return self
        if (a, b) == (batch, batch + 1):
            values = self._stored
            if self.blocked:
                values = values.transpose(batch + 1, batch + 2)
            return _TURNED[type(self)](self._places, values)
        if b < batch:
            p = self._places
            begins, columns = p.begins.transpose(a, b), p.columns.transpose(a, b)
            return type(self)(
                Pattern(begins, columns, p.shape, p.kind), self._stored.transpose(a, b)
            )
        raise DimError(
            f"[transpose] exchanges rows and columns, or dimensions of the batch, got {a} and {b}"
        )

    def t(self) -> Any:
        """The transposed matrix, in the layout of the other order; nothing is copied."""
        if self.ndim != 2:
            raise DimError(f"[t] expects a matrix, got shape {tuple(self.shape)}")
        return self.transpose(0, 1)

    @property
    def T(self) -> Any:
        """The transposed matrix."""
        return self.t()

    def select(self, dim: int, index: int) -> Any:
        """One matrix of a batch; of a matrix, one of its rows or columns, by coordinates."""
        at = wrap_dim("select", dim, self.ndim)
        size, number = self.shape[at], as_int("select", "index", index)
        if not -size <= number < size or self._batch <= at < self.ndim - self.dense_dim():
            return self.to_sparse_coo().select(at, number)
        if at >= self._batch:
            return self._with(self._stored.select(at - self.ndim, number))
        p = self._places
        begins, columns = p.begins.select(at, number), p.columns.select(at, number)
        values = self._stored.select(at, number)
        return type(self)(Pattern(begins, columns, p.shape, p.kind), values)


class _ByRows(SparseCompressed):
    __slots__ = ()

    names = ("crow_indices", "col_indices")
    by_rows = True

    def crow_indices(self) -> Tensor:
        """Where each row begins among the elements, and where the last one ends."""
        return self._pointers()[0]

    def col_indices(self) -> Tensor:
        """The column of each element."""
        return self._pointers()[1]


class _ByColumns(SparseCompressed):
    __slots__ = ()

    names = ("ccol_indices", "row_indices")
    by_rows = False

    def ccol_indices(self) -> Tensor:
        """Where each column begins among the elements, and where the last one ends."""
        return self._pointers()[0]

    def row_indices(self) -> Tensor:
        """The row of each element."""
        return self._pointers()[1]


class SparseCSR(_ByRows):
    """A matrix whose elements are stored row by row; see Note [sparse tensors].

    >>> import undertow as ut
    >>> ut.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csr()
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([1, 1]),
           values=tensor([2., 3.]), size=(2, 2), nnz=2, layout=undertow.sparse_csr)
    """

    __slots__ = ()

    layout = sparse_csr
    blocked = False


class SparseCSC(_ByColumns):
    """A matrix whose elements are stored column by column; see Note [sparse tensors].

    >>> import undertow as ut
    >>> ut.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csc()
    tensor(ccol_indices=tensor([0, 0, 2]),
           row_indices=tensor([0, 1]),
           values=tensor([2., 3.]), size=(2, 2), nnz=2, layout=undertow.sparse_csc)
    """

    __slots__ = ()

    layout = sparse_csc
    blocked = False


class SparseBSR(_ByRows):
    """A matrix of which blocks are stored, row by row; see Note [sparse tensors].

    >>> import undertow as ut
    >>> ut.eye(4).to_sparse_bsr((2, 2)).col_indices()
    tensor([0, 1])
    """

    __slots__ = ()

    layout = sparse_bsr
    blocked = True


class SparseBSC(_ByColumns):
    """A matrix of which blocks are stored, column by column; see Note [sparse tensors].

    >>> import undertow as ut
    >>> ut.eye(4).to_sparse_bsc((2, 4)).row_indices()
    tensor([0, 1])
    """

    __slots__ = ()

    layout = sparse_bsc
    blocked = True


_TURNED: dict[Any, Any] = {
    SparseCSR: SparseCSC,
    SparseCSC: SparseCSR,
    SparseBSR: SparseBSC,
    SparseBSC: SparseBSR,
}
KINDS: dict[Any, type[SparseCompressed]] = {kind.layout: kind for kind in _TURNED}


def compress(op: str, x: SparseCOO, layout: Layout, blocksize: Any = None) -> Any:
    """A tensor by coordinates in a layout by rows or columns.

    All but the last two sparse dimensions are those of a batch, whose matrices must store equally
    many elements.
    """
    kind = KINDS[layout]
    x = x.coalesce()
    front, dense = x.sparse_dim() - 2, tuple(x.shape[x.sparse_dim() :])
    if front < 0:
        raise ShapeError(f"[{op}] takes matrices, got shape {tuple(x.shape)}")
    batch, size = tuple(x.shape[:front]), tuple(x.shape[front : front + 2])
    block = _blocks(op, kind, size, blocksize)
    rows, columns = x._places[front], x._places[front + 1]
    shape = kind._turned((size[0] // block[0], size[1] // block[1]))
    values = x._stored
    if front or kind.blocked or not kind.by_rows:
        inside = (rows % block[0], columns % block[1])
        lines, others = kind._turned_pair(
            rows.div(block[0], rounding_mode="floor"), columns.div(block[1], rounding_mode="floor")
        )
        place = (x._linear(range(front)) * shape[0] + lines) * shape[1] + others
        if kind.blocked:
            place, which = place.unique(return_inverse=True)
            start = values.new_zeros(place.shape[0], *block, *dense)
            values = index_put(start, (which, *inside), values)
        else:
            place, order = place.sort()
            values = index_select(values, 0, order)
        others = place % max(shape[1], 1)
        lines = place.div(max(shape[1], 1), rounding_mode="floor")
    else:
        lines, others = rows, columns
    if front:
        lines, others, values = _by_batch(op, batch, shape[0], lines, others, values)
    return kind(Pattern.of_rows(lines, others, shape, batch), values)


def _by_batch(
    op: str, batch: tuple[int, ...], count: int, lines: Tensor, others: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The parts with a dimension for each of the batch; lines are numbered over all matrices."""
    matrices = prod(batch)
    which = lines.div(max(count, 1), rounding_mode="floor")
    each = which.bincount(minlength=matrices)
    if matrices and int(each.amin()) != int(each.amax()):
        raise ArgumentError(
            f"[{op}] the matrices of a batch must store equally many elements, got {each.tolist()}"
        )
    stored = int(each[0]) if matrices else 0
    return (
        (lines % max(count, 1)).reshape(*batch, stored),
        others.reshape(*batch, stored),
        values.reshape(*batch, stored, *values.shape[1:]),
    )


def _blocks(op: str, kind: Any, size: tuple[int, ...], blocksize: Any) -> tuple[int, int]:
    """The size of blocks, which fit the matrix; (1, 1) if there are none."""
    name = kind.layout.name
    if not kind.blocked:
        if blocksize is not None:
            raise ArgumentError(f"[{op}] {name} has no blocks, got blocksize {blocksize}")
        return 1, 1
    if blocksize is None or len(blocksize) != 2:
        raise ArgumentError(f"[{op}] {name} needs a blocksize of two numbers, got {blocksize}")
    a, b = (as_int(op, "blocksize", n) for n in blocksize)
    if a < 1 or b < 1 or size[0] % a or size[1] % b:
        raise ArgumentError(f"[{op}] blocks of {(a, b)} do not fit a matrix of {tuple(size)}")
    return a, b


def in_layout(
    x: SparseTensor, layout: Layout | None, blocksize: Any = None, op: str = "to_sparse"
) -> Any:
    """A sparse tensor in the layout that is asked for; None means coordinates."""
    if layout in (None, sparse_coo):
        if blocksize is not None:
            raise ArgumentError(f"[{op}] sparse_coo has no blocks, got blocksize {blocksize}")
        return x.to_sparse_coo()
    if layout is strided:
        return x.to_dense()
    if layout not in KINDS:
        raise ArgumentError(f"[{op}] layout is one of {[k.name for k in KINDS]}, got {layout!r}")
    kind = KINDS[layout]
    if isinstance(x, SparseCompressed):
        own = None if x._block is None else tuple(x._block)
        same = own == (None if blocksize is None else tuple(blocksize))
        if same and isinstance(x, kind):
            return x
        if same and _TURNED[type(x)] is kind:
            return kind(*x._other())
        found: SparseTensor = compress(op, x.to_sparse_coo(), layout, blocksize)
        found._places.kind = x._places.kind
        return found
    return compress(op, x, layout, blocksize)  # type: ignore[arg-type]


def _way(layout: Layout) -> Any:
    name = f"to_{layout.name}"
    if KINDS[layout].blocked:

        def blocks(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
            return self.to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim)

        found: Any = blocks
    else:

        def elements(self: Any, dense_dim: int | None = None) -> Any:
            return self.to_sparse(layout=layout, dense_dim=dense_dim)

        found = elements
    found.__name__ = name
    found.__doc__ = f"The same matrix in the layout {layout.name}; itself if it has that."
    return found


for _layout in KINDS:
    setattr(SparseTensor, f"to_{_layout.name}", _way(_layout))
