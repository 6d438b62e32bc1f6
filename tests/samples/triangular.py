"""Samples for `undertow.ops.linalg.triangular`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, op

ShapeError, DTypeError = ut.errors.ShapeError, ut.errors.DTypeError
LinAlgError = ut.errors.LinAlgError


def waves(*shape, seed=0):
    """Random complex numbers."""
    return arr(*shape, seed=seed) + 1j * arr(*shape, seed=seed + 50)


def adjoint(a):
    """The last two dimensions exchanged, and conjugated."""
    return np.swapaxes(a, -2, -1).conj()


def steep(*shape, seed=0):
    """Matrices whose diagonal is far from zero, so that triangles are easy to solve with."""
    return arr(*shape, seed=seed) + 4 * np.eye(shape[-1])


def definite(*shape, seed=0, make=arr):
    """Positive definite matrices."""
    a = make(*shape, seed=seed)
    return a @ adjoint(a) + np.eye(shape[-1])


def symmetric(function):
    """A function of symmetric matrices, as one of any."""
    return lambda a, *args, **kwargs: function((a + a.mH) / 2, *args, **kwargs)


def np_triangular(a, b, upper, left=True, unitriangular=False):
    """Solved as a full system."""
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        n = a.shape[-1]
        a = a * (1 - np.eye(n)) + np.eye(n)
    if left:
        return np.linalg.inv(a) @ b
    return b @ np.linalg.inv(a)


op(
    "linalg.solve_triangular",
    np_triangular,
    [
        S(steep(3, 3), arr(3, 2), upper=False),
        S(steep(3, 3), arr(3, 2), upper=True),
        S(steep(3, 3), arr(2, 3), upper=True, left=False),
        S(steep(3, 3), arr(2, 3), upper=False, left=False, unitriangular=True),
        S(steep(3, 3).T, arr(3, 1), upper=True, unitriangular=True),
        S(steep(2, 1, 3, 3), arr(4, 3, 2), upper=False),  # batches broadcast
        S(steep(0, 3, 3), arr(0, 3, 2), upper=False),
        S(steep(0, 0), arr(0, 2), upper=True),
        S(steep(3, 3), arr(3, 0), upper=True),
        S(waves(3, 3) + 4 * np.eye(3), waves(3, 2), upper=False),
        S(waves(2, 3, 3) + 4 * np.eye(3), waves(2, 2, 3), upper=True, left=False),
        S(np.float32(np.eye(40) * 3 + arr(40, 40) / 20), np.float32(arr(40, 2)), upper=True),
    ],
    rtol=1e-5,
    atol=1e-7,
    bad=[
        Bad(
            S(arr(2, 3), arr(2, 3), upper=True), ShapeError, r"solve_triangular\] A must be square"
        ),
        Bad(S(arr(3), arr(3, 3), upper=True), ShapeError, r"solve_triangular\] A must be a matrix"),
        Bad(S(arr(3, 3), arr(2, 3), upper=True), ShapeError, r"\(3, 3\).*\(2, 3\)"),
        Bad(
            S(np.eye(2, dtype=np.int64), np.eye(2, dtype=np.int64), upper=True), DTypeError, "int64"
        ),
        Bad(
            S(np.eye(2), np.eye(2, dtype=np.float32), upper=True),
            DTypeError,
            "float64 and.*float32",
        ),
    ],
)
op(
    "triangular_solve",
    lambda b, a, upper=True, transpose=False, unitriangular=False: (
        np_triangular(
            np.swapaxes(a, -2, -1) if transpose else a, b, upper != transpose, True, unitriangular
        ),
        np.broadcast_to(a, (*b.shape[:-2], *a.shape[-2:])),
    ),
    [
        S(arr(3, 2), steep(3, 3)),
        S(arr(3, 2), steep(3, 3), False),
        S(arr(3, 2), steep(3, 3), True, True),
        S(arr(3, 2), steep(3, 3), False, True, True),
        S(arr(2, 3, 2), steep(3, 3)),
        S(waves(3, 2), waves(3, 3) + 4 * np.eye(3), True, True),
    ],
    bad=[Bad(S(arr(2, 1), arr(3, 3)), ShapeError, r"triangular_solve\].*\(3, 3\).*\(2, 1\)")],
)

FACTORED = [
    S(definite(3, 3)),
    S(definite(3, 3), upper=True),
    S(definite(2, 2, 3, 3)),
    S(definite(1, 1)),
    S(definite(0, 0)),
    S(definite(0, 3, 3)),
    S(definite(3, 3, make=waves)),
    S(definite(2, 3, 3, make=waves), upper=True),
]
NOT_DEFINITE = np.stack([np.eye(2), np.diag([1.0, -1.0])])


def np_cholesky(a, upper=False):
    """NumPy's, and its transpose."""
    found = np.linalg.cholesky(a)
    return adjoint(found) if upper else found


BAD_CHOLESKY = [
    Bad(S(NOT_DEFINITE), LinAlgError, r"cholesky\] matrix \(1,\).*order 2"),
    Bad(S(arr(2, 3)), ShapeError, r"cholesky\] A must be square"),
    Bad(S(np.array([[np.nan]])), LinAlgError, "order 1"),
]
op("linalg.cholesky", np_cholesky, FACTORED, within=symmetric, bad=BAD_CHOLESKY)
op("cholesky", np_cholesky, FACTORED[:2], within=symmetric, bad=BAD_CHOLESKY)
op(
    "linalg.cholesky_ex",
    lambda a, upper=False: (np_cholesky(a, upper), np.zeros(a.shape[:-2])),
    FACTORED,
    within=symmetric,
    bad=[Bad(S(NOT_DEFINITE, check_errors=True), LinAlgError, r"cholesky_ex\] matrix \(1,\)")],
)


def of_triangle(function):
    """A function that looks at a triangle of its last argument; torch's gradient has the other."""

    def found(*args):
        *before, factor, upper = args if isinstance(args[-1], bool) else (*args, False)
        return function(*before, factor.triu() if upper else factor.tril(), upper)

    return found


op(
    "cholesky_solve",
    lambda b, factor, upper=False: (
        np.linalg.inv(
            adjoint(np.triu(factor)) @ np.triu(factor)
            if upper
            else np.tril(factor) @ adjoint(np.tril(factor))
        )
        @ b
    ),
    [
        S(arr(3, 2), steep(3, 3)),
        S(arr(3, 2), steep(3, 3), True),
        S(arr(2, 3, 1), steep(3, 3)),
        S(arr(0, 3, 1), steep(0, 3, 3)),
        S(waves(3, 2), waves(3, 3) + 4 * np.eye(3)),
    ],
    within=of_triangle,
    bad=[Bad(S(arr(2, 1), arr(3, 3)), ShapeError, r"cholesky_solve\].*\(3, 3\).*\(2, 1\)")],
)
op(
    "cholesky_inverse",
    lambda factor, upper=False: np.linalg.inv(
        adjoint(np.triu(factor)) @ np.triu(factor)
        if upper
        else np.tril(factor) @ adjoint(np.tril(factor))
    ),
    [S(steep(3, 3)), S(steep(3, 3), True), S(steep(2, 3, 3)), S(steep(0, 0))],
    within=of_triangle,
    bad=[Bad(S(arr(3)), ShapeError, r"cholesky_inverse\] L must be a matrix")],
)
