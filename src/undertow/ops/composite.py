"""Layers and distances as plain functions over ops: linear, attention, norms of differences."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..core.dispatch import expand
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError
from ..shapes import broadcast_shapes, check_fits, wrap_dim
from .dropout import dropout
from .embedding import steps
from .extremes import clamp_min
from .matmul import matmul
from .movement import reshape
from .reduction import norm, sum
from .selection import repeat_interleave
from .softmax import masked_softmax, softmax


# Layers --------------------------------------------------------------------------------------
@function(top=False, method=False, functional=True)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`, for a weight of shape (out, in) or (in).

    >>> import undertow as ut
    >>> ut.nn.functional.linear(ut.tensor([1.0, 2.0]), ut.tensor([[3.0, 4.0]]), ut.tensor([5.0]))
    tensor([16.])
    """
    if not 1 <= weight.ndim <= 2 or not input.ndim or input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            f"[linear] expects an input (…, in) and a weight (out, in) or (in), got shapes "
            f"{input.shape} and {weight.shape}"
        )
    return _biased("linear", matmul(input, weight.t()), bias)


@function(method=False, functional=True)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1ᵀ W input2 + bias` for each matrix W of `weight`, shape (out, in1, in2).

    >>> import undertow as ut
    >>> a, b, w = ut.tensor([[1.0, 2.0]]), ut.tensor([[3.0]]), ut.ones(4, 2, 1)
    >>> ut.nn.functional.bilinear(a, b, w)
    tensor([[9., 9., 9., 9.]])
    """
    if (
        weight.ndim != 3
        or not input1.ndim
        or input1.shape[:-1] != input2.shape[:-1]
        or (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]
    ):
        raise ShapeError(
            "[bilinear] expects inputs (…, in1) and (…, in2) and a weight (out, in1, in2), got "
            f"shapes {input1.shape}, {input2.shape} and {weight.shape}"
        )
    lead = input1.shape[:-1]
    out_size, first, second = weight.shape
    left = input1.reshape(math.prod(lead), first)
    right = input2.reshape(math.prod(lead), second, 1)
    halfway = left.matmul(weight.permute(1, 0, 2).reshape(first, out_size * second))
    out = matmul(halfway.reshape(math.prod(lead), out_size, second), right)
    return _biased("bilinear", reshape(out, (*lead, out_size)), bias)


def _biased(op: str, out: Tensor, bias: Tensor | None) -> Tensor:
    """`out + bias`, in the shape of `out`."""
    if bias is None:
        return out
    check_fits(op, "bias", bias.shape, out.shape)
    total: Tensor = out + bias
    return total


@function(top=False, method=False, functional=True)
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """`softmax(query @ keyᵀ * scale + mask) @ value` over the last two dimensions.

    A boolean mask tells where attention is allowed; a query that may look at nothing gets zeros.
    `enable_gqa` lets several query heads share a key and value head.

    >>> import undertow as ut
    >>> q, k, v = ut.zeros(1, 2), ut.zeros(2, 2), ut.tensor([[1.0], [3.0]])
    >>> ut.nn.functional.scaled_dot_product_attention(q, k, v)
    tensor([[2.]])
    """
    op = "scaled_dot_product_attention"
    if min(query.ndim, key.ndim, value.ndim) < 2 or query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            f"[{op}] expects query (…, L, E), key (…, S, E) and value (…, S, Ev), got shapes "
            f"{query.shape}, {key.shape} and {value.shape}"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"[{op}] key and value need the same length, got {key.shape[-2]} and {value.shape[-2]}"
        )
    if attn_mask is not None and is_causal:
        raise ArgumentError(f"[{op}] pass either attn_mask or is_causal=True, not both")
    if enable_gqa:
        key, value = _share_heads(op, query, key), _share_heads(op, query, value)
    scores = (query * _scale(query, scale)).matmul(key.transpose(-2, -1))
    if is_causal:
        attn_mask = steps(scores.shape[-2], query).unsqueeze(1) >= steps(scores.shape[-1], query)
    if attn_mask is not None:
        if attn_mask.dtype is dtypes.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        elif attn_mask.dtype is query.dtype:
            scores = scores + attn_mask
        else:
            raise DTypeError(
                f"[{op}] attn_mask must be bool or {query.dtype} like the query, "
                f"got {attn_mask.dtype}"
            )
    weights = softmax(scores, -1) if attn_mask is None else masked_softmax(scores, -1)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return matmul(weights, value)


def _scale(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale


def _share_heads(op: str, query: Tensor, shared: Tensor) -> Tensor:
    if min(query.ndim, shared.ndim) < 3 or query.shape[-3] % max(shared.shape[-3], 1):
        raise ShapeError(
            f"[{op}] enable_gqa needs query heads that are a multiple of the key and value heads, "
            f"got shapes {query.shape} and {shared.shape}"
        )
    return repeat_interleave(shared, query.shape[-3] // shared.shape[-3], -3)


# Distances -----------------------------------------------------------------------------------
@function(method=False, functional=True)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms count as at least `eps`.

    >>> import undertow as ut
    >>> ut.cosine_similarity(ut.tensor([3.0, 4.0]), ut.tensor([6.0, 8.0]), dim=0)
    tensor(1.)
    """
    op = "cosine_similarity"
    if not x1.is_floating_point() or not x2.is_floating_point():
        raise DTypeError(f"[{op}] expects floating tensors, got {x1.dtype} and {x2.dtype}")
    shape = broadcast_shapes(op, x1.shape, x2.shape)
    dim = wrap_dim(op, dim, len(shape))
    x1, x2 = expand(x1, shape), expand(x2, shape)
    return sum(normalize(x1, 2.0, dim, eps) * normalize(x2, 2.0, dim, eps), dim)


@function(top=False, method=False, functional=True)
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where the norm is smaller.

    >>> import undertow as ut
    >>> ut.nn.functional.normalize(ut.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / clamp_min(norm(input, p, dim, True), eps)


@function(method=False, functional=True)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of `x1 - x2 + eps` along the last dimension.

    >>> import undertow as ut
    >>> ut.pairwise_distance(ut.tensor([[3.0, 0.0]]), ut.tensor([[0.0, 4.0]]), eps=0.0)
    tensor([5.])
    """
    return norm(x1 - x2 + eps, p, -1, keepdim)


@function(method=False, functional=True)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distances of all pairs of rows i < j, in order.

    >>> import undertow as ut
    >>> ut.pdist(ut.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    if input.ndim != 2:
        raise ShapeError(f"[pdist] expects rows (N, D), got shape {input.shape}")
    if not input.is_floating_point():
        raise DTypeError(f"[pdist] expects a floating tensor, got {input.dtype}")
    if p < 0:
        raise ArgumentError(f"[pdist] p must not be negative, got {p}")
    place = steps(input.shape[0], input)
    pairs = (place.unsqueeze(1) < place).nonzero()
    first, second = pairs.unbind(1)
    return norm(input.index_select(0, first) - input.index_select(0, second), p, -1)
