"""Samples for `undertow.ops.shape.diagonal`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, ints, op

ArgumentError, DimError, DTypeError = (
    ut.errors.ArgumentError,
    ut.errors.DimError,
    ut.errors.DTypeError,
)

op(
    "diagonal",
    lambda x, offset=0, dim1=0, dim2=1: np_diagonal(x, offset, dim1, dim2),
    [
        S(arr(3, 3)),
        S(arr(2, 4), 1),
        S(arr(2, 4), -1),
        S(arr(2, 3, 4), 1, 2, 0),
        S(arr(2, 3), 5),
        S(arr(2, 3), -5),
        S(arr(2, 3, 4), 0, -1, -2),
        S(arr(4, 3).T),
        S(arr(0, 3)),
        S(arr(2, 3), offset=2),
    ],
    bad=[
        Bad(S(arr(2, 3), 0, 0, 0), ArgumentError, r"\[diagonal\].*differ, got 0 and 0"),
        Bad(S(arr(3)), DimError, r"\[diagonal\] dim2 1"),
        Bad(S(arr(3, 3), 0.5), TypeError, r"\[diagonal\] offset"),
    ],
)


def np_diagonal(x, offset, dim1, dim2):
    """NumPy's diagonal."""
    return np.diagonal(x, offset, dim1, dim2)


def np_diag_embed(x, offset=0, dim1=-2, dim2=-1):
    """Written out element by element."""
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


op(
    "diag_embed",
    np_diag_embed,
    [
        S(arr(3)),
        S(arr(2, 3), 1),
        S(arr(2, 3), -2),
        S(arr(2, 3), 1, 0, -1),
        S(arr(2, 3), 1, -1, 0),
        S(arr(0)),
        S(arr(2, 3), 0, 2, 0),
    ],
    bad=[
        Bad(S(arr(3), 0, 1, 1), ArgumentError, r"\[diag_embed\].*differ"),
        Bad(S(arr()), DimError, r"\[diag_embed\].*got 0"),
        Bad(S(arr(3), 0, 2, 0), DimError, r"\[diag_embed\] dim1 2"),
    ],
)
op(
    "diag",
    lambda x, diagonal=0: np.diag(x, diagonal),
    [
        S(arr(3)),
        S(arr(3), 1),
        S(arr(3), -2),
        S(arr(3, 4)),
        S(arr(3, 4), 2),
        S(arr(3, 4), -1),
        S(arr(0)),
        S(arr(2, 3), 9),
        S(arr(2, 3), diagonal=1),
    ],
    bad=[
        Bad(S(arr()), DimError, r"\[diag\].*got 0"),
        Bad(S(arr(2, 2, 2)), DimError, r"\[diag\].*got 3"),
    ],
)
op(
    "diagflat",
    lambda x, offset=0: np.diagflat(x, offset),
    [S(arr(3)), S(arr(2, 2), 1), S(arr()), S(arr(3, 2).T, -1), S(arr(0))],
)

TRIANGLES = [
    S(arr(3, 3)),
    S(arr(3, 4), 1),
    S(arr(4, 3), -1),
    S(arr(2, 3, 3)),
    S(arr(4, 3).T),
    S(arr(0, 3)),
    S(arr(2, 3), 7),
    S(arr(2, 3), -7),
    S(arr(3, 3), 2**63 - 1),
    S(arr(3, 3), -(2**63)),
    S(bools(3, 3)),
    S(ints(3, 3), 1),
    S(arr(3, 3), diagonal=-1),
    S(np.array([[np.nan, np.inf], [np.inf, -np.inf]], np.float32)),
]
op(
    "tril",
    lambda x, diagonal=0: np.tril(x, max(-99, min(diagonal, 99))),
    TRIANGLES,
    bad=[Bad(S(arr(3)), DimError, r"\[tril\].*got 1")],
)
op(
    "triu",
    lambda x, diagonal=0: np.triu(x, max(-99, min(diagonal, 99))),
    TRIANGLES,
    bad=[Bad(S(arr(3)), DimError, r"\[triu\].*got 1")],
)
INDICES = [
    S(3, 3),
    S(3, 2, -1),
    S(2, 4, 1),
    S(0, 3),
    S(3, 0),
    S(2, 2, 9),
    S(2, 2, -9),
    S(3, 3, dtype=ut.int32),
]
op(
    "tril_indices",
    lambda r, c, o=0, dtype=None: np.stack(np.tril_indices(r, o, c)),
    INDICES,
    grad=False,
    bad=[
        Bad(S(-1, 2), ArgumentError, r"\[tril_indices\].*got -1 and 2"),
        Bad(S(2, 2, dtype=ut.float32), DTypeError, r"\[tril_indices\].*float32"),
    ],
)
op(
    "triu_indices",
    lambda r, c, o=0, dtype=None: np.stack(np.triu_indices(r, o, c)),
    INDICES,
    grad=False,
    bad=[Bad(S(2, -2), ArgumentError, r"\[triu_indices\].*got 2 and -2")],
)
