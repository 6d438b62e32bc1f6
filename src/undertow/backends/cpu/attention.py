"""Attention by generated kernels that run the GEMM on blocks; see Note [attention] of the form."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...kernel import attention as form
from .. import memory
from ..threads import current_limit
from . import pool
from .gemm import make_plan, native
from .gemm_plan import Setting
from .gemm_tiles import cache_sizes, host
from .kernels import address, kernel, launching, type_of
from .plans import Plans, aligned, described

_plans = Plans()
FEW = 16  # queries of a head up to which matrix products do not pay
ALONE = 1 << 17  # multiplications that one thread has done before another one wakes up


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses and the scale."""

    call: Callable[..., None]
    ints: tuple[int, ...]
    products: Any  # addresses of plans of the GEMM, by product and corner
    kept: Any  # those plans
    scratch: int  # elements, for all threads
    work: int  # bytes, for the GEMM, for all threads


def run_attention(q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool) -> Any:
    """The form `attention`."""
    if q.shape[2] <= FEW:
        return _run_few(q, k, v, mask, scale, causal)
    q, k, v = (_lined(x) for x in (q, k, v))
    out = _result(q, v)
    lse = np.empty(q.shape[:-1], q.dtype)
    _run("forward", {"out": out, "q": q, "k": k, "v": v}, lse, mask, scale, causal)
    return out, lse


def _result(q: Any, v: Any) -> Any:
    """Memory for what the queries gather, in their layout if it has their shape."""
    if q.shape[-1] == v.shape[-1]:
        return _like(q)
    return memory.empty((*q.shape[:-1], v.shape[-1]), q.dtype)


def run_attention_backward(
    g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, scale: float, causal: bool
) -> Any:
    """The form `attention_backward`."""
    g, q, k, v, out = (_lined(x) for x in (g, q, k, v, out))
    dq, dk, dv = (_like(x) for x in (q, k, v))
    arrays = {"dq": dq, "dk": dk, "dv": dv, "g": g, "out": out, "q": q, "k": k, "v": v}
    _run("backward", arrays, np.ascontiguousarray(lse), mask, scale, causal)
    return dq, dk, dv


class _Few(NamedTuple):
    """One call's layout where queries are few."""

    launch: Callable[..., None]
    rows: tuple[int, ...]
    scratch: int  # elements, for all threads
    threads: int


def _run_few(q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool) -> Any:
    """The forward for few queries; of a layout so little is prepared that any may be a new one."""
    key = (_plans.layout(q, k, v, mask) or described(q, k, v, mask), causal, current_limit())
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.make(key, _make_few, q, k, v, mask, causal, current_limit())
    if not plan:  # of operands that lie as no kernel reads them
        q, k, v = (_lined(x) for x in (q, k, v))
        mask = mask if mask is None or aligned(mask) else mask.copy()
        return _run_few(q, k, v, mask, scale, causal)
    out, lse = _result(q, v), np.empty(plan.rows, q.dtype)
    given = (out, q, k, v, lse, np.empty(plan.scratch, q.dtype), *(() if mask is None else (mask,)))
    plan.launch(pool.pointer(plan.threads) if plan.threads > 1 else 0, *given, scale)
    return out, lse


