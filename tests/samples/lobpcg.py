"""Samples for `undertow.ops.linalg.lobpcg`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, op

from .triangular import definite

ArgumentError, ShapeError = ut.errors.ArgumentError, ut.errors.ShapeError


def without_signs(function):
    """Values, and the projection onto the vectors, of the symmetric part."""

    def found(a, *args, **kwargs):
        values, vectors = function((a + a.mT) / 2, *args, **kwargs)
        return values, vectors @ vectors.mT

    return found


op(
    "lobpcg",
    None,
    [
        S(definite(3, 3), tol=1e-12),
        S(definite(4, 4) / 10 + np.diag(np.arange(4.0)), tol=1e-13, largest=False),
        S(definite(2, 3, 3), tol=1e-12),
        S(Const(definite(6, 6)), 1, Const(definite(6, 6, seed=1)), tol=1e-10),
        S(Const(definite(6, 6)), X=Const(arr(6, 2)), iK=Const(np.eye(6)), tol=1e-10),
    ],
    within=without_signs,
    rtol=1e-5,
    atol=1e-6,
    bad=[
        Bad(S(arr(2, 3)), ShapeError, "must be square"),
        Bad(S(definite(4, 4), 2), ArgumentError, "4 rows for k=2 and n=2"),
        Bad(S(definite(6, 6), method="qr"), ArgumentError, r"lobpcg\] method.*'qr'"),
    ],
)
