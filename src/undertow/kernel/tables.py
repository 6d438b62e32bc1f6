"""Tables: which elements a window, a padding or a resampling sees, and with what weights.

They depend on sizes alone, so they are computed by NumPy and kept on the device (`Backend.table`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from .windows import Geometry, Spans


# Windows of adaptive pooling -----------------------------------------------------------------
@functools.lru_cache(maxsize=256)
def span_taps(spans: Spans) -> tuple[Any, Any]:
    """(windows, taps): the position of each in the dimensions, flattened, and if it exists."""
    place: Any = np.zeros((1, 1), np.int64)
    exists: Any = np.ones((1, 1), bool)
    for d, size in enumerate(spans.size):
        start, end = np.array(spans.bounds(d), np.int64).reshape(-1, 2).T[..., None]
        at = start + np.arange((end - start).max(initial=1))
        shape = (place.shape[0] * len(at), place.shape[1] * at.shape[1])
        at, inside = np.minimum(at, end - 1), at < end
        place = (place[:, None, :, None] * size + at[None, :, None, :]).reshape(shape)
        exists = (exists[:, None, :, None] & inside[None, :, None, :]).reshape(shape)
    return place, exists


def span_places(spans: Spans) -> Any:
    """Where the taps of all windows are, one after the other; the last one of each repeated."""
    return span_taps(spans)[0].reshape(-1)


def span_repeats(spans: Spans) -> Any:
    """(windows, taps): which of them are repetitions."""
    return ~span_taps(spans)[1]


def span_counts(spans: Spans, dtype: Any) -> Any:
    """How many elements each window has."""
    each = [np.diff(spans.bounds(d)).reshape(-1) for d in range(len(spans.size))]
    return functools.reduce(np.multiply.outer, each).astype(dtype)


# Windows of mean pooling ---------------------------------------------------------------------
@functools.lru_cache(maxsize=256)
def window_counts(geometry: Geometry, include_pad: bool) -> Any:
    """How many elements each window counts, as a number if all count the same."""
    total: Any = np.ones((), np.int64)
    rows = zip(
        geometry.size,
        geometry.kernel,
        geometry.stride,
        geometry.output,
        geometry.padding,
        strict=True,
    )
    for size, kernel, stride, count, (pad, _) in rows:
        start = np.arange(count) * stride - pad
        end = np.minimum(start + kernel, size + pad)
        if not include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, size)
        total = total[..., None] * (end - start)
    return int(total.flat[0]) if (total == total.flat[0]).all() else total


def window_counts_as(geometry: Geometry, include_pad: bool, dtype: Any) -> Any:
    """`window_counts`, where they differ, in a dtype."""
    return window_counts(geometry, include_pad).astype(dtype)


# Padding by elements of the array itself -----------------------------------------------------
def padded_positions(size: int, low: int, high: int, mode: str) -> Any:
    """Which elements of a dimension stand where in the padded one."""
    if mode == "circular":  # what is left repeats
        first, last = max(-low, 0), size - max(-high, 0)
        count = last - first
        if max(low, high) > count:
            raise ShapeError(
                f"[pad] circular padding {(low, high)} wraps around more than once: the dimension "
                f"has {count} elements"
            )
        return first + np.arange(-max(low, 0), count + max(high, 0)) % max(count, 1)
    if not size or (mode == "reflect" and max(low, high) >= size):
        raise ShapeError(
            f"[pad] {mode} padding {(low, high)} reaches beyond a dimension of {size} elements"
        )
    positions = np.arange(-low, size + high)
    if mode == "reflect":
        return (size - 1) - np.abs((size - 1) - np.abs(positions))
    return np.clip(positions, 0, size - 1)


# Resampling along one dimension; see Note [interpolate] in ops/resampling ---------------------
def _cubic(x: Any, a: float) -> Any:
    """Keys' kernel at distances `x`."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _lanczos(x: Any) -> Any:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0.0)


# The filter of each mode with antialias, and how far it reaches; a as in Pillow.
_FILTERS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "bilinear": (lambda x: np.maximum(1 - np.abs(x), 0.0), 1.0),
    "bicubic": (lambda x: _cubic(x, -0.5), 2.0),
    "lanczos": (_lanczos, 3.0),
}


