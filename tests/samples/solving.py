"""Samples for `undertow.ops.linalg.solving`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, op, singular

from .triangular import definite, steep, waves

ShapeError, DTypeError = ut.errors.ShapeError, ut.errors.DTypeError
LinAlgError, ArgumentError = ut.errors.LinAlgError, ut.errors.ArgumentError
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def np_solve(a, b, left=True):
    """By the inverse, vectors as torch understands them."""
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    inverse = np.linalg.inv(a)
    if vector:
        return (inverse @ b[..., None])[..., 0]
    return inverse @ b if left else b @ inverse


SYSTEMS = [
    S(steep(3, 3), arr(3, 2)),
    S(arr(3, 3, seed=4), arr(3)),
    S(steep(3, 3), arr(2, 3), left=False),
    S(steep(2, 3, 3), arr(2, 3)),  # a batch of vectors
    S(steep(2, 1, 3, 3), arr(4, 3, 2)),  # batches broadcast
    S(steep(0, 3, 3), arr(0, 3, 2)),
    S(steep(0, 0), arr(0, 2)),
    S(steep(3, 3).T, arr(3, 2)),
    S(waves(3, 3), waves(3, 2)),
    S(waves(2, 3, 3), waves(2, 1, 3), left=False),
]
op(
    "linalg.solve",
    np_solve,
    SYSTEMS,
    bad=[
        Bad(S(SINGULAR, arr(2)), LinAlgError, r"\[linalg.solve\] the matrix is singular.*pivot 2"),
        Bad(S(arr(2, 3), arr(2)), ShapeError, r"\[linalg.solve\] A must be square"),
        Bad(S(arr(3, 3), arr(2, 1)), ShapeError, r"\(3, 3\).*\(2, 1\)"),
        Bad(S(arr(3, 3), arr(3), left=False), ArgumentError, "left=False takes matrices"),
    ],
)
op(
    "linalg.solve_ex",
    lambda a, b, left=True: (np_solve(a, b, left), np.zeros(a.shape[:-2])),
    [*SYSTEMS[:5], S(steep(3, 3), arr(0, 3, 2))],
    bad=[Bad(S(SINGULAR, arr(2), check_errors=True), LinAlgError, r"solve_ex\].*singular")],
)

SQUARES = [
    S(steep(3, 3)),
    S(arr(2, 2, 3, 3, seed=3)),
    S(steep(1, 1)),
    S(steep(0, 0)),
    S(steep(0, 3, 3)),
    S(steep(3, 3).T),
    S(waves(2, 3, 3)),
]
BAD_SQUARES = [
    Bad(S(arr(2, 3)), ShapeError, "must be square"),
    Bad(S(arr(3)), ShapeError, "must be a matrix"),
    Bad(S(np.eye(2, dtype=np.int64)), DTypeError, "int64"),
    Bad(S(np.eye(2, dtype=np.float16)), DTypeError, "float16"),
]
BAD_INVERSE = [*BAD_SQUARES, Bad(S(SINGULAR), LinAlgError, "singular, its pivot 2 is zero")]
op("linalg.inv", np.linalg.inv, SQUARES, bad=BAD_INVERSE)
op("inverse", np.linalg.inv, SQUARES[:2], bad=BAD_INVERSE)
op(
    "linalg.inv_ex",
    lambda a: (np.linalg.inv(a), np.zeros(a.shape[:-2])),
    SQUARES,
    bad=[Bad(S(SINGULAR, check_errors=True), LinAlgError, r"inv_ex\].*singular")],
)
op("linalg.det", np.linalg.det, SQUARES, bad=BAD_SQUARES)
op("det", np.linalg.det, SQUARES[:2], bad=BAD_SQUARES)
op("linalg.slogdet", lambda a: tuple(np.linalg.slogdet(a)), SQUARES, bad=BAD_SQUARES)
op("slogdet", lambda a: tuple(np.linalg.slogdet(a)), SQUARES[:2], bad=BAD_SQUARES)


def np_logdet(a):
    """NaN of negative determinants, the principal branch of complex ones."""
    found = np.linalg.det(a)
    if a.dtype.kind == "c":
        return np.log(found)
    return np.where(found < 0, np.nan, np.log(np.abs(found)))


op(
    "logdet",
    np_logdet,
    [S(definite(3, 3)), S(definite(2, 3, 3)), S(np.float32(-np.eye(3))), S(waves(3, 3))],
    bad=BAD_SQUARES,
)
# The determinant is smooth where a matrix is singular.
singular("linalg.det", S(np.array([[0.0]])))
singular("linalg.det", S(SINGULAR), S(np.diag([2.0, 0.0, 3.0])), torch=False)  # torch's: zeros
singular("linalg.det", S(np.zeros((3, 3))))
