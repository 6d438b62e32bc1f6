"""Random streams by kernels: their words, and maps that toss a coin for each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernel.coins import CHUNK, coin_map_function
from ...kernel.expr import Expr
from ...kernel.ir import Function
from ...kernel.lower import NotCompiled
from ...kernel.philox import philox_function
from .. import memory
from ..threads import current_limit
from . import pool
from .kernels import address, kernel, type_of

_call: Callable[..., None] | None = None
_coin_maps: dict[Any, tuple[Callable[..., None] | None, Expr]] = {}


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


def run_coin_map(
    expr: Expr, x: Any, numbers: tuple[float, ...], limit: int, seed: int, offset: int
) -> Any | None:
    """The array of an expression over elements, coins and numbers; None if there is no kernel."""
    if offset % 4:
        return None
    key = (id(expr), x.dtype, len(numbers))
    found = _coin_maps.get(key)
    if found is None:
        # The expression stays alive with its kernel, so that its identity stays its own.
        found = _coin_maps[key] = (_coin_map(expr, x.dtype, len(numbers)), expr)
    call = found[0]
    if call is None:
        return None
    if not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    out = memory.empty(x.shape, x.dtype)
    threads = current_limit()
    coins = memory.empty((threads * CHUNK,), np.dtype(np.uint8))
    places = [address(a) for a in (out, x, coins, coins)]
    words = (seed & 0xFFFFFFFF, seed >> 32)
    call(pool.pointer(threads), *places, x.size, offset // 4, *words, limit, *numbers)
    return out


def _coin_map(expr: Expr, dtype: Any, numbers: int) -> Callable[..., None] | None:
    kind = type_of(dtype)
    if kind not in ("f16", "bf16", "f32", "f64"):
        return None
    compute = "f64" if kind == "f64" else "f32"

    def make(name: str) -> Function:
        return coin_map_function(name, expr, kind, compute, numbers)

    try:
        return kernel("coins", (str(expr), kind, numbers), make)
    except NotCompiled:
        return None
