"""Convolutions of stride 1 as sums of matrix products on shifted views, without laying out windows.

Note [shifts]
An input that is copied once with its padding, rows of positions in one piece, holds the window of
every tap: the elements that a tap meets begin so many places later. So
  - windows on the right (see Note [two products] in conv.py) are a sum over the taps of
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

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....kernel.windows import Geometry
from ...base import Backend
from ...memory import empty
from ..products.gemm import gemm
from ..products.gemm_micro import RELU
from .padded import padded

CHANNELS = 16  # summed by one product: fewer are not worth passing over the result for
FAR = 4  # places of the copy for one of the input or the result: more are zeros between far taps
WASTE = 1.2  # places per position in two dimensions, beyond which windows are faster


def run_shifted(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool
) -> bool | None:
    """Write a convolution into `out`; whether `relu` is part of it, or None if it is not for this.

    Shifts are along `inner`: the positions, or the taps if these are more.
    """
    rank = len(geometry.size)
    inner, outer, steps, still = (
        geometry.output,
        geometry.kernel,
        geometry.dilation,
        geometry.stride,
    )
    left = math.prod(outer) > math.prod(inner)
    if left:
        inner, outer, steps, still = outer, inner, still, steps
    if rank > 2 or math.prod(outer) < 2 or any(s != 1 for s in still):
        return None
    reach = [n + (o - 1) * s for n, o, s in zip(inner, outer, steps, strict=True)]
    if rank == 2 and reach[-1] > WASTE * inner[-1]:
        return None
    if math.prod(reach) > FAR * max(math.prod(inner), math.prod(geometry.size)):
        return None
    if (math.prod(inner) if left else w.shape[2]) < CHANNELS:
        return None
    if left and rank == 2 and not np.isfinite(backend.reduce("sum", x, tuple(range(5)), False)):
        return None  # zeros between rows would spread what is not finite
    low = [pair[0] for pair in geometry.padding]
    x = padded(x, low, reach, reach[-1] - inner[-1], backend)
    if not left:
        return _right(out, x, w, bias, geometry, backend, reach[-1], relu)
    _left(out, x, w, geometry, backend, reach[-1])
    if bias is not None:
        out += bias.reshape(*bias.shape, *(1,) * rank)
    return False


def _right(
    out: Any,
    x: Any,
    w: Any,
    bias: Any,
    geometry: Geometry,
    backend: Backend,
    width: int,
    relu: bool,
) -> bool:
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
    single = bias is not None and groups == 1
    last = relu and (bias is None or single)
    for row in range(rows):
        start = row * geometry.dilation[0] * width if above else 0
        b = as_strided(
            x[..., start:],
            (along, n, groups, channels, flat),
            (geometry.dilation[-1] * size, *x.strides[:3], size),
        )
        a = np.broadcast_to(weights[row][:, None], (along, n, groups, outputs, channels))
        ends = row == rows - 1
        gemm(
            a,
            b,
            target,
            bias.reshape(-1, 1) if single and ends else None,
            accumulate=row > 0,
            activation=RELU if last and ends else None,
            summed=True,
        )
    if not straight:
        steps = (*target.strides[:3], *([width * size] if above else ()), size)
        backend.assign(out, as_strided(target, out.shape, steps))
    if bias is not None and not single:
        out += bias.reshape(*bias.shape, *(1,) * len(geometry.size))
    return last


def _left(out: Any, x: Any, w: Any, geometry: Geometry, backend: Backend, width: int) -> None:
    n, groups, images = x.shape[:3]
    outputs, size = w.shape[1], x.itemsize
    *above, along = geometry.kernel
    rows = above[0] if above else 1
    if above:  # between the rows of the cotangent, zeros
        taps = rows * width
        spread = empty((images, groups, rows, width, outputs), w.dtype)
        spread[..., along:, :] = 0
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
