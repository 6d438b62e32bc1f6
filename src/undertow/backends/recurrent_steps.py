"""The form `recurrent` as a composition: a product and a map for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernel.cells import CELLS
from ..kernel.expr import call, trace, where
from .base import Array, Backend

_BOOL, _SINGLE = np.dtype(bool), np.dtype(np.float32)
_ALL = slice(None)
_SUM = trace(lambda a, b: a + b, 2)
_MORE = trace(lambda n, t: call("gt", n, t), 2)
_CHOOSE = trace(lambda c, a, b: where(c, a, b), 3)


def recurrent(
    k: Backend,
    kind: str,
    gates: Array,
    h: Array,
    c: Array | None,
    weight: Array,
    bias: Array | None,
    lengths: Array | None,
    reverse: bool,
) -> tuple[Array | None, ...]:
    """The forward, step by step."""
    cell, dtype = CELLS[kind], gates.dtype
    if _is_half(dtype):
        gates, h, c, weight, bias = (_cast(k, x, _SINGLE) for x in (gates, h, c, weight, bias))
        found = k.recurrent(kind, gates, h, c, weight, bias, lengths, reverse)
        return tuple([_cast(k, x, dtype) for x in found])
    steps, batch, _ = gates.shape
    width = h.shape[1]
    out = k.empty((steps, batch, width), dtype)
    kept = k.empty((steps, batch, cell.kept * width), dtype) if cell.kept else None
    memories = k.empty(out.shape, dtype) if cell.memory else None
    across = k.permute(weight, (1, 0))
    for t in _order(steps, reverse):
        if memories is not None:
            k.assign(k.slice(memories, (t,)), c)
        last = h if c is None else c
        args = [*_blocks(k, k.slice(gates, (t,)), cell.gates)]
        args += [*_blocks(k, k.matmul(h, across, bias), cell.gates), last]
        outs = [] if kept is None else _blocks(k, k.slice(kept, (t,)), cell.kept)
        if c is not None:
            outs.append(k.empty(c.shape, dtype))
        outs.append(k.slice(out, (t,)))
        before = [*[0.0] * cell.kept, *([] if c is None else [c]), h]
        _step(k, cell.forward, args, outs, _active(k, lengths, t), before)
        h, c = outs[-1], None if c is None else outs[-2]
    return out, k.copy(h), c, kept, memories


def recurrent_backward(
    k: Backend,
    kind: str,
    g: Array,
    dh: Array,
    dc: Array | None,
    kept: Array | None,
    before: Array,
    weight: Array,
    lengths: Array | None,
    reverse: bool,
) -> tuple[Array | None, ...]:
    """The backward, step by step in the other order."""
    cell, dtype = CELLS[kind], g.dtype
    if _is_half(dtype):
        given = (g, dh, dc, kept, before, weight)
        g, dh, dc, kept, before, weight = (_cast(k, x, _SINGLE) for x in given)
        found = k.recurrent_backward(kind, g, dh, dc, kept, before, weight, lengths, reverse)
        return tuple([_cast(k, x, dtype) for x in found])
    steps, batch, width = g.shape
    shape = (steps, batch, cell.gates * width)
    by_input = by_state = k.empty(shape, dtype)
    if cell.apart:
        by_state = k.empty(shape, dtype)
    targets = [by_input, *([by_state] if cell.apart else [])]
    for t in _order(steps, not reverse):
        dh = k.map(_SUM, (dh, k.slice(g, (t,))), dtype)
        args = [dh, *([] if dc is None else [dc])]
        if kept is not None:
            args += _blocks(k, k.slice(kept, (t,)), cell.kept)
        args.append(k.slice(before, (t,)))
        outs = [block for x in targets for block in _blocks(k, k.slice(x, (t,)), cell.gates)]
        last = [*[0.0] * len(outs), *([] if dc is None else [dc])]
        if dc is not None:
            outs.append(k.empty(dc.shape, dtype))
        active = _active(k, lengths, t)
        passed = len(cell.backward) > len(outs)  # of the state, beside the products
        if passed:
            outs.append(k.empty(dh.shape, dtype))
        _step(k, cell.backward, args, outs, active, [*last, dh])
        rest = outs[-1] if passed else None
        if active is not None and not passed:
            rest = k.map(_CHOOSE, (active, 0.0, dh), dtype)
        if dc is not None:
            dc = outs[len(last) - 1]
        dh = k.matmul(k.slice(by_state, (t,)), weight)
        if rest is not None:
            dh = k.map(_SUM, (dh, rest), dtype)
    return by_input, by_state, dh, dc


def _order(steps: int, reverse: bool) -> range:
    return range(steps)[::-1] if reverse else range(steps)


def _blocks(k: Backend, x: Array, count: int) -> list[Array]:
    """So many blocks of one width, which may be 0, side by side in the last dimension."""
    width = x.shape[1] // count
    return [k.slice(x, (_ALL, slice(i * width, (i + 1) * width))) for i in range(count)]


def _active(k: Backend, lengths: Array | None, t: int) -> Array | None:
    """Which sequences have a step t; None if all have."""
    if lengths is None:
        return None
    return k.reshape(k.map(_MORE, (lengths, t), _BOOL), (lengths.shape[0], 1))


def _step(
    k: Backend,
    exprs: tuple[Any, ...],
    args: Sequence[Array],
    outs: Sequence[Array],
    active: Array | None,
    others: Sequence[Any],
) -> None:
    """Write the expressions' values into `outs`, or the others where a sequence is not active."""
    dtypes = [out.dtype for out in outs]
    if active is None:
        k.maps(exprs, args, dtypes, outs)
        return
    values = k.maps(exprs, args, dtypes)
    for out, value, other in zip(outs, values, others, strict=False):
        k.map(_CHOOSE, (active, value, other), out.dtype, out)


def _is_half(dtype: Any) -> bool:
    return bool(dtype.itemsize == 2)


def _cast(k: Backend, x: Array | None, dtype: Any) -> Array | None:
    return None if x is None else k.cast(x, dtype)
