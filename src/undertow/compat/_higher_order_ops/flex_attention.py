"""Attention with a function of the scores: see `undertow.nn.attention.flex_attention`."""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedError

__all__ = ["flex_attention", "flex_attention_backward"]


def flex_attention(*args: Any, **kwargs: Any) -> Any:
    """Refused: this is the operator behind the public function, with other arguments."""
    raise UnsupportedError(
        "[_higher_order_ops.flex_attention] is what torch's compiler calls; call "
        "nn.attention.flex_attention.flex_attention"
    )


flex_attention_backward = flex_attention
