"""Samples for `undertow.ops.linalg.spectra`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, op

from .triangular import adjoint, waves

ShapeError, ArgumentError = ut.errors.ShapeError, ut.errors.ArgumentError
LinAlgError = ut.errors.LinAlgError
NOT_A_NUMBER = np.array([[np.nan, 1.0], [1.0, np.inf]])
BAD_SQUARE = [
    Bad(S(arr(2, 3)), ShapeError, "must be square"),
    Bad(S(NOT_A_NUMBER), LinAlgError, "NaN or infinite"),
]


def symmetric(*shape, seed=0, make=arr):
    """Symmetric or Hermitian matrices."""
    a = make(*shape, seed=seed)
    return (a + adjoint(a)) / 2


def of_symmetric(function):
    """Eigenvalues, and the sizes of vectors' elements, of the symmetric part."""

    def found(a, *args):
        result = function((a + a.mH) / 2, *args)
        return (result[0], result[1].abs()) if isinstance(result, tuple) else result

    return found


SYMMETRIC = [
    S(symmetric(3, 3)),
    S(symmetric(2, 2, 3, 3)),
    S(symmetric(3, 3), "U"),
    S(symmetric(1, 1)),
    S(symmetric(0, 0)),
    S(symmetric(0, 3, 3)),
    S(symmetric(3, 3, make=waves)),
    S(symmetric(2, 3, 3, make=waves), "U"),
]
BAD_SIDE = [*BAD_SQUARE, Bad(S(symmetric(2, 2), "X"), ArgumentError, "UPLO must be 'L' or 'U'")]
op(
    "linalg.eigh",
    lambda a, side="L": tuple(np.linalg.eigh(a, side)),
    SYMMETRIC,
    within=of_symmetric,
    bad=BAD_SIDE,
)
op("linalg.eigvalsh", np.linalg.eigvalsh, SYMMETRIC, within=of_symmetric, bad=BAD_SIDE)


def without_signs(function):
    """Singular values, and the sizes of the elements of the vectors that belong to them."""

    def found(a, *args, **kwargs):
        left, values, right = function(a, *args, **kwargs)
        size = values.shape[-1]
        right = right[..., :size, :] if right.shape[-1] == a.shape[-1] else right[..., :size]
        return left[..., :size].abs(), values, right.abs()

    return found


MATRICES = [
    S(arr(3, 3)),
    S(arr(4, 2)),
    S(arr(2, 4)),
    S(arr(2, 3, 2)),
    S(arr(3, 2).T, False),
    S(arr(0, 2, 3), False),
    S(arr(0, 2), False),
    S(waves(3, 3)),
    S(waves(2, 4, 2)),
    S(waves(2, 3), False),
]
BAD_MATRIX = [
    Bad(S(arr(3)), ShapeError, "must be a matrix"),
    Bad(S(NOT_A_NUMBER), LinAlgError, "NaN or infinite"),
]
op(
    "linalg.svd",
    lambda a, full=True: tuple(np.linalg.svd(a, full)),
    MATRICES,
    within=without_signs,
    bad=[*BAD_MATRIX, Bad(S(arr(2, 2), driver="gesvd"), ArgumentError, r"svd\] driver")],
)
op(
    "linalg.svdvals",
    lambda a: np.linalg.svd(a, compute_uv=False),
    [S(*s.args[:1]) for s in MATRICES],
    bad=BAD_MATRIX,
)


def np_svd(a, some=True, compute_uv=True):
    """V in the place of its adjoint."""
    u, s, vh = np.linalg.svd(a, not some)
    return u, s, adjoint(vh)


op(
    "svd",
    np_svd,
    [S(arr(3, 2)), S(arr(2, 3)), S(arr(3, 2), False), S(waves(3, 2))],
    within=without_signs,
    bad=BAD_MATRIX,
)


def np_eig(a):
    """NumPy's, always complex."""
    return tuple(x.astype(complex) for x in np.linalg.eig(a))


def without_phases(function):
    """Eigenvalues, and the sizes of the elements of eigenvectors, in the order of real parts."""

    def found(a):
        result = function(a)
        values = result[0] if isinstance(result, tuple) else result
        order = (values.real + 0.1 * values.imag).detach().argsort(-1)
        if not isinstance(result, tuple):
            return values.gather(-1, order)
        vectors = result[1].abs()
        columns = order.unsqueeze(-2).expand(vectors.shape)
        return values.gather(-1, order), vectors.gather(-1, columns)

    return found


SQUARES = [S(arr(3, 3)), S(arr(2, 4, 4)), S(arr(0, 0)), S(arr(0, 3, 3)), S(waves(3, 3))]
op("linalg.eig", np_eig, SQUARES, within=without_phases, bad=BAD_SQUARE)
op("linalg.eigvals", lambda a: np_eig(a)[0], SQUARES, within=without_phases, bad=BAD_SQUARE)