def _make_few(q: Any, k: Any, v: Any, mask: Any, causal: bool, threads: int) -> _Few | None:
    if not all(x.strides[-1] == x.itemsize and aligned(x) for x in (q, k, v)):
        return None
    if mask is not None and not aligned(mask):
        return None
    (batch, heads, rows, width), (keys, depth) = q.shape, v.shape[2:]
    steps = [s // q.itemsize for x in (_result(q, v), q, k, v) for s in x.strides[:3]]
    masking = "causal" if causal else ""
    if mask is not None:
        masking = "bool" if mask.dtype == bool else "add"
        steps += [s // mask.itemsize for s in mask.strides]
    if batch * heads * rows * keys * (width + depth) < ALONE:
        threads = 1
    call = kernel("attention_few", form.few_queries_function, type_of(q.dtype), masking)
    ints = [*steps, batch, heads, rows, keys, depth, width]
    launch = launching(call, 6 + (mask is not None), ints)
    return _Few(launch, q.shape[:-1], keys * threads, threads)


def _lined(x: Any) -> Any:
    """`x`, copied if the elements of a row do not lie together in memory."""
    return x if x.strides[-1] == x.itemsize and aligned(x) else np.array(x, order="C")


def _like(x: Any) -> Any:
    """Memory in the shape and, if its rows then lie together, in the layout of `x`."""
    made = memory.empty_like(x, x.dtype)
    return made if made.strides[-1] == x.itemsize else memory.empty(x.shape, x.dtype)


def _run(
    kind: str, arrays: dict[str, Any], lse: Any, mask: Any, scale: float, causal: bool
) -> None:
    masking = "causal" if causal else ""
    if mask is not None:
        mask = mask if aligned(mask) else mask.copy()
        masking = "bool" if mask.dtype == bool else "add"
    threads = current_limit()
    key = (
        kind,
        masking,
        None if mask is None else mask.strides,
        threads,
        lse.dtype,
        *((x.shape, x.strides) for x in arrays.values()),
    )
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.make(key, _make, kind, masking, arrays, mask, threads)
    scratch, work = np.empty(plan.scratch, lse.dtype), np.empty(plan.work + 4096, np.uint8)
    given = [*arrays.values(), lse, scratch, *([] if mask is None else [mask])]
    plan.call(
        pool.pointer(threads),
        *map(address, given),
        ctypes.addressof(plan.products),
        address(work) + 4095 & ~4095,
        *plan.ints,
        scale,
    )


def _make(kind: str, masking: str, arrays: dict[str, Any], mask: Any, threads: int) -> _Plan:
    q, v = arrays["q"], arrays["v"]
    (batch, heads, rows, width), keys, depth = q.shape, v.shape[2], v.shape[3]
    backward = kind == "backward"
    layouts = _Layouts(arrays, min(keys, form.KEYS))
    plans = []
    made: dict[Any, Any] = {}  # corners are mostly alike, since all of a small call is one block
    for name in form.PRODUCTS[backward]:
        for corner in range(4):
            r = _last(rows, form.QUERIES) if corner & 2 else min(rows, form.QUERIES)
            s = _last(keys, form.KEYS) if corner & 1 else min(keys, form.KEYS)
            what = "first" if name == "more" and keys <= form.KEYS else name, r, s
            if what not in made:
                made[what] = layouts.plan(*what)
            plans.append(made[what])
    work = max(p.scratch for p in plans)
    scratch = form.scratch_size(1 + backward, depth)
    steps = [s // q.itemsize for x in arrays.values() for s in x.strides[:3]]
    if mask is not None:
        steps += [s // mask.itemsize for s in mask.strides]
    sizes = [batch, heads, rows, keys, depth, *([width] if backward else [])]
    ints = [*steps, work, *sizes, scratch, min(keys, form.KEYS)]
    build = form.attention_backward_function if backward else form.attention_function
    call = kernel(f"attention_{kind}", build, type_of(q.dtype), masking)
    entries = [n for p in plans for n in (native(p), p.numbers, int(p.transposed))]
    table = (ctypes.c_int64 * len(entries))(*entries)
    return _Plan(call, tuple(ints), table, plans, scratch * threads, work * threads)


class _Layouts:
    """Plans of the products, from the layouts of their operands."""

    def __init__(self, arrays: dict[str, Any], pitch: int) -> None:
        self.dtype = arrays["q"].dtype
        self.size = self.dtype.itemsize
        self.pitch = pitch * self.size
        self.row = {n: x.strides[2] for n, x in arrays.items()}
        self.width = {n: x.shape[3] for n, x in arrays.items()}
        self.setting = Setting(host(), *cache_sizes(), 1)

    def plan(self, name: str, r: int, s: int) -> Any:
        """One product's plan, for blocks of r queries and s keys."""
        scores = self.fake(r, s, self.pitch)
        of = {
            n: self.fake(r if n in ("q", "g", "out", "dq") else s, self.width[n], self.row[n])
            for n in self.row
        }
        gathered = self.fake(r, self.width["v"], self.width["v"] * self.size)
        if name == "scores":
            c, a, b = scores, of["q"], of["k"].T
        elif name == "by_weight":
            c, a, b = scores, of["g"], of["v"].T
        elif name in ("first", "more"):
            c, a, b = gathered, scores, of["v"]
        elif name == "dq":
            c, a, b = of["dq"], scores, of["k"]
        else:
            c, a, b = of[name], scores.T, of["g" if name == "dv" else "q"]
        accumulate = name in ("more", "dv", "dq", "dk")
        return make_plan(self.setting, a, b, c, accumulate=accumulate)

    def fake(self, rows: int, columns: int, step: int) -> Any:
        """A matrix of which only the layout will be looked at."""
        return as_strided(np.empty(1, self.dtype), (rows, columns), (step, self.size))


def _last(length: int, block: int) -> int:
    return (length - 1) % block + 1