@functools.lru_cache(maxsize=256)
def resampling(
    mode: str, size: int, count: int, factor: float | None, corners: bool, antialias: bool
) -> tuple[Any, Any]:
    """Positions and weights (taps, count) for each output element; no weights if all are 1."""
    steps = np.arange(count)
    if mode.startswith("nearest"):
        return _nearest(mode, size, count, factor), None
    if corners and count > 1:
        scale = (size - 1) / (count - 1)
    else:
        scale = 0.0 if corners else (1 / factor if factor else size / count)
    if antialias:
        return _smoothed(mode, size, count, scale)
    centre = steps * scale if corners else (steps + 0.5) * scale - 0.5
    if mode == "bicubic":
        low = np.floor(centre)
        taps = np.arange(-1, 3)[:, None]
        weights = _cubic(centre - low - taps, -0.75)
    else:
        centre = np.maximum(centre, 0)
        low = np.minimum(np.floor(centre), size - 1)
        taps = np.arange(2)[:, None]
        share = np.minimum(centre - low, 1)
        weights = np.stack([1 - share, share])
    return np.clip(low + taps, 0, size - 1).astype(np.int64), weights


def _nearest(mode: str, size: int, count: int, factor: float | None) -> Any:
    """The element nearest to the left edge of each output element, or to its centre ("exact")."""
    twice = 2 * np.arange(count) + (1 if mode == "nearest-exact" else 0)
    if factor:  # rounded to single precision, so that 2.999999999 counts as 3
        places = np.floor((twice / 2 * (1 / factor)).astype(np.float32)).astype(np.int64)
    else:
        places = twice * size // (2 * count)
    return np.minimum(places, size - 1)[None]


def _smoothed(mode: str, size: int, count: int, scale: float) -> tuple[Any, Any]:
    """A filter as wide as an output element where that is wider than an input element."""
    weigh, reach = _FILTERS[mode]
    wide = max(scale, 1.0)
    centre = (np.arange(count) + 0.5) * scale
    first = np.maximum((centre - reach * wide + 0.5).astype(np.int64), 0)
    last = np.minimum((centre + reach * wide + 0.5).astype(np.int64), size)
    taps = np.arange(max(int((last - first).max()), 1))[:, None]
    weights = np.where(taps < last - first, weigh((first + taps - centre + 0.5) / wide), 0.0)
    return np.minimum(first + taps, size - 1), weights / weights.sum(0)


def resampled_positions(tap: int, *how: Any) -> Any:
    """The positions of one tap of `resampling`."""
    return resampling(*how)[0][tap]


def resampled_weights(tap: int, behind: int, dtype: Any, *how: Any) -> Any:
    """The weights of one tap, with `behind` dimensions of size 1 added."""
    return resampling(*how)[1][tap].astype(dtype).reshape(-1, *(1,) * behind)


def fixed_point_weights(tap: int, behind: int, dtype: Any, *how: Any) -> Any:
    """`resampled_weights` for bytes: multiples of a power of two with 15 bits, as in torch.

    Taps at the edge that fall on one element count as one.
    """
    positions, weights = resampling(*how)
    merged = weights.copy()
    for i in range(1, len(merged)):
        for j in range(i):
            same = (positions[i] == positions[j]) & (merged[i] != 0)
            merged[j] += np.where(same, merged[i], 0)
            merged[i] = np.where(same, 0, merged[i])
    bits = 0
    while bits < 22 and int(0.5 + merged.max() * 2 ** (bits + 1)) < 1 << 15:
        bits += 1
    scaled = merged[tap] * 2**bits
    fixed = np.trunc(np.where(scaled < 0, scaled - 0.5, scaled + 0.5)) / 2**bits
    return fixed.astype(dtype).reshape(-1, *(1,) * behind)


# Spectra of real numbers ---------------------------------------------------------------------
def half_spectrum_weights(size: int, factor: float, dtype: Any) -> Any:
    """`factor` for each frequency of the half that has a conjugate in the other one, else 1."""
    weights = np.full(size // 2 + 1, factor, dtype)
    weights[0] = 1
    if size % 2 == 0:
        weights[-1] = 1
    return weights
