"""Attention of several heads, with the products before and after it."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ... import dtypes
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..create.creation import zeros
from ..linalg.matmul import product
from ..shape.joining import cat
from ..shape.padding import pad
from .attention import scaled_dot_product_attention
from .composite import linear
from .dropout import dropout
from .softmax import softmax

Mask = Tensor | None


@function(top=False, method=False, functional=True)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `nn.MultiheadAttention` computes, given its weights; inputs are (L, N, E) or (L, E).

    >>> import undertow as ut
    >>> x, w = ut.ones(3, 1, 2), ut.ones(6, 2)
    >>> attention = ut.nn.functional.multi_head_attention_forward
    >>> out, weights = attention(x, x, x, 2, 1, w, None, None, None, False, 0.0, ut.eye(2), None)
    >>> out[0], weights[0, 0]
    (tensor([[2., 2.]]), tensor([0.3333, 0.3333, 0.3333]))
    """
    op = "multi_head_attention_forward"
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    weights = separate if use_separate_proj_weight else in_proj_weight
    return attend(
        op,
        (query, key, value),
        embed_dim_to_check,
        num_heads,
        weights,
        in_proj_bias,
        (bias_k, bias_v),
        add_zero_attn,
        dropout_p if training else 0.0,
        out_proj_weight,
        out_proj_bias,
        key_padding_mask,
        need_weights,
        attn_mask,
        average_attn_weights,
        is_causal,
        static=(static_k, static_v),
    )


def attend(
    op: str,
    inputs: tuple[Tensor, Tensor, Tensor],
    embed_dim: int,
    heads: int,
    weights: Any,
    bias: Tensor | None,
    appended: tuple[Tensor | None, Tensor | None],
    add_zero: bool,
    dropout_p: float,
    out_weight: Tensor,
    out_bias: Tensor | None,
    key_padding_mask: Mask,
    need_weights: bool,
    attn_mask: Mask,
    average: bool,
    is_causal: bool,
    batch_first: bool = False,
    static: tuple[Tensor | None, Tensor | None] = (None, None),
) -> tuple[Tensor, Tensor | None]:
    """Attention with its products; `weights` is one packed (3E, E), or three.

    `appended` are a key and a value that everybody may look at, `static` keys and values that take
    the place of the products.
    """
    _check(op, inputs, embed_dim, heads, weights, key_padding_mask, attn_mask)
    if (appended[0] is None) != (appended[1] is None):
        raise ArgumentError(f"[{op}] takes bias_k and bias_v together, got one of them")
    single = inputs[0].ndim == 2
    if single:
        batch_first = True
        inputs = _same(inputs, lambda x: x.unsqueeze(0))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    q, k, v = _projected(inputs, weights, bias, heads, batch_first)
    n, _, length, width = q.shape
    k, v = (
        _given(op, *pair, n, heads, width) for pair in zip((k, v), static, appended, strict=True)
    )
    if is_causal and attn_mask is None:
        raise ArgumentError(
            f"[{op}] is_causal says that attn_mask is the causal mask, so it needs one: see "
            "nn.Transformer.generate_square_subsequent_mask"
        )
    causal = is_causal and key_padding_mask is None and not need_weights
    if causal:
        attn_mask = None
    extra = (appended[0] is not None) + add_zero
    if extra:
        k, v = _extended(k, appended[0], add_zero), _extended(v, appended[1], add_zero)
    mask = _merged(op, q, k.shape[2], attn_mask, key_padding_mask, extra)
    seen: Tensor | None = None
    if need_weights:
        scores = product(q * (1 / math.sqrt(width)), k, False, True)
        shares = softmax(scores if mask is None else scores + mask, -1)
        shares = dropout(shares, dropout_p) if dropout_p else shares
        out = product(shares, v)
        seen = shares.mean(1) if average else shares
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    order, shape = ((0, 2, 1, 3), (n, length)) if batch_first else ((2, 0, 1, 3), (length, n))
    out = linear(out.permute(order).reshape(*shape, heads * width), out_weight, out_bias)
    if single:
        return out.squeeze(0), None if seen is None else seen.squeeze(0)
    return out, seen


def _given(
    op: str, x: Tensor, static: Mask, appended: Mask, n: int, heads: int, width: int
) -> Tensor:
    """Keys or values (N, H, S, E / H): those that were given as (N · H, S, E / H), if any."""
    if static is None:
        return x
    if appended is not None:
        raise ArgumentError(f"[{op}] bias_k and bias_v cannot be added to static_k and static_v")
    if static.ndim != 3 or (static.shape[0], static.shape[2]) != (n * heads, width):
        raise ShapeError(
            f"[{op}] static_k and static_v must have shape ({n * heads}, S, {width}), got "
            f"{static.shape}"
        )
    return static.reshape(n, heads, -1, width)


def _same(inputs: Any, change: Any) -> Any:
    """The three inputs changed; those that are one tensor stay one."""
    changed = {id(x): change(x) for x in inputs}
    return tuple([changed[id(x)] for x in inputs])


