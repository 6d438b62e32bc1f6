"""Convolution by NumPy: windows are strided views, contracted by matrix products in blocks.

The columns of a block are the only large temporary, so a batch never exists in its unrolled form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..kernel.windows import Geometry
from .base import Array

_COLUMNS = 1 << 20  # elements of the windows that are laid out at a time, about


def correlate(
    x: Array, w: Array, bias: Array | None, geometry: Geometry, matmul: Callable[..., Array]
) -> Array:
    """The form `conv`, by a matrix product."""
    n, groups, channels = x.shape[:3]
    outputs = w.shape[1]
    positions = geometry.output
    out = np.empty((n, groups, outputs, *positions), x.dtype)
    rank = len(positions)
    if not out.size:
        return out
    windows = _windows(spread(x, geometry, 0), geometry)  # (g, c, taps …, n, positions …)
    depth = channels * math.prod(geometry.kernel)
    kernels = w.reshape(groups, outputs, depth)
    turned = (*range(2, 3 + rank), 0, 1)  # the products' dimensions n, positions …, g, o
    target = out.transpose(0, *range(3, 3 + rank), 1, 2)
    rows = positions[0] if rank else 1
    one = max(groups * depth * math.prod(positions[1:]), 1)  # elements of a row of positions
    together = max(_COLUMNS // one, 1)
    images, lines = max(together // rows, 1), min(together, rows)
    for first in range(0, n, images):
        for top in range(0, rows, lines):
            part = (slice(first, first + images), slice(top, top + lines))[: 1 + rank]
            block = windows[(*(slice(None),) * (2 + rank), *part)]
            sizes = block.shape[2 + rank :]
            columns = block.reshape(groups, depth, math.prod(sizes))
            if groups == 1:
                product = matmul(kernels[0], columns[0])
            else:
                product = matmul(kernels, columns)
            target[part] = product.reshape(groups, outputs, *sizes).transpose(turned)
    if bias is not None:
        out += bias.reshape(1, groups, outputs, *(1,) * rank)
    return out


def spread(x: Array, geometry: Geometry, fill: Any) -> Array:
    """`x` with its last dimensions dilated and padded with `fill`; itself if nothing changes."""
    shape, lead = geometry.padded, x.ndim - len(geometry.size)
    if shape == geometry.size and all(pair == (0, 0) for pair in geometry.padding):
        return x
    out = np.full((*x.shape[:lead], *[max(n, 0) for n in shape]), fill, x.dtype)
    inner: list[Any] = [slice(None)] * lead
    outer: list[Any] = [slice(None)] * lead
    rows = zip(geometry.size, shape, geometry.input_dilation, geometry.padding, strict=True)
    for size, whole, step, (low, _) in rows:
        begin = max(-(low // step), 0)  # the first element that is not cut off
        end = max(min(size, -((low - whole) // step)), begin)
        inner.append(slice(begin, end))
        start = low + begin * step
        outer.append(slice(start, start + (end - begin - 1) * step + 1 if end > begin else start,
                           step))  # fmt: skip
    out[tuple(outer)] = x[tuple(inner)]
    return out


def _windows(x: Array, geometry: Geometry) -> Array:
    """The view (g, c, taps …, n, positions …) of a padded (n, g, c, …)."""
    by_tap = [s * d for s, d in zip(x.strides[3:], geometry.dilation, strict=True)]
    by_position = [s * d for s, d in zip(x.strides[3:], geometry.stride, strict=True)]
    return as_strided(
        x,
        (*x.shape[1:3], *geometry.kernel, x.shape[0], *geometry.output),
        (*x.strides[1:3], *by_tap, x.strides[0], *by_position),
    )
