"""Samples for `undertow.ops.linalg.pivoted`."""

from __future__ import annotations

import math

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, op
from undertow.backends import lapack

from .triangular import waves

ShapeError, DTypeError = ut.errors.ShapeError, ut.errors.DTypeError
LinAlgError, ArgumentError = ut.errors.LinAlgError, ut.errors.ArgumentError


def np_lu(a):
    """One matrix at a time, row by row."""
    m, n = a.shape[-2:]
    packed = np.array(a).reshape(math.prod(a.shape[:-2]), m, n)
    pivots = np.zeros((len(packed), min(m, n)), np.int32)
    for x, p in zip(packed, pivots, strict=True):
        for j in range(min(m, n)):
            row = j + int(np.abs(x[j:, j]).argmax())
            p[j] = row + 1
            x[[j, row]] = x[[row, j]]
            for i in range(j + 1, m):
                x[i, j] /= x[j, j]
                x[i, j + 1 :] -= x[i, j] * x[j, j + 1 :]
    return packed.reshape(a.shape), pivots.reshape(*a.shape[:-2], min(m, n))


def np_unpacked(packed, pivots, *flags):
    """P, L and U."""
    m, n = packed.shape[-2:]
    least = min(m, n)
    count = math.prod(packed.shape[:-2])
    order = np.broadcast_to(np.arange(m), (count, m)).copy()
    for o, p in zip(order, pivots.reshape(count, least), strict=True):
        for j, row in enumerate(p):
            o[[j, row - 1]] = o[[row - 1, j]]
    permutation = np.eye(m)[order].swapaxes(-2, -1).reshape(*packed.shape[:-2], m, m)
    lower = np.tril(packed[..., :least], -1) + np.eye(m, least)
    return permutation, lower, np.triu(packed[..., :least, :])


MATRICES = [
    S(arr(3, 3)),
    S(arr(4, 3)),
    S(arr(3, 4)),
    S(arr(2, 3, 3, seed=1)),
    S(arr(5, 2).T),
    S(waves(3, 3)),
    S(waves(4, 3)),
    S(arr(0, 3)),
    S(arr(0, 3, 3)),
    S(np.float32(arr(70, 40))),
]
op(
    "linalg.lu_factor",
    np_lu,
    MATRICES,
    rtol=1e-4,
    atol=1e-5,
    bad=[
        Bad(S(arr(3)), ShapeError, r"lu_factor\] A must be a matrix"),
        Bad(S(np.eye(2, dtype=np.int64)), DTypeError, "int64"),
        Bad(S(np.zeros((2, 2))), LinAlgError, r"lu_factor\].*pivot 1 is zero.*lu_factor_ex"),
        Bad(S(np.zeros((2, 2)), pivot=False), LinAlgError, "pivot 1 is zero"),
        Bad(S(np.zeros((2, 1, 4, 3))), LinAlgError, r"matrix \(0, 0\) of the batch.*pivot 1"),
    ],
)
op(
    "linalg.lu_factor_ex",
    lambda a: (*np_lu(a), np.zeros(a.shape[:-2])),
    MATRICES[:4],
    bad=[Bad(S(np.zeros((2, 2)), check_errors=True), LinAlgError, "pivot 1 is zero")],
)
op(
    "linalg.lu",
    lambda a: np_unpacked(*np_lu(a)),
    MATRICES[:8],
    bad=[Bad(S(arr(3)), ShapeError, r"linalg.lu\] A must be a matrix")],
)
op("lu", lambda a, pivot=True, infos=False: np_lu(a), MATRICES[:3], torch="Tensor.lu")
LU, PIVOTS = lapack.lu(arr(3, 3), True)[:2]
COMPLEX_LU = lapack.lu(waves(3, 3), True)[:2]
WIDE = lapack.lu(arr(2, 2, 3), True)[:2]
op(
    "lu_unpack",
    np_unpacked,
    [S(LU, PIVOTS), S(*WIDE)],
    bad=[Bad(S(LU, PIVOTS[:2]), ShapeError, r"lu_unpack\].*pivots of shape \(3,\), got \(2,\)")],
)


