"""Samples for `undertow.ops.linalg.matrix_functions`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, ints, op

from .triangular import steep, waves

ShapeError, ArgumentError, DTypeError = (
    ut.errors.ShapeError,
    ut.errors.ArgumentError,
    ut.errors.DTypeError,
)


def np_expm(a):
    """The power series, which is enough for small matrices."""
    total = term = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for i in range(1, 60):
        term = term @ a / i
        total = total + term
    return total


SQUARES = [
    S(arr(3, 3)),
    S(arr(2, 2, 2, 2) * 3),
    S(arr(1, 1)),
    S(arr(0, 0)),
    S(arr(0, 2, 2)),
    S(arr(3, 3).T * 4),
    S(waves(3, 3)),
]
BAD_SQUARE = [
    Bad(S(arr(2, 3)), ShapeError, "must be square"),
    Bad(S(ints(2, 2)), DTypeError, "int64"),
]
op("linalg.matrix_exp", np_expm, SQUARES, bad=BAD_SQUARE)
op("matrix_exp", np_expm, SQUARES[:2], bad=BAD_SQUARE)
POWERS = [
    *(S(steep(3, 3), n) for n in (0, 1, 2, 3, 5, -1, -3)),
    S(arr(2, 3, 3), 3),
    S(ints(2, 2), 3),
    S(waves(3, 3), -2),
    S(arr(0, 0), 2),
]
BAD_POWER = [
    Bad(S(arr(2, 3), 2), ShapeError, "square"),
    Bad(S(arr(2, 2), 1.5), TypeError, r"matrix_power\] n"),
]
op("linalg.matrix_power", np.linalg.matrix_power, POWERS, bad=BAD_POWER)
op("matrix_power", np.linalg.matrix_power, POWERS[3:6], bad=BAD_POWER)
op("linalg.matmul", np.matmul, [S(arr(2, 3), arr(3, 4)), S(arr(3), arr(3))])
op(
    "linalg.multi_dot",
    np.linalg.multi_dot,
    [
        S([arr(2, 3), arr(3, 4)]),
        S([arr(2, 3), arr(3, 4), arr(4, 1), arr(1, 5)]),
        S([arr(3), arr(3, 4), arr(4)]),
        S([arr(3), arr(3, 4)]),
        S([waves(2, 3), waves(3, 4), waves(4)]),
    ],
    bad=[
        Bad(S([arr(2, 3)]), ArgumentError, r"multi_dot\] expects at least 2 tensors, got 1"),
        Bad(S([arr(2, 3), arr(2, 3)]), ShapeError, r"0 and 1 of shapes \(2, 3\) and \(2, 3\)"),
        Bad(S([arr(2, 3), arr(3), arr(3, 2)]), ShapeError, "tensor 1 must be a matrix"),
    ],
)
op(
    "linalg.vecdot",
    lambda x, y, dim=-1: (x.conj() * y).sum(dim),
    [
        S(waves(2, 3), waves(3)),
        S(arr(2, 3), arr(3)),
        S(arr(2, 3), arr(2, 1), dim=0),
        S(arr(0), arr(0)),
    ],
    bad=[
        Bad(S(ints(3), ints(3)), DTypeError, r"vecdot\].*int64"),
        Bad(S(arr(2), arr(3)), ShapeError, r"vecdot\]"),
    ],
)
op(
    "linalg.cross",
    lambda a, b, dim=-1: np.moveaxis(
        np.cross(np.moveaxis(a, dim, -1), np.moveaxis(b, dim, -1)), -1, dim
    ),
    [
        S(arr(2, 3), arr(2, 3, seed=1)),
        S(arr(3, 2), arr(3, 2, seed=1), dim=0),
        S(arr(1, 3), arr(4, 3)),
        S(waves(2, 3), waves(2, 3, seed=1)),
    ],
    bad=[
        Bad(S(arr(3), arr(2, 3)), ShapeError, r"cross\]"),
        Bad(S(arr(4), arr(4)), ShapeError, "size 3"),
    ],
)
op(
    "linalg.diagonal",
    lambda a, offset=0, dim1=-2, dim2=-1: np.diagonal(a, offset, dim1, dim2),
    [S(arr(2, 3, 4)), S(arr(3, 3), offset=1), S(arr(2, 3, 4), dim1=0, dim2=1)],
)


def np_vander(x, N=None):
    """Ascending powers of the last dimension."""
    return x[..., None] ** np.arange(x.shape[-1] if N is None else N)


op(
    "linalg.vander",
    np_vander,
    [S(arr(3)), S(arr(2, 3), N=4), S(ints(3)), S(arr(3), N=2), S(waves(3))],
    bad=[
        Bad(S(arr()), ArgumentError, r"vander\] N must be greater than 1"),
        Bad(S(arr(3), N=1), ArgumentError, "N must be greater than 1, got 1"),
        Bad(S(arr(1)), ArgumentError, "N must be greater than 1, got 1"),
        Bad(S(bools(3)), DTypeError, "bool"),
    ],
)
op(
    "vander",
    np.vander,
    [S(arr(3)), S(arr(3), 4), S(arr(3), 2, True), S(ints(3)), S(arr(3), 1), S(arr(3), 0)],
    torch=None,  # whose gradient fails; see test_torch_linalg.py
    bad=[
        Bad(S(arr(2, 2)), ShapeError, r"vander\] x must be a vector"),
        Bad(S(arr(2), -1), ArgumentError, "got -1"),
    ],
)
op(
    "linalg.tensorinv",
    np.linalg.tensorinv,
    [S(arr(2, 2, 4)), S(arr(4, 2, 2), ind=1)],
    bad=[
        Bad(S(arr(2, 3, 4)), ShapeError, r"tensorinv\].*6 and 4"),
        Bad(S(arr(2, 2), 0), ArgumentError, "ind must be positive, got 0"),
    ],
)
op(
    "linalg.tensorsolve",
    np.linalg.tensorsolve,
    [S(arr(2, 2, 4), arr(2, 2)), S(arr(4, 2, 2), arr(4)), S(arr(2, 4, 2), arr(2, 2), (1,))],
    bad=[Bad(S(arr(2, 3, 5), arr(2, 3)), ShapeError, r"tensorsolve\].*no square system")],
)
