"""Convolutions by tiles: with fewer products, or as sums over windows, which are tiles of one.

    cook_toom        which operands are worth it, and what is done around the tiles
    cook_toom_forms  which tiles a geometry has: outputs, phases, weaving
    cook_toom_plan   where tiles begin, what they read and write, and in which blocks
    cook_toom_text   the code of a block of tiles
    cook_toom_tiles  the code of one vector of tiles

See Note [fewer products] in kernel/cook_toom.py. Windows may have any stride.

The form `conv` is either the result at positions, with the weights transformed once, or, if it has
more taps than positions, the gradient of a weight, in which the form's channels are images; see
Note [two products] in conv.py. Lines are read in place; in more dimensions padding is laid out
once, as for shifts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....kernel.windows import Geometry
from ...base import Backend
from ..calls.launch import plan_of
from ..calls.layouts import forwards
from . import cook_toom_forms as forms
from .cook_toom_forms import Tiling
from .cook_toom_plan import SINGLE, Convolution, convolution
from .cook_toom_tiles import SIZE

CHANNELS = 16  # fewer are not worth transforming
WORK = 1 << 16  # positions × channels × outputs of an image, below which other ways are faster
BATCH_WORK = 1 << 21  # the same of all images, for a weight's gradient
# Transforming the weights of a strided convolution costs as much as so many positions save; and the
# gradient of a weight is transformed back once, for all images.
STRIDED_POSITIONS = 512
BATCH_POSITIONS, STRIDED_BATCH_POSITIONS = 128, 4096
TAPS = 128  # of a window: the code has all of them one after the other, and must be compiled
LONGEST = 1 << 31  # elements of a line in place, where positions have 32 bits
TILES = 1 << 15  # of as many images as are computed at a time: a plan has tables of them


def run_cook_toom(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool, mode: str
) -> bool | None:
    """Write a convolution into `out`; whether `relu` is part of it, or None if not for this."""
    tiling = forms.tiling(geometry, mode)
    return None if tiling is None else _run(out, x, w, bias, tiling, backend, relu)


def run_windows(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool
) -> bool | None:
    """The same as sums over windows, of any stride: tiles of one output, without transforms."""
    tiling = forms.windows(geometry)
    return None if tiling is None else _run(out, x, w, bias, tiling, backend, relu)


def run_woven(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool, mode: str
) -> bool:
    """Write all phases of results together, with `relu`; False if it is not for this."""
    found = forms.weaving(geometry, mode)
    if found is None or out.strides[-1] != SIZE:
        return False
    order, parts, tiling = found
    count, channels = w.shape[1:3]
    turned = np.moveaxis(w, 2, -1)  # with channels together, which are summed over
    w = forwards(backend.copy(forwards(turned)), turned)
    taps = tiling.slides.taps
    weights: Any = np.zeros((len(w), len(parts) * count, *taps, channels), w.dtype)
    for number, of in enumerate(order):
        given = w[(slice(None), slice(None), *parts[of].taps)]
        into = weights[:, number * count : (number + 1) * count]
        backend.assign(into[(slice(None), slice(None), *map(slice, given.shape[2:-1]))], given)
    weights = np.moveaxis(weights, -1, 2)
    return bool(_run(out, x, weights, bias, tiling, backend, relu))


class _Call(NamedTuple):
    """How to compute with operands of a layout."""

    convolution: Convolution
    parts: list[slice]  # of the images


def _run(
    out: Any, x: Any, w: Any, bias: Any, tiling: Tiling, backend: Backend, relu: bool
) -> bool | None:
    call = plan_of(_prepared, (x, w), tiling)
    if not call:
        return None
    convolution, parts = call
    phases = tiling.phases
    if not tiling.left:
        weights = convolution.transformed(phases.weights(w, backend) if phases else w, backend)
        for part in parts:
            if not convolution.forward(out[part], x[part], weights, bias, relu, backend):
                return None  # see Note [what is not finite]
        return True
    total: Any = 0
    for part in parts:
        found = convolution.weight(x[:, :, part], w[:, :, part], backend)
        if found is None:
            return None
        total = found if len(parts) == 1 else total + found
    if phases is None:
        backend.assign(out, total[0])
    else:
        phases.spread(out, total, backend)
    if bias is not None:
        out += bias.reshape(*bias.shape, *(1,) * (out.ndim - 3))
    return False


def _prepared(operands: tuple[Any, Any], tiling: Tiling) -> _Call | None:
    """None if it does not pay, or the code is not for it."""
    x, w = operands
    taps, left = tiling.slides.taps, tiling.left
    if len(taps) > 3 or math.prod(taps) > TAPS or x.dtype != SINGLE or not _pays(x, w, tiling):
        return None
    in_place = len(taps) == 1 and x.strides[-1] == SIZE and (w.strides[-1] == SIZE or not left)
    in_place = in_place and max(x.shape[-1], w.shape[-1]) < LONGEST
    found = convolution(tiling, in_place)
    images, several = x.shape[2 if left else 0], max(1, TILES // math.prod(found.tiles))
    return _Call(found, [slice(n, n + several) for n in range(0, images, several)])


def _pays(x: Any, w: Any, tiling: Tiling) -> bool:
    """Whether there is enough to multiply, and enough for each weight that is transformed."""
    channels, outputs = x.shape[0 if tiling.left else 2], w.shape[1]
    if tiling.phases:
        channels *= len(tiling.phases.firsts)
    if tiling.windows:
        channels *= math.prod(tiling.slides.taps)
    positions = math.prod(tiling.slides.places)
    work, least = positions * channels * outputs, WORK
    if tiling.left:
        positions, work, least = positions * x.shape[2], work * x.shape[2], BATCH_WORK
    if work < least or min(channels, outputs) < CHANNELS:
        return False
    return tiling.windows or positions >= _least_positions(tiling)


def _least_positions(tiling: Tiling) -> int:
    if tiling.left:
        return STRIDED_BATCH_POSITIONS if tiling.phases else BATCH_POSITIONS
    return STRIDED_POSITIONS if tiling.phases else 0
