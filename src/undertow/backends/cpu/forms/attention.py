"""Attention by generated kernels that run the GEMM on blocks; see Note [attention] of the form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....kernel import attention as form
from ... import memory
from ..calls.launch import Launch, Plan, Room, for_each_thread, plan_of, planned, prepare
from ..calls.layouts import aligned
from ..codegen.kernels import kernel, type_of
from ..products.gemm import make_plan, nested
from ..products.gemm_plan import Setting
from ..products.gemm_tiles import cache_sizes, host

FEW = 16  # queries of a head up to which matrix products do not pay
ALONE = 1 << 17  # multiplications that one thread has done before another one wakes up


def run_attention(q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool) -> Any:
    """The form `attention`."""
    if q.shape[2] <= FEW:
        return _run_few(q, k, v, mask, scale, causal)
    q, k, v = (_lined(x) for x in (q, k, v))
    out, lse = _result(q, v), np.empty(q.shape[:-1], q.dtype)
    _run("out q k v", (out, q, k, v, lse), mask, scale, causal)
    return out, lse


def run_attention_backward(
    g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, scale: float, causal: bool
) -> Any:
    """The form `attention_backward`."""
    g, q, k, v, out = (_lined(x) for x in (g, q, k, v, out))
    dq, dk, dv = (_like(x) for x in (q, k, v))
    arrays = (dq, dk, dv, g, out, q, k, v, np.ascontiguousarray(lse))
    _run("dq dk dv g out q k v", arrays, mask, scale, causal)
    return dq, dk, dv


def _run_few(q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool) -> Any:
    """The forward for few queries; of a layout so little is prepared that any may be a new one."""
    plan = plan_of(_make_few, (q, k, v, mask), causal)
    if not plan:  # of operands that lie as no kernel reads them
        q, k, v = (_lined(x) for x in (q, k, v))
        mask = mask if mask is None or aligned(mask) else mask.copy()
        return _run_few(q, k, v, mask, scale, causal)
    pool, (out, lse, scratch) = prepare(plan, (q,))
    given = (out, q, k, v, lse, scratch)
    plan.launch.run(pool, *given, *(() if mask is None else (mask,)), scale)
    return out, lse


def _make_few(operands: tuple[Any, ...], causal: bool) -> Plan | None:
    q, k, v, mask = operands
    if not all(x.strides[-1] == x.itemsize and aligned(x) for x in (q, k, v)):
        return None
    if mask is not None and not aligned(mask):
        return None
    (batch, heads, rows, width), (keys, depth) = q.shape, v.shape[2:]
    out = _result(q, v)
    steps = [s // q.itemsize for x in (out, q, k, v) for s in x.strides[:3]]
    if mask is not None:
        steps += [s // mask.itemsize for s in mask.strides]
    work = batch * heads * rows * keys * (width + depth)
    call = kernel(
        "attention_few", form.few_queries_function, type_of(q.dtype), _masking(mask, causal)
    )
    ints = [*steps, batch, heads, rows, keys, depth, width]
    launch = Launch(call, 6 + (mask is not None), ints, work=2 * work)
    like = None if out.flags.c_contiguous else 0
    results = [Room(out.shape, q.dtype, like), Room(q.shape[:-1], q.dtype)]
    alone = work < ALONE
    scratch = [for_each_thread(keys, q.dtype, alone)]
    return planned(launch, results, scratch, alone=alone)


def _masking(mask: Any, causal: bool) -> str:
    if mask is None:
        return "causal" if causal else ""
    return "bool" if mask.dtype == bool else "add"


def _result(q: Any, v: Any) -> Any:
    """Memory for what the queries gather, in their layout if it has their shape."""
    if q.shape[-1] == v.shape[-1]:
        return _like(q)
    return memory.empty((*q.shape[:-1], v.shape[-1]), q.dtype)


def _lined(x: Any) -> Any:
    """`x`, copied if the elements of a row do not lie together in memory."""
    return x if x.strides[-1] == x.itemsize and aligned(x) else np.array(x, order="C")


def _like(x: Any) -> Any:
    """Memory in the shape and, if its rows then lie together, in the layout of `x`."""
    made = memory.empty_like(x, x.dtype)
    return made if made.strides[-1] == x.itemsize else memory.empty(x.shape, x.dtype)


def _run(names: str, arrays: tuple[Any, ...], mask: Any, scale: float, causal: bool) -> None:
    """Run the kernel whose arrays have these names, and the last is `lse`."""
    mask = mask if mask is None or aligned(mask) else mask.copy()
    plan = plan_of(_make, (*arrays, mask), names, _masking(mask, causal))
    pool, (scratch, work) = prepare(plan)
    given = (*arrays, scratch, *(() if mask is None else (mask,)))
    plan.launch.run(pool, *given, *plan.tables, work, scale)


def _make(operands: tuple[Any, ...], names: str, masking: str) -> Plan:
    *listed, _, mask = operands
    arrays = dict(zip(names.split(), listed, strict=True))
    q, v = arrays["q"], arrays["v"]
    (batch, heads, rows, width), keys, depth = q.shape, v.shape[2], v.shape[3]
    backward = "g" in arrays
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
    products, work = nested(plans)
    scratch = form.scratch_size(1 + backward, depth)
    steps = [s // q.itemsize for x in arrays.values() for s in x.strides[:3]]
    if mask is not None:
        steps += [s // mask.itemsize for s in mask.strides]
    sizes = [batch, heads, rows, keys, depth, *([width] if backward else [])]
    ints = [*steps, work, *sizes, scratch, min(keys, form.KEYS)]
    build = form.attention_backward_function if backward else form.attention_function
    kind = "attention_backward" if backward else "attention_forward"
    call = kernel(kind, build, type_of(q.dtype), masking)
    buffers = len(arrays) + 4 + (mask is not None)
    count = batch * heads * rows * keys * (width + depth) * (5 if backward else 2)
    rooms = [for_each_thread(scratch, q.dtype), Room((0,), np.uint8, None, work, kept=True)]
    return planned(Launch(call, buffers, ints, work=count), (), rooms, [products], more=plans)


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
