"""Sparse tensors by coordinates: one column of indices for each element, in any order."""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from typing import Any

from ..core.tensor import Tensor
from ..dtypes import bool as bool_
from ..errors import ArgumentError, DimError, UnsupportedError
from ..layouts import sparse_coo
from ..ops.index.scatter import index_add, index_select
from ..ops.shape.joining import stack
from ..shapes import wrap_dim
from .pattern import Pattern
from .tensor import SparseTensor


def _movement() -> Any:
    """The file that knows the other shapes, which is above this one."""
    return import_module("undertow.sparse.movement")


class SparseCOO(SparseTensor):
    """Elements (or dense blocks of them) with their coordinates; see Note [sparse tensors].

    Coordinates may occur several times: what stands there is the sum. `coalesce` adds it up and
    brings the coordinates into order.

    >>> import undertow as ut
    >>> x = ut.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
    >>> x.coalesce()
    tensor(indices=tensor([[0, 1],
                           [2, 0]]),
           values=tensor([3., 9.]),
           size=(2, 3), nnz=2, layout=undertow.sparse_coo)
    """

    __slots__ = ("_coalesced", "_places")

    layout = sparse_coo

    def __init__(self, indices: Tensor, values: Tensor, shape: Any, coalesced: bool) -> None:
        super().__init__(values, shape)
        self._places = indices
        self._coalesced = coalesced

    def _with(self, values: Tensor) -> SparseCOO:
        shape = (*self.shape[: self.sparse_dim()], *values.shape[1:])
        return SparseCOO(self._places, values, shape, self._coalesced)

    def _parts(self) -> list[tuple[str, Tensor]]:
        return [("indices", self._places), ("values", self._stored)]

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._stored

    def _saved(self) -> tuple[Any, ...]:
        """What a checkpoint keeps of it, besides the layout."""
        return self._places, self._stored.detach(), self.shape, self._coalesced

    def sparse_dim(self) -> int:
        """The number of dimensions that have coordinates."""
        return self._places.shape[0]

    def dense_dim(self) -> int:
        """The number of dimensions of each value."""
        return self._stored.ndim - 1

    def is_coalesced(self) -> bool:
        """Whether the coordinates are in order and occur once."""
        return self._coalesced

    def indices(self) -> Tensor:
        """The coordinates of a coalesced tensor, a row for each dimension."""
        return self._once("indices")._places

    def values(self) -> Tensor:
        """The values of a coalesced tensor."""
        return self._once("values")._stored

    def _coalesced_(self, coalesced: bool) -> SparseCOO:
        """Say that coordinates occur once, or may occur several times; nobody checks it."""
        self._coalesced = bool(coalesced)
        return self

    def _once(self, op: str) -> SparseCOO:
        if not self._coalesced:
            raise ArgumentError(
                f"[{op}] the coordinates may occur several times; coalesce() the tensor first"
            )
        return self

    def _linear(self, dims: range | list[int]) -> Tensor:
        """The coordinates of some dimensions as one number, in row-major order."""
        rows = [(self._places[d], self.shape[d]) for d in dims]
        first = self._places.new_zeros(self._nnz())
        return reduce(lambda place, row: place * row[1] + row[0], rows, first)

    def _drop(self) -> None:
        self._places, self._stored = self._places[:, :0], self._stored.detach()[:0]
        self._coalesced = True

    def coalesce(self) -> SparseCOO:
        """The same tensor with its coordinates in order, each once."""
        if self._coalesced:
            return self
        sizes = self.shape[: self.sparse_dim()]
        if not sizes:
            values = self._stored.sum(0, keepdim=True, dtype=self.dtype)
            return SparseCOO(self._places[:, :1], values, self.shape, True)
        places, which = self._linear(range(self.sparse_dim())).unique(return_inverse=True)
        start = self._stored.new_zeros(places.shape[0], *self._stored.shape[1:])
        values = index_add(start, 0, which, self._stored)
        rows = []
        for size in reversed(sizes):
            rows.append(places % size)
            places = places.div(size, rounding_mode="floor")
        return SparseCOO(stack(rows[::-1]), values, self.shape, True)

    def _at(self) -> tuple[Tensor, ...]:
        """An index for each sparse dimension."""
        return tuple(self._places.unbind(0))

    def _gradient(self, values: Tensor) -> SparseCOO:
        """The gradient, given that of the values.

        Elements that stand at one place have the same gradient, which counts once.
        """
        if self._coalesced:
            return self._with(values)
        place = self._linear(range(self.sparse_dim()))
        ordered, order = place.sort(stable=True)
        first = ordered.new_ones(ordered.shape).to(bool_)
        first[1:] = ordered[1:] != ordered[:-1]
        which = order[first]
        places = index_select(self._places, 1, which)
        return SparseCOO(places, index_select(values, 0, which), self.shape, True)

    def to_sparse_coo(self) -> SparseCOO:
        """The tensor itself."""
        return self

    def _pattern(self, op: str) -> Pattern:
        """The positions of a coalesced matrix."""
        if self.sparse_dim() != 2 or self.dense_dim():
            raise UnsupportedError(
                f"[{op}] takes sparse matrices of numbers, got shape {self.shape} with "
                f"{self.dense_dim()} dense dimensions"
            )
        rows, columns = self._places
        return Pattern.of_rows(rows, columns, (self.shape[0], self.shape[1]))

    def transpose(self, dim0: int, dim1: int) -> SparseCOO:
        """Two of the sparse dimensions exchanged, or two of the dense ones."""
        a, b = (wrap_dim("transpose", d, self.ndim) for d in (dim0, dim1))
        order = list(range(self.ndim))
        order[a], order[b] = b, a
        return self.permute(order)

    def t(self) -> SparseCOO:
        """The transposed matrix; itself, if it has fewer dimensions."""
        if self.ndim > 2 or self.sparse_dim() not in (self.ndim, 2) or self.dense_dim():
            raise DimError(
                f"[t] expects a sparse matrix without dense dimensions, got {tuple(self.shape)} "
                f"with {self.dense_dim()}"
            )
        return self if self.ndim < 2 else self.transpose(0, 1)

    @property
    def T(self) -> SparseCOO:
        """The transposed matrix."""
        return self.t()

    def _summed(self) -> SparseCOO:
        return self.coalesce()

    # Other shapes -------------------------------------------------------------------------
    def permute(self, *sizes: Any, dims: Any = None) -> SparseCOO:
        """The dimensions in another order; sparse ones stay before dense ones."""
        found: SparseCOO = _movement().permute(self, *(sizes if dims is None else (dims,)))
        return found

    def unsqueeze(self, dim: int) -> SparseCOO:
        """One more dimension of size 1."""
        found: SparseCOO = _movement().unsqueeze(self, dim)
        return found

    def select(self, dim: int, index: int) -> SparseCOO | Tensor:
        """What has one index in a dimension; dense if that was the last sparse one."""
        found: SparseCOO | Tensor = _movement().select(self, dim, index)
        return found

    def index_select(self, dim: int, index: Tensor) -> SparseCOO:
        """What has the indices of a list in a dimension, each as often as it is listed."""
        found: SparseCOO = _movement().index_select(self, dim, index)
        return found
