"""Scans and sorts over a runtime: lay out and launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernel.groups.elements import blocks
from ...kernel.groups.scans import carried_types, carry_function, scan_function
from ...kernel.groups.sorting import RUN, merge_function, runs_function, sorted_function
from ...kernel.layout import row_major, some
from ..memory_types import numpy_name, scalar_type
from ..strided import StridedArray
from .launching import Made, sharing
from .layouts import as_words, countable, padded, steps_in
from .memory import LargeBlock, TooLarge
from .reductions import Reductions

FEW = 256  # lines: so many occupy the device, so that none need be cut
LONG = 1024  # elements of a line that is cut
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


class Scans(Reductions):
    """scan, recurrence and sort."""

    def scan(self, kind: str, x: StridedArray, dim: int) -> Any:
        dtypes = [x.dtype, _INT64] if kind in ("max", "min") else [x.dtype]
        return self._scan(kind, (x,), dim, dtypes, False)

    def recurrence(self, a: StridedArray, b: StridedArray, dim: int, reverse: bool) -> StridedArray:
        found: StridedArray = self._scan(
            "recurrence", (self.expand(a, b.shape), b), dim, [b.dtype], reverse
        )
        return found

    def _scan(
        self,
        kind: str,
        inputs: Sequence[StridedArray],
        dim: int,
        dtypes: Sequence[Any],
        reverse: bool,
    ) -> Any:
        shape = inputs[0].shape
        outs = [self.empty(shape, t) for t in dtypes]
        if outs[0].size:
            seen = sharing(inputs)
            key = ("scan", kind, dim, reverse, shape, *dtypes, seen)
            key += tuple([(x.strides, x.dtype) for x in inputs])
            given = outs
            if reverse:
                flip = (*(slice(None),) * dim, slice(None, None, -1))
                inputs = [self.slice(x, flip) for x in inputs]
                given = [self.slice(o, flip) for o in outs]
            lines = math.prod(shape) // shape[dim]
            length = shape[dim]
            if length >= LONG and lines < FEW and kind not in ("prod", "recurrence"):
                self._in_pieces(key, kind, inputs, dim, given, seen)
            else:
                plan = self.plan(key, _make, self, kind, inputs, dim, given, seen, "whole", length)
                self.launcher.launch(plan, [*given, *inputs])
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _in_pieces(
        self,
        key: Any,
        kind: str,
        inputs: Sequence[StridedArray],
        dim: int,
        outs: Sequence[StridedArray],
        seen: tuple[int, ...],
    ) -> None:
        """A scan by three launches; see kernel/groups/scans."""
        length = outs[0].shape[dim]
        piece = 1 << (length.bit_length() + 1) // 2
        first = self.plan((key, 0), _make, self, kind, inputs, dim, outs, seen, "pieces", piece)
        count, pieces, types = first.extra
        ends, carries = (
            [self.empty((count,), np.dtype(numpy_name(t))) for t in types] for _ in range(2)
        )
        self.launcher.launch(first, [*ends, *inputs])
        dtype = scalar_type(self.type_of(inputs[0].dtype))

        def make() -> Made:
            lines = count // pieces
            own = tuple(range(2 * len(types)))
            given = (kind, dtype)
            return Made("carry", carry_function, given, own, (lines, pieces), blocks(lines))

        self.launcher.launch(self.plan((key, 1), make), [*carries, *ends])
        last = self.plan((key, 2), _make, self, kind, inputs, dim, outs, seen, "carry", piece)
        self.launcher.launch(last, [*outs, *carries, *inputs])

    def sort(
        self, x: StridedArray, dim: int, descending: bool, count: int | None = None
    ) -> tuple[StridedArray, StridedArray]:
        length = x.shape[dim] if x.shape else 1
        first = length if count is None else min(count, length)
        shape = (*x.shape[:dim], first, *x.shape[dim + 1 :]) if x.shape else ()
        values, indices = self.empty(shape, x.dtype), self.empty(shape, _INT64)
        if not values.size:
            return values, indices
        if any(a.buffer.__class__ is LargeBlock for a in (x, indices)):
            raise TooLarge(max(x.buffer.nbytes, indices.buffer.nbytes))
        order = self._order(x, dim, descending)
        words, result = as_words(x), as_words(values)
        key = ("sorted", dim, first, x.shape, x.strides, x.dtype)

        def make() -> Made:
            kept, (out_steps, steps) = self._lines(
                shape, dim, [row_major(shape), steps_in(words, x.shape)]
            )
            total = countable(shape)
            ints = (total, first, length, *kept, *out_steps, *steps)
            given = (self.type_of(words.dtype), len(kept))
            return Made("sorted", sorted_function, given, (0, 1, 2, 3), ints, blocks(total))

        self.launcher.launch(self.plan(key, make), [result, indices, words, order])
        return values, indices

    def _lines(self, shape: Sequence[int], dim: int, steps: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The dimensions besides `dim`, and each operand's steps along them, then along `dim`."""
        others = [d for d in range(len(shape)) if d != dim]
        kept, rest = padded(*some(tuple(shape), others, steps, ordered=True))
        along = [s[dim] if s else 0 for s in steps]
        return kept, [(*mine, own) for mine, own in zip(rest, along, strict=True)]

    def _order(self, x: StridedArray, dim: int, descending: bool) -> StridedArray:
        """The positions of the elements of each line in order, line after line."""
        length = x.shape[dim] if x.shape else 1
        key = ("order", dim, descending, x.shape, x.strides, x.dtype)

        def make(width: int) -> Made:
            kept, (steps,) = self._lines(x.shape, dim, [steps_in(x, x.shape)])
            count = countable(x.shape)
            given = (self.type_of(x.dtype), len(kept), descending)
            ints = (count, length, *kept, *steps)
            if not width:
                return Made("runs", runs_function, given, (0, 1), ints, blocks(count))
            ints = (*ints, width, (width + 1).bit_length())
            return Made("merge", merge_function, given, (0, 1, 2), ints, blocks(count))

        order = self.empty((x.size,), _INT32)
        self.launcher.launch(self.plan((key, 0), make, 0), [order, x])
        width = RUN
        spare = self.empty((x.size,), _INT32) if width < length else order
        while width < length:
            plan = self.plan((key, width), make, width)
            self.launcher.launch(plan, [spare, order, x])
            order, spare = spare, order
            width *= 2
        return order


def _make(
    k: Scans,
    kind: str,
    inputs: Sequence[StridedArray],
    dim: int,
    outs: Sequence[StridedArray],
    seen: tuple[int, ...],
    how: str,
    piece: int,
) -> Made:
    """A launch of a scan, in pieces of a length."""
    shape = inputs[0].shape
    count = countable(shape)
    length = shape[dim]
    written = [] if how == "pieces" else list(outs)
    kept, steps = k._lines(shape, dim, [steps_in(a, shape) for a in (*written, *inputs)])
    dtype = scalar_type(k.type_of(inputs[0].dtype))
    types = carried_types(kind, dtype, k.limits.float64)
    pieces = -(-length // piece)
    number = count // length * pieces
    ints = [number, length, piece, pieces, *kept, *(n for s in steps for n in s)]
    given = (
        *(kind, dtype, tuple([k.type_of(o.dtype) for o in outs])),
        *(tuple([k.type_of(x.dtype) for x in inputs]), len(kept), how),
    )
    before = len(types) if how == "pieces" else len(outs) + (how == "carry") * len(types)
    own = (*range(before), *[s + before for s in seen])
    extra = (number, pieces, types)
    return Made("scan", scan_function, given, own, tuple(ints), blocks(number), extra)
