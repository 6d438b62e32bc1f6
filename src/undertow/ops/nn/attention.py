"""Scaled dot-product attention: one op, whose score matrix is never stored."""

from __future__ import annotations

import math

from ... import dtypes
from ...backends.dual import LEVELS
from ...core.dispatch import apply, expand
from ...core.modes import current
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import broadcast_shapes
from ..index.selection import repeat_interleave
from ..linalg.matmul import matmul, product
from ..shape.movement import reshaped
from .dropout import dropout
from .embedding import steps
from .softmax import masked_softmax, softmax


# Note [attention rules]
# A first-order backward is a kernel that recomputes the weights, block by block, from what the
# forward saved. With create_graph the rule is written in ops that have rules themselves; it then
# computes and keeps the weights, as their derivatives need them.
def _rule(
    g: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    out: Tensor,
    out1: Tensor,
    scale: float,
    causal: bool,
) -> tuple[Tensor | None, ...]:
    if not current().grad and not LEVELS:
        return (*apply(_backward, (g, q, k, v, mask, out, out1), (scale, causal)), None)
    weights = _weights(q, k, mask, scale, causal)
    by_weight = product(g, v, False, True)
    slopes = weights * (by_weight - (weights * by_weight).sum(-1, keepdim=True)) * scale
    return product(slopes, k), product(slopes, q, True), product(weights, g, True), None


_attention = Op(
    "attention",
    lambda b, q, k, v, mask, scale, causal: b.attention(q, k, v, mask, scale, causal),
    inputs="q k v mask",
    params="scale causal",
    joint=_rule,
    bare=lambda b, g, q, k, v, mask, out, out1, scale, causal: (
        *b.attention_backward(g, q, k, v, mask, out, out1, scale, causal),
        None,
    ),
    outputs=2,
    differentiable=1,
)
_backward = Op(
    "attention_backward",
    lambda b, *args: b.attention_backward(*args),
    inputs="g q k v mask out lse",
    params="scale causal",
    outputs=3,
)


@function(top=False, method=False, functional=True)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ keyᵀ * scale + mask) @ value` over the last two dimensions.

    A boolean mask tells where attention is allowed; a query that may look at nothing gets zeros.
    `enable_gqa` lets several query heads share a key and value head.

    >>> import undertow as ut
    >>> q, k, v = ut.zeros(1, 2), ut.zeros(2, 2), ut.tensor([[1.0], [3.0]])
    >>> ut.nn.functional.scaled_dot_product_attention(q, k, v)
    tensor([[2.]])
    """
    op = "scaled_dot_product_attention"
    sizes, key_sizes, value_sizes = query._array.shape, key._array.shape, value._array.shape
    if min(len(sizes), len(key_sizes), len(value_sizes)) < 2 or sizes[-1] != key_sizes[-1]:
        raise ShapeError(
            f"[{op}] expects query (…, L, E), key (…, S, E) and value (…, S, Ev), got shapes "
            f"{query.shape}, {key.shape} and {value.shape}"
        )
    if key_sizes[-2] != value_sizes[-2]:
        raise ShapeError(
            f"[{op}] key and value need the same length, got {key_sizes[-2]} and {value_sizes[-2]}"
        )
    if not query.is_floating_point() or not query.dtype is key.dtype is value.dtype:
        raise DTypeError(
            f"[{op}] expects floating tensors of one dtype, got {query.dtype}, {key.dtype} and "
            f"{value.dtype}"
        )
    if attn_mask is not None and is_causal:
        raise ArgumentError(f"[{op}] pass either attn_mask or is_causal=True, not both")
    if enable_gqa:
        key, value = _share_heads(op, query, key), _share_heads(op, query, value)
    if attn_mask is not None and attn_mask.dtype not in (dtypes.bool, query.dtype):
        raise DTypeError(
            f"[{op}] attn_mask must be bool or {query.dtype} like the query, got {attn_mask.dtype}"
        )
    lead, q, k, v = sizes[:-2], query, key, value
    if len(lead) != 2 or lead != key._array.shape[:-2] or lead != value._array.shape[:-2]:
        lead = broadcast_shapes(op, lead, tuple(key.shape[:-2]), tuple(value.shape[:-2]))
        q, k, v = (_four(expand(t, lead + t.shape[-2:])) for t in (query, key, value))
    mask = attn_mask
    if mask is not None:
        fits = (*lead, sizes[-2], key_sizes[-2])
        mask = _four(expand(mask, broadcast_shapes(op, tuple(mask.shape), fits)))
        if mask.shape != (*q.shape[:-1], k.shape[-2]):
            raise ShapeError(f"[{op}] attn_mask does not fit the scores, which have shape {fits}")
    factor = 1 / math.sqrt(sizes[-1] or 1) if scale is None else float(scale)
    if dropout_p or not key_sizes[-2] or (attn_mask is not None and differentiated(attn_mask)):
        weights = _weights(q, k, mask, factor, is_causal)
        out = matmul(dropout(weights, dropout_p) if dropout_p else weights, v)
    else:
        out = apply(_attention, (q, k, v, mask), (factor, is_causal))[0]
    return out if len(lead) == 2 else reshaped(out, (*lead, *out.shape[-2:]))


def _four(x: Tensor) -> Tensor:
    """`x` with two leading dimensions, whatever it has."""
    if x.ndim == 4:
        return x
    return reshaped(
        x,
        (*x.shape[:1], math.prod(x.shape[1:-2]), *x.shape[-2:]) if x.ndim > 2 else (1, 1, *x.shape),
    )


def _weights(q: Tensor, k: Tensor, mask: Tensor | None, scale: float, causal: bool) -> Tensor:
    """The whole matrix of weights, in ops that have rules of any order."""
    scores = product(q, k, False, True) * scale
    if causal:
        mask = steps(scores.shape[-2], q).unsqueeze(1) >= steps(scores.shape[-1], q)
    if mask is None:
        return softmax(scores, -1)
    if mask.dtype is dtypes.bool:
        return masked_softmax(scores.masked_fill(~mask, -math.inf), -1)
    return masked_softmax(scores + mask, -1)


def _share_heads(op: str, query: Tensor, shared: Tensor) -> Tensor:
    if min(query.ndim, shared.ndim) < 3 or query.shape[-3] % max(shared.shape[-3], 1):
        raise ShapeError(
            f"[{op}] enable_gqa needs query heads that are a multiple of the key and value heads, "
            f"got shapes {query.shape} and {shared.shape}"
        )
    return repeat_interleave(shared, query.shape[-3] // shared.shape[-3], -3)
