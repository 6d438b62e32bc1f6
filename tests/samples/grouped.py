"""Samples for `undertow.ops.linalg.grouped`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, op


def grouped(a, b, offs=None, **_):
    """One product after the other."""
    if offs is None:
        return a @ b
    ends = list(np.asarray(offs))
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    if a.ndim == b.ndim == 2:
        return np.stack([a[:, i:j] @ b[i:j] for i, j in spans])
    if a.ndim == 2:
        out = np.zeros((a.shape[0], b.shape[-1]), a.dtype)
        for g, (i, j) in enumerate(spans):
            out[i:j] = a[i:j] @ b[g]
        return out
    out = np.zeros((a.shape[1], b.shape[1]), a.dtype)
    for g, (i, j) in enumerate(spans):
        out[:, i:j] = a[g] @ b[:, i:j]
    return out


def torch_grouped(a, b, offs=None):
    """Products of torch's: its function takes no float64, and only rows of whole 16 bytes.

    See `test_grouped_mm` in test_torch_ops.py for that one.
    """
    torch = __import__("torch")
    if offs is None:
        return a @ b
    ends = offs.tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    if a.ndim == b.ndim == 2:
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in spans])
    if a.ndim == 2:
        parts = [a[i:j] @ b[g] for g, (i, j) in enumerate(spans)]
        return torch.cat([*parts, a.new_zeros(a.shape[0] - ends[-1], b.shape[-1])])
    parts = [a[g] @ b[:, i:j] for g, (i, j) in enumerate(spans)]
    return torch.cat([*parts, a.new_zeros(a.shape[1], b.shape[1] - ends[-1])], 1)


def ends(*values):
    return np.array(values, np.int32)


op(
    "nn.functional.grouped_mm",
    grouped,
    [
        S(arr(5, 3), arr(3, 3, 2, seed=1), offs=ends(2, 2, 4)),
        S(arr(3, 2, 3), arr(3, 5, seed=1), offs=ends(1, 3, 5)),
        S(arr(2, 5), arr(5, 3, seed=1), offs=ends(0, 2, 5)),
        S(arr(2, 3, 4), arr(2, 4, 2, seed=1)),
        S(arr(3, 5).T, arr(2, 3, 2, seed=1), offs=ends(2, 5)),
    ],
    torch=torch_grouped,
    bad=[
        Bad(S(arr(2, 3), arr(2, 3)), ut.errors.ShapeError, "that fit"),
        Bad(S(arr(2, 3), arr(1, 3, 2)), ut.errors.ArgumentError, "where groups end"),
        Bad(S(arr(2, 3), arr(1, 3, 2), offs=ends(3)), ut.errors.ArgumentError, "at most 2"),
    ],
)
