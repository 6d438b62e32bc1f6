"""Samples for `undertow.ops.nn.embedding`."""

from __future__ import annotations

import itertools

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, singular

F = "nn.functional."
ArgumentError, BoundsError, ShapeError = (
    ut.errors.ArgumentError,
    ut.errors.BoundsError,
    ut.errors.ShapeError,
)


def indices(*shape, high=5, seed=0):
    return ints(*shape, low=0, high=high, seed=seed)


def one_hot(x, num_classes=-1):
    return np.eye(x.max() + 1 if num_classes == -1 else num_classes, dtype=np.int64)[x]


op(
    F + "one_hot",
    one_hot,
    [S(indices(3)), S(indices(2, 3), 7), S(indices(), 5), S(indices(0), 4), S(indices(3, 2).T)],
    grad=False,
    bad=[
        Bad(S(indices(3), 2), BoundsError, r"\[one_hot\] class index 4.*2 classes"),
        Bad(S(np.array([1, -2])), BoundsError, "class index -2"),
        Bad(S(indices(0)), ArgumentError, "pass num_classes"),
        Bad(S(indices(3), 0), ArgumentError, "at least 1, got 0"),
        Bad(S(arr(3)), TypeError, "float64"),
        Bad(S(np.int32([1])), TypeError, "int32"),
    ],
)


def embedding(i, w, padding_idx=None, scale_grad_by_freq=False, max_norm=None, norm_type=2):
    if max_norm is not None:
        norm = np.linalg.norm(w, norm_type, axis=1, keepdims=True)
        w = np.where(norm > max_norm, w * max_norm / (norm + 1e-7), w)
    return w[i]


# A padding row that occurs, and scaling by frequency, change the gradient on purpose: the tests of
# those are in test_embedding.py.
op(
    F + "embedding",
    embedding,
    [
        S(indices(4), arr(5, 3)),
        S(indices(2, 3), arr(5, 3)),
        S(indices(), arr(5, 3)),
        S(indices(0), arr(5, 3)),
        S(np.array([1, 1, 1]), arr(5, 3)),
        S(indices(4), arr(3, 5).T),
        S(np.int32([4, 0]), arr(5, 3)),
        S(indices(2, 2), arr(5, 0)),
        S(np.array([1, 2]), arr(5, 3), padding_idx=0),
        S(np.array([1, 2]), arr(5, 3), padding_idx=-2),
        S(np.array([3, 2]), arr(5, 3), scale_grad_by_freq=True),
        S(indices(4), Const(arr(5, 3)), max_norm=1.0),
        S(indices(4), Const(arr(5, 3)), max_norm=2.0, norm_type=1.0),
    ],
    rtol=1e-6,
    bad=[
        Bad(S(np.array([5]), arr(5, 3)), BoundsError, r"\[embedding\] index 5.*size 5"),
        Bad(S(np.array([-1]), arr(5, 3)), BoundsError, r"\[embedding\] index -1.*size 5"),
        Bad(S(arr(3), arr(5, 3)), TypeError, r"\[embedding\] input.*float64"),
        Bad(S(indices(3), arr(5)), ShapeError, r"\(rows, features\).*\(5,\)"),
        Bad(S(indices(3), arr(5, 3), padding_idx=5), ArgumentError, r"padding_idx 5.*5 rows"),
        Bad(
            S(indices(3), arr(5, 3), sparse=True, scale_grad_by_freq=True),
            ut.errors.UnsupportedError,
            "scale_grad_by_freq",
        ),
    ],
)


def embedding_bag(
    i,
    w,
    offsets=None,
    mode="mean",
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Bag by bag."""
    psw = np.ones(i.shape) if per_sample_weights is None else per_sample_weights
    if i.ndim == 2:
        bags = [(list(row), list(p)) for row, p in zip(i, psw, strict=True)]
    else:
        ends = list(offsets) if include_last_offset else [*offsets, len(i)]
        bags = [(list(i[a:b]), list(psw[a:b])) for a, b in itertools.pairwise(ends)]
    out = np.zeros((len(bags), w.shape[1]))
    for n, (members, p) in enumerate(bags):
        rows = [
            w[m] * q
            for m, q in zip(members, p, strict=True)
            if padding_idx is None or m != padding_idx % len(w)
        ]
        if rows:
            out[n] = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, axis=0)
    return out


EACH = [
    S(indices(3, 2), arr(5, 3)),
    S(indices(6), arr(5, 3), np.array([0, 2, 2, 5])),  # the second bag is empty
    S(indices(6), arr(5, 3), np.array([0, 4, 6])),  # so is the last
    S(indices(6), arr(5, 3), np.array([0, 2, 6]), include_last_offset=True),
    S(indices(6), arr(5, 3), np.array([0, 3]), padding_idx=1),
    S(np.array([1, 1, 0]), arr(5, 3), np.array([0, 2]), padding_idx=-4),  # nothing but padding
    S(indices(0), arr(5, 3), np.array([0, 0])),
    S(indices(0), arr(5, 3), np.array([], int)),
    S(np.array([2, 2, 3]), arr(5, 3), np.array([0])),
    S(np.int32([[1, 2], [3, 4]]), arr(5, 3)),
]
op(
    F + "embedding_bag",
    embedding_bag,
    [
        *(S(*s.args, mode=mode, **s.kwargs) for mode in ("sum", "mean", "max") for s in EACH),
        S(indices(3, 2), arr(5, 3), mode="sum", per_sample_weights=arr(3, 2)),
        S(indices(6), arr(5, 3), np.array([0, 4]), mode="sum", per_sample_weights=arr(6)),
        S(
            indices(6),
            arr(5, 3),
            np.array([0, 4]),
            mode="sum",
            per_sample_weights=arr(6),
            padding_idx=1,
        ),
    ],
    torch_gradgrad=False,
    bad=[
        Bad(S(indices(3), arr(5, 3)), ShapeError, r"needs 1-d offsets, got None"),
        Bad(S(indices(3, 2), arr(5, 3), np.array([0])), ArgumentError, "offsets must be None"),
        Bad(S(indices(1, 3, 2), arr(5, 3)), ShapeError, r"\(1, 3, 2\)"),
        Bad(S(indices(3), arr(5, 3), np.array([1])), ArgumentError, r"rise from 0.*\[1\]"),
        Bad(S(indices(3), arr(5, 3), np.array([0, 4])), ArgumentError, "at most the 3"),
        Bad(
            S(indices(3), arr(5, 3), np.array([], int), include_last_offset=True),
            ArgumentError,
            "at least one offset",
        ),
        Bad(S(indices(3, 2), arr(5, 3), mode="min"), ArgumentError, "'min'"),
        Bad(
            S(indices(3, 2), arr(5, 3), mode="max", scale_grad_by_freq=True),
            ArgumentError,
            "scale_grad_by_freq",
        ),
        Bad(
            S(indices(3, 2), arr(5, 3), per_sample_weights=arr(3, 2)),
            ut.errors.UnsupportedError,
            "mode='sum'",
        ),
        Bad(
            S(indices(3, 2), arr(5, 3), mode="sum", per_sample_weights=arr(3)),
            ShapeError,
            r"\(3, 2\).*\(3,\)",
        ),
        Bad(S(np.array([[7]]), arr(5, 3)), BoundsError, r"\[embedding_bag\] index 7"),
    ],
)

# Ties ------------------------------------------------------------------------------------------
singular(
    "nn.functional.embedding_bag",
    S(np.array([[0, 1, 1]]), np.array([[1.0, 0.0], [1.0, 2.0]]), mode="max"),
    torch=False,  # torch picks one of them
)
