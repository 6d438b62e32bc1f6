"""Random streams by kernels: their words, and maps with a Bernoulli draw for each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....kernel.bernoulli import CHUNK, bernoulli_map_function
from ....kernel.expr import Expr
from ....kernel.lower import NotCompiled
from ....kernel.philox import philox_function
from ... import memory
from ...threads import current_limit
from ..calls.launch import Launch, Plan, plan_of, planned
from ..codegen.kernels import kernel, type_of
from ..threads import pool
from .copies import copied


def run_philox(seed: int, offset: int, count: int) -> Any:
    """Words `offset` to `offset + count` of the stream of `seed`, as a uint32 array."""
    first, last = offset // 4, (offset + count + 3) // 4
    out = memory.empty((4 * (last - first),), np.dtype(np.uint32))
    plan = plan_of(_make_words, ())
    words = (last - first, first, seed & 0xFFFFFFFF, seed >> 32)
    plan.launch.run(pool.pointer(), out, *words)
    skip = offset - 4 * first
    return out[skip : skip + count] if out.size != count else out


def run_random_map(
    expr: Expr, x: Any, numbers: tuple[float, ...], limit: int, seed: int, offset: int
) -> Any | None:
    """The array of an expression over elements, draws and numbers; None if there is no kernel."""
    if offset % 4:
        return None
    if not x.flags.c_contiguous:
        x = copied(x)
    plan = plan_of(_make, (x,), expr, len(numbers))
    if not plan:
        return None
    threads, out = current_limit(), memory.empty(x.shape, x.dtype)
    draws = memory.empty((threads * CHUNK,), np.dtype(np.uint8))  # seen as words, and as bytes
    words = (offset // 4, seed & 0xFFFFFFFF, seed >> 32, limit)
    plan.launch.run(pool.pointer(threads), out, x, draws, draws, *words, *numbers)
    return out


def _make_words(_: Any) -> Plan:
    return planned(Launch(kernel("philox", philox_function), 1, []))


def _make(arrays: tuple[Any], expr: Expr, numbers: int) -> Plan:
    (x,) = arrays
    kind = type_of(x.dtype)
    if kind not in ("f16", "bf16", "f32", "f64"):
        raise NotCompiled("draws are for floating numbers")
    compute = "f64" if kind == "f64" else "f32"
    call = kernel("bernoulli_map", bernoulli_map_function, expr, kind, compute, numbers)
    return planned(Launch(call, 4, [x.size]))
