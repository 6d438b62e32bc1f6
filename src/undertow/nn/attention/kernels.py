"""torch's names of single kernels of attention, as far as they are for the CPU."""

from __future__ import annotations

import math
from typing import Any

from ...core.register import FUNCTIONAL, FUNCTIONS
from ...core.tensor import Tensor
from ...errors import UnsupportedError
from ...ops.nn.dropout import dropout
from ...ops.nn.softmax import masked_softmax


def _scores(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    factor = 1 / math.sqrt(q.shape[-1] or 1) if scale is None else scale
    scores = FUNCTIONS["matmul"](q, k.mT) * factor
    if causal:
        mask = FUNCTIONS["ones"](scores.shape[-2:], dtype="bool", device=q.device).tril()
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -math.inf) if mask.dtype.category == 0 else scores + mask


def _scaled_dot_product_attention_math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attention in single steps, and its weights."""
    if enable_gqa:
        shared = query.shape[-3] // key.shape[-3]
        key, value = (FUNCTIONS["repeat_interleave"](t, shared, -3) for t in (key, value))
    weights = masked_softmax(_scores(query, key, attn_mask, is_causal, scale), -1)
    if dropout_mask is not None:
        dropped = weights.masked_fill(dropout_mask.logical_not(), 0.0) / (1 - dropout_p)
        return FUNCTIONS["matmul"](dropped, value), weights
    dropped = dropout(weights, dropout_p) if dropout_p else weights
    return FUNCTIONS["matmul"](dropped, value), dropped


def _scaled_dot_product_flash_attention_for_cpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention whose scores are never stored, and the logarithm of each query's sum."""
    attend = FUNCTIONAL["scaled_dot_product_attention"]
    out = attend(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    sums = _scores(query.detach(), key.detach(), attn_mask, is_causal, scale).logsumexp(-1)
    return out, sums


def _fused_sdp_choice(*args: Any, **options: Any) -> int:
    """Which of torch's kernels runs: the one for the CPU, whose number is that of FLASH."""
    return 1


def _refusing(name: str) -> Any:
    def refuse(*args: Any, **options: Any) -> Any:
        raise UnsupportedError(
            f"[{name}] is a kernel of another device; use "
            "nn.functional.scaled_dot_product_attention"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


_scaled_dot_product_flash_attention = _refusing("_scaled_dot_product_flash_attention")
_scaled_dot_product_efficient_attention = _refusing("_scaled_dot_product_efficient_attention")
_scaled_dot_product_cudnn_attention = _refusing("_scaled_dot_product_cudnn_attention")
