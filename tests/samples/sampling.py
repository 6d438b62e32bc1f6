"""Samples for `undertow.ops.nn.sampling`."""

from __future__ import annotations

import itertools

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, singular

F = "nn.functional."
ShapeError = ut.errors.ShapeError


def pixel(i, n, padding, corners):
    """The pixel that position i shows, a float; NaN where it shows nothing."""
    if padding == "reflection":
        low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
        if low == high:
            return 0.0
        while not low <= i <= high:
            i = 2 * low - i if i < low else 2 * high - i
    if padding != "zeros":
        i = min(max(i, 0), n - 1)
    return i


def kernel(mode, x):
    """The weight of a pixel at distance x."""
    x = abs(x)
    if mode == "bilinear":
        return max(0.0, 1 - x)
    if mode == "nearest":
        return float(x < 0.5)
    a = -0.75
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Point by point: the sum over pixels near the point of value times kernel."""
    sizes = image.shape[2:]
    out = np.zeros((*image.shape[:2], *grid.shape[1:-1]))
    for place in np.ndindex(grid.shape[:-1]):
        centre = []
        for x, n in zip(grid[place][::-1], sizes, strict=True):
            x = (x + 1) / 2 * (n - 1) if align_corners else ((x + 1) * n - 1) / 2
            centre.append(x if mode == "bicubic" else pixel(x, n, padding_mode, align_corners))
        around = [range(int(np.floor(c)) - 2, int(np.floor(c)) + 4) for c in centre]
        for where in itertools.product(*around):
            weight = np.prod([kernel(mode, c - w) for c, w in zip(centre, where, strict=True)])
            shown = where
            if mode == "bicubic":
                shown = [
                    pixel(w, n, padding_mode, align_corners)
                    for w, n in zip(where, sizes, strict=True)
                ]
            if all(0 <= w < n for w, n in zip(shown, sizes, strict=True)):
                value = image[(place[0], slice(None), *(int(w) for w in shown))]
                out[(place[0], slice(None), *place[1:])] += weight * value
    return out


def points(*shape, seed=0):
    """A grid that reaches well outside the image."""
    return arr(*shape, seed=seed, low=-1.9, high=1.9)


op(
    F + "grid_sample",
    grid_sample,
    [
        *(
            S(arr(2, 2, 3, 4), points(2, 2, 3, 2, seed=3), mode, padding, corners)
            for mode in ("bilinear", "nearest", "bicubic")
            for padding in ("zeros", "border", "reflection")
            for corners in (False, True)
        ),
        *(
            S(arr(1, 2, 3, 2, 4), points(1, 1, 2, 2, 3, seed=3), mode, padding, corners)
            for mode in ("bilinear", "nearest")
            for padding in ("zeros", "border", "reflection")
            for corners in (False, True)
        ),
        S(
            arr(1, 1, 3, 4),
            Const([[[[-1.0, -1.0], [1.0, 1.0], [0.0, -1.0], [7.5, -30.0]]]]),
            align_corners=True,
        ),
        S(arr(1, 1, 1, 1), points(1, 2, 2, 2), padding_mode="reflection", align_corners=True),
        S(arr(0, 2, 3, 4), points(0, 2, 2, 2), align_corners=False),
        S(arr(2, 0, 3, 4), points(2, 2, 2, 2), align_corners=False),
        S(arr(1, 2, 3, 4), points(1, 0, 2, 2), align_corners=False),
        S(arr(4, 3, 2, 1).T, points(1, 2, 2, 2), align_corners=False),
    ],
    torch_gradgrad=False,
    bad=[
        Bad(S(arr(1, 1, 2, 2), points(1, 1, 1, 2), "cubic"), ut.errors.ArgumentError, "'cubic'"),
        Bad(
            S(arr(1, 1, 2, 2), points(1, 1, 1, 2), padding_mode="wrap"),
            ut.errors.ArgumentError,
            "'wrap'",
        ),
        Bad(S(arr(1, 2, 2), points(1, 1, 2)), ShapeError, r"\(1, 2, 2\)"),
        Bad(S(arr(1, 1, 2, 2), points(1, 1, 1, 3)), ShapeError, r"\(1, 1, 1, 3\)"),
        Bad(S(arr(1, 1, 2, 2), points(2, 1, 1, 2)), ShapeError, "batch size, got 1 and 2"),
        Bad(S(arr(1, 1, 0, 2), points(1, 1, 1, 2)), ShapeError, "empty"),
        Bad(
            S(arr(1, 1, 2, 2, 2), points(1, 1, 1, 1, 3), "bicubic"),
            ut.errors.UnsupportedError,
            "bicubic",
        ),
        Bad(S(arr(1, 1, 2, 2), np.float32(points(1, 1, 1, 2))), TypeError, "float64.*float32"),
    ],
)


def affine_grid(theta, size, align_corners=None):
    out = np.zeros((size[0], *size[2:], len(size) - 2))
    for place in np.ndindex(*out.shape[:-1]):
        centre = []
        for i, n in zip(place[1:], size[2:], strict=True):
            if align_corners:
                centre.append(0.0 if n == 1 else 2 * i / (n - 1) - 1)
            else:
                centre.append((2 * i + 1) / n - 1)
        out[place] = theta[place[0]] @ [*centre[::-1], 1.0]
    return out


def quiet_affine_grid(theta, size, align_corners=False):
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nn.functional.affine_grid(theta, size, align_corners)


op(
    F + "affine_grid",
    affine_grid,
    [S(arr(2, 2, 3), (2, 1, 3, 4), c) for c in (False, True)]
    + [S(arr(1, 3, 4), [1, 1, 2, 3, 2], c) for c in (False, True)]
    + [S(arr(1, 2, 3), (1, 1, 1, 2), True), S(arr(1, 2, 3), (1, 1, 1, 2))],
    torch=quiet_affine_grid,
    bad=[
        Bad(S(arr(1, 2, 3), (1, 1, 2)), ut.errors.UnsupportedError, r"\(1, 1, 2\)"),
        Bad(S(arr(1, 2, 3), (2, 1, 2, 2)), ShapeError, r"\(2, 2, 3\), got \(1, 2, 3\)"),
        Bad(S(arr(1, 2, 3), (1, 1, 0, 2)), ShapeError, "positive"),
        Bad(S(ints(1, 2, 3), (1, 1, 2, 2)), TypeError, "int64"),
    ],
)

# Points on the edges between pixels ------------------------------------------------------------
_image, _grid = arr(1, 1, 3, 3), np.array([[[[0.0, 0.0], [1.0, -1.0], [0.5, 0.0]]]])
for _padding in ("zeros", "border", "reflection"):
    singular(
        "nn.functional.grid_sample", S(_image, _grid, "bilinear", _padding, align_corners=True)
    )
