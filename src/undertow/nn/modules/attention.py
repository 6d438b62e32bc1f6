"""Attention of several heads as a layer."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...ops.nn.multihead import attend
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear, new_parameter
from .module import Module


class MultiheadAttention(Module):
    """Queries look at keys in `num_heads` subspaces and gather values, all by learned products.

    Inputs are (L, N, E), or (N, L, E) with `batch_first`, or (L, E). The second result is the
    weights, averaged over the heads, or None without `need_weights`, which is much faster.

    >>> import undertow as ut
    >>> attention = ut.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = ut.rand(3, 5, 8)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ArgumentError(
                "[MultiheadAttention] embed_dim must be divisible by num_heads, and both greater "
                f"than 0, got embed_dim={embed_dim} and num_heads={num_heads}"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        packed = self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": None if packed else (embed_dim, embed_dim),
            "k_proj_weight": None if packed else (embed_dim, self.kdim),
            "v_proj_weight": None if packed else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if packed else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        how = {"device": device, "dtype": dtype}
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else new_parameter(*shape, **how))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **how)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name, value in self._parameters.items():
            if value is not None and name.endswith("proj_weight"):
                init.xavier_uniform_(value)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for value in (self.bias_k, self.bias_v):
            if value is not None:
                init.xavier_normal_(value)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The gathered values, and the weights.

        A mask is True where a key must not be looked at, or is added to the scores. `is_causal`
        says that `attn_mask` is the causal one, so that a quicker way can be taken.
        """
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return attend(
            "MultiheadAttention",
            (query, key, value),
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight if self._qkv_same_embed_dim else separate,
            self.in_proj_bias,
            (self.bias_k, self.bias_v),
            self.add_zero_attn,
            self.dropout if self.training else 0.0,
            self.out_proj.weight,
            self.out_proj.bias,
            key_padding_mask,
            need_weights,
            attn_mask,
            average_attn_weights,
            is_causal,
            self.batch_first,
        )