def _projected(
    inputs: Any, weights: Any, bias: Tensor | None, heads: int, batch_first: bool
) -> tuple[Tensor, ...]:
    """Queries, keys and values (N, H, L, E / H); inputs that are one tensor take one product."""
    query, key, value = inputs
    if isinstance(weights, Tensor):
        if query is key and key is value:
            return _by_head(linear(query, weights, bias), 3, heads, batch_first)
        e = weights.shape[1]
        if key is value:
            first, rest = (None, None) if bias is None else (bias[:e], bias[e:])
            q = _by_head(linear(query, weights[:e], first), 1, heads, batch_first)
            return q + _by_head(linear(key, weights[e:], rest), 2, heads, batch_first)
        weights = weights.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(
        [
            _by_head(linear(x, w, b), 1, heads, batch_first)[0]
            for x, w, b in zip(inputs, weights, biases, strict=True)
        ]
    )


def _by_head(x: Tensor, parts: int, heads: int, batch_first: bool) -> tuple[Tensor, ...]:
    """(L, N, parts · E) as so many views (N, H, L, E / H).

    They are taken apart before they are turned: so their gradients are put together in one copy.
    """
    first, second, wide = x.shape
    pieces = x.reshape(first, second, parts, heads, wide // (parts * heads)).unbind(2)
    return tuple([p.permute((0, 2, 1, 3) if batch_first else (1, 2, 0, 3)) for p in pieces])


def _extended(x: Tensor, appended: Tensor | None, add_zero: bool) -> Tensor:
    """Keys or values (N, H, S, E / H) with those that everybody may look at."""
    n, heads, _, width = x.shape
    parts = [x]
    if appended is not None:
        parts.append(appended.reshape(1, heads, 1, width).expand(n, -1, -1, -1))
    if add_zero:
        parts.append(zeros((n, heads, 1, width), dtype=x.dtype, device=x.device))
    return cat(parts, 2)


def _merged(op: str, q: Tensor, keys: int, attn_mask: Mask, padding_mask: Mask, extra: int) -> Mask:
    """What is added to the scores (N, H, L, S); the last `extra` keys are never masked."""
    n, heads, length, _ = q.shape
    if attn_mask is not None and padding_mask is not None and attn_mask.dtype != padding_mask.dtype:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type "
            "for both instead.",
            stacklevel=5,
        )
    mask = None
    if attn_mask is not None:
        fits = (length, keys - extra)
        if attn_mask.shape not in (fits, (n * heads, *fits)):
            raise ShapeError(
                f"[{op}] attn_mask must have shape {fits} or {(n * heads, *fits)}, got "
                f"{attn_mask.shape}"
            )
        mask = _added(op, "attn_mask", attn_mask, q)
        mask = mask if mask.ndim == 2 else mask.reshape(n, heads, *fits)
    if padding_mask is not None:
        if padding_mask.shape != (n, keys - extra):
            raise ShapeError(
                f"[{op}] key_padding_mask must have shape {(n, keys - extra)}, got "
                f"{padding_mask.shape}"
            )
        padding = _added(op, "key_padding_mask", padding_mask, q).reshape(n, 1, 1, -1)
        mask = padding if mask is None else mask + padding
    if mask is None or not extra:
        return mask
    return pad(mask, (0, extra))


def _added(op: str, name: str, mask: Tensor, q: Tensor) -> Tensor:
    """A mask as numbers: a boolean one forbids where it is True."""
    if mask.dtype is dtypes.bool:
        return zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(mask, -math.inf)
    if not mask.is_floating_point():
        raise DTypeError(f"[{op}] {name} must be bool or floating, got {mask.dtype}")
    return mask.to(q.dtype)  # under autocast the queries may be narrower


def _check(
    op: str,
    inputs: Any,
    embed_dim: int,
    heads: int,
    weights: Any,
    padding_mask: Mask,
    attn_mask: Mask,
) -> None:
    query, key, value = inputs
    if not all(isinstance(x, Tensor) for x in inputs):
        raise UnsupportedError(
            f"[{op}] takes dense tensors, got {[type(x).__name__ for x in inputs]}; for nested "
            "ones use scaled_dot_product_attention, or to_padded_tensor and a key_padding_mask"
        )
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        raise ShapeError(
            f"[{op}] expects (L, N, E), or (N, L, E) if batch_first, or (L, E), got query, key and "
            f"value of shapes {query.shape}, {key.shape} and {value.shape}"
        )
    if padding_mask is not None and padding_mask.ndim != query.ndim - 1:
        raise ShapeError(
            f"[{op}] key_padding_mask must have {query.ndim - 1} dimensions for a query of shape "
            f"{query.shape}, got shape {padding_mask.shape}"
        )
    if query.shape[-1] != embed_dim:
        raise ShapeError(
            f"[{op}] was expecting embedding dimension of {embed_dim}, got query of shape "
            f"{query.shape}"
        )
    if embed_dim % heads:
        raise ArgumentError(f"[{op}] embed_dim {embed_dim} is not divisible by {heads} heads")
    ends = -1 if isinstance(weights, tuple) else key.ndim
    if key.shape[:ends] != value.shape[:ends]:
        raise ShapeError(f"[{op}] key shape {key.shape} does not match value shape {value.shape}")
    if weights is None or (isinstance(weights, tuple) and any(w is None for w in weights)):
        raise ArgumentError(
            f"[{op}] needs in_proj_weight, or with use_separate_proj_weight all three of "
            "q_proj_weight, k_proj_weight and v_proj_weight"
        )
