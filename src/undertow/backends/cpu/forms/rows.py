"""Row programs as kernels: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.layout import Sizes, row_major, some
from ....kernel.lower import NotCompiled
from ....kernel.maps import Operand
from ....kernel.row_program import Program
from ....kernel.rows import BLOCK, GROUP, LINE, PIECE, kept_again, rows_function
from ....kernel.rows_across import STRIPE, rows_across_function, slots
from ..calls.launch import Launch, Plan, Room, for_each_thread, plan_of, planned, run
from ..calls.layouts import known, lay_out, like, result_type, streams, typed
from ..codegen.kernels import QUICK, kernel

LONG = 1 << 18  # elements: fewer than FEW rows of so many are no work for several threads
FEW = 4
ALONE = 1 << 16  # elements across that one thread has done before another one wakes up


def run_rows(
    program: Program, operands: Sequence[Any], dims: Sizes, dtypes: Sequence[Any]
) -> tuple[Any, ...] | None:
    """The results of a row program; None if there is no kernel for it."""
    given = program.elements + program.per_row
    arrays = operands[:given]
    plan = plan_of(_make, arrays, program, dims, tuple(dtypes))
    return tuple(run(plan, arrays, operands[given:])) if plan else None


def _make(arrays: Sequence[Any], program: Program, dims: Sizes, dtypes: Sequence[Any]) -> Plan:
    """The plan for operands like these."""
    shape, types, own = lay_out(arrays)
    results = [result_type(t) for t in dtypes]
    wide = "f64" if "f64" in types else "f32"
    source = like(arrays, shape)
    shapes = {
        "element": shape,
        "row": tuple([1 if d in dims else n for d, n in enumerate(shape)]),
        "column": tuple([n if d in dims else 1 for d, n in enumerate(shape)]),
    }
    whole = row_major(shape) if source is None else own[source]
    made = {"element": whole, "row": row_major(shapes["row"])}
    walked = [made[o.kind] for o in program.outputs if o.kind != "column"] + own
    row_sizes, along = some(shape, dims, walked)
    sizes, steps = some(shape, [d for d in range(len(shape)) if d not in dims], walked)
    across = _across(program, sizes, [s[-1] for s in along], [s[-1] for s in steps])
    if program.uses_column and len(dims) > 1:
        raise NotCompiled("columns of several dimensions")
    _check(program, sizes, row_sizes, across, _in_order(dims, walked[0], shape))
    n, whole_row, cut = row_sizes[-1], math.prod(row_sizes), len(row_sizes) == 2
    inner = known([s[-1] for s in (steps if across else along)])
    classes = iter(inner)
    outputs = [
        Operand(t, 1 if o.kind == "column" else next(classes))
        for o, t in zip(program.outputs, results, strict=True)
    ]
    given = (program, typed(types, [*classes]), outputs, wide, len(sizes))
    if across:
        call = kernel("rows_across", rows_across_function, *given)
        together = max(min(BLOCK // n // STRIPE, -(-sizes[-1] // STRIPE)), 1) * STRIPE
        own_sizes = [together * slots(program)]
    else:
        stream = source is None and all(
            streams(shape, t, [n])
            for o, t in zip(program.outputs, dtypes, strict=True)
            if o.kind == "element"
        )
        call = kernel("rows", rows_function, *given, n <= PIECE, stream, cut)
        together = max(BLOCK // whole_row, 1)
        if _has_columns(program):
            together = min(max(together, GROUP[0]), GROUP[1])
        own_sizes = [-(-n // LINE) * LINE] * len(kept_again(program))
    ints = [n, together, *sizes]
    for s, a, c in zip(steps, along, inner, strict=True):
        if across:
            ints += [*(s if c is None else s[:-1]), a[0]]
        else:
            ints += [*s, *(a[-1:] if c is None else ()), *a[:-1]]
    ints += row_sizes[:1] if cut else ()
    blocks = -(-math.prod(sizes) // together)  # of lanes, at least
    dtype = np.dtype(np.float64 if wide == "f64" else np.float32)
    scratch = [Room((blocks * n,), dtype) for o in program.outputs if o.kind == "column"]
    alone = blocks == 1 and (n <= PIECE or not _has_columns(program))
    alone = alone or (across and math.prod(shape) <= ALONE)
    scratch += [for_each_thread(size, dtype, alone) for size in own_sizes]
    rooms = [
        Room(shapes[o.kind], np.dtype(t), source if o.kind == "element" else None)
        for o, t in zip(program.outputs, dtypes, strict=True)
    ]
    buffers = len(rooms) + len(arrays) + len(scratch)
    plan = planned(Launch(call, buffers, ints), rooms, scratch, alone=alone)
    if alone and plan.makers and math.prod(shape) < QUICK:
        plan = plan._replace(launch=Launch(call, buffers, ints, release=False))
    return plan


def _check(program: Program, sizes: Sizes, row: Sizes, across: bool, in_order: bool) -> None:
    """Raise NotCompiled where a program's loops cannot walk such rows, or NumPy is better."""
    columns = _has_columns(program)
    if len(row) > 2 or (columns and not in_order):
        raise NotCompiled("rows in several parts of memory")
    if math.prod(row) >= LONG and math.prod(sizes) < FEW:
        raise NotCompiled("few long rows")
    if len(row) == 2 and (columns or kept_again(program) or across):
        raise NotCompiled("rows in two parts of memory")


def _has_columns(program: Program) -> bool:
    return any(o.kind == "column" for o in program.outputs)


def _in_order(dims: Sizes, steps: Sizes, shape: Sizes) -> bool:
    """Whether columns, counted as the memory has them, are in the order of the dimensions."""
    listed = [steps[d] for d in dims if shape[d] != 1]
    return listed == sorted(listed, reverse=True)


def _across(program: Program, sizes: Sizes, along: Sequence[int], kept: Sequence[int]) -> bool:
    """Whether lanes take a row each; see kernel/rows_across."""
    if _has_columns(program):
        return False
    walked = [(a, k) for a, k in zip(along, kept, strict=True) if a != 0]
    return sizes[-1] >= 8 and sum(a == 1 for a, _ in walked) < sum(k == 1 for _, k in walked)
