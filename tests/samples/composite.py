"""Samples for `undertow.ops.nn.composite`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, bools, ints, op, singular

F = "nn.functional."
ArgumentError, ShapeError = ut.errors.ArgumentError, ut.errors.ShapeError


op(
    F + "linear",
    lambda x, w, b=0: x @ w.T + b,
    [
        S(arr(2, 3), arr(4, 3, seed=1), arr(4, seed=2)),
        S(arr(2, 3), arr(4, 3, seed=1)),
        S(arr(3), arr(4, 3, seed=1), arr(4)),
        S(arr(2, 5, 3), arr(4, 3), arr(4)),
        S(arr(2, 3), arr(3, seed=1)),
        S(arr(3), arr(3, seed=1), arr()),
        S(arr(0, 3), arr(4, 3)),
        S(arr(2, 0), arr(4, 0), arr(4)),
        S(arr(3, 2).T, arr(3, 4).T, arr(4)),
        S(arr(2, 3), arr(4, 3), arr(1)),
    ],
    bad=[
        Bad(S(arr(2, 3), arr(4, 2)), ShapeError, r"\[linear\].*\(2, 3\) and \(4, 2\)"),
        Bad(S(arr(2, 3), arr(4, 3, 1)), ShapeError, r"\[linear\]"),
        Bad(S(arr(), arr(4, 3)), ShapeError, r"\[linear\]"),
    ],
)

op(
    F + "bilinear",
    lambda a, b, w, bias=0: np.einsum("...i,oij,...j->...o", a, w, b) + bias,
    [
        S(arr(2, 3), arr(2, 4, seed=1), arr(5, 3, 4, seed=2), arr(5)),
        S(arr(2, 3), arr(2, 4, seed=1), arr(5, 3, 4, seed=2)),
        S(arr(2, 2, 3), arr(2, 2, 1, seed=1), arr(5, 3, 1, seed=2), arr(5)),
        S(arr(3), arr(2), arr(4, 3, 2)),
        S(arr(0, 3), arr(0, 2), arr(4, 3, 2)),
    ],
    bad=[
        Bad(S(arr(2, 3), arr(3, 4), arr(5, 3, 4)), ShapeError, r"\[bilinear\].*\(3, 4\)"),
        Bad(S(arr(2, 3), arr(2, 4), arr(5, 4, 3)), ShapeError, r"\(5, 4, 3\)"),
    ],
)


# Attention -----------------------------------------------------------------------------------
def attention(
    q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    s = np.einsum("...le,...se->...ls", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = np.tri(*s.shape[-2:], dtype=bool)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf) if attn_mask.dtype == bool else s + attn_mask
    e = np.exp(s - np.where(s.max(-1) == -np.inf, 0, s.max(-1))[..., None])
    total = e.sum(-1, keepdims=True)
    return np.einsum("...ls,...sv->...lv", e / np.where(total == 0, 1, total), v)


def qkv(*lead, queries=3, keys=4, features=2, values=3):
    return (
        arr(*lead, queries, features),
        arr(*lead, keys, features, seed=1),
        arr(*lead, keys, values, seed=2),
    )


def torch_attention(*args, **kwargs):
    """torch's plain implementation, the one that it can differentiate twice."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    with sdpa_kernel(SDPBackend.MATH):
        return scaled_dot_product_attention(*args, **kwargs)


MASK = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], bool)  # the second sees nothing
op(
    F + "scaled_dot_product_attention",
    attention,
    [
        S(*qkv(2, 2)),
        S(*qkv()),
        S(*qkv(2)),
        S(*qkv(1, 2), scale=0.3),
        S(*qkv(), is_causal=True),
        S(*qkv(2, queries=5), is_causal=True),
        S(*qkv(2), MASK),
        S(*qkv(2, 2), bools(2, 1, 3, 4)),
        S(*qkv(2), arr(3, 4, seed=5)),
        S(*qkv(2), Const(np.where(MASK, 0.5, -np.inf))),
        S(arr(1, 4, 3, 2), arr(1, 2, 5, 2, seed=1), arr(1, 2, 5, 2, seed=2), enable_gqa=True),
        S(*qkv(queries=0)),
        S(arr(2, 3, 2), arr(4, 2, seed=1), arr(4, 3, seed=2)),
        S(arr(2, 3).T, arr(2, 4).T, arr(3, 4).T),
    ],
    torch=torch_attention,
    bad=[
        Bad(S(arr(3, 2), arr(4, 3), arr(4, 2)), ShapeError, r"\(3, 2\), \(4, 3\)"),
        Bad(S(arr(3, 2), arr(4, 2), arr(5, 2)), ShapeError, r"same length, got 4 and 5"),
        Bad(S(arr(2), arr(4, 2), arr(4, 2)), ShapeError, "expects query"),
        Bad(S(*qkv(), MASK, is_causal=True), ArgumentError, "not both"),
        Bad(S(*(t * 1j for t in qkv()), MASK), TypeError, r"\[scaled_dot.*complex128"),
        Bad(S(*qkv(), ints(3, 4)), TypeError, r"attn_mask must be bool.*int64"),
        Bad(
            S(arr(1, 3, 3, 2), arr(1, 2, 5, 2), arr(1, 2, 5, 2), enable_gqa=True),
            ShapeError,
            "multiple",
        ),
    ],
)


