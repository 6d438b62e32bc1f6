"""Elementwise kernels: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.complex_lower import PARTS
from ...kernel.expr import Expr
from ...kernel.ir import FLOATS, INTEGERS, STREAM
from ...kernel.layout import Sizes, coalesce, long_rows
from ...kernel.maps import map_function
from .. import memory
from . import pool
from .kernels import QUICK, address, kernel, launching
from .plans import (
    Plans,
    compute_type,
    described,
    known,
    lay_out,
    like,
    listed,
    paired_type,
    result_type,
    row_major,
    streams,
    typed,
    with_numbers,
)

_ndarray = np.ndarray
_plans = Plans()


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses and the numbers."""

    launch: Callable[..., None]
    stream: Callable[..., None] | None  # the same with streaming stores
    shape: Sizes
    like: int | None  # the array whose layout the results have; None for row-major
    ints: list[int]  # sizes and steps
    huge: bool  # results may lie in the way of what is read; see `memory.empty`
    floating: bool  # numbers are
    paired: bool  # complex numbers are two of them
    half: Any  # the dtype of two bytes in which numbers are compared
    span: tuple[int, int] | None  # of integers that numbers are compared with


def run_maps(
    exprs: tuple[Expr, ...],
    operands: Sequence[Any],
    dtypes: tuple[Any, ...],
    into: Sequence[Any] | None = None,
) -> tuple[Any, ...] | None:
    """The arrays of several expressions over the same operands; None if there is no kernel.

    They are fresh arrays, or those to write into, which must not overlap one another nor an operand
    unless it is the very same elements.
    """
    key: Any = (exprs, dtypes, _plans.layout(*operands) or described(*operands))
    if into is not None:
        key = (*key, _plans.layout(*into) or described(*into))
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.make(key, _make, exprs, operands, dtypes, into)
    if not plan:
        return None
    arrays = [o for o in operands if o.__class__ is _ndarray]
    if len(arrays) < len(operands):
        numbers = [o for o in operands if o.__class__ is not _ndarray]
        if plan.paired:
            numbers = [
                part
                for n in numbers
                for part in ((n.real, n.imag) if n.__class__ is complex else (n,))
            ]
        if plan.floating:
            numbers = [float(n) for n in numbers]  # which tells of an integer that is too large
            if plan.half is not None:  # compared in the arrays' precision, as in torch
                numbers = [float(plan.half.type(n)) for n in numbers]
        elif plan.span is not None and any(not plan.span[0] <= n <= plan.span[1] for n in numbers):
            return None  # it would wrap around
    else:
        numbers = []
    if into is not None:
        outs = list(into)
    elif plan.like is not None:
        outs = [memory.empty_like(arrays[plan.like], t) for t in dtypes]
    else:
        beside = [address(a) for a in arrays] if plan.huge else ()
        outs = [memory.empty(plan.shape, t, beside) for t in dtypes]
    if plan.stream is not None:
        addresses = [address(a) for a in (*outs, *arrays)]
        heads = {-p % STREAM / o.itemsize for o, p in zip(outs, addresses, strict=False)}
        head = heads.pop()
        fits = into is None or addresses[0] not in addresses[len(outs) :]
        if fits and not heads and head.is_integer():
            plan.stream(pool.pointer(), *addresses, int(head), *plan.ints, *numbers)
            return tuple(outs)
    plan.launch(pool.pointer(), *outs, *arrays, *numbers)
    return tuple(outs)


def _make(
    exprs: tuple[Expr, ...],
    operands: Sequence[Any],
    dtypes: tuple[Any, ...],
    into: Sequence[Any] | None,
) -> _Plan:
    """The plan for operands like these."""
    arrays = [o for o in operands if o.__class__ is _ndarray]
    shape, types, steps = lay_out([*arrays, *(into or ())], paired_type)
    types, own = types[: len(arrays)], steps[: len(arrays)]
    results = [result_type(t, paired_type) for t in dtypes]
    compute = compute_type(operands, types)
    source = like(arrays, shape) if into is None else None
    if into is None:
        outs = [row_major(shape) if source is None else own[source]] * len(results)
    else:
        outs = steps[len(arrays) :]
    sizes, steps = long_rows(*coalesce(shape, [*outs, *own]))
    inner = known([s[-1] for s in steps])
    outputs = typed(results, inner)
    inputs = with_numbers(operands, typed(types, inner[len(results) :]), compute)
    given = (exprs, inputs, outputs, compute, len(sizes))
    stream = None
    if (
        None not in inner
        and all(  # a tile's rows are too short
            last == 1 and streams(shape, t, s[:-1])
            for t, s, last in zip(dtypes, steps, inner, strict=False)
        )
    ):
        stream = kernel("map", map_function, *given, True)
    ints = [*sizes, *listed(steps, inner)]
    size = math.prod(shape)
    call = kernel("map", map_function, *given)
    return _Plan(
        launching(call, len(results) + len(arrays), ints, size >= QUICK),
        stream,
        shape,
        source,
        ints,
        any(size * np.dtype(t).itemsize >= memory.HUGE for t in dtypes),
        compute in FLOATS or compute in PARTS,
        compute in PARTS,
        *_compared(arrays, compute, results),
    )


def _compared(arrays: Sequence[Any], compute: str, results: Sequence[str]) -> tuple[Any, Any]:
    """How numbers are compared with arrays: as a dtype of two bytes, and in a span of integers."""
    if "bool" not in results:
        return None, None
    half = next((a.dtype for a in arrays if a.itemsize == 2 and a.dtype.kind not in "iu"), None)
    if compute not in INTEGERS:
        return half, None
    limits = np.iinfo(next(a.dtype for a in arrays if a.dtype.kind in "iu"))
    return half, (limits.min, limits.max)


def apart(out: Any, operands: Sequence[Any]) -> bool:
    """Whether no operand overlaps `out`, but for those that are the very same elements."""
    place = address(out)
    for o in operands:
        if o.__class__ is _ndarray and np.may_share_memory(o, out):
            same = address(o) == place and o.strides == out.strides and o.dtype == out.dtype
            if not same or o.shape != out.shape:
                return False
    return True
