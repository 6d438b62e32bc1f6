"""Copies, conversions, fills and joins of large arrays, as elementwise kernels of one operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...kernel.copies import TILE, transpose_function
from ...kernel.expr import arg
from ...kernel.ir import STREAM
from ...kernel.layout import coalesce
from .. import memory
from ..threads import current_limit
from . import pool
from .kernels import address, kernel, type_of
from .maps import STREAMED, aligned, run_maps, steps_of

SAME = arg(0)
NARROW = 8  # columns or rows, of which a tile would be too narrow to pay
_kernels: dict[Any, Callable[..., None]] = {}
_WORDS = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32),
          8: np.dtype(np.uint64)}  # fmt: skip


def run_copy(x: Any) -> Any:
    """A fresh row-major copy; None if there is no kernel."""
    out = memory.empty(x.shape, x.dtype)
    return out if _move(out, x) else None


def run_cast(x: Any, dtype: Any) -> Any:
    """A fresh row-major copy in another dtype; None if there is no kernel."""
    out = memory.empty(x.shape, dtype)
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
    return _transposed(out, x) or run_maps((SAME,), (x,), (out.dtype,), (out,)) is not None


def _transposed(out: Any, x: Any) -> bool:
    """`_move` where the two lie along different dimensions; False: not done, or they do not."""
    if not (aligned(out) and aligned(x)):
        return False
    sizes, (into, at) = coalesce(out.shape, [steps_of(out, out.shape), steps_of(x, out.shape)])
    along = next((d for d, step in enumerate(at) if step == 1), -1)
    if into[-1] != 1 or along < 0 or along == len(sizes) - 1:
        return False
    if min(sizes[along], sizes[-1]) < NARROW:
        return False
    types = type_of(out.dtype), type_of(x.dtype)
    if "" in types:
        return False
    lines = (address(out), *[step * out.itemsize for step in into[:-1]])
    stream = out.nbytes >= STREAMED and not any(at % STREAM for at in lines)
    key = (*types, len(sizes) - 2, stream)
    if key not in _kernels:
        _kernels[key] = kernel("transpose", key, lambda name: transpose_function(name, *key))
    order = [d for d in range(len(sizes) - 1) if d != along]
    ints = [*[sizes[d] for d in order], sizes[along], sizes[-1]]
    ints += [*[into[d] for d in order], into[along], *[at[d] for d in order], at[-1]]
    tiles = memory.empty((current_limit() * TILE * TILE,), x.dtype)
    _kernels[key](pool.pointer(), *map(address, (out, x, tiles)), *ints)
    return True
