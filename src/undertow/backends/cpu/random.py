"""The words of random streams by a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernel.philox import philox_function
from .. import memory
from . import pool
from .kernels import address, kernel

_call: Callable[..., None] | None = None


def run_philox(seed: int, offset: int, count: int) -> Any:
    """Words `offset` to `offset + count` of the stream of `seed`, as a uint32 array."""
    global _call
    if _call is None:
        _call = kernel("philox", "words", philox_function)
    first, last = offset // 4, (offset + count + 3) // 4
    out = memory.empty((4 * (last - first),), np.dtype(np.uint32))
    _call(pool.pointer(), address(out), last - first, first, seed & 0xFFFFFFFF, seed >> 32)
    skip = offset - 4 * first
    return out[skip : skip + count] if out.size != count else out
