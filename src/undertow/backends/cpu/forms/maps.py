"""Elementwise kernels: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.complex_lower import PARTS
from ....kernel.expr import Expr, operations
from ....kernel.ir import FLOATS, INTEGERS
from ....kernel.layout import coalesce, long_rows, row_major
from ....kernel.maps import map_function
from ..calls.launch import Launch, Plan, Room, plan_of, planned, run
from ..calls.layouts import (
    compute_type,
    known,
    lay_out,
    like,
    listed,
    paired_type,
    result_type,
    streams,
    typed,
    with_numbers,
)
from ..codegen.kernels import QUICK, address, kernel

_ndarray = np.ndarray


class _Numbers(NamedTuple):
    """What becomes of numbers beside arrays."""

    numbers: int  # how many there are
    floating: bool
    paired: bool  # complex numbers are two of them
    half: Any  # the dtype of two bytes in which numbers are compared
    span: tuple[int, int] | None  # of integers that numbers are compared with

    def ready(self, numbers: Sequence[Any]) -> Sequence[Any] | None:
        """Numbers as a kernel takes them; None if one would wrap around."""
        if self.paired:
            numbers = [
                part
                for n in numbers
                for part in ((n.real, n.imag) if n.__class__ is complex else (n,))
            ]
        if self.floating:
            numbers = [float(n) for n in numbers]  # which tells of an integer that is too large
            if self.half is not None:  # compared in the arrays' precision, as in torch
                numbers = [float(self.half.type(n)) for n in numbers]
        elif self.span is not None and any(not self.span[0] <= n <= self.span[1] for n in numbers):
            return None
        return numbers


def run_maps(
    exprs: tuple[Expr, ...],
    operands: Sequence[Any],
    dtypes: tuple[Any, ...],
    into: Sequence[Any] = (),
) -> Sequence[Any] | None:
    """The arrays of several expressions over the same operands; None if there is no kernel.

    They are fresh arrays, or those to write into, which must not overlap one another nor an operand
    unless it is the very same elements.
    """
    plan = plan_of(_make, [*operands, *into] if into else operands, exprs, dtypes, len(into))
    if not plan:
        return None
    if not plan.more.numbers:
        return run(plan, operands, (), into)
    arrays = [o for o in operands if o.__class__ is _ndarray]
    numbers = plan.more.ready([o for o in operands if o.__class__ is not _ndarray])
    return None if numbers is None else run(plan, arrays, numbers, into)


def _make(
    operands: Sequence[Any], exprs: tuple[Expr, ...], dtypes: tuple[Any, ...], into: int
) -> Plan:
    """The plan for operands like these, of which the last so many are to be written into."""
    operands, targets = operands[: len(operands) - into], operands[len(operands) - into :]
    arrays = [o for o in operands if o.__class__ is _ndarray]
    shape, types, steps = lay_out([*arrays, *targets], paired_type)
    types, own = types[: len(arrays)], steps[: len(arrays)]
    results = [result_type(t, paired_type) for t in dtypes]
    compute = compute_type(operands, types)
    source = None if into else like(arrays, shape)
    outs = steps[len(arrays) :]
    if not into:
        outs = [row_major(shape) if source is None else own[source]] * len(results)
    sizes, steps = long_rows(*coalesce(shape, [*outs, *own]))
    inner = known([s[-1] for s in steps])
    outputs = typed(results, inner)
    inputs = with_numbers(operands, typed(types, inner[len(results) :]), compute)
    given = (exprs, inputs, outputs, compute, len(sizes))
    ints = [*sizes, *listed(steps, inner)]
    size, buffers = math.prod(shape), len(results) + len(arrays)
    work = size * sum([operations(e) for e in exprs])
    stream = None
    if (
        None not in inner
        and all(  # a tile's rows are too short
            last == 1 and streams(shape, t, s[:-1])
            for t, s, last in zip(dtypes, steps, inner, strict=False)
        )
    ):
        streaming = kernel("map", map_function, *given, True)
        stream = Launch(streaming, buffers, [0, *ints], work=work)
    return planned(
        Launch(kernel("map", map_function, *given), buffers, ints, size >= QUICK, work),
        [Room(shape, t, source) for t in dtypes],
        stream=stream,
        more=_Numbers(
            len(operands) - len(arrays),
            compute in FLOATS or compute in PARTS,
            compute in PARTS,
            *_compared(arrays, compute, results),
        ),
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
