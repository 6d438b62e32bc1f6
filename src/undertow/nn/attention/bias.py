"""Causal masks of attention for queries and keys of different lengths."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any
from warnings import warn

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ..parameter import made_of

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner in which the triangle of a mask ends that is not square.

    >>> from undertow.nn.attention.bias import CausalVariant
    >>> [variant.name for variant in CausalVariant]
    ['UPPER_LEFT', 'LOWER_RIGHT']
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for `scaled_dot_product_attention`: True where a query may look.

    >>> from undertow.nn.attention.bias import CausalBias, CausalVariant
    >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3).seq_len_kv
    3
    """

    if TYPE_CHECKING:
        variant: CausalVariant
        seq_len_q: int
        seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise ArgumentError(f"[CausalBias] variant must be a CausalVariant, got {variant!r}")
        lower = variant is CausalVariant.LOWER_RIGHT
        if lower and seq_len_q > seq_len_kv:
            warn(
                f"[causal_lower_right] the first {seq_len_q - seq_len_kv} of {seq_len_q} queries "
                f"may look at none of {seq_len_kv} keys",
                stacklevel=3,
            )
        everything = FUNCTIONS["ones"](seq_len_q, seq_len_kv, dtype="bool")
        shift = seq_len_kv - seq_len_q if lower else 0
        bias = made_of(cls, FUNCTIONS["tril"](everything, shift))
        bias.variant, bias.seq_len_q, bias.seq_len_kv = variant, seq_len_q, seq_len_kv
        return bias


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of `is_causal=True`: query i looks at the keys 0 to i.

    >>> from undertow.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3).int().tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_lengths("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of a sequence that goes on: the last query looks at all keys.

    >>> import undertow as ut
    >>> from undertow.nn.attention.bias import causal_lower_right
    >>> mask = causal_lower_right(2, 3)
    >>> mask.int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    >>> q, k, v = ut.ones(2, 4), ut.ones(3, 4), ut.tensor([[1.0], [3.0], [8.0]])
    >>> ut.nn.functional.scaled_dot_product_attention(q, k, v, mask).tolist()
    [[2.0], [4.0]]
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_lengths("causal_lower_right", size))


def _lengths(op: str, size: tuple[Any, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise ArgumentError(f"[{op}] expects the lengths of queries and keys, got {size}")
    return size
