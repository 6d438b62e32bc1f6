"""Sequences of several lengths without padding: where each of their rows belongs.

Note [packing]
Packed sequences are sorted, the longest first, and cut into steps: the rows of all sequences that
have a first step, then of those that have a second, and so on. `batch_sizes` tells how many these
are. As the sequences are sorted, row b of step t belongs to sequence b: the packed rows are those
of a padded array (steps, batch, …) that exist, in their order.
"""

from __future__ import annotations

import itertools
from typing import Any

from ... import dtypes
from ...core.dispatch import cast, transfer
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ..index.scatter import index_select
from ..index.selection import nonzero
from ..shape.movement import reshaped
from .embedding import steps


class Packing:
    """The rows of packed sequences; `like` is a tensor on the device where the data are."""

    def __init__(self, op: str, batch_sizes: Tensor, rows: int | None, like: Tensor) -> None:
        if batch_sizes.ndim != 1 or batch_sizes.dtype.category != 1:
            raise DTypeError(
                f"[{op}] batch_sizes must be integers, one per step, got {batch_sizes.dtype} of "
                f"shape {batch_sizes.shape}"
            )
        sizes = batch_sizes.tolist()
        falling = all(a >= b for a, b in itertools.pairwise(sizes))
        if not sizes or not falling or sizes[-1] < 1 or sum(sizes) != (rows or sum(sizes)):
            of = "" if rows is None else f", and add up to the {rows} rows of the data"
            raise ArgumentError(
                f"[{op}] batch_sizes must be at least one number, at least 1, never rise{of}; got "
                f"{sizes}"
            )
        self.steps, self.batch = len(sizes), sizes[0]
        self.ragged = sizes[-1] < self.batch
        there = transfer(cast(batch_sizes, dtypes.int64), like.device).unsqueeze(1)
        self.exists = there > steps(self.batch, like)

    @property
    def lengths(self) -> Tensor:
        """The steps of each sequence."""
        return self.exists.sum(0)

    @property
    def rows(self) -> Tensor:
        """Where each packed row is in a padded array of (steps * batch) rows."""
        found: Any = nonzero(reshaped(self.exists, (self.steps * self.batch,)))
        return reshaped(found, (found.shape[0],))

    def padded(self, data: Tensor, value: float = 0.0, total: int | None = None) -> Tensor:
        """(steps, batch, …) of packed data, with a value where a sequence has ended."""
        count = self.steps if total is None else total
        if self.ragged or count > self.steps:
            whole = data.new_full((count * self.batch, *data.shape[1:]), value)
            data = whole.index_copy(0, self.rows, data)
        return reshaped(data, (count, self.batch, *data.shape[1:]))

    def packed(self, x: Tensor) -> Tensor:
        """The rows of (steps, batch, …) that exist."""
        if x.shape[:2] != (self.steps, self.batch):
            raise ShapeError(f"[pack] expects ({self.steps}, {self.batch}, …), got shape {x.shape}")
        x = reshaped(x, (self.steps * self.batch, *x.shape[2:]))
        return index_select(x, 0, self.rows) if self.ragged else x
