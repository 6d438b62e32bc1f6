"""Sparse matrices by rows or by columns: where each begins, and for its elements the other place.

CSC is CSR of the transposed matrix, so that both hold one `Pattern` and transposing costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..layouts import layout as Layout
from ..layouts import sparse_coo, sparse_csc, sparse_csr
from ..ops.joining import stack
from ..ops.scatter import index_select
from ..shapes import wrap_dim
from .pattern import Pattern
from .tensor import SparseTensor

if TYPE_CHECKING:
    from .coo import SparseCOO


class SparseCompressed(SparseTensor):
    """What CSR and CSC have in common; see Note [sparse tensors]."""

    __slots__ = ("_places",)

    names: ClassVar[tuple[str, str]]  # of the two tensors of positions
    _places: Pattern

    def __init__(self, pattern: Pattern, values: Tensor) -> None:
        super().__init__(values, self._turned(pattern.shape))
        self._places = pattern

    @staticmethod
    def _turned(shape: tuple[int, int]) -> tuple[int, int]:
        """The shape of the matrix, given that of its pattern."""
        return shape

    def _with(self, values: Tensor) -> Any:
        return type(self)(self._places, values)

    def _parts(self) -> list[tuple[str, Tensor]]:
        p = self._places
        return [*zip(self.names, (p.begins, p.columns), strict=True), ("values", self._stored)]

    def _by_rows(self) -> tuple[Pattern, Tensor]:
        """The pattern and the values, row by row."""
        raise NotImplementedError

    def _other(self) -> tuple[Pattern, Tensor]:
        """The pattern and the values in the other order."""
        p = self._places
        return p.transposed, index_select(self._stored, 0, p.order)

    def values(self) -> Tensor:
        """The elements, in the order in which they are stored."""
        return self._stored

    def sparse_dim(self) -> int:
        """The number of dimensions that have coordinates: 2."""
        return 2

    def dense_dim(self) -> int:
        """The number of dimensions of each value: 0."""
        return 0

    def to_sparse_coo(self) -> SparseCOO:
        """The same matrix by coordinates."""
        from .coo import SparseCOO

        pattern, values = self._by_rows()
        places = stack([pattern.rows, pattern.columns])
        return SparseCOO(places, values, self.shape, False).coalesce()

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseCSR:
        """The same matrix by rows; itself if it is that."""
        return self if isinstance(self, SparseCSR) else SparseCSR(*self._other())

    def to_sparse_csc(self, dense_dim: int | None = None) -> SparseCSC:
        """The same matrix by columns; itself if it is that."""
        return self if isinstance(self, SparseCSC) else SparseCSC(*self._other())

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None) -> SparseTensor:
        """The same matrix by coordinates, or in another layout."""
        return in_layout(self, layout)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense matrix, zero where nothing is stored."""
        return self.to_sparse_coo().to_dense(dtype)

    def transpose(self, dim0: int, dim1: int) -> Any:
        """The transposed matrix, in the other of the two layouts; nothing is copied."""
        a, b = (wrap_dim("transpose", d, 2) for d in (dim0, dim1))
        return self if a == b else self.t()

    def t(self) -> Any:
        """The transposed matrix, in the other of the two layouts; nothing is copied."""
        other = SparseCSC if isinstance(self, SparseCSR) else SparseCSR
        return other(self._places, self._stored)


class SparseCSR(SparseCompressed):
    """A matrix whose elements are stored row by row; see Note [sparse tensors].

    >>> import undertow as ut
    >>> ut.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csr()
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([1, 1]),
           values=tensor([2., 3.]), size=(2, 2), nnz=2, layout=undertow.sparse_csr)
    """

    __slots__ = ()

    layout = sparse_csr
    names = ("crow_indices", "col_indices")

    def _by_rows(self) -> tuple[Pattern, Tensor]:
        return self._places, self._stored

    def crow_indices(self) -> Tensor:
        """Where each row begins among the elements, and where the last one ends."""
        return self._places.begins

    def col_indices(self) -> Tensor:
        """The column of each element."""
        return self._places.columns


class SparseCSC(SparseCompressed):
    """A matrix whose elements are stored column by column; see Note [sparse tensors].

    >>> import undertow as ut
    >>> ut.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csc()
    tensor(ccol_indices=tensor([0, 0, 2]),
           row_indices=tensor([0, 1]),
           values=tensor([2., 3.]), size=(2, 2), nnz=2, layout=undertow.sparse_csc)
    """

    __slots__ = ()

    layout = sparse_csc
    names = ("ccol_indices", "row_indices")

    @staticmethod
    def _turned(shape: tuple[int, int]) -> tuple[int, int]:
        return shape[1], shape[0]

    def _by_rows(self) -> tuple[Pattern, Tensor]:
        return self._other()

    def ccol_indices(self) -> Tensor:
        """Where each column begins among the elements, and where the last one ends."""
        return self._places.begins

    def row_indices(self) -> Tensor:
        """The row of each element."""
        return self._places.columns


def in_layout(x: Any, layout: Layout | None) -> Any:
    """A sparse tensor in the layout that is asked for; None means coordinates."""
    ways = {
        None: x.to_sparse_coo,
        sparse_coo: x.to_sparse_coo,
        sparse_csr: x.to_sparse_csr,
        sparse_csc: x.to_sparse_csc,
    }
    if layout not in ways:
        raise ArgumentError(
            f"[to_sparse] there are sparse_coo, sparse_csr and sparse_csc, got {layout!r}"
        )
    return ways[layout]()
