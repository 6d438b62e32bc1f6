"""Samples for `undertow.ops.linalg.matrix_norms`."""

from __future__ import annotations

import math

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op

from .triangular import definite, steep, waves

ShapeError, ArgumentError, DTypeError = (
    ut.errors.ShapeError,
    ut.errors.ArgumentError,
    ut.errors.DTypeError,
)
ORDERS = ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf]


def np_vector(x, ord=2, dim=None, keepdim=False):
    """NumPy's norm of a vector, over several dimensions."""
    dims = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    size = np.abs(x)
    if ord == math.inf:
        return size.max(dims, keepdims=keepdim)
    if ord == -math.inf:
        return size.min(dims, keepdims=keepdim)
    if ord == 0:
        return (size != 0).sum(dims, keepdims=keepdim)
    return (size**ord).sum(dims, keepdims=keepdim) ** (1 / ord)


op(
    "linalg.vector_norm",
    np_vector,
    [
        S(arr(3, 4)),
        S(arr(3, 4), 1, 0),
        S(arr(2, 3, 4), 3, (0, 2)),
        S(arr(3, 4), math.inf, 1, True),
        S(arr(3, 4), -math.inf, -1),
        S(Const(arr(4)), 0),
        S(arr(5), 0.5),
        S(arr(5), -2),
        S(arr(0)),
        S(arr(4, 3).T, 2.5, 0),
        S(waves(3, 4), 2, 1),
        S(waves(3, 4), 3),
    ],
    bad=[
        Bad(S(ints(3)), DTypeError, r"vector_norm\].*int64"),
        Bad(S(arr(3), "fro"), DTypeError, "ord must be a number, got str"),
        Bad(S(arr(0), math.inf), ShapeError, "no elements"),
    ],
)


EMPTY = [(0, 0), (0, 3), (3, 0)]


def np_matrix(a, ord="fro", dim=(-2, -1), keepdim=False):
    """NumPy's norm of matrices, and 0 for those without elements."""
    if a.size == 0 and a.shape[0]:
        return np.zeros(a.shape[:-2], a.dtype)
    return np.linalg.norm(a, ord, dim, keepdim)


op(
    "linalg.matrix_norm",
    np_matrix,
    [
        *(S(arr(3, 4), ord) for ord in ORDERS),
        *(S(arr(2, 3, 4), ord, (0, 2), True) for ord in ORDERS),
        S(arr(2, 3, 4), "nuc", (2, 1)),
        S(arr(2, 3, 4), 1, (2, 0)),
        S(arr(0, 2, 2), 2),
        *(S(arr(2, *shape), ord) for shape in EMPTY for ord in (1, 2, math.inf, "nuc", "fro")),
        *(S(waves(3, 4), ord) for ord in ORDERS),
    ],
    bad=[
        *(Bad(S(arr(0, 0), ord), ut.errors.DimError, "not defined") for ord in (-1, -2, -math.inf)),
        Bad(S(arr(3)), ShapeError, "must be a matrix"),
        Bad(S(arr(2, 2), 3), ArgumentError, "ord of a matrix"),
        Bad(S(arr(2, 2), "fro", (0, 0)), ShapeError, "two different"),
        Bad(S(arr(2, 2), "fro", 1), ShapeError, "two dimensions"),
    ],
)
op(
    "linalg.norm",
    lambda a, ord=None, dim=None, keepdim=False: (
        np_vector(a, 2, dim, keepdim) if ord is None else np.linalg.norm(a, ord, dim, keepdim)
    ),
    [
        S(arr(3, 4)),
        S(arr(2, 3, 4)),
        S(arr(2, 3, 4), None, (0, 1)),
        S(arr(5), 3),
        S(arr(3, 4), "nuc"),
        S(arr(2, 3, 4), 1, (0, 1)),
        S(arr(3, 4), 2, 1, True),
        S(arr(2, 3, 4), "fro", (1, 2)),
    ],
    bad=[
        Bad(S(arr(2, 2, 2), 1), ShapeError, r"linalg.norm\].*1 or 2 dimensions"),
        Bad(S(arr(2, 2, 2), 1, (0, 1, 2)), ShapeError, r"one dimension or two, got \(0, 1, 2\)"),
    ],
)
op(
    "frobenius_norm",
    lambda a, dim, keepdim=False: np_vector(a, 2, dim, keepdim),
    [S(arr(3, 4), (0, 1)), S(arr(3, 4), 1, True)],
)
op(
    "nuclear_norm",
    lambda a, dim=(-2, -1), keepdim=False: np.linalg.norm(a, "nuc", dim, keepdim),
    [S(arr(3, 4)), S(arr(2, 3, 4), (0, 1)), S(arr(3, 4), keepdim=True)],
    torch=lambda a, dim=(-2, -1), keepdim=False: a.norm("nuc", dim, keepdim),
)
op(
    "linalg.cond",
    lambda a, p=None: np.linalg.cond(a, p),
    [
        *(S(steep(2, 3, 3), p) for p in (None, *ORDERS)),
        S(arr(4, 3)),
        S(waves(3, 3)),
        S(waves(3, 3), 1),
        S(Const(np.zeros((2, 2))), 1),
    ],
    torch=None,  # whose gradient fails for norms of the inverse; see test_torch_linalg.py
    bad=[
        Bad(S(arr(2, 3), 1), ShapeError, "must be square"),
        Bad(S(arr(2, 2), 3), ArgumentError, r"cond\] p must be"),
    ],
)
op(
    "norm_except_dim",
    lambda v, pow=2, dim=0: (
        np_vector(v, pow)
        if dim == -1
        else np_vector(v, pow, tuple(d for d in range(v.ndim) if d != dim), True)
    ),
    [S(arr(3, 4)), S(arr(2, 3, 4), 2, 1), S(arr(3, 4), 3, -1), S(arr(3, 4), 1, 1)],
    bad=[Bad(S(arr(3, 4), 2, 2), IndexError, r"norm_except_dim\] dim 2")],
)
LOW = np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 0.5, 2.0])
op(
    "linalg.matrix_rank",
    lambda a, tol=None, hermitian=False, atol=None, rtol=None: np.linalg.matrix_rank(
        a, tol if tol is not None else atol
    ),
    [
        S(arr(3, 4)),
        S(LOW),
        S(np.stack([np.eye(3), np.diag([1.0, 0.0, 0.0])])),
        S(definite(3, 3), hermitian=True),
        S(np.diag([1.0, 0.1, 0.01]), 0.05),
        S(np.diag([1.0, 0.1, 0.01]), atol=0.05),
        S(arr(0, 3)),
    ],
    grad=False,
    bad=[Bad(S(arr(3)), ShapeError, r"matrix_rank\] A must be a matrix")],
)


