"""Scans and recurrences as kernels: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.accumulators import LAST
from ....kernel.layout import row_major, some
from ....kernel.lower import NotCompiled
from ....kernel.scans import TOGETHER, Lines, carried_types, scan_function
from ... import memory
from ..calls.launch import Launch, Plan, Room, plan_of, planned, run
from ..calls.layouts import known, lay_out, numpy_name, scalar_type, typed
from ..codegen.kernels import kernel, type_of

BLOCK = 8192  # elements of short lines that one block takes, about
PIECE = 16384  # elements of a piece of a long line
AREA = 1 << 17  # elements of a piece of lines side by side, about
SHORT = 32  # steps that it has at least
STRIP = 8192  # lines side by side: their running values stay in the second cache
NARROW = 64  # lines whose running values stay in registers
FEW = 16  # blocks: so many occupy all threads, so that lines need not be divided between them


def run_scan(kind: str, arrays: Sequence[Any], dim: int, reverse: bool = False) -> Any | None:
    """The form `scan`, or `recurrence` of two arrays; None if there is no kernel for it."""
    plan = plan_of(_make, arrays, kind, dim, reverse)
    if not plan:
        return None
    if not reverse:
        outs = run(plan, arrays)
    else:  # from the other end
        outs = [memory.empty(room.shape, room.dtype) for room in plan.results]
        run(plan, [_flipped(a, dim) for a in arrays], outs=[_flipped(a, dim) for a in outs])
    return tuple(outs) if len(outs) > 1 else outs[0]


def _make(arrays: Sequence[Any], kind: str, dim: int, reverse: bool) -> Plan:
    """The plan for arrays like these."""
    shape, types, own = lay_out(arrays)
    if shape[dim] >= LAST:
        raise NotCompiled("too many elements to count")
    dtypes = [arrays[-1].dtype, *([np.dtype(np.int64)] if kind in ("max", "min") else [])]
    lead = len(dtypes)
    steps = [row_major(shape)] * lead + own
    along = [s[dim] * (-1 if reverse else 1) for s in steps]
    others = [d for d in range(len(shape)) if d != dim]
    # The first input decides on the order.
    kept, (first, *rest) = some(shape, others, [own[0], *steps[:lead], *own[1:]])
    kept_steps = [*rest[:lead], first, *rest[lead:]]
    n, lines = shape[dim], math.prod(kept)
    across = kept[-1] > 1 and (first[-1] in (0, 1) or abs(first[-1]) < abs(along[lead]))
    narrow = across and kept[-1] <= NARROW
    strip = min(kept[-1], NARROW if narrow else STRIP)
    piece = max(AREA // strip, SHORT) if across else PIECE
    blocks = lines // strip if across else lines // TOGETHER
    pieces = kind in ("sum", "max", "min") and not narrow and blocks < FEW and n >= 2 * piece
    piece = piece if pieces else n
    block = max(1, BLOCK // (n * (strip if across else TOGETHER)))
    last = known([s[-1] for s in kept_steps]) if across else [None] * len(steps)
    inputs, outs = typed(types, last[lead:]), typed([type_of(t) for t in dtypes], last)
    dtype = scalar_type(types[-1])
    how = Lines(across, pieces, narrow, len(kept))
    call = kernel("scan", scan_function, kind, dtype, outs, inputs, how)
    ints = [*kept, n, piece, block, strip]
    for s, a, step in zip(kept_steps, along, last, strict=True):
        ints += [*(s if step is None else s[:-1]), a]
    carried = carried_types(kind, dtype) if how.scratch else ()
    count = lines * -(-n // piece)
    scratch = [Room((count,), np.dtype(numpy_name(t))) for t in carried]
    launch = Launch(call, len(dtypes) + len(arrays) + len(scratch), ints, work=math.prod(shape))
    return planned(launch, [Room(shape, t) for t in dtypes], scratch)


def _flipped(a: Any, dim: int) -> Any:
    return a[(slice(None),) * dim + (slice(None, None, -1),)]
