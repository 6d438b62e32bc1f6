"""Attention whose scores are changed, and masked, by functions of the position."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from ... import dtypes
from ...core.register import FUNCTIONAL, FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...ops.nn.softmax import masked_softmax
from .block_mask import (
    BlockMask,
    _sliced_mask_mod_error,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
)
from .positions import at_all

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_score_mod_signature = ScoreMod
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexKernelOptions(TypedDict, total=False):
    """Options of torch's kernels; accepted, and without effect here."""

    BLOCK_M: int
    BLOCK_N: int
    BACKEND: str


class AuxRequest(NamedTuple):
    """What `flex_attention` is to return beside its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` returned beside its output; None where it was not asked."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention whose scores go through `score_mod(score, b, h, q, k)` before the softmax.

    `block_mask`, of `create_block_mask`, tells where a query may look. Both functions may use other
    tensors, which get gradients as query, key and value do, of any order. Without `score_mod` and
    without `return_aux`, no score is stored.

    >>> import undertow as ut
    >>> from undertow.nn.attention.flex_attention import flex_attention
    >>> q, k, v = ut.ones(1, 1, 2, 4), ut.ones(1, 1, 2, 4), ut.tensor([[[[1.0], [3.0]]]])
    >>> flex_attention(q, k, v, lambda score, b, h, q, k: score + k * 1e9).tolist()
    [[[[3.0], [3.0]]]]
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ArgumentError(
            "[flex_attention] pass return_aux=AuxRequest(lse=True) instead of return_lse, not both"
        )
    shared = query.shape[1] // max(key.shape[1], 1)
    key, value = (
        t if shared == 1 else FUNCTIONS["repeat_interleave"](t, shared, 1) for t in (key, value)
    )
    batch = query.shape[0]
    key, value = (t if len(t) == batch else t.expand(batch, *t.shape[1:]) for t in (key, value))
    sizes = (batch, query.shape[1], query.shape[2], key.shape[2])
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    mask_mod = noop_mask if block_mask is None else block_mask.mask_mod
    mask = None if mask_mod is noop_mask else at_all(mask_mod, sizes, None, query)
    wants = AuxRequest(lse=return_lse) if return_aux is None else return_aux
    if score_mod is None and not any(wants):
        attend = FUNCTIONAL["scaled_dot_product_attention"]
        return attend(query, key, value, mask, scale=factor)
    wide = dtypes.promote_types(query.dtype, dtypes.float32)
    scores = FUNCTIONS["matmul"](query.to(wide), key.to(wide).mT) * factor
    if score_mod is not None:
        scores = at_all(score_mod, sizes, scores, query).to(wide)
    if mask is not None:
        scores = FUNCTIONS["where"](mask, scores, -math.inf)
    weights = masked_softmax(scores, -1)
    out = FUNCTIONS["matmul"](weights.to(query.dtype), value)
    if not any(wants):
        return out if return_aux is None else (out, AuxOutput())
    lse = FUNCTIONS["logsumexp"](scores, -1) if wants.lse else None
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse, scores.amax(-1) if wants.max_scores else None)


def _check(q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | None, shared: bool) -> None:
    op = "flex_attention"
    if not q.ndim == k.ndim == v.ndim == 4 or q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            f"[{op}] expects query (B, Hq, L, E), key (B, H, S, E) and value (B, H, S, Ev), got "
            f"shapes {q.shape}, {k.shape} and {v.shape}"
        )
    if k.shape[:3] != v.shape[:3]:
        raise ShapeError(f"[{op}] key and value must fit, got shapes {k.shape} and {v.shape}")
    heads, others = q.shape[1], k.shape[1]
    if heads != others and (not shared or not others or heads % others):
        raise ArgumentError(
            f"[{op}] query and key need the same number of heads, or a multiple of it with "
            f"enable_gqa=True, got {heads} and {others}"
        )
    if q.shape[0] != k.shape[0] and (mask is None or k.shape[0] != 1):
        raise ShapeError(f"[{op}] expects one batch size, got {q.shape[0]} and {k.shape[0]}")
    if mask is None:
        return
    if mask.mask_mod is _sliced_mask_mod_error:
        mask.mask_mod(q, q, q, q)
    lengths = (q.shape[-2], k.shape[-2])
    if mask.seq_lengths != lengths:
        raise ArgumentError(
            f"[{op}] block_mask was made for the lengths {mask.seq_lengths}, got {lengths}; make "
            "another one, or take its upper left corner with block_mask._adjust(q_len, kv_len)"
        )
