"""Convolution as a matrix product with windows that only packing lays out.

Note [two products]
The form `conv` sums over channels and taps. There are two ways to see a matrix product in it:
  - windows on the right: for each element of the batch, (outputs × steps) @ (steps × positions),
    where a step is a tap of a channel. The weight is laid out with channels fastest, which is a
    copy of it, and the result is written where it belongs.
  - windows on the left, for more taps than positions, as in the gradient of a weight: there the
    form's channels are the images of a batch, its taps the positions of the cotangent, and its
    positions the taps of the weight. The product is a sum over channels of
    (positions and batch × taps) @ (taps × outputs).
Either way elements are summed in an order that the shapes alone decide. A dilated input is split
into phases first, so that no zeros are multiplied. Kernels of one element on elements as they are
need no windows: they are a matrix product on views.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.windows import Geometry, phases
from ..base import Backend
from ..memory import empty
from ..threads import current_limit
from . import debug
from .gemm import Plan, assembled, gemm, run
from .gemm_micro import Epilogue, width
from .gemm_plan import Operands, Setting, choose_packed
from .gemm_tiles import cache_sizes, host
from .window_pack import MAP, MOST_STRIDE, RANK, Windows, pieces

_REMEMBERED = 1024  # plans
_TYPES = {"float32": "float", "float64": "double"}


class _Planned(NamedTuple):
    """A convolution's product, and the map of its windows, which the plan points to."""

    plan: Plan
    map: Any


_plans: dict[Any, _Planned | None] = {}


def run_conv(out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend) -> bool:
    """Write the form `conv` into `out`; False if there is no kernel for it.

    `backend` makes the copies that are needed.
    """
    if x.dtype.name not in _TYPES or not 1 <= len(geometry.size) <= RANK:
        return False
    parts = phases(geometry)
    if parts is None:
        return False
    for part in parts:
        positions = (..., *part.positions)
        target = out[positions]
        if not target.size:
            continue
        if part.taps is None or not x.size or not w.size:
            _fill(target, bias, backend)
        elif not _one(target, x, w[(..., *part.taps)], bias, part.geometry, backend):
            return False
    return True


def _fill(out: Any, bias: Any, backend: Backend) -> None:
    """The result where no tap meets an element."""
    rank = out.ndim - 3
    value = np.zeros((), out.dtype) if bias is None else bias.reshape(*bias.shape, *(1,) * rank)
    backend.assign(out, np.broadcast_to(value, out.shape))


def _one(out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend) -> bool:
    """A convolution whose input is not dilated."""
    if math.prod(geometry.kernel) == 1 and geometry.output == geometry.size and not any(
        low for low, _ in geometry.padding
    ) and _pointwise(out, x, w, bias):  # fmt: skip
        return True
    if x.strides[-1] != x.itemsize and geometry.size[-1] > 1:
        x = backend.copy(x)
    if math.prod(geometry.kernel) > math.prod(geometry.output):
        return _windows_left(out, x, w, bias, geometry, backend)
    return _windows_right(out, x, w, bias, geometry, backend)


def _pointwise(out: Any, x: Any, w: Any, bias: Any) -> bool:
    """Kernels of one element, by a plain product on views; False if views are not possible."""
    (_, groups, channels), outputs = x.shape[:3], w.shape[1]
    to, from_ = _step(out), _step(x)
    if to is None or from_ is None:
        return False
    size = math.prod(x.shape[3:])
    x, out = _flat(x, from_), _flat(out, to)
    w = w.reshape(groups, outputs, channels)
    if size == 1:
        gemm(x[..., 0].swapaxes(0, 1), w.swapaxes(1, 2), out[..., 0].swapaxes(0, 1))
    else:
        one = bias if bias is None else bias.reshape(-1, 1)
        gemm(w, x, out, one if groups == 1 else None)
    if bias is not None and (size == 1 or groups > 1):
        out += bias[..., None]
    return True


def _flat(x: Any, step: int) -> Any:
    """A view with the spatial dimensions as one, with that step in bytes."""
    return np.lib.stride_tricks.as_strided(
        x, (*x.shape[:3], math.prod(x.shape[3:])), (*x.strides[:3], step)
    )


def _step(x: Any) -> int | None:
    """The step in bytes between neighbours of the spatial dimensions as one; None if it varies."""
    step = None
    following = 1
    for size, stride in zip(reversed(x.shape[3:]), reversed(x.strides[3:]), strict=True):
        if size == 1:
            continue
        if step is None:
            step = stride
        elif stride != step * following:
            return None
        following *= size
    return x.itemsize if step is None else step


def _windows_right(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend
) -> bool:
    """(outputs × steps) @ (steps × positions); see Note [two products]."""
    if geometry.stride[-1] > MOST_STRIDE:
        return False
    target = out
    if _step(out) is None:
        target = empty(out.shape, out.dtype)
    w = w.transpose(0, 1, *range(3, w.ndim), 2)
    if not w.flags.c_contiguous:
        w = backend.copy(w)
    threads = current_limit()
    key = ("right", x.shape, x.strides, w.shape, target.strides, geometry, x.dtype, bias is None,
           threads)  # fmt: skip
    found = _plans.get(key)
    if found is None:
        found = _remember(key, _plan_right(target, x, w, bias, geometry, threads))
    run(found.plan, w, x, target, bias)
    if target is not out:
        backend.assign(out, target)
    return True


