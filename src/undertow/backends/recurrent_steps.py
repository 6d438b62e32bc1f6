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
    h = k.copy(h)
    c = None if c is None else k.copy(c)
    for t in _order(steps, reverse):
        products = k.matmul(h, across, bias)
        last = h if c is None else c
        args = (*_blocks(k, k.slice(gates, (t,)), width), *_blocks(k, products, width), last)
        values = _maps(k, cell.forward, args, dtype)
        if memories is not None:
            k.assign(k.slice(memories, (t,)), c)
        before = [*[0.0] * cell.kept, *([] if c is None else [c]), h]
        values = _where_active(k, lengths, t, values, before)
        for i, value in enumerate(values[: cell.kept]):
            k.assign(k.slice(kept, (t, _ALL, slice(i * width, (i + 1) * width))), value)
        if c is not None:
            c = values[cell.kept]
        h = values[-1]
        k.assign(k.slice(out, (t,)), h)
    return out, h, c, kept, memories


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
            args += _blocks(k, k.slice(kept, (t,)), width)
        args.append(k.slice(before, (t,)))
        values = _maps(k, cell.backward, args, dtype)
        last = [0.0] * cell.gates * len(targets) + ([] if dc is None else [dc])
        through = len(values) > len(last)  # something of the state passes by the products
        if not through:
            values.append(0.0)
        values = _where_active(k, lengths, t, values, [*last, dh])
        for target in targets:
            for i, value in enumerate(values[: cell.gates]):
                k.assign(k.slice(target, (t, _ALL, slice(i * width, (i + 1) * width))), value)
            values = values[cell.gates :]
        if dc is not None:
            dc = values[0]
        product = k.matmul(k.slice(by_state, (t,)), weight)
        rest = values[-1]
        dh = product if isinstance(rest, float) else k.map(_SUM, (product, rest), dtype)
    return by_input, by_state, dh, dc


def _order(steps: int, reverse: bool) -> range:
    return range(steps)[::-1] if reverse else range(steps)


def _blocks(k: Backend, x: Array, width: int) -> list[Array]:
    """The blocks of the width, side by side in the last dimension."""
    return [k.slice(x, (_ALL, slice(i, i + width))) for i in range(0, x.shape[1], width)]


def _maps(k: Backend, exprs: tuple[Any, ...], args: Sequence[Any], dtype: Any) -> list[Any]:
    return list(k.maps(exprs, args, [dtype] * len(exprs)))


def _where_active(
    k: Backend, lengths: Array | None, t: int, values: list[Any], others: list[Any]
) -> list[Any]:
    """The values of sequences that have a step t, else the others."""
    if lengths is None:
        return values
    active = k.reshape(k.map(_MORE, (lengths, t), _BOOL), (lengths.shape[0], 1))
    dtype = next(x.dtype for x in values if not isinstance(x, float))
    return [k.map(_CHOOSE, (active, v, o), dtype) for v, o in zip(values, others, strict=True)]


def _is_half(dtype: Any) -> bool:
    return bool(dtype.itemsize == 2)


def _cast(k: Backend, x: Array | None, dtype: Any) -> Array | None:
    return None if x is None else k.cast(x, dtype)
