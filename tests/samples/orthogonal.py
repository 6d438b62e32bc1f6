"""Samples for `undertow.ops.linalg.orthogonal`."""

from __future__ import annotations

import math

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, op
from undertow.backends.lapack import ROUTINES

from .triangular import waves

ShapeError, ArgumentError = ut.errors.ShapeError, ut.errors.ArgumentError


def np_qr(a, mode="reduced"):
    """NumPy's; without Q an empty one."""
    return tuple(np.linalg.qr(a, mode)) if mode != "r" else (np.empty(0), np.linalg.qr(a, "r"))


op(
    "linalg.qr",
    np_qr,
    [
        S(arr(3, 3)),
        S(arr(4, 3)),
        S(arr(3, 5)),
        S(arr(2, 3, 2)),
        S(arr(3, 3), "complete"),
        S(Const(arr(4, 2)), "complete"),
        S(Const(arr(4, 2)), mode="r"),
        S(arr(0, 3, 2)),
        S(arr(3, 0)),
        S(arr(2, 4).T),
        S(waves(3, 3)),
        S(waves(4, 2)),
        S(waves(2, 3)),
    ],
    bad=[
        Bad(S(arr(2, 2), "raw"), ArgumentError, r"qr\] mode must be.*'raw'"),
        Bad(S(arr(2)), ShapeError, r"qr\] A must be a matrix"),
    ],
)
op(
    "qr",
    lambda a, some=True: np_qr(a, "reduced" if some else "complete"),
    [S(arr(4, 3)), S(arr(2, 3), False), S(Const(arr(4, 2)), some=False)],
)
op(
    "geqrf",
    None,
    [S(Const(arr(4, 3))), S(Const(arr(2, 3, 4)))],
    bad=[Bad(S(arr(3)), ShapeError, r"geqrf\] input must be a matrix")],
)
PACKED, TAU = ROUTINES["geqrf"](arr(2, 4, 3))


def np_product(a, tau):
    """Reflection by reflection."""
    m, n = a.shape[-2:]
    count = math.prod(a.shape[:-2])
    out = np.zeros((count, m, n), a.dtype)
    for x, t, q in zip(
        a.reshape(out.shape), tau.reshape(count, -1 if tau.size else 0), out, strict=True
    ):
        whole = np.eye(m)
        for i, factor in enumerate(t):
            v = np.concatenate([np.zeros(i), [1.0], x[i + 1 :, i]])
            whole = whole @ (np.eye(m) - factor * np.outer(v, v.conj()))
        q[:] = whole[:, :n]
    return out.reshape(a.shape)


REFLECTIONS = [
    S(PACKED, TAU),
    S(arr(3, 2), arr(2)),
    S(arr(3, 3), arr(2)),
    S(arr(3, 2), arr(0)),
    S(waves(3, 2), waves(2)),
]
BAD_REFLECTIONS = [
    Bad(S(arr(2, 3), arr(2)), ShapeError, "as many rows as columns"),
    Bad(S(arr(3, 2), arr(3)), ShapeError, "tau has 3 factors for the 2 columns"),
    Bad(S(arr(3, 2), arr(1, 2)), ShapeError, r"\(3, 2\).*\(1, 2\)"),
]
op("linalg.householder_product", np_product, REFLECTIONS, bad=BAD_REFLECTIONS)
op("orgqr", np_product, REFLECTIONS[:2], bad=BAD_REFLECTIONS)


def np_ormqr(a, tau, other, left=True, transpose=False):
    """The whole Q, made."""
    m, k = a.shape[-2], tau.shape[-1]
    wide = np.concatenate([a[..., :k], np.zeros((*a.shape[:-1], m - k))], -1)
    q = np_product(wide, tau)
    q = np.swapaxes(q, -2, -1).conj() if transpose else q
    return q @ other if left else other @ q


op(
    "ormqr",
    np_ormqr,
    [
        S(PACKED, TAU, arr(2, 4, 2)),
        S(PACKED, TAU, arr(2, 4, 2), True, True),
        S(PACKED, TAU, arr(2, 3, 4), False),
        S(PACKED, TAU, arr(2, 3, 4), left=False, transpose=True),
        S(arr(3, 2), arr(2), arr(3, 3)),
        S(waves(3, 2), waves(2), waves(3, 3), True, True),
    ],
    bad=[Bad(S(arr(3, 2), arr(2), arr(2, 2)), ShapeError, r"ormqr\] Q has 3 rows.*\(2, 2\)")],
)
