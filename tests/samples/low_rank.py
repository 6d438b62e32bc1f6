"""Samples for `undertow.ops.linalg.low_rank`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, op

ArgumentError, ShapeError = ut.errors.ArgumentError, ut.errors.ShapeError


def exact(a, q=6, niter=2, centre=None):
    """All singular values, which random projections find if there are no more than asked for."""
    u, s, vh = np.linalg.svd(a if centre is None else a - centre, False)
    return u, s, np.swapaxes(vh, -2, -1)


def values(function):
    """The product of the factors, which has no signs."""

    def found(a, *args, **kwargs):
        u, s, v = function(a, *args, **kwargs)
        return (u * s.unsqueeze(-2)) @ v.mH, s

    return found


SAMPLES = [S(arr(4, 3), 3), S(arr(3, 5), 3), S(arr(2, 4, 3), q=3, niter=1)]
BAD = [
    Bad(S(arr(4, 3), 4), ArgumentError, r"q must be between 0 and.*\(4, 3\), got 4"),
    Bad(S(arr(3), 1), ShapeError, "must be a matrix"),
]
op("svd_lowrank", None, SAMPLES, within=values, bad=BAD)
# Three centred rows have rank 2: a third value would be rounding, and its gradient too.
op("pca_lowrank", None, [SAMPLES[0], S(arr(3, 5), 2), SAMPLES[2]], within=values, bad=BAD)
