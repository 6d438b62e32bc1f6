"""Row programs as kernels: choose, lay out and call."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.layout import Sizes
from ...kernel.lower import NotCompiled
from ...kernel.maps import Operand
from ...kernel.row_program import Program
from ...kernel.rows import BLOCK, GROUP, LINE, PIECE, kept_again, rows_function
from ...kernel.rows_across import STRIPE, rows_across_function, slots
from .. import memory
from ..threads import current_limit
from .kernels import QUICK, address, kernel, launching
from .plans import (
    Plans,
    described,
    known,
    lay_out,
    like,
    result_type,
    row_major,
    some,
    streams,
    typed,
)
from .pool import pointer

LONG = 1 << 18  # elements: fewer than FEW rows of so many are no work for several threads
FEW = 4
ALONE = 1 << 16  # elements across that one thread has done before another one wakes up
_plans = Plans()


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses and the numbers."""

    launch: Callable[..., None]
    outputs: list[tuple[Sizes, Any]]  # shapes and dtypes
    as_given: list[int | None]  # the operand whose layout an output has; None for row-major
    scratch: list[tuple[int, int]]  # memory: elements, and as many again for every thread
    wide: Any  # the dtype in which it is computed, and of that memory
    alone: bool  # whether one thread will do
    # What makes the outputs and that memory, if none of them is huge and one thread will do.
    makers: list[Callable[[], Any]]


def run_rows(
    program: Program, operands: Sequence[Any], dims: Sizes, dtypes: Sequence[Any]
) -> tuple[Any, ...] | None:
    """The results of a row program; None if there is no kernel for it."""
    given = program.elements + program.per_row
    arrays = operands[:given]
    key = (program, dims, *dtypes, _plans.layout(*arrays) or described(*arrays))
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.make(key, _make, program, arrays, dims, dtypes)
    if not plan:
        return None
    launch, outputs, _, _, _, _, makers = plan
    pool = 0
    if makers:
        made = [make() for make in makers]
    else:
        made, pool = _memory(plan, arrays)
    count = len(outputs)
    launch(pool, *made[:count], *arrays, *made[count:], *operands[given:])
    return tuple(made[:count])


def _memory(plan: _Plan, arrays: Sequence[Any]) -> tuple[list[Any], int]:
    """Outputs and scratch memory, and the pool of the threads that this is for."""
    read = [address(a) for a in arrays]
    made = [
        memory.empty(*output, read)
        if source is None
        else memory.empty_like(arrays[source], output[1])
        for output, source in zip(plan.outputs, plan.as_given, strict=True)
    ]
    threads = 1 if plan.alone else current_limit()
    made += [memory.empty((size + own * threads,), plan.wide) for size, own in plan.scratch]
    return made, pointer(threads)


def _make(program: Program, arrays: Sequence[Any], dims: Sizes, dtypes: Sequence[Any]) -> _Plan:
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
    scratch = [(blocks * n, 0) for o in program.outputs if o.kind == "column"]
    scratch += [(0, size) for size in own_sizes]
    outs = [(shapes[o.kind], np.dtype(t)) for o, t in zip(program.outputs, dtypes, strict=True)]
    as_given = [source if o.kind == "element" else None for o in program.outputs]
    dtype = np.dtype(np.float64 if wide == "f64" else np.float32)
    alone = blocks == 1 and (n <= PIECE or not _has_columns(program))
    alone = alone or (across and math.prod(shape) <= ALONE)
    all_made = outs + [((size + each,), dtype) for size, each in scratch]
    sizes_made = [math.prod(shape) * dtype.itemsize for shape, dtype in all_made]
    makers: list[Callable[[], Any]] = []
    if alone and source is None and max(sizes_made) < memory.HUGE:
        makers = [
            functools.partial(np.empty if size < memory.LARGE else memory.empty, *m)
            for m, size in zip(all_made, sizes_made, strict=True)
        ]
    quick = bool(makers) and math.prod(shape) < QUICK
    launch = launching(call, len(all_made) + len(arrays), ints, not quick)
    return _Plan(launch, outs, as_given, scratch, dtype, alone, makers)


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
