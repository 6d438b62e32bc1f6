"""Rows of positions as pointers to their beginnings, and back, under torch's inner names."""

from __future__ import annotations

from typing import Any

from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..dtypes import int32, int64


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False, out: Any = None
) -> Tensor:
    """Where each of `size` rows begins in a sorted list of row numbers, and where the last ends.

    >>> import undertow as ut
    >>> ut._convert_indices_from_coo_to_csr(ut.tensor([0, 1, 1, 2]), 3)
    tensor([0, 1, 3, 4])
    """
    counts = FUNCTIONS["bincount"](input, minlength=size)
    first = counts.new_zeros(1)
    found: Tensor = FUNCTIONS["cat"]([first, counts.cumsum(0)]).to(int32 if out_int32 else int64)
    return found if out is None else out.copy_(found)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The numbers of rows and columns, (2, n), of positions whose rows begin at `crow_indices`.

    >>> import undertow as ut
    >>> ut._convert_indices_from_csr_to_coo(ut.tensor([0, 1, 3]), ut.tensor([1, 0, 1]))
    tensor([[0, 1, 1],
            [1, 0, 1]])
    """
    rows = FUNCTIONS["arange"](len(crow_indices) - 1).repeat_interleave(crow_indices.diff())
    both = (col_indices, rows) if transpose else (rows, col_indices)
    kind = int32 if out_int32 else int64
    found: Tensor = FUNCTIONS["stack"]([part.to(kind) for part in both])
    return found
