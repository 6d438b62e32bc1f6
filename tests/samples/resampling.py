"""Samples for `undertow.ops.nn.resampling`."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, ints, op

SHAPE = ut.errors.ShapeError
DTYPE = ut.errors.DTypeError
ARGUMENT = ut.errors.ArgumentError
UNSUPPORTED = ut.errors.UnsupportedError


def cubic(x, a):
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0


def sinc(x):
    return math.sin(math.pi * x) / (math.pi * x) if x else 1.0


FILTERS = {
    "bilinear": lambda x: max(1 - abs(x), 0),
    "bicubic": lambda x: cubic(x, -0.5),
    "lanczos": lambda x: sinc(x) * sinc(x / 3) if abs(x) < 3 else 0,
}


def matrix(mode, n, m, factor, corners, antialias):
    """Row i holds what every one of n input elements gives to output element i of m."""
    w = np.zeros((m, n))
    exact = Fraction(n, m) if factor is None else 1 / Fraction(factor).limit_denominator(1000)
    if corners:
        exact = Fraction(n - 1, m - 1) if m > 1 else Fraction(0)
    for i in range(m):
        if mode == "area":
            low, high = i * n // m, -(-(i + 1) * n // m)
            w[i, low:high] = 1 / (high - low)
        elif mode == "nearest":
            w[i, min(math.floor(i * exact), n - 1)] = 1
        elif mode == "nearest-exact":
            w[i, min(math.floor((i + Fraction(1, 2)) * exact), n - 1)] = 1
        elif antialias:
            function = FILTERS[mode]
            wide = max(float(exact), 1)
            centre = (i + 0.5) * float(exact)
            w[i] = [function((j + 0.5 - centre) / wide) for j in range(n)]
            w[i] /= w[i].sum()
        else:
            centre = float(i * exact if corners else (i + Fraction(1, 2)) * exact - Fraction(1, 2))
            if mode != "bicubic":
                centre = max(centre, 0)
            low = math.floor(centre)
            for j in range(low - 1, low + 3):
                x = j - centre
                share = cubic(x, -0.75) if mode == "bicubic" else max(1 - abs(x), 0)
                w[i, min(max(j, 0), n - 1)] += share
    return w


def np_interpolate(
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    rank = x.ndim - 2
    listed = size if scale_factor is None else scale_factor
    listed = listed if isinstance(listed, (tuple, list)) else (listed,) * rank
    for d, given in enumerate(listed):
        n = x.shape[2 + d]
        m = given if scale_factor is None else math.floor(n * given)
        known = None if scale_factor is None or recompute_scale_factor else given
        w = matrix(mode, n, m, None if mode == "area" else known, align_corners, antialias)
        x = np.moveaxis(np.tensordot(x, w if n != m else np.eye(n), (2 + d, 1)), -1, 2 + d)
    return x


SMOOTH = [
    S(arr(1, 2, 4, 5), s, mode=mode, align_corners=corners, antialias=smooth)
    for mode in ("bilinear", "bicubic")
    for corners in (None, True, False)
    for smooth in (False, True)
    for s in ((7, 3), (2, 9))
]
op(
    "nn.functional.interpolate",
    np_interpolate,
    [
        *(
            S(arr(2, 2, 5), m, mode=mode)
            for mode in ("nearest", "nearest-exact", "linear", "area")
            for m in (3, 8, 1)
        ),
        *(
            S(arr(1, 2, 5), scale_factor=f, mode=mode)
            for mode in ("nearest", "nearest-exact", "linear")
            for f in (0.5, 1.3, 2.5)
        ),
        *SMOOTH,
        S(arr(1, 2, 4, 5), (3, 7), mode="lanczos", antialias=True),
        S(arr(1, 1, 9, 8), 4, mode="lanczos", antialias=True),
        S(arr(1, 1, 9, 8), (3, 2), mode="bicubic", antialias=True),
        S(arr(1, 2, 5), 1, mode="linear", align_corners=True),
        S(arr(1, 2, 5), 9, mode="linear", align_corners=True),
        S(arr(1, 2, 1), 3, mode="linear", align_corners=True),
        S(arr(1, 1, 1), 4, mode="linear"),
        S(arr(1, 1, 3, 2, 4), (4, 3, 2), mode="trilinear"),
        S(arr(1, 1, 3, 2, 4), scale_factor=(1.5, 2, 0.5), mode="trilinear", align_corners=True),
        S(arr(1, 2, 2, 3, 2), (3, 2, 4)),
        S(arr(1, 2, 3, 4), scale_factor=2.0, mode="nearest-exact"),
        S(arr(1, 1, 4, 3, 5), (2, 2, 2), mode="area"),
        S(arr(1, 2, 5), scale_factor=0.5, mode="area"),
        S(arr(1, 2, 5), scale_factor=1.3, mode="linear", recompute_scale_factor=True),
        S(arr(1, 2, 3, 4), (3, 4), mode="bilinear"),
        S(arr(1, 2, 3, 4), [6, 4], mode="bilinear"),
        S(arr(0, 2, 5), 3),
        S(arr(5, 2, 1).T, 3, mode="linear"),
        S(arr(1, 4, 5, 2).transpose(0, 3, 1, 2), scale_factor=2, mode="bilinear"),
    ],
    bad=[
        Bad(S(arr(2, 5), 3), UNSUPPORTED, r"\[interpolate\].*3 to 5 dimensions.*\(2, 5\)"),
        Bad(S(arr(1, 2, 5), 3, mode="bilinear"), UNSUPPORTED, r"'bilinear' takes .* 4 dimensions"),
        Bad(S(arr(1, 2, 5), 3, mode="cubic"), UNSUPPORTED, r"mode must be one of .*'cubic'"),
        Bad(S(arr(1, 2, 5)), ARGUMENT, r"either size or scale_factor, got neither"),
        Bad(S(arr(1, 2, 5), 3, 2.0), ARGUMENT, r"got both"),
        Bad(S(arr(1, 2, 5), (3, 3)), ARGUMENT, r"size must be a number or 1 of them.*\(3, 3\)"),
        Bad(S(arr(1, 2, 5), scale_factor=(1.0, 2.0)), ARGUMENT, r"scale_factor must be a number"),
        Bad(S(arr(1, 2, 5), 0), SHAPE, r"size \(5,\) would get size \(0,\)"),
        Bad(S(arr(1, 2, 5), scale_factor=0.1), SHAPE, r"would get size \(0,\)"),
        Bad(S(arr(1, 2, 0), 3), SHAPE, r"nothing to resize"),
        Bad(S(arr(1, 2, 5), 3.5), DTYPE, r"size must be an integer"),
        Bad(S(arr(1, 2, 5), 3, align_corners=True), ARGUMENT, r"'nearest' takes no align_corners"),
        Bad(S(arr(1, 2, 5), 3, recompute_scale_factor=True), ARGUMENT, r"no meaning with a size"),
        Bad(S(arr(1, 2, 5), 3, mode="linear", antialias=True), ARGUMENT, r"antialias is for"),
        Bad(S(arr(1, 2, 5, 5), 3, mode="lanczos"), ARGUMENT, r"needs antialias=True"),
        Bad(S(ints(1, 2, 5), 3, mode="linear"), DTYPE, r"images of uint8, got undertow.int64"),
    ],
)


def np_shuffle(x, r):
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c // r**2, h * r, w * r), x.dtype)
    for i in range(r):
        for j in range(r):
            out[..., i::r, j::r] = x[..., i * r + j :: r**2, :, :]
    return out


def np_unshuffle(x, r):
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c * r**2, h // r, w // r), x.dtype)
    for i in range(r):
        for j in range(r):
            out[..., i * r + j :: r**2, :, :] = x[..., i::r, j::r]
    return out


def np_deal(x, groups):
    each = x.shape[1] // groups
    return x[:, [g * each + i for i in range(each) for g in range(groups)]]


op(
    "pixel_shuffle",
    np_shuffle,
    [
        S(arr(2, 8, 2, 3), 2),
        S(arr(9, 1, 2), 3),
        S(arr(2, 1, 4, 2, 2), 2),
        S(arr(3, 2, 4).T, 2),
        S(ints(4, 2, 2), 2),
        S(arr(2, 3, 3), 1),
        S(arr(4, 1, 1), 2),
    ],
    bad=[
        Bad(S(arr(5, 2, 2), 2), SHAPE, r"\[pixel_shuffle\] 5 channels.*2² = 4"),
        Bad(S(arr(4, 2), 2), SHAPE, r"\(4, 2\)"),
        Bad(S(arr(4, 2, 2), 0), ARGUMENT, r"upscale_factor must be at least 1"),
    ],
)
op(
    "pixel_unshuffle",
    np_unshuffle,
    [
        S(arr(2, 2, 4, 6), 2),
        S(arr(1, 3, 6), 3),
        S(arr(2, 1, 1, 2, 4), 2),
        S(arr(4, 2, 3).T, 2),
        S(bools(1, 2, 2), 2),
        S(arr(2, 3, 3), 1),
    ],
    bad=[
        Bad(S(arr(1, 2, 3), 2), SHAPE, r"\[pixel_unshuffle\] images of 2 × 3"),
        Bad(S(arr(4, 2), 2), SHAPE, r"\(4, 2\)"),
        Bad(S(arr(4, 2, 2), -1), ARGUMENT, r"downscale_factor must be at least 1"),
    ],
)
op(
    "channel_shuffle",
    np_deal,
    [
        S(arr(2, 6, 3), 2),
        S(arr(1, 6, 2, 2), 3),
        S(arr(0, 4, 2), 2),
        S(arr(3, 4, 2).T, 2),
        S(ints(1, 4, 1), 4),
        S(arr(2, 3, 2), 1),
    ],
    bad=[
        Bad(S(arr(1, 4, 2), 3), ARGUMENT, r"\[channel_shuffle\] groups must divide the 4 channels"),
        Bad(S(arr(1, 4, 2), 0), ARGUMENT, r"got 0"),
        Bad(S(arr(4, 2), 2), SHAPE, r"\(4, 2\)"),
    ],
)