# Distances -----------------------------------------------------------------------------------
def norm(x, p, axis, keepdims=False):
    x = np.abs(x)
    if p == 0:
        return (x != 0).sum(axis, keepdims=keepdims).astype(float)
    if np.isinf(p):
        return (x.max if p > 0 else x.min)(axis, keepdims=keepdims)
    return (x**p).sum(axis, keepdims=keepdims) ** (1 / p)


def normalize(x, p=2.0, dim=1, eps=1e-12):
    return x / np.maximum(norm(x, p, dim, True), eps)


op(
    F + "normalize",
    normalize,
    [
        S(arr(3, 4)),
        S(arr(2, 3, 4), dim=2),
        S(arr(3), dim=0),
        S(arr(3, 4), p=1.0),
        S(arr(3, 4), 3.0),
        S(arr(3, 4), np.inf, 0),
        S(arr(0, 3)),
        S(arr(4, 3).T, dim=-1),
        S(arr(2, 3, 4), dim=(1, 2)),
        S(arr(3, 4) * 1e-3, eps=1.0),
        S(Const(np.zeros((2, 3)))),
    ],
    bad=[Bad(S(arr(3)), IndexError, "dim 1")],
)


def cosine(a, b, dim=1, eps=1e-8):
    a, b = np.broadcast_arrays(a, b)
    return (normalize(a, 2.0, dim, eps) * normalize(b, 2.0, dim, eps)).sum(dim)


op(
    "cosine_similarity",
    cosine,
    [
        S(arr(3, 4), arr(3, 4, seed=1)),
        S(arr(3), arr(3, seed=1), dim=0),
        S(arr(2, 3, 4), arr(3, 4, seed=1), dim=-1),
        S(arr(3, 1), arr(4, seed=1), 0),
        S(arr(0, 3), arr(1, 3)),
        S(arr(4, 3).T, arr(3, 4), eps=1e-3),
        S(Const(np.zeros((2, 3))), Const(arr(2, 3))),
    ],
    bad=[
        Bad(S(arr(3), arr(3)), IndexError, r"\[cosine_similarity\] dim 1"),
        Bad(S(arr(2, 3), arr(2, 4)), ShapeError, "do not broadcast"),
        Bad(S(ints(2, 3), ints(2, 3)), TypeError, "int64"),
    ],
)

op(
    "pairwise_distance",
    lambda a, b, p=2.0, eps=1e-6, keepdim=False: norm(a - b + eps, p, -1, keepdim),
    [
        S(arr(3, 4), arr(3, 4, seed=1)),
        S(arr(4), arr(4, seed=1)),
        S(arr(3, 4), arr(4, seed=1)),
        S(arr(2, 3, 4), arr(3, 4, seed=1), 1.0, keepdim=True),
        S(arr(3, 4), arr(3, 4, seed=1), 3.0),
        S(arr(3, 4), arr(3, 4, seed=1), np.inf),
        S(arr(3, 4), arr(3, 4, seed=1), eps=0.1),
        S(arr(0, 4), arr(0, 4)),
    ],
    bad=[Bad(S(arr(2, 3), arr(2, 4)), ShapeError, "do not broadcast")],
)


def pdist(x, p=2):
    i, j = np.triu_indices(len(x), 1)
    return norm(x[i] - x[j], p, -1)


op(
    "pdist",
    pdist,
    [
        S(arr(4, 3)),
        S(arr(4, 3), 1.0),
        S(arr(4, 3), 3.0),
        S(arr(4, 3), np.inf),
        S(arr(3, 4).T),
        S(arr(2, 3)),
        S(arr(1, 3)),
        S(Const(arr(0, 3))),  # torch crashes on the gradient of this one
        S(Const(np.zeros((3, 2)))),
        S(Const(ints(4, 3)), 0.0),
    ],
    torch_gradgrad=False,
    bad=[
        Bad(S(arr(3)), ShapeError, r"\[pdist\].*\(3,\)"),
        Bad(S(arr(3, 2), -1), ArgumentError, "negative, got -1"),
        Bad(S(ints(3, 2)), TypeError, "int64"),
    ],
)

# Vectors without length, and points that are one -----------------------------------------------
_none = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
singular("nn.functional.normalize", S(_none[1:]), S(_none[1:], p=1.0))
singular("cosine_similarity", S(_none[1:], np.array([[3.0, 0.0, 4.0]])))
singular("pairwise_distance", S(_none, _none))
singular("pdist", S(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]])))
