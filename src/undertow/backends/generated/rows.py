"""Row programs and updates over a runtime: lay out and launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernel.expr import Expr
from ...kernel.groups.elements import blocks
from ...kernel.groups.rows import row_function
from ...kernel.groups.updates import update_function
from ...kernel.layout import row_major, some
from ...kernel.lower import NotCompiled
from ...kernel.row_program import Program
from ..memory_types import scalar_type
from ..strided import StridedArray, contiguous, memory_order
from .attention import Attending
from .launching import Made, Plan, TooMany, sharing
from .layouts import broadcast, countable, padded, steps_in
from .memory import LargeBlock, TooLarge

SHORT = 32  # elements of a row that one thread takes
_UNIT = 16  # bytes: where arrays in one buffer may begin
_BYTE = np.dtype(np.uint8)
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


class Rows(Attending):
    """rows and update."""

    def rows(
        self,
        program: Program,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        dtypes: Sequence[Any],
    ) -> tuple[StridedArray, ...]:
        arrays = list(operands[: program.elements + program.per_row])
        numbers = [float(n) for n in operands[len(arrays) :]]
        try:
            plan, packed = self._rows_plan(program, arrays, dims, dtypes), False
        except TooMany:
            packed = True
            try:
                plan = self._rows_plan(program, arrays, dims, dtypes, packed)
            except TooMany:
                arrays = self._joined(arrays, len(dtypes))
                plan = self._rows_plan(program, arrays, dims, dtypes, packed)
        except NotCompiled:
            return super().rows(program, operands, dims, dtypes)
        outs = self._row_outs(program, plan.extra, packed)
        if 0 in broadcast(*[a.shape for a in arrays]):
            return super().rows(program, operands, dims, dtypes)
        try:
            self.launcher.launch(plan, [*outs, *arrays], numbers)
        except TooLarge:  # maps and reductions, which can be cut
            return super().rows(program, operands, dims, dtypes)
        others = tuple([d for d in range(len(outs[0].shape)) if d not in dims])
        results = []
        for o, out, dtype in zip(program.outputs, outs, dtypes, strict=True):
            if o.kind == "column":
                out = self.reduce("sum", out, others, True)
                out = out if out.dtype == dtype else self.cast(out, dtype)
            results.append(out)
        return tuple(results)

    def _rows_plan(
        self,
        program: Program,
        arrays: list[StridedArray],
        dims: tuple[int, ...],
        dtypes: Sequence[Any],
        packed: bool = False,
    ) -> Plan:
        """The plan of a row program; `packed`: what is made of whole rows lies in one buffer."""
        seen = sharing(arrays)
        key: list[Any] = ["rows", program, dims, *dtypes, seen, packed]
        for a in arrays:
            key += (a.shape, a.strides, a.dtype)
        given = (program, arrays, dims, dtypes, seen, packed)
        return self.plan(tuple(key), _make_rows, self, *given)

    def _row_outs(self, program: Program, made: Sequence[Any], packed: bool) -> list[StridedArray]:
        """Fresh arrays for what a row program writes."""
        if not packed:
            return [self.empty(shape, t) for shape, t in made]
        starts, total = [], 0
        for o, (shape, t) in zip(program.outputs, made, strict=True):
            starts.append(total)
            if o.kind == "row":
                total += -(-math.prod(shape) * t.itemsize // _UNIT) * _UNIT
        whole = self.empty((total,), _BYTE).buffer
        return [
            StridedArray(self, whole, shape, t, None, start)
            if o.kind == "row"
            else self.empty(shape, t)
            for o, (shape, t), start in zip(program.outputs, made, starts, strict=True)
        ]

    def update(
        self,
        exprs: tuple[Expr, ...],
        rows: Sequence[Sequence[StridedArray]],
        numbers: Sequence[float],
        places: tuple[int, ...],
    ) -> None:
        dense = [row for row in rows if row[0].size and _alike(row)]
        for row in rows:
            if row[0].size and not _alike(row):  # or too large for one kernel
                outs = [row[p] for p in places]
                self.maps(exprs, (*row, *numbers), [o.dtype for o in outs], outs)
        if not dense:
            return
        together = max(self.limits.max_bindings // len(dense[0]), 1)
        given = [float(n) for n in numbers]
        for first in range(0, len(dense), together):
            part = dense[first : first + together]
            arrays = [a for row in part for a in row]
            seen = sharing(arrays)
            sizes = tuple([row[0].size for row in part])
            types = tuple([a.dtype for a in part[0]])
            key = ("update", exprs, places, len(numbers), types, sizes, seen)
            plan = self.plan(key, _make_update, self, exprs, part, places, len(numbers), seen)
            self.launcher.launch(plan, arrays, given)


def _make_rows(
    k: Rows,
    program: Program,
    arrays: list[StridedArray],
    dims: tuple[int, ...],
    dtypes: Sequence[Any],
    seen: tuple[int, ...],
    packed: bool,
) -> Made:
    """The plan of a row program; `extra`: the shapes and dtypes of what it writes."""
    shape = broadcast(*[a.shape for a in arrays])
    countable(shape)
    types = [k.type_of(a.dtype) for a in arrays]
    compute = "f64" if any(a.dtype == _DOUBLE for a in arrays) else "f32"
    wide = _DOUBLE if compute == "f64" else _SINGLE
    of_row = tuple([1 if d in dims else n for d, n in enumerate(shape)])
    made = [
        (of_row, np.dtype(t)) if o.kind == "row" else (shape, wide if o.kind == "column" else t)
        for o, t in zip(program.outputs, dtypes, strict=True)
    ]
    out_steps = [row_major(s) for s, _ in made]
    steps = [*out_steps, *[steps_in(a, shape) for a in arrays]]
    lead = [steps_in(arrays[0], shape), *steps]  # which decides on the order of dimensions
    kept, outer = padded(*some(shape, [d for d in range(len(shape)) if d not in dims], lead))
    sizes, inner = some(shape, list(dims), lead, ordered=True)
    if len(sizes) > 1 and program.uses_column:
        raise NotCompiled("columns of rows along several dimensions")
    rows, length = math.prod(kept), math.prod(sizes)
    alone = length <= SHORT
    ints = [rows, length, *kept, *sizes]
    ints += [n for s in outer[1:] for n in s] + [n for s in inner[1:] for n in s]
    outs = [k.type_of(np.dtype(t)) for _, t in made]
    given = (program, types, compute, outs, (len(kept), len(sizes)), alone)
    buffers: dict[Any, int] = {}
    own = [
        buffers.setdefault("rows" if packed and o.kind == "row" else i, len(buffers))
        for i, o in enumerate(program.outputs)
    ]
    own += [s + len(buffers) for s in seen]
    groups = blocks(rows) if alone else rows
    return Made("rows", row_function, given, tuple(own), tuple(ints), groups, made)


def _make_update(
    k: Rows,
    exprs: tuple[Expr, ...],
    rows: Sequence[Sequence[StridedArray]],
    places: tuple[int, ...],
    numbers: int,
    seen: tuple[int, ...],
) -> Made:
    """The plan of an update of rows."""
    types = [k.type_of(a.dtype) for a in rows[0]]
    compute = {scalar_type(t) for t in types}
    if compute not in ({"f32"}, {"f64"}):
        raise NotCompiled(f"an update of {', '.join(str(a.dtype) for a in rows[0])}")
    table, total = [], 0
    for row in rows:
        table += [total, row[0].size]
        total += blocks(row[0].size)
    given = (exprs, types, places, numbers, compute.pop(), len(rows))
    return Made("update", update_function, given, seen, (total, *table), total)


def _alike(row: Sequence[StridedArray]) -> bool:
    """Whether the elements of all arrays lie together, in one order, and can be seen at once."""
    first = row[0]
    if any(a.buffer.__class__ is LargeBlock for a in row):
        return False
    shape, strides, size = first.shape, first.strides, first.dtype.itemsize
    if any(a.strides != strides or a.dtype.itemsize != size for a in row):
        return False
    return contiguous(shape, strides, size) or memory_order(shape, strides, size) is not None
