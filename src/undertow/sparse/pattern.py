"""Where the elements of a sparse matrix stand, row by row, and the product that is made of it."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

from ..backends.base import Array, Forms
from ..core.dispatch import apply
from ..core.op import Op
from ..core.tensor import Tensor
from ..dtypes import DType, int64
from ..ops.create.creation import arange
from ..ops.index.scatter import index_select, take_along_dim
from ..ops.reduce.scan import cumsum
from ..ops.reduce.sort import argsort
from ..ops.shape.joining import cat
from ..shapes import Ints


class Pattern:
    """The positions of a matrix's elements in row-major order, as CSR stores them.

    `begins` says where each row begins among the elements, and where the last one ends; `columns`
    where each element stands in its row. What is derived of them is worked out once. With more
    dimensions in front they are those of a batch of matrices that store equally many elements.
    Elements may be blocks; then rows and columns are those of blocks.
    """

    def __init__(
        self, begins: Tensor, columns: Tensor, shape: tuple[int, int], kind: DType = int64
    ) -> None:
        self.begins = begins
        self.columns = columns
        self.shape = shape
        self.kind = kind  # the dtype in which a user gets positions; here they are int64

    @classmethod
    def of_rows(
        cls, rows: Tensor, columns: Tensor, shape: tuple[int, int], batch: Ints = ()
    ) -> Pattern:
        """The pattern of elements whose rows are given, in order; (*batch, elements) of a batch."""
        batch = tuple(batch)  # type: ignore[arg-type]
        if not batch:
            found = cls(begins_of(rows, shape[0]), columns, shape)
        else:
            count = prod(batch)
            first = arange(count, device=rows.device).unsqueeze(1) * shape[0]
            lines = (rows.reshape(count, rows.shape[-1]) + first).reshape(-1)
            lengths = lines.bincount(minlength=count * shape[0]).reshape(*batch, shape[0])
            start = lengths.new_zeros(*batch, 1)
            found = cls(cat([start, cumsum(lengths, -1)], -1), columns, shape)
        found.rows = rows
        return found

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch; () of one matrix."""
        return tuple(self.begins.shape[:-1])

    @cached_property
    def rows(self) -> Tensor:
        """The row of each element."""
        lengths = (self.begins[..., 1:] - self.begins[..., :-1]).reshape(-1)
        lines = arange(lengths.shape[0], device=lengths.device)
        if self.batch:
            lines = lines % max(self.shape[0], 1)
        return lines.repeat_interleave(lengths).reshape(self.columns.shape)

    @cached_property
    def order(self) -> Tensor:
        """The elements in the order of columns, which is that of the transposed matrix."""
        return argsort(self.columns, dim=-1, stable=True)

    @cached_property
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix."""
        rows, columns = (take_along_dim(t, self.order, -1) for t in (self.columns, self.rows))
        found = Pattern.of_rows(rows, columns, self.shape[::-1], self.batch)
        found.kind = self.kind
        return found


def begins_of(rows: Tensor, count: int) -> Tensor:
    """Where each of `count` rows begins among elements whose rows are given, in order."""
    lengths = rows.bincount(minlength=count)
    return cat([lengths.new_zeros(1), cumsum(lengths, 0)])


def _forward(k: Forms, values: Array, dense: Array, pattern: Pattern) -> Array:
    begins, rows, columns = (t._array for t in (pattern.begins, pattern.rows, pattern.columns))
    return k.csr_matmul(begins, rows, columns, values, dense)


_csr_matmul = Op(
    "csr_matmul",
    _forward,
    inputs="values dense",
    params="pattern",
    vjp={
        "values": lambda g, dense, pattern: sampled(g, dense, pattern),
        "dense": lambda g, values, pattern: product(
            index_select(values, 0, pattern.order), g, pattern.transposed
        ),
    },
)


def product(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
    """The matrix with these values in the pattern, times a dense matrix."""
    out: Tensor = apply(_csr_matmul, (values, dense), (pattern,))
    return out


def sampled(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
    """The elements of left @ right.T in the pattern; of each matrix of a batch."""
    chosen: Any = _lines(left, pattern.rows) * _lines(right, pattern.columns)
    return chosen.sum(-1)


def _lines(matrices: Tensor, which: Tensor) -> Tensor:
    """Some rows of a matrix, or of each of a batch."""
    if which.ndim == 1:
        return index_select(matrices, 0, which)
    return take_along_dim(matrices, which.unsqueeze(-1), -2)