def _plan_right(out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, threads: int) -> _Planned:
    n, groups, channels = x.shape[:3]
    outputs, steps = w.shape[1], math.prod(w.shape[2:])
    type = _TYPES[x.dtype.name]
    size = width(type)
    setting = Setting(host(), *cache_sizes(), threads)
    o = Operands(
        outputs, math.prod(geometry.output), steps, n * groups, (steps * size, size),
        (3 * size, size), (out.strides[2], _step(out) or size), size, size,
    )  # fmt: skip
    lines = math.prod(geometry.output[:-1])
    windows = Windows(geometry.stride[-1], _pieces(geometry.output[-1], lines, setting, size))
    choice = choose_packed(o, setting, windows, left=False)
    map = _map(channels, x.strides[2], geometry.kernel, geometry.output, geometry.size,
               geometry.stride, geometry.dilation, geometry.padding, x.strides[3:])  # fmt: skip
    debug.note(f"convolution of {x.dtype.name} {x.shape} by {w.shape}, {geometry}: {choice}")
    outer = [(0, w.strides[0]), x.strides[:2], out.strides[:2], (0, outputs * size)]
    epilogue = Epilogue("" if bias is None else "rows")
    plan = assembled(
        setting, o, choice, epilogue, (type, type), (n, groups), outer,
        (0, ctypes.addressof(map)), out.shape,
    )  # fmt: skip
    return _Planned(plan, map)


def _windows_left(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend
) -> bool:
    """The sum over channels of (positions and batch × taps) @ (taps × outputs)."""
    if geometry.dilation[-1] > MOST_STRIDE:
        return False
    if _step(w) is None:
        w = backend.copy(w)
    n, groups, _ = x.shape[:3]
    result = empty((groups, *geometry.output, n, w.shape[1]), out.dtype)
    threads = current_limit()
    key = ("left", x.shape, x.strides, w.shape, w.strides, geometry, x.dtype, threads)
    found = _plans.get(key)
    if found is None:
        found = _remember(key, _plan_left(result, x, w, geometry, threads))
    run(found.plan, x, w, result)
    rank = len(geometry.size)
    backend.assign(out, result.transpose(1 + rank, 0, 2 + rank, *range(1, 1 + rank)))
    if bias is not None:
        out += bias.reshape(*bias.shape, *(1,) * rank)
    return True


def _plan_left(out: Any, x: Any, w: Any, geometry: Geometry, threads: int) -> _Planned:
    n, groups, images = x.shape[:3]
    outputs = w.shape[1]
    type = _TYPES[x.dtype.name]
    size = width(type)
    setting = Setting(host(), *cache_sizes(), threads)
    o = Operands(
        math.prod(geometry.output) * n, outputs, math.prod(geometry.kernel), groups,
        (size, 3 * size), (_step(w) or size, w.strides[1]), (outputs * size, size), size, size,
        images, x.strides[2], w.strides[2],
    )  # fmt: skip
    lines = math.prod(geometry.kernel[:-1])
    windows = Windows(geometry.dilation[-1], _pieces(geometry.kernel[-1], lines, setting, size))
    choice = choose_packed(o, setting, windows, left=True)
    map = _map(n, x.strides[0], geometry.output, geometry.kernel, geometry.size,
               geometry.dilation, geometry.stride, geometry.padding, x.strides[3:])  # fmt: skip
    debug.note(f"convolution of {x.dtype.name} {x.shape} by {w.shape}, {geometry}: {choice}")
    outer = [x.strides[1:2], w.strides[:1], out.strides[:1], (0,)]
    steps = (ctypes.c_int64 * 2)(*o.b)
    plan = assembled(
        setting, o, choice, Epilogue(), (type, type), (groups,), outer,
        (ctypes.addressof(map), ctypes.addressof(steps)), out.shape,
    )  # fmt: skip
    return _Planned(plan, (map, steps))


def _pieces(positions: int, lines: int, setting: Setting, size: int) -> int:
    return pieces(positions, setting.target.vector // size, lines)


def _remember(key: Any, plan: _Planned) -> _Planned:
    if len(_plans) >= _REMEMBERED:
        _plans.clear()
    _plans[key] = plan
    return plan


def _map(
    channels: int, step: int, taps: Sequence[int], positions: Sequence[int], size: Sequence[int],
    stride: Sequence[int], dilation: Sequence[int], padding: Sequence[tuple[int, int]],
    steps: Sequence[int],
) -> Any:  # fmt: skip
    """What the packing function is told, in as many dimensions as it has."""
    low = [pair[0] for pair in padding]
    numbers = [channels, step]
    fills = (taps, 1), (positions, 1), (size, 1), (stride, 1), (dilation, 1), (low, 0), (steps, 0)
    for field, fill in fills:
        numbers += [*(fill,) * (RANK - len(field)), *field]
    assert len(numbers) == len(MAP)
    return (ctypes.c_int64 * len(numbers))(*numbers)
