"""Where the elements of a sparse matrix stand, row by row, and the product that is made of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..backends.base import Array, Forms
from ..core.dispatch import apply
from ..core.op import Op
from ..core.tensor import Tensor
from ..ops.creation import arange
from ..ops.joining import cat
from ..ops.scan import cumsum
from ..ops.scatter import index_select
from ..ops.sort import argsort


class Pattern:
    """The positions of a matrix's elements in row-major order, as CSR stores them.

    `begins` says where each row begins among the elements, and where the last one ends; `columns`
    where each element stands in its row. What is derived of them is worked out once.
    """

    def __init__(self, begins: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
        self.begins = begins
        self.columns = columns
        self.shape = shape

    @classmethod
    def of_rows(cls, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> Pattern:
        """The pattern of elements whose rows are given, in order."""
        found = cls(begins_of(rows, shape[0]), columns, shape)
        found.rows = rows
        return found

    @cached_property
    def rows(self) -> Tensor:
        """The row of each element."""
        lengths = self.begins[1:] - self.begins[:-1]
        return arange(self.shape[0], device=lengths.device).repeat_interleave(lengths)

    @cached_property
    def order(self) -> Tensor:
        """The elements in the order of columns, which is that of the transposed matrix."""
        return argsort(self.columns, stable=True)

    @cached_property
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix."""
        rows, columns = (index_select(t, 0, self.order) for t in (self.columns, self.rows))
        return Pattern.of_rows(rows, columns, self.shape[::-1])


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
    """The elements of left @ right.T in the pattern."""
    chosen: Any = index_select(left, 0, pattern.rows) * index_select(right, 0, pattern.columns)
    return chosen.sum(-1)
