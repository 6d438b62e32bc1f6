"""Transformers (Vaswani and others, 2017): layers of attention, and stacks of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from .. import functional as F
from .. import init
from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """What encoder and decoder layers share: attention to oneself, and the feedforward part."""

    _norms: int

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        how = {"bias": bias, "device": device, "dtype": dtype}
        attention = {"dropout": dropout, "batch_first": batch_first, **how}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if self._norms == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, **how)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **how)
        self.norm_first = norm_first
        for i in range(1, self._norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, **how))
        for i in range(1, self._norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _function(activation) if isinstance(activation, str) else activation
        if self._norms == 2:  # what torch's quick way of encoders asks of a file that we wrote
            self.activation_relu_or_gelu = _relu_or_gelu(self.activation)

    def _sa_block(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, True, is_causal)[0])

    def _feedforward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention to oneself and a feedforward part, each added to its input and normalised.

    >>> import undertow as ut
    >>> layer = ut.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(ut.rand(3, 5, 8)).shape
    (3, 5, 8)
    """

    _norms = 2

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feedforward(x))


class TransformerDecoderLayer(_Layer):
    """Attention to oneself, attention to the encoder's memory, and a feedforward part.

    >>> import undertow as ut
    >>> layer = ut.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(ut.rand(3, 5, 8), ut.rand(3, 7, 8)).shape
    (3, 5, 8)
    """

    _norms = 3

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Tensor, mem: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        attended = self.multihead_attn(x, mem, mem, padding, False, mask, True, is_causal)[0]
        return self.dropout2(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feedforward(x))


class _Stack(Module):
    """Copies of one layer, one after the other, and perhaps a norm after them."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _length(self, x: Tensor) -> int:
        """Of the sequences: a dimension that depends on the layers."""
        first: Any = self.layers[0]
        return x.shape[1 if x.ndim == 3 and first.self_attn.batch_first else 0]

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """A stack of copies of an encoder layer.

    `enable_nested_tensor` and `mask_check` are accepted: there are no nested tensors here, and
    what is padded is computed like everything else.

    >>> import undertow as ut
    >>> layer = ut.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> ut.nn.TransformerEncoder(layer, 2)(ut.rand(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = False
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        causal = is_causal if is_causal is not None else _is_causal(mask, self._length(src))
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        return self._normed(x)


class TransformerDecoder(_Stack):
    """A stack of copies of a decoder layer.

    >>> import undertow as ut
    >>> layer = ut.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> ut.nn.TransformerDecoder(layer, 2)(ut.rand(3, 5, 8), ut.rand(3, 7, 8)).shape
    (3, 5, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        known = tgt_is_causal is not None
        causal = tgt_is_causal if known else _is_causal(tgt_mask, self._length(tgt))
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return self._normed(x)


class Transformer(Module):
    """An encoder of the source and a decoder of the target.

    >>> import undertow as ut
    >>> model = ut.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> mask = ut.nn.Transformer.generate_square_subsequent_mask(5)
    >>> model(ut.rand(3, 7, 8), ut.rand(3, 5, 8), tgt_mask=mask).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        how = {"bias": bias, "device": device, "dtype": dtype}
        rest = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, **how)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer: Module = TransformerEncoderLayer(d_model, nhead, *rest, **how)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(d_model, nhead, *rest, **how)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError(
                f"[Transformer] the batch number of src and tgt must be equal, got shapes "
                f"{src.shape} and {tgt.shape}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                "[Transformer] the feature number of src and tgt must be equal to d_model, "
                f"{self.d_model}, got shapes {src.shape} and {tgt.shape}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask: 0 where a position may look, -inf at those after it.

        >>> import undertow as ut
        >>> ut.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        full = FUNCTIONS["full"]((sz, sz), -math.inf, dtype=dtype, device=device)
        return full.triu(1)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)


def _function(name: str) -> Callable[[Tensor], Tensor]:
    if name not in ("relu", "gelu"):
        raise ArgumentError(f"[Transformer] activation should be relu/gelu, not {name!r}")
    return F.relu if name == "relu" else F.gelu


def _relu_or_gelu(activation: Any) -> int:
    """torch's number of an activation: 1 is relu, 2 is gelu, 0 any other."""
    if activation is F.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


def _is_causal(mask: Tensor | None, length: int) -> bool:
    """Whether a mask is the causal one, in which case attention has a quicker way."""
    if mask is None or mask.shape != (length, length):
        return False
    causal = Transformer.generate_square_subsequent_mask(length, mask.device)
    if mask.is_floating_point():
        return bool((mask == causal).all())
    return bool((mask == (causal != 0)).all())


__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """What torch calls `_function`."""
    return _function(activation)
