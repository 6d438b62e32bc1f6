"""Row programs as kernels: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.ir import STREAM, Function
from ...kernel.layout import Sizes, coalesce
from ...kernel.lower import NotCompiled
from ...kernel.maps import Operand
from ...kernel.row_program import Program
from ...kernel.rows import BLOCK, GROUP, LINE, PIECE, kept_again, rows_function
from ...kernel.rows_across import STRIPE, rows_across_function, slots
from .. import memory
from ..threads import current_limit
from . import pool
from .kernels import address, kernel, type_of
from .maps import STREAMED, aligned, dense, steps_of

_REMEMBERED = 4096
LONG = 1 << 18  # elements: fewer than FEW rows of so many are no work for several threads
FEW = 4
SEGMENT = 32  # elements: shorter ones than these are not worth being rows of several
_kernels: dict[Any, Callable[..., None] | None] = {}
_plans: dict[Any, tuple[_Plan | None, Program]] = {}


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses and the numbers."""

    call: Callable[..., None]
    shapes: list[Sizes]  # of the outputs
    like: int | None  # the operand whose layout the outputs of elements have; None for row-major
    parts: Sizes  # the shape of the memory for partial sums of columns
    own: list[int]  # the sizes of the memory that every thread needs
    wide: Any  # the dtype in which it is computed
    ints: list[int]  # sizes and steps


def run_rows(
    program: Program, operands: Sequence[Any], dims: Sizes, dtypes: Sequence[Any]
) -> tuple[Any, ...] | None:
    """The results of a row program; None if there is no kernel for it."""
    count = program.elements + program.per_row
    arrays, numbers = operands[:count], operands[count:]
    key = (id(program), dims, *dtypes, *[(a.shape, a.strides, a.dtype) for a in arrays])
    found = _plans.get(key)
    if found is None:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        # The program stays alive with its plan, so that its identity stays its own.
        found = _plans[key] = (_make(program, arrays, dims, dtypes), program)
    plan = found[0]
    if plan is None:
        return None
    read = list(map(address, arrays))
    outs: list[Any] = []
    parts: list[Any] = []
    for o, shape, dtype in zip(program.outputs, plan.shapes, dtypes, strict=True):
        if o.kind == "element" and plan.like is not None:
            outs.append(np.empty_like(arrays[plan.like], dtype))
        else:
            outs.append(memory.empty(shape, dtype, read))
        if o.kind == "column":
            parts.append(memory.empty(plan.parts, plan.wide))
    threads = current_limit()
    parts += [memory.empty((threads, size), plan.wide) for size in plan.own]
    places = [*map(address, outs), *read, *map(address, parts)]
    plan.call(pool.pointer(threads), *places, *plan.ints, *numbers)
    return tuple(outs)


