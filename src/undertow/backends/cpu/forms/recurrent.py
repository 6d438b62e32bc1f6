"""Recurrent layers by generated kernels that run the GEMM; see Note [recurrent layers]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....kernel import recurrent as form
from ....kernel.cells import CELLS
from ... import memory
from ..calls.launch import (
    Launch,
    Plan,
    Room,
    for_each_thread,
    plan_of,
    planned,
    prepare,
    unwritten,
    written,
)
from ..calls.layouts import aligned
from ..codegen.kernels import kernel, type_of
from ..products.gemm import gemm, make_plan, nested
from ..products.gemm_plan import Operands, Setting, choose_in_place
from ..products.gemm_tiles import cache_sizes, host
from .copies import copied, dense, run_assign


def run_recurrent(
    kind: str, gates: Any, h: Any, c: Any, weight: Any, bias: Any, lengths: Any, reverse: bool
) -> Any:
    """The form `recurrent`."""
    cell = CELLS[kind]
    gates = dense(gates)
    steps, batch, _ = gates.shape
    dtype, width = gates.dtype, h.shape[1]
    # What is of the size of the gates takes their place.
    out = gates if not cell.kept else memory.empty((steps, batch, width), dtype)
    h = copied(h)
    given = [out, h]
    kept = memories = None
    if cell.kept:
        kept = gates
        if cell.kept != cell.gates:
            kept = memory.empty((steps, batch, cell.kept * width), dtype)
        given.append(kept)
    if cell.memory:
        c, memories = copied(c), memory.empty(out.shape, dtype)
        given += [c, memories]
    if steps == 1:
        given += [gates, weight, gemm(h, weight.T, bias=None if bias is None else dense(bias))]
        bias = None
    else:
        weight = _spread(weight.T)
        given += [gates, weight]
        if bias is not None:
            given.append(dense(bias))
    _run("forward", kind, given, gates, weight, bias, lengths, reverse)
    return out, h, c, kept, memories


def run_recurrent_backward(
    kind: str,
    g: Any,
    dh: Any,
    dc: Any,
    kept: Any,
    before: Any,
    weight: Any,
    lengths: Any,
    reverse: bool,
) -> Any:
    """The form `recurrent_backward`."""
    cell = CELLS[kind]
    g = _lined(g)
    steps, batch, width = g.shape
    weight = weight if steps == 1 else _spread(weight)
    shape = (steps, batch, cell.gates * width)
    by_input = by_state = memory.empty(shape, g.dtype)
    given = [by_input]
    if cell.apart:
        by_state = memory.empty(shape, g.dtype)
        given.append(by_state)
    dh = copied(dh)
    given.append(dh)
    if cell.memory:
        dc = copied(dc)
        given.append(dc)
    if cell.kept:
        given.append(dense(kept))
    given += [dense(before), weight, g]
    _run("backward", kind, given, g, weight, None, lengths, not reverse)
    if steps == 1:
        gemm(by_state[0], weight, dh, accumulate=True)
    return by_input, by_state, dh, dc


def _lined(x: Any) -> Any:
    """`x`, copied if the elements of a row do not lie together in memory."""
    return x if x.strides[-1] == x.itemsize and aligned(x) else copied(x)


def _spread(weight: Any) -> Any:
    """A copy of the weights, read at every step, whose rows are no power of two apart."""
    rows, columns = weight.shape
    out = memory.empty((rows, columns + 64 // weight.itemsize), weight.dtype)[:, :columns]
    if not (written() and run_assign(out, weight)):
        unwritten()
        out[...] = weight
    return out


def _run(
    way: str,
    kind: str,
    given: list[Any],
    outer: Any,
    weight: Any,
    bias: Any,
    lengths: Any,
    reverse: bool,
) -> None:
    operands = (outer, weight, bias)
    plan = plan_of(_make, operands, way, kind, len(given), lengths is not None, reverse)
    beside = [] if lengths is None else [dense(lengths)]
    pool, (*own, work) = prepare(plan)
    plan.launch.run(pool, *given, *own, *beside, *plan.tables, work)


def _make(
    operands: tuple[Any, Any, Any], way: str, kind: str, given: int, masked: bool, reverse: bool
) -> Plan:
    outer, weight, bias = operands
    steps, batch, _ = outer.shape
    dtype, size = outer.dtype, outer.itemsize
    forward = way == "forward"
    width = weight.shape[0 if forward else 1]
    if steps == 1:
        width = outer.shape[2] // (CELLS[kind].gates if forward else 1)
    setting = Setting(host(), *cache_sizes(), 1)
    plans = []
    if steps > 1:
        for rows in (min(batch, form.ROWS), (batch - 1) % form.ROWS + 1):
            a, c = (_fake(dtype, (rows, n)) for n in weight.shape)
            o = Operands(
                rows,
                weight.shape[1],
                weight.shape[0],
                1,
                a.strides,
                weight.strides,
                c.strides,
                size,
                size,
            )
            choice = choose_in_place(o, setting)
            plans.append(make_plan(setting, a, weight, c, bias, not forward, choice=choice))
    how = (kind, type_of(dtype), masked, steps == 1)
    if forward:
        call = kernel("recurrent", form.recurrent_function, *how, bias is not None)
    else:
        call = kernel("recurrent_backward", form.recurrent_backward_function, *how)
    products, work = nested(plans)
    first, direction = (steps - 1, -1) if reverse else (0, 1)
    outside = [s // size for s in outer.strides[:2]]
    ints = (work, steps, batch, width, first, direction, *outside)
    rooms = [Room((0,), np.uint8, None, work, kept=True)]
    if forward and steps > 1:
        rooms.insert(0, for_each_thread(form.ROWS * weight.shape[1], dtype))
    launch = Launch(call, given + len(rooms) + masked + 1, ints)
    return planned(launch, (), rooms, [products], more=plans)


def _fake(dtype: Any, shape: Sequence[int]) -> Any:
    """A matrix of which only the layout will be looked at."""
    rows, columns = shape
    size = dtype.itemsize
    return as_strided(np.empty(1, dtype), (rows, columns), (columns * size, size))
