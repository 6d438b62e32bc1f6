"""Samples for `undertow.ops.reduce.histograms`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, Const, S, arr, ints, op, positive


def np_histogram(x, bins, *, range=None, weight=None, density=False):
    """NumPy's, with torch's names."""
    hist, edges = np.histogram(x, bins, range, density, weight)
    return hist.astype(np.float64), edges


def np_histogramdd(x, bins, *, range=None, weight=None, density=False):
    """NumPy's, with torch's names."""
    points = x.reshape(-1, x.shape[-1])
    limits = None if range is None else np.reshape(range, (-1, 2))
    flat = None if weight is None else weight.reshape(-1)
    hist, edges = np.histogramdd(points, bins, limits, density, flat)
    return hist, *edges


EDGES = Const([-1.0, 0.0, 0.25, 1.5])
op(
    "histogram",
    np_histogram,
    [
        S(Const(arr(3, 7)), 4),
        S(Const(arr(20)), 5, range=(-1.0, 1.0)),
        S(Const([1.0, 2.0, 2.0]), 2, range=(1.0, 2.0)),
        S(Const(arr(20)), EDGES),
        S(Const(arr(20)), 3, density=True),
        S(Const(arr(4, 5)), 3, weight=positive(4, 5), density=True),
        S(Const(arr(20)), EDGES, weight=arr(20, seed=1)),
        S(Const(np.zeros(0)), 3),
        S(Const([2.0, 2.0]), 2),
    ],
    bad=[
        Bad(S(ints(3), 2), TypeError, r"\[histogram\] needs floating"),
        Bad(S(arr(3), 0), ValueError, r"\[histogram\] bins must be at least 1"),
        Bad(S(arr(3), 2, range=(2.0, 1.0)), ValueError, r"\[histogram\] the range"),
        Bad(S(Const([np.nan]), 2), ValueError, r"\[histogram\] the range of bins must be finite"),
        Bad(S(arr(3), 2, weight=arr(2)), ValueError, r"\[histogram\] weight of shape"),
        Bad(S(arr(3), ints(3)), TypeError, r"\[histogram\] edges are"),
    ],
    torch=None,  # of weights it has no derivative; see conformance/test_torch_mathematics.py
)
op(
    "histogramdd",
    np_histogramdd,
    [
        S(Const(arr(9, 2)), 3),
        S(Const(arr(9, 2)), [2, 3]),
        S(Const(arr(2, 5, 3)), 2, weight=positive(2, 5)),
        S(Const(arr(9, 2)), [2, 2], range=[-1.0, 1.0, -0.5, 1.5], density=True),
        S(Const(arr(9, 2)), [EDGES, EDGES]),
    ],
    bad=[
        Bad(S(arr(3), 2), ValueError, r"\[histogramdd\] needs points"),
        Bad(S(arr(3, 2), [2]), ValueError, r"\[histogramdd\] needs 2 numbers of bins"),
        Bad(S(arr(3, 2), 2, range=[0.0, 1.0]), ValueError, r"\[histogramdd\] needs 4 numbers"),
        Bad(S(arr(3, 2), 2, weight=arr(2)), ValueError, r"\[histogramdd\] weight of shape"),
        Bad(S(ints(3, 2), 2), TypeError, r"\[histogramdd\] needs floating"),
    ],
    torch=None,
)