def _make(
    program: Program, arrays: Sequence[Any], dims: Sizes, dtypes: Sequence[Any]
) -> _Plan | None:
    """The plan for operands like these; None if there is no kernel for them."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    types = [type_of(a.dtype) for a in arrays]
    results = [type_of(np.dtype(t)) for t in dtypes]
    if 0 in shape or "" in types or "" in results or not all(map(aligned, arrays)):
        return None
    wide = "f64" if "f64" in types else "f32"
    kept = [d for d in range(len(shape)) if d not in dims]
    row_shape = tuple([1 if d in dims else n for d, n in enumerate(shape)])
    column_shape = tuple([n if d in dims else 1 for d, n in enumerate(shape)])
    like = next((i for i, a in enumerate(arrays) if a.shape == shape and dense(a)), None)
    if like is not None and arrays[like].flags.c_contiguous:
        like = None
    whole = steps_of(np.empty(shape, "b") if like is None else arrays[like], shape)
    per_row = steps_of(np.empty(row_shape, "b"), shape)
    places = {"element": whole, "row": per_row}
    walked = [places[o.kind] for o in program.outputs if o.kind != "column"]
    walked += [steps_of(a, shape) for a in arrays]
    row_sizes, along = _coalesced(shape, walked, dims)
    if len(row_sizes) > 2 or (program.uses_column and len(dims) > 1):
        return None
    sizes, steps = _coalesced(shape, walked, tuple(kept))
    cut, n, count = len(row_sizes) == 2, row_sizes[-1], math.prod(sizes)
    whole_row = math.prod(row_sizes)
    if whole_row >= LONG and count < FEW:
        return None
    columns = any(o.kind == "column" for o in program.outputs)
    if columns and not _in_order(dims, walked[0], shape):
        return None
    if cut and (n < SEGMENT or columns or kept_again(program)):
        return None
    across = not columns and _across(sizes, [s[-1] for s in along], [s[-1] for s in steps])
    if across and cut:
        return None
    inner = [s[-1] for s in steps] if across else [s[-1] for s in along]
    known = [s if s in (0, 1) else None for s in inner]
    classes = iter(known)
    outputs = [
        Operand(t, 1 if o.kind == "column" else next(classes))
        for o, t in zip(program.outputs, results, strict=True)
    ]
    inputs = [Operand(t, c) for t, c in zip(types, classes, strict=True)]
    stream = (
        not across
        and like is None
        and all(
            o.kind != "element"
            or (
                math.prod(shape) * np.dtype(t).itemsize >= STREAMED
                and n * np.dtype(t).itemsize % STREAM == 0
            )
            for o, t in zip(program.outputs, dtypes, strict=True)
        )
    )
    how = "across" if across else (n <= PIECE, stream, cut)
    call = _kernel(program, inputs, outputs, wide, len(sizes), how)
    if call is None:
        return None
    if across:
        together = max(BLOCK // n // STRIPE, 1) * STRIPE
    else:
        together = max(BLOCK // whole_row, 1)
        if columns:
            together = min(max(together, GROUP[0]), GROUP[1])
    ints = [n, together, *sizes]
    for s, a, c in zip(steps, along, known, strict=True):
        if across:
            ints += [*(s if c is None else s[:-1]), a[0]]
        else:
            ints += [*s, *(a[-1:] if c is None else ()), *a[:-1]]
    if cut:
        ints.append(row_sizes[0])
    shapes = {"element": shape, "row": row_shape, "column": column_shape}
    parts = (-(-count // together), n)
    dtype = np.dtype(np.float64 if wide == "f64" else np.float32)
    own = (
        [together * slots(program)] if across else [-(-n // LINE) * LINE] * len(kept_again(program))
    )
    return _Plan(call, [shapes[o.kind] for o in program.outputs], like, parts, own, dtype, ints)


def _coalesced(
    shape: Sizes, walked: Sequence[Sizes], dims: Sequence[int]
) -> tuple[Sizes, list[Sizes]]:
    """Some of the dimensions, as few as the operands allow."""
    sizes = tuple([shape[d] for d in dims])
    return coalesce(sizes, [tuple([s[d] for d in dims]) for s in walked])


def _in_order(dims: Sizes, steps: Sizes, shape: Sizes) -> bool:
    """Whether columns, counted as the memory has them, are in the order of the dimensions."""
    listed = [steps[d] for d in dims if shape[d] != 1]
    return listed == sorted(listed, reverse=True)


def _across(sizes: Sizes, along: Sequence[int], kept: Sequence[int]) -> bool:
    """Whether lanes take a row each; see kernel/rows_across."""
    walked = [(a, k) for a, k in zip(along, kept, strict=True) if a != 0]
    return sizes[-1] >= 8 and sum(a == 1 for a, _ in walked) < sum(k == 1 for _, k in walked)


def _kernel(
    program: Program, inputs: list[Operand], outputs: list[Operand], wide: str, rank: int, how: Any
) -> Callable[..., None] | None:
    key = (program.key, tuple(inputs), tuple(outputs), wide, rank, how)
    if key not in _kernels:

        def make(name: str) -> Function:
            if how == "across":
                return rows_across_function(name, program, inputs, outputs, wide, rank)
            return rows_function(name, program, inputs, outputs, wide, rank, *how)

        try:
            _kernels[key] = kernel("rows", key, make)
        except NotCompiled:
            _kernels[key] = None
    return _kernels[key]
