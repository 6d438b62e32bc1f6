"""Convolutions as a matrix product with windows that only packing lays out."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.windows import Geometry
from ... import debug
from ...base import Backend, Shape
from ...memory import empty
from ...threads import current_limit
from ..calls.launch import Plan, plan_of
from ..products.gemm import assembled, run_product
from ..products.gemm_micro import RELU, Epilogue
from ..products.gemm_plan import Operands, Setting, choose_packed
from ..products.gemm_tiles import cache_sizes, host
from ..products.window_pack import MOST_STRIDE, RANK, WindowPacking, pieces
from .problem import Arrays, Problem, Way
from .product import step_of

TYPES = {"float32": "float", "float64": "double"}


def plan(p: Problem) -> Way | None:
    """How to compute it so; None if the input is dilated. See Note [two products]."""
    if p.dilated:
        return None
    if p.left:
        return Way(functools.partial(_left, p.geometry), False, False)
    return Way(functools.partial(_right, p.geometry, p.relu), True, True)


def _windows(
    x: Any, dim: int, stride: int, lines: Sequence[int], backend: Backend
) -> tuple[Any, WindowPacking]:
    """How to pack windows of x, with channels in `dim`; and x, copied if that must be.

    Positions are `stride` elements apart, in lines as long as the last number says.
    """
    if x.strides[-1] != x.itemsize and x.shape[-1] > 1:
        if x.strides[dim] == x.itemsize:
            return x, WindowPacking(channels_last=True)
        if stride <= MOST_STRIDE:
            x = backend.copy(x)
    if stride > MOST_STRIDE:
        x = backend.copy(x.swapaxes(dim, -1)).swapaxes(dim, -1)
        return x, WindowPacking(channels_last=True)
    lanes = host().vector // x.itemsize
    return x, WindowPacking(stride, pieces(lines[-1], lanes, math.prod(lines[:-1])))


def _right(geometry: Geometry, relu: bool, a: Arrays, backend: Backend) -> bool:
    """(outputs × steps) @ (steps × positions); see Note [two products] in problem.py."""
    out, x, w, bias = a
    x, windows = _windows(x, 2, geometry.stride[-1], geometry.output, backend)
    target, step = out, step_of(out)
    if step is None:
        target, step = empty(out.shape, out.dtype), out.itemsize
    if not w.flags.c_contiguous:
        w = backend.copy(w)
    epilogue = Epilogue("" if bias is None else "rows", RELU if relu else None)
    options = (False, step, geometry, epilogue, windows, current_limit())
    run_product(plan_of(_make, (target, x, w), *options), w, x, target, bias)
    if target is not out:
        backend.assign(out, target)
    return True


def _left(geometry: Geometry, a: Arrays, backend: Backend) -> bool:
    """The sum over channels of (batch and positions × taps) @ (taps × outputs)."""
    out, x, w, _ = a
    x, windows = _windows(x, 0, geometry.dilation[-1], geometry.kernel, backend)
    step = step_of(w)
    if step is None:
        w, step = backend.copy(w), w.itemsize
    n, groups, _ = x.shape[:3]
    result = empty((groups, n, *geometry.output, w.shape[1]), out.dtype)
    options = (True, step, geometry, Epilogue(), windows, current_limit())
    run_product(plan_of(_make, (result, x, w), *options), x, w, result)
    rank = len(geometry.size)
    backend.assign(out, result.transpose(1, 0, 2 + rank, *range(2, 2 + rank)))
    return True


def _make(
    operands: tuple[Any, Any, Any],
    left: bool,
    step: int,
    geometry: Geometry,
    epilogue: Epilogue,
    windows: WindowPacking,
    threads: int,
) -> Plan:
    out, x, w = operands
    n, groups, channels = x.shape[:3]
    outputs, size, setting = w.shape[1], x.itemsize, Setting(host(), *cache_sizes(), threads)
    taps, positions = math.prod(geometry.kernel), math.prod(geometry.output)
    meeting = geometry.kernel, geometry.output, geometry.stride, geometry.dilation
    batch: tuple[int, ...]
    if left:
        sizes, inner = (positions * n, outputs, taps), (channels, x.strides[2], w.strides[2])
        steps = [(size, 3 * size), (step, w.strides[1]), (outputs * size, size)]
        batch, outer = (groups,), [x.strides[1:2], w.strides[:1], out.strides[:1], (0,)]
        map = _map(x, 0, geometry, (*meeting[1::-1], *meeting[:1:-1]))
        maps = map, np.array(steps[1], np.int64)
    else:
        depth = channels * taps
        sizes, inner = (outputs, positions, depth), (1, 0, 0)
        steps = [(depth * size, size), (3 * size, size), (out.strides[2], step)]
        batch = (n, groups)
        outer = [(0, w.strides[0]), x.strides[:2], out.strides[:2], (0, outputs * size)]
        maps = np.array(steps[0], np.int64), _map(x, 2, geometry, meeting)
    o = Operands(*sizes, math.prod(batch), steps[0], steps[1], steps[2], size, size, *inner)
    chosen = choose_packed(o, setting, windows, left)
    debug.note(f"convolution of {x.dtype.name} {x.shape} by {w.shape}, {geometry}: {chosen}")
    types = (TYPES[x.dtype.name],) * 2
    return assembled(setting, o, chosen, epilogue, types, batch, outer, maps, out.shape)


def _map(x: Any, dim: int, geometry: Geometry, meeting: Sequence[Shape]) -> Any:
    """What the packing function is told, in as many dimensions as it has.

    `dim` is that of the channels. Which of kernel and output are the taps, and which the
    positions, and so which steps are whose, the caller says: taps, positions, stride, dilation.
    """
    taps, positions, *steps = meeting
    low = [pair[0] for pair in geometry.padding]
    # A line of one element may have any step, but lanes are counted in elements.
    apart = [x.itemsize if n == 1 else s for n, s in zip(x.shape[3:], x.strides[3:], strict=True)]
    fields = [(field, 1) for field in (taps, positions, geometry.size, *steps)]
    numbers = [x.strides[dim]]
    for field, fill in (*fields, (low, 0), (apart, 0)):
        numbers += [*(fill,) * (RANK - len(field)), *field]
    return np.array(numbers, np.int64)
