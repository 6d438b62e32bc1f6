"""Attention of sequences of different lengths, packed one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import dtypes
from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, UnsupportedError
from .block_mask import BlockMask
from .flex_attention import AuxRequest as _Wanted
from .flex_attention import flex_attention

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` is to return beside its output."""

    lse: bool = False


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """Attention within each of several sequences, which follow one another in (tokens, heads, E).

    Sequence i has the tokens `cu_seq[i]` to `cu_seq[i + 1]`. `window_size` tells how far a query
    looks back and ahead of its place, counted from the end; -1 is everything, (-1, 0) causal.

    >>> import undertow as ut
    >>> from undertow.nn.attention.varlen import varlen_attn
    >>> x, ends = ut.zeros(3, 1, 2), ut.tensor([0, 1, 3])
    >>> varlen_attn(
    ...     x, x, ut.tensor([[[1.0]], [[2.0]], [[4.0]]]), ends, ends, 2, 2
    ... ).flatten().tolist()
    [1.0, 3.0, 3.0]
    """
    if block_table is not None:
        raise UnsupportedError("[varlen_attn] takes no block_table: keys are one tensor here")
    heads, others = query.shape[1], key.shape[1]
    if heads != others and (not enable_gqa or heads % max(others, 1)):
        raise ArgumentError(
            "[varlen_attn] query and key need the same number of heads, or a multiple of it with "
            f"enable_gqa=True, got {heads} and {others}"
        )
    ends_q = cu_seq_q.tolist()
    ends_k = ends_q if cu_seq_k is None else cu_seq_k.tolist()
    used = None if seqused_k is None else seqused_k.tolist()
    outs, sums = [], []
    for i in range(len(ends_q) - 1):
        q = query[ends_q[i] : ends_q[i + 1]]
        stop = ends_k[i + 1] if used is None else ends_k[i] + used[i]
        k, v = key[ends_k[i] : stop], value[ends_k[i] : stop]
        q, k, v = (t.transpose(0, 1).unsqueeze(0) for t in (q, k, v))
        mask = _window(window_size, q.shape[2], k.shape[2])
        wanted = _Wanted(lse=True) if return_aux is not None and return_aux.lse else None
        out = flex_attention(q, k, v, None, mask, scale, enable_gqa, return_aux=wanted)
        if wanted is not None:
            out, aux = out
            sums.append(aux.lse[0])
        outs.append(out[0].transpose(0, 1))
    whole = FUNCTIONS["cat"](outs)
    return (whole, FUNCTIONS["cat"](sums, 1)) if sums else whole


def _window(window: Sequence[int], queries: int, keys: int) -> Any:
    """What a query may look at, counted from the end, which queries and keys share."""
    behind, ahead = window
    if behind < 0 and ahead < 0:
        return None
    shift = keys - queries

    def near(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        far = k - (q + shift)
        found = far <= ahead if ahead >= 0 else far == far
        return found & (far >= -behind) if behind >= 0 else found

    ones = FUNCTIONS["ones"]((1, 1, 1), dtype=dtypes.int32)
    blocks = (ones, ones.unsqueeze(-1) - 1, None, None, None, None, None, None)
    return BlockMask((queries, keys), *blocks, BLOCK_SIZE=(1 << 30, 1 << 30), mask_mod=near)


def varlen_attn_out(out: Tensor, *args: Any, **options: Any) -> Any:
    """`varlen_attn`, written into `out`."""
    found = varlen_attn(*args, **options)
    if isinstance(found, tuple):
        return out.copy_(found[0]), found[1]
    return out.copy_(found)
