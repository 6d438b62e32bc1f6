"""Samples for `undertow.ops.nn.multihead`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, Const, S, arr, op
from samples.composite import attention
from undertow.errors import ArgumentError, ShapeError

NAME = "nn.functional.multi_head_attention_forward"
NO = None


def multihead(
    q, k, v, embed, heads, packed, bias, bias_k, bias_v, add_zero, dropout, out_w, out_b,
    training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
    static_k=None, static_v=None, average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """By its definition, for inputs (L, N, E) or (L, E)."""
    single = q.ndim == 2
    q, k, v = (x[:, None] if single else x for x in (q, k, v))
    n, e = q.shape[1], embed
    ws = (q_proj_weight, k_proj_weight, v_proj_weight)
    ws = ws if use_separate_proj_weight else np.split(packed, 3)
    bs = np.zeros((3, e)) if bias is None else np.split(bias, 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, v), ws, bs, strict=True))

    def split(x):
        return x.reshape(len(x), n, heads, -1).transpose(1, 2, 0, 3)

    q, k, v = map(split, (q, k, v))
    k = k if static_k is None else static_k.reshape(n, heads, -1, e // heads)
    v = v if static_v is None else static_v.reshape(n, heads, -1, e // heads)
    mask = np.zeros((n, heads, q.shape[2], k.shape[2]))
    if attn_mask is not None:
        added = np.where(attn_mask, -np.inf, 0) if attn_mask.dtype == bool else attn_mask
        mask = mask + (added if added.ndim == 2 else added.reshape(n, heads, *added.shape[1:]))
    if key_padding_mask is not None:
        padding = key_padding_mask[None] if single else key_padding_mask
        mask = mask + np.where(padding, -np.inf, 0)[:, None, None]
    extra = []
    if bias_k is not None:
        extra.append([np.repeat(b.reshape(1, heads, 1, -1), n, 0) for b in (bias_k, bias_v)])
    if add_zero:
        extra.append([np.zeros((n, heads, 1, e // heads))] * 2)
    for more_k, more_v in extra:
        k, v = np.concatenate([k, more_k], 2), np.concatenate([v, more_v], 2)
        mask = np.concatenate([mask, np.zeros((*mask.shape[:3], 1))], 3)
    out = attention(q, k, v, mask).transpose(2, 0, 1, 3).reshape(q.shape[2], n, e)
    out = out @ out_w.T + (0 if out_b is None else out_b)
    each = np.broadcast_to(np.eye(k.shape[2]), (n, heads, k.shape[2], k.shape[2]))
    weights = attention(q, k, each, mask)
    weights = weights.mean(1) if average_attn_weights else weights
    if single:
        out, weights = out[:, 0], weights[0]
    return (out, weights) if need_weights else out


def small(*shape, seed=0):
    """Weights of the size that layers begin with: the gradient of a key's bias is a sum of zero."""
    return arr(*shape, seed=seed, low=-0.5, high=0.5)


def weights(e=4, bias=True):
    """A packed weight, a bias, then no appended key and value."""
    return (small(3 * e, e, seed=7), small(3 * e, seed=8) if bias else NO, NO, NO, False, 0.0)


OUT = (small(4, 4, seed=9), small(4, seed=10))
X, MEMORY = arr(3, 2, 4), arr(5, 2, 4, seed=1)
CAUSAL = np.triu(np.ones((3, 3), bool), 1)
PADDED = np.array([[0, 0, 1], [0, 0, 0]], bool)


op(
    NAME,
    multihead,
    [
        S(X, MEMORY, arr(5, 2, 4, seed=2), 4, 2, *weights(), *OUT),
        S(X, MEMORY, arr(5, 2, 4, seed=2), 4, 2, *weights(bias=False), OUT[0], NO),
        S(arr(3, 4), arr(5, 4), arr(5, 4, seed=2), 4, 1, *weights(), *OUT,
          average_attn_weights=False),
        S(X, arr(3, 2, 4, seed=3), arr(3, 2, 4, seed=4), 4, 2, *weights(), *OUT, attn_mask=CAUSAL,
          is_causal=True),
        S(X, arr(3, 2, 4, seed=3), arr(3, 2, 4, seed=4), 4, 2, *weights(), *OUT,
          key_padding_mask=PADDED),
        S(X, arr(3, 2, 4, seed=3), arr(3, 2, 4, seed=4), 4, 2, *weights()[:2],
          arr(1, 1, 4, seed=5), arr(1, 1, 4, seed=6), True, 0.0, *OUT,
          attn_mask=Const(arr(4, 3, 3))),
        S(X, arr(5, 2, 3), arr(5, 2, 2), 4, 2, NO, small(12), NO, NO, False, 0.0, *OUT,
          use_separate_proj_weight=True, q_proj_weight=small(4, 4), k_proj_weight=small(4, 3),
          v_proj_weight=small(4, 2)),
        S(X, MEMORY, MEMORY, 4, 2, *weights(), *OUT, static_k=arr(4, 6, 2), static_v=arr(4, 6, 2)),
    ],
    bad=[
        Bad(S(arr(4), arr(4), arr(4), 4, 2, *weights(), *OUT), ShapeError, r"\(4,\), \(4,\)"),
        Bad(S(X, MEMORY, MEMORY, 6, 2, *weights(), *OUT), ShapeError, "embedding dimension of 6"),
        Bad(S(X, MEMORY, MEMORY, 4, 3, *weights(), *OUT), ArgumentError, "divisible by 3 heads"),
        Bad(S(X, MEMORY, X, 4, 2, *weights(), *OUT), ShapeError, "does not match value"),
        Bad(S(X, X, X, 4, 2, NO, *weights()[1:], *OUT), ArgumentError, "needs in_proj_weight"),
        Bad(S(X, X, X, 4, 2, *weights(), *OUT, is_causal=True), ArgumentError, "needs one"),
        Bad(S(X, X, X, 4, 2, *weights(), *OUT, attn_mask=CAUSAL[:2]), ShapeError, r"\(2, 3\)"),
        Bad(S(X, X, X, 4, 2, *weights(), *OUT, key_padding_mask=CAUSAL[0]), ShapeError, "2 dim"),
        Bad(S(X, X, X, 4, 2, *weights(), *OUT, key_padding_mask=CAUSAL), ShapeError, r"\(2, 3\)"),
        Bad(S(X, X, X, 4, 2, *weights(), *OUT, attn_mask=np.int64(CAUSAL)), TypeError, "bool"),
        Bad(S(X, X, X, 4, 2, *weights(), *OUT, static_k=arr(6, 4, 2)), ShapeError, r"\(4, S, 2\)"),
        Bad(S(X, X, X, 4, 2, *weights()[:2], arr(1, 1, 4), arr(1, 1, 4), False, 0.0, *OUT,
              static_k=arr(4, 6, 2), static_v=arr(4, 6, 2)), ArgumentError, "cannot be added"),
        Bad(S(X, X, X, 4, 2, *weights()[:2], NO, arr(1, 1, 4), False, 0.0, *OUT), ArgumentError,
            "together"),
    ],
)  # fmt: skip
