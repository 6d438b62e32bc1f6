"""Sparse matrices by rows: where each row begins, and for its elements the columns and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.tensor import Tensor
from ..layouts import sparse_csr
from ..ops.joining import stack
from .pattern import Pattern
from .tensor import SparseTensor

if TYPE_CHECKING:
    from .coo import SparseCOO


class SparseCSR(SparseTensor):
    """A matrix whose elements are stored row by row; see Note [sparse tensors].

    >>> import undertow as ut
    >>> ut.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csr()
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([1, 1]),
           values=tensor([2., 3.]), size=(2, 2), nnz=2, layout=undertow.sparse_csr)
    """

    __slots__ = ("_places",)

    layout = sparse_csr

    def __init__(self, pattern: Pattern, values: Tensor) -> None:
        super().__init__(values, pattern.shape)
        self._places = pattern

    def _with(self, values: Tensor) -> SparseCSR:
        return SparseCSR(self._places, values)

    def _parts(self) -> list[tuple[str, Tensor]]:
        p = self._places
        return [("crow_indices", p.begins), ("col_indices", p.columns), ("values", self._values)]

    def crow_indices(self) -> Tensor:
        """Where each row begins among the elements, and where the last one ends."""
        return self._places.begins

    def col_indices(self) -> Tensor:
        """The column of each element."""
        return self._places.columns

    def values(self) -> Tensor:
        """The elements, row by row."""
        return self._values

    def sparse_dim(self) -> int:
        """The number of dimensions that have coordinates: 2."""
        return 2

    def dense_dim(self) -> int:
        """The number of dimensions of each value: 0."""
        return 0

    def to_sparse_coo(self) -> SparseCOO:
        """The same matrix by coordinates."""
        from .coo import SparseCOO

        places = stack([self._places.rows, self._places.columns])
        return SparseCOO(places, self._values, self.shape, False).coalesce()

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseCSR:
        """The matrix itself."""
        return self

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None) -> SparseTensor:
        """The same matrix by coordinates, or itself with `layout=ut.sparse_csr`."""
        return self if layout is sparse_csr else self.to_sparse_coo()

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense matrix, zero where nothing is stored."""
        return self.to_sparse_coo().to_dense(dtype)
