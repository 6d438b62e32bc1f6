"""Copies, conversions, fills and joins of large arrays, as elementwise kernels of one operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.copies import TILE, transpose_function
from ....kernel.expr import arg
from ....kernel.layout import coalesce
from ... import memory
from ..calls.launch import (
    Launch,
    Plan,
    Room,
    for_each_thread,
    plan_of,
    planned,
    run,
    unwritten,
    written,
)
from ..calls.layouts import lay_out, streams
from ..codegen.kernels import address, kernel
from .maps import run_maps

SAME = arg(0)
NARROW = 8  # columns or rows, of which a tile would be too narrow to pay
_WORDS = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


def run_copy(x: Any) -> Any:
    """A fresh row-major copy; None if there is no kernel."""
    out = memory.empty(x.shape, x.dtype, (address(x),))
    return out if _move(out, x) else None


def copied(x: Any) -> Any:
    """A fresh row-major copy, by a launch where these are written down."""
    found = run_copy(x) if written() else None
    if found is None:
        unwritten()
        found = np.array(x, order="C")
    return found


def dense(x: Any) -> Any:
    """`x`, or a row-major copy of it."""
    return x if x.flags.c_contiguous else copied(x)


def run_cast(x: Any, dtype: Any) -> Any:
    """A fresh row-major copy in another dtype; None if there is no kernel."""
    out = memory.empty(x.shape, dtype, (address(x),))
    return out if _move(out, x) else None


def run_assign(target: Any, source: Any) -> bool:
    """Write `source`, broadcast and cast; False if there is no kernel."""
    return not np.may_share_memory(target, source) and _move(target, source)


def run_full(shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    """A fresh array of one value; None if there is no kernel."""
    out = memory.empty(shape, dtype)
    return out if _move(out, np.full((), value, dtype)) else None


def run_concat(arrays: Sequence[Any], dim: int) -> Any:
    """Arrays of one dtype joined along `dim`; None if there is no kernel."""
    shape = list(arrays[0].shape)
    shape[dim] = sum([a.shape[dim] for a in arrays])
    out = memory.empty(tuple(shape), arrays[0].dtype)
    lead = (slice(None),) * (dim % len(shape))
    at = 0
    for a in arrays:
        size = a.shape[dim]
        if a.size and not _move(out[(*lead, slice(at, at + size))], a):
            return None
        at += size
    return out


def _move(out: Any, x: Any) -> bool:
    """Write the elements of `x` into `out`, which overlaps it nowhere; False: not done."""
    if out.dtype == x.dtype:
        word = _WORDS.get(x.itemsize)  # where nothing is converted, only the size matters
        if word is None:
            return False
        out, x = out.view(word), x.view(word)
    plan = plan_of(_make, (out, x))
    if not plan:
        return run_maps((SAME,), (x,), (out.dtype,), (out,)) is not None
    run(plan, (x,), outs=(out,))
    return True


def _make(arrays: tuple[Any, Any]) -> Plan | None:
    """How to copy in tiles; None if the two lie along one dimension."""
    out, x = arrays
    shape, types, steps = lay_out([out, x])
    sizes, (into, at) = coalesce(shape, steps)
    along = next((d for d, step in enumerate(at) if step == 1), -1)
    if into[-1] != 1 or along in (-1, len(sizes) - 1) or min(sizes[along], sizes[-1]) < NARROW:
        return None
    order = [d for d in range(len(sizes) - 1) if d != along]
    ints = [*[sizes[d] for d in order], sizes[along], sizes[-1]]
    ints += [*[into[d] for d in order], into[along], *[at[d] for d in order], at[-1]]
    given = (*types, len(order))
    stream = None
    if streams(shape, out.dtype, into[:-1]):
        stream = Launch(kernel("transpose", transpose_function, *given, True), 3, ints)
    launch = Launch(kernel("transpose", transpose_function, *given, False), 3, ints)
    tiles = for_each_thread(TILE * TILE, x.dtype)
    return planned(launch, [Room(out.shape, out.dtype)], [tiles], stream=stream)