def of_rank_one(function):
    """Hermitian matrices, where asked for; others as they are."""

    def found(a, *args, **kwargs):
        return function((a + a.mH) / 2 if kwargs.get("hermitian") else a, *args, **kwargs)

    return found


op(
    "linalg.pinv",
    lambda a, rcond=None, hermitian=False, atol=None, rtol=None: np.linalg.pinv(a, rcond or 1e-15),
    [
        S(arr(3, 3)),
        S(arr(4, 2)),
        S(arr(2, 4)),
        S(arr(2, 3, 2)),
        S(definite(3, 3), hermitian=True),
        S(waves(3, 2)),
        S(waves(2, 3)),
        S(definite(3, 3, make=waves), hermitian=True),
        S(Const(LOW)),
        S(arr(0, 3)),
        S(arr(3, 0)),
        S(arr(0, 2, 3)),
    ],
    within=of_rank_one,
    bad=[Bad(S(arr(3)), ShapeError, r"pinv\] A must be a matrix")],
)


def np_lstsq(a, b, rcond=None, driver="gelsy"):
    """By the pseudoinverse, with what each of LAPACK's drivers gives beside it."""
    right = b[..., None] if b.ndim < a.ndim else b
    x = np.linalg.pinv(a) @ right
    rank = np.linalg.matrix_rank(a)
    more = a.shape[-2] > a.shape[-1] and driver != "gelsy"
    return (
        x[..., 0] if b.ndim < a.ndim else x,
        np.square(np.abs(a @ x - right)).sum(-2) if more else np.empty(0),
        np.empty(0) if driver == "gels" else rank,
        np.linalg.svd(a, compute_uv=False) if driver in ("gelsd", "gelss") else np.empty(0),
    )


op("pinverse", np.linalg.pinv, [S(arr(3, 2)), S(arr(2, 3), 1e-10)])
op(
    "linalg.lstsq",
    np_lstsq,
    [
        S(arr(4, 2), arr(4, 3)),
        S(arr(2, 4, 2), arr(2, 4, 1), driver="gelsd"),
        S(arr(2, 4), arr(2, 3), driver="gelss"),
        S(arr(4, 2), arr(4), driver="gels"),
        S(Const(LOW.T), Const(arr(4, 2))),
        S(arr(0, 3, 2), arr(0, 3, 1)),
        S(waves(4, 2), waves(4, 1), driver="gelsd"),
    ],
    bad=[
        Bad(S(arr(3, 2), arr(2, 1)), ShapeError, r"lstsq\].*\(3, 2\).*\(2, 1\)"),
        Bad(S(arr(3, 2), arr(3, 1), driver="qr"), ArgumentError, r"lstsq\] driver.*'qr'"),
    ],
)
