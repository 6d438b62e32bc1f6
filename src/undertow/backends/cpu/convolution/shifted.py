"""Convolutions of stride 1 as sums of matrix products on shifted views, without laying out windows.

Note [shifts]
An input that is copied once with its padding, rows of positions in one piece, holds the window of
every tap: the elements that a tap meets begin so many places later. So
  - windows on the right (see Note [two products] in problem.py) are a sum over the taps of
    (outputs × channels) @ (channels × positions), where the right factor of each tap is the same
    memory, shifted;
  - windows on the left are, for each position, a sum over the images of (batch × taps) @
    (taps × outputs), where the left factor is shifted.
One copied element serves all taps and all outputs. In two dimensions a row of positions is as long
as a row of the padded input, so that rows are one piece: between the rows of the result there are
places that nobody reads, and between those of a cotangent there are zeros.
Elements are summed tap by tap, each over blocks of channels, in an order that the shapes decide.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....kernel.windows import Geometry
from ...base import Backend, Shape
from ...memory import empty
from ..calls.launch import sound
from ..products.gemm import gemm
from ..products.gemm_micro import RELU
from .padded import padded
from .problem import Arrays, Problem, Way


class Shifts(NamedTuple):
    """What is shifted along the positions, or along the taps if these are more."""

    along: Shape
    reach: Shape  # the sizes of the input with its padding, as far as it is seen


def shifts(p: Problem) -> Shifts | None:
    """Those of a convolution; None where there are none."""
    g = p.geometry
    along, times, steps, still = g.output, g.kernel, g.dilation, g.stride
    if p.left:
        along, times, steps, still = times, along, still, steps
    if p.dilated or len(along) > 2 or math.prod(times) < 2 or max(still) > 1:
        return None
    return Shifts(
        along, tuple([n + (o - 1) * s for n, o, s in zip(along, times, steps, strict=True)])
    )


def plan(p: Problem) -> Way | None:
    """How to compute it so; None if it has no shifts."""
    found = shifts(p)
    if found is None:
        return None
    if p.left:
        return Way(functools.partial(_left, p.geometry, found), False, False)
    single = p.x.shape[1] == 1
    last = single or p.bias is None
    return Way(functools.partial(_right, p.geometry, found, p.relu and last), single, last)


def _laid_out(geometry: Geometry, shifts: Shifts, x: Any) -> Any:
    low = [pair[0] for pair in geometry.padding]
    return padded(x, low, shifts.reach, shifts.reach[-1] - shifts.along[-1])


def _right(geometry: Geometry, shifts: Shifts, relu: bool, a: Arrays, backend: Backend) -> bool:
    out, x, w, bias = a
    x, width = _laid_out(geometry, shifts, x), shifts.reach[-1]
    n, groups, channels = x.shape[:3]
    outputs, size = w.shape[1], x.itemsize
    *above, along = geometry.kernel
    rows = above[0] if above else 1
    weights = backend.copy(
        w.reshape(groups, outputs, channels, rows, along).transpose(3, 4, 0, 1, 2)
    )
    flat = geometry.output[-1] + (width * (geometry.output[0] - 1) if above else 0)
    straight = not above and out.strides[-1] == size
    target = out if straight else empty((n, groups, outputs, flat), out.dtype)
    for row in range(rows):
        start = row * geometry.dilation[0] * width if above else 0
        b = as_strided(
            x[..., start:],
            (along, n, groups, channels, flat),
            (geometry.dilation[-1] * size, *x.strides[:3], size),
        )
        by = np.broadcast_to(weights[row][:, None], (along, n, groups, outputs, channels))
        ends = row == rows - 1
        gemm(
            by,
            b,
            target,
            bias.reshape(-1, 1) if bias is not None and ends else None,
            accumulate=row > 0,
            activation=RELU if relu and ends else None,
            summed=True,
        )
    if not straight:
        steps = (*target.strides[:3], *([width * size] if above else ()), size)
        backend.assign(out, as_strided(target, out.shape, steps))
    return True


def _left(geometry: Geometry, shifts: Shifts, arrays: Arrays, backend: Backend) -> bool:
    out, x, w, _ = arrays
    x, width = _laid_out(geometry, shifts, x), shifts.reach[-1]
    n, groups, images = x.shape[:3]
    outputs, size = w.shape[1], x.itemsize
    *above, along = geometry.kernel
    rows = above[0] if above else 1
    if above:  # between the rows of the cotangent, zeros
        taps = rows * width
        spread = empty((images, groups, rows, width, outputs), w.dtype)
        backend.zero([spread[..., along:, :]])
        backend.assign(spread[..., :along, :], w.transpose(2, 0, 3, 4, 1))
    else:
        taps = along
        spread = backend.copy(w.transpose(2, 0, 3, 1))
    spread = spread.reshape(images, groups, *(1,) * len(geometry.output), taps, outputs)
    b = np.broadcast_to(spread, (images, groups, *geometry.output, taps, outputs))
    moves = [s * size for s in geometry.stride]
    if above:
        moves[0] *= width
    a = as_strided(
        x,
        (images, groups, *geometry.output, n, taps),
        (x.strides[2], x.strides[1], *moves, x.strides[0], size),
    )
    result = empty((groups, *geometry.output, n, outputs), out.dtype)
    gemm(a, b, result, summed=True)
    rank = len(geometry.output)
    backend.assign(out, result.transpose(1 + rank, 0, 2 + rank, *range(1, 1 + rank)))
    # Zeros between rows spread what is not finite.
    return not above or sound(backend.reduce("sum", result, tuple(range(result.ndim)), False))