def np_lu_solve(packed, pivots, b, left=True, adjoint=False):
    """By the inverse of the product."""
    p, lower, upper = np_unpacked(packed, pivots)
    a = np.linalg.inv(p @ lower @ upper)
    a = np.swapaxes(a, -2, -1).conj() if adjoint else a
    return a @ b if left else b @ a


op(
    "linalg.lu_solve",
    np_lu_solve,
    [
        S(LU, PIVOTS, arr(3, 2)),
        S(LU, PIVOTS, arr(2, 3), left=False),
        S(LU, PIVOTS, arr(3, 2), adjoint=True),
        S(LU, PIVOTS, arr(2, 3), left=False, adjoint=True),
        S(LU, PIVOTS, arr(2, 3, 1)),
        S(*COMPLEX_LU, waves(3, 2)),
        S(*COMPLEX_LU, waves(2, 3), left=False, adjoint=True),
    ],
    bad=[
        Bad(S(LU, PIVOTS, arr(2, 2)), ShapeError, r"lu_solve\] an LU of shape \(3, 3\).*\(2, 2\)"),
        Bad(S(LU, PIVOTS.astype(np.int64), arr(3, 2)), DTypeError, "pivots must be int32"),
        Bad(S(LU, PIVOTS * 0, arr(3, 2)), ArgumentError, "rows from 1 to 3, got 0 to 0"),
        Bad(S(LU, PIVOTS * 0 + 4, arr(3, 2)), ArgumentError, "rows from 1 to 3, got 4 to 4"),
    ],
)
op("lu_solve", lambda b, lu, p: np_lu_solve(lu, p, b), [S(arr(3, 2), LU, PIVOTS)])


def indefinite(*shape, seed=0):
    """Symmetric matrices of both signs."""
    a = arr(*shape, seed=seed)
    return a + np.swapaxes(a, -2, -1)


SYMMETRIC = [
    S(Const(indefinite(3, 3))),
    S(Const(indefinite(2, 6, 6))),
    S(Const([[0.0, 1.0], [1.0, 0.0]])),
    S(Const(indefinite(0, 3, 3))),
    S(Const(indefinite(3, 3)), hermitian=True),
]
op(
    "linalg.ldl_factor",
    None,
    SYMMETRIC,
    bad=[
        Bad(S(arr(2, 3)), ShapeError, r"ldl_factor\] A must be square"),
        Bad(S(np.zeros((2, 2))), LinAlgError, r"ldl_factor\].*block 1 of D is zero"),
    ],
)
op(
    "linalg.ldl_factor_ex",
    None,
    SYMMETRIC,
    bad=[Bad(S(np.zeros((2, 2)), check_errors=True), LinAlgError, "block 1 of D is zero")],
)
LDL = lapack.ldl(indefinite(2, 5, 5), False)
op(
    "linalg.ldl_solve",
    lambda ld, p, b: np.linalg.inv(indefinite(2, 5, 5)) @ b,
    [S(Const(LDL[0]), LDL[1], arr(2, 5, 2)), S(Const(LDL[0]), LDL[1], arr(5, 2))],
    torch=None,  # which has no derivative of it; see test_torch_linalg.py
    bad=[
        Bad(S(Const(LDL[0]), LDL[1], arr(4, 2)), ShapeError, r"ldl_solve\].*\(4, 2\)"),
        Bad(S(Const(LDL[0]), LDL[1] * 0, arr(5, 2)), ArgumentError, "1 to 5, got 0 to 0"),
        Bad(S(Const(LDL[0]), LDL[1] * 0 - 6, arr(5, 2)), ArgumentError, "1 to 5, got 6 to 6"),
    ],
)
