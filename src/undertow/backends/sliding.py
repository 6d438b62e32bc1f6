"""Convolution and pooling by NumPy, without a loop over positions.

The windows of a convolution are a strided view, contracted by matrix products in blocks, whose
columns are the only large temporary. Sums and largest elements of windows are found one dimension
after the other, by as many steps as the window is wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..kernel.windows import Geometry
from .base import Array, Shape

_COLUMNS = 1 << 20  # elements of the windows that are laid out at a time, about


def correlate(
    out: Array,
    x: Array,
    w: Array,
    bias: Array | None,
    geometry: Geometry,
    matmul: Callable[..., Array],
) -> None:
    """The form `conv`, by a matrix product."""
    n, groups, channels = x.shape[:3]
    outputs = w.shape[1]
    positions = out.shape[3:]
    rank = len(positions)
    if not out.size:
        return
    if geometry.meets_zeros and w.dtype.kind in "fc" and not np.isfinite(w).all():
        _tap_by_tap(out, x, w, geometry)
        if bias is not None:
            out += bias.reshape(1, groups, outputs, *(1,) * rank)
        return
    windows = _windows(_spread(x, geometry), geometry, positions)
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


def _tap_by_tap(out: Array, x: Array, w: Array, geometry: Geometry) -> None:
    """A sum over taps, each with the elements that it meets, and with no zeros beside them."""
    out[...] = 0
    for tap in np.ndindex(*geometry.kernel):
        places, elements = [], []
        for d, number in enumerate(tap):
            first = number * geometry.dilation[d] - geometry.padding[d][0]
            at = first + np.arange(out.shape[3 + d]) * geometry.stride[d]
            apart, size = geometry.input_dilation[d], geometry.size[d]
            there = (at % apart == 0) & (at >= 0) & (at < size * apart)
            places.append(np.flatnonzero(there))
            elements.append(at[there] // apart)
        part = x[(..., *np.ix_(*elements))]
        with np.errstate(invalid="ignore", over="ignore"):
            flat = part.reshape(*part.shape[:3], math.prod(part.shape[3:]))
            product = np.matmul(w[(..., *tap)], flat)
            out[(..., *np.ix_(*places))] += product.reshape(*out.shape[:3], *part.shape[3:])


def _spread(x: Array, geometry: Geometry) -> Array:
    """`x` with its last dimensions dilated and padded with zeros; itself if nothing changes."""
    shape, lead = geometry.padded, x.ndim - len(geometry.size)
    if shape == geometry.size and all(pair == (0, 0) for pair in geometry.padding):
        return x
    out = np.zeros((*x.shape[:lead], *[max(n, 0) for n in shape]), x.dtype)
    outer, inner = spread_slices(geometry, lead)
    out[outer] = x[inner]
    return out


def spread_slices(geometry: Geometry, lead: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Where in a dilated and padded array which part of the elements stands.

    There are `lead` dimensions before those of the geometry.
    """
    inner: list[Any] = [slice(None)] * lead
    outer: list[Any] = [slice(None)] * lead
    rows = zip(
        geometry.size, geometry.padded, geometry.input_dilation, geometry.padding, strict=True
    )
    for size, whole, step, (low, _) in rows:
        begin = max(-(low // step), 0)  # the first element that is not cut off
        end = max(min(size, -((low - whole) // step)), begin)
        inner.append(slice(begin, end))
        start = low + begin * step
        outer.append(
            slice(start, start + (end - begin - 1) * step + 1 if end > begin else start, step)
        )
    return tuple(outer), tuple(inner)


def _windows(x: Array, geometry: Geometry, positions: Shape) -> Array:
    """The view (g, c, taps …, n, positions …) of a padded (n, g, c, …)."""
    by_tap = [s * d for s, d in zip(x.strides[3:], geometry.dilation, strict=True)]
    by_position = [s * d for s, d in zip(x.strides[3:], geometry.stride, strict=True)]
    return as_strided(
        x,
        (*x.shape[1:3], *geometry.kernel, x.shape[0], *positions),
        (*x.strides[1:3], *by_tap, x.strides[0], *by_position),
    )


def window_sum(x: Array, geometry: Geometry) -> Array:
    """The sum of each window over the last dimensions."""
    x = _spread(x, geometry)
    rank = len(geometry.size)
    flat = geometry._replace(
        size=geometry.padded, padding=((0, 0),) * rank, input_dilation=(1,) * rank
    )
    for d in reversed(range(rank)):
        dim = x.ndim - rank + d
        out = np.zeros((*x.shape[:dim], flat.output[d], *x.shape[dim + 1 :]), x.dtype)
        for positions, elements in _taps(flat, d):
            lead = (slice(None),) * dim
            out[(*lead, positions)] += x[(*lead, elements)]
        x = out
    return x


def window_max(x: Array, geometry: Geometry) -> tuple[Array, Array]:
    """The largest element of each window over the last dimensions, and its position in them.

    The dimensions are searched from the last to the first, so the first of equal elements wins, and
    of several NaN the last one. A window of nothing but padding gives the smallest number.
    """
    rank = len(geometry.size)
    kind = np.int32 if math.prod(geometry.size) < 1 << 31 else np.int64
    places: Array = np.zeros((1,) * x.ndim, kind)
    step = 1
    for d in reversed(range(rank)):
        dim, size = x.ndim - rank + d, geometry.size[d]
        lead = (slice(None),) * dim
        starts = np.arange(geometry.output[d]) * geometry.stride[d] - geometry.padding[d][0]
        gap = geometry.dilation[d]
        first = starts + np.maximum(-(starts // gap), 0) * gap  # of each window's elements
        seen = first < np.minimum(starts + geometry.kernel[d] * gap, size)
        first = np.clip(first, 0, size - 1)
        best = x.take(first, axis=dim)
        if not seen.all():
            best[(*lead, ~seen)] = _lowest(x.dtype)
        own = np.arange(size, dtype=kind).reshape(-1, *(1,) * (rank - 1 - d)) * step
        where = np.broadcast_to(places + own, x.shape)
        found = where.take(first, axis=dim)
        for positions, elements in _taps(geometry, d):
            value, top = x[(*lead, elements)], best[(*lead, positions)]
            better = (value > top) | (value != value)
            np.copyto(top, value, where=better)
            np.copyto(found[(*lead, positions)], where[(*lead, elements)], where=better)
        x, places, step = best, found, step * size
    return (x, places) if rank else (x.copy(), places)


def _taps(geometry: Geometry, d: int) -> Iterator[tuple[slice, slice]]:
    """For each tap along a dimension: the positions where it meets an element, and the elements."""
    size, stride, low = geometry.size[d], geometry.stride[d], geometry.padding[d][0]
    for tap in range(geometry.kernel[d]):
        at = tap * geometry.dilation[d] - low  # the element at position 0
        first = max(-(at // stride), 0)
        end = min(geometry.output[d], -((at - size) // stride))
        if first < end:
            yield (
                slice(first, end),
                slice(at + first * stride, at + (end - 1) * stride + 1, stride),
            )


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
