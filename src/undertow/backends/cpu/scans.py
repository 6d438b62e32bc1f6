"""Scans and recurrences as kernels: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.accumulators import LAST
from ...kernel.ir import Function
from ...kernel.layout import coalesce
from ...kernel.lower import NotCompiled
from ...kernel.maps import Operand
from ...kernel.scans import TOGETHER, Lines, carried_types, scan_function
from . import pool
from .kernels import address, kernel, type_of
from .maps import aligned, steps_of
from .reductions import numpy_name, scalar_type

_REMEMBERED = 4096
BLOCK = 8192  # elements of short lines that one block takes, about
PIECE = 16384  # elements of a piece of a long line
AREA = 1 << 17  # elements of a piece of lines side by side, about
SHORT = 32  # steps that it has at least
STRIP = 8192  # lines side by side: their running values stay in the second cache
NARROW = 64  # lines whose running values stay in registers
FEW = 16  # blocks: so many occupy all threads, so that lines need not be divided between them
_kernels: dict[Any, Callable[..., None] | None] = {}
_plans: dict[Any, _Plan | None] = {}


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses."""

    call: Callable[..., None]
    dtypes: list[Any]
    scratch: list[tuple[int, str]]
    ints: list[int]


def run_scan(kind: str, arrays: Sequence[Any], dim: int, reverse: bool = False) -> Any | None:
    """The form `scan`, or `recurrence` of two arrays; None if there is no kernel for it."""
    key = (kind, dim, reverse, *[(a.shape, a.strides, a.dtype) for a in arrays])
    try:
        plan = _plans[key]
    except KeyError:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        plan = _plans[key] = _make(kind, arrays, dim, reverse)
    if plan is None:
        return None
    outs = [np.empty(arrays[0].shape, t) for t in plan.dtypes]
    parts = [np.empty(count, t) for count, t in plan.scratch]
    ends: Any = outs, arrays
    if reverse:
        ends = [[_flipped(a, dim) for a in some] for some in ends]
    plan.call(pool.pointer(), *map(address, (*ends[0], *parts, *ends[1])), *plan.ints)
    return tuple(outs) if len(outs) > 1 else outs[0]


def _make(kind: str, arrays: Sequence[Any], dim: int, reverse: bool) -> _Plan | None:
    """The plan for arrays like these; None if there is no kernel for them."""
    shape = arrays[0].shape
    types = [type_of(a.dtype) for a in arrays]
    if 0 in shape or "" in types or shape[dim] >= LAST or not all(map(aligned, arrays)):
        return None
    dtypes = [arrays[-1].dtype]
    if kind in ("max", "min"):
        dtypes.append(np.dtype(np.int64))
    # Outputs have steps like a row-major array, in elements whatever their type.
    operands = [np.empty(shape, t) for t in dtypes] + list(arrays)
    steps = [steps_of(a, shape) for a in operands]
    along = [s[dim] * (-1 if reverse else 1) for s in steps]
    others = [d for d in range(len(shape)) if d != dim]
    lead = len(dtypes)  # the first input decides on the order
    order = [lead, *(i for i in range(len(steps)) if i != lead)]
    kept, listed = coalesce(
        tuple([shape[d] for d in others]), [tuple([steps[i][d] for d in others]) for i in order]
    )
    kept_steps = [listed[order.index(i)] for i in range(len(steps))]
    n, lines = shape[dim], math.prod(kept)
    inner = kept_steps[lead][-1]
    across = kept[-1] > 1 and (inner in (0, 1) or abs(inner) < abs(along[lead]))
    narrow = across and kept[-1] <= NARROW
    strip = min(kept[-1], NARROW if narrow else STRIP)
    piece = max(AREA // strip, SHORT) if across else PIECE
    blocks = lines // strip if across else lines // TOGETHER
    pieces = kind in ("sum", "max", "min") and not narrow and blocks < FEW and n >= 2 * piece
    piece = piece if pieces else n
    block = max(1, BLOCK // (n * (strip if across else TOGETHER)))
    last = [s[-1] if across and s[-1] in (0, 1) else None for s in kept_steps]
    inputs = [Operand(t, s) for t, s in zip(types, last[lead:], strict=True)]
    outs = [Operand(type_of(t), s) for t, s in zip(dtypes, last, strict=False)]
    dtype = scalar_type(types[-1])
    how = Lines(across, pieces, narrow, len(kept))
    call = _kernel(kind, dtype, outs, inputs, how)
    if call is None:
        return None
    ints = [*kept, n, piece, block, strip]
    for s, a, known in zip(kept_steps, along, last, strict=True):
        ints += [*(s if known is None else s[:-1]), a]
    carried = carried_types(kind, dtype) if how.scratch else ()
    count = lines * -(-n // piece)
    return _Plan(call, dtypes, [(count, numpy_name(t)) for t in carried], ints)


def _flipped(a: Any, dim: int) -> Any:
    return a[(slice(None),) * dim + (slice(None, None, -1),)]


def _kernel(
    kind: str, dtype: str, outs: list[Operand], inputs: list[Operand], lines: Lines
) -> Callable[..., None] | None:
    key = (kind, dtype, tuple(outs), tuple(inputs), lines)
    if key not in _kernels:

        def make(name: str) -> Function:
            return scan_function(name, kind, dtype, outs, inputs, lines)

        try:
            _kernels[key] = kernel("scan", key, make)
        except NotCompiled:
            _kernels[key] = None
    return _kernels[key]
