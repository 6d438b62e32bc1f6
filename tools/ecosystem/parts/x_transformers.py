"""x-transformers: language models with one feature or another of the papers."""

from __future__ import annotations

from typing import Any

from part import Numbers, integers, normal, part, step, uniform

# Its softmax and positions are computed in float32, whatever the default dtype is.
SINGLE = 1e-5


def language_model(**options: Any) -> Numbers:
    """The logits of a small decoder for some tokens."""
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **options)
    model = TransformerWrapper(num_tokens=20, max_seq_len=32, attn_layers=layers)
    return step(model, integers(20, 2, 16))


for name, options in {
    "plain": {},
    "rotary": {"rotary_pos_emb": True},
    "ALiBi": {"alibi_pos_bias": True},
    "T5 bias": {"rel_pos_bias": True},
    "gated feedforward": {"ff_glu": True, "ff_swish": True},
    "qk norm": {"attn_qk_norm": True},
    "talking heads": {"attn_pre_talking_heads": True},
    "flash": {"attn_flash": True},
    "memory": {"attn_num_mem_kv": 3},
    "RMSNorm": {"use_rmsnorm": True},
    "sandwich": {"sandwich_norm": True},
    "macaron": {"macaron": True},
    "kv heads": {"attn_kv_heads": 1},
    "residual attention": {"residual_attn": True},
    "shifted tokens": {"shift_tokens": 1},
}.items():
    part(name, quick=name in ("plain", "rotary"), tolerance=SINGLE)(
        lambda options=options: language_model(**options)
    )


@part("dynamic bias", dtype="float32", tolerance=1e-4)
def dynamic_bias() -> Numbers:
    return language_model(dynamic_pos_bias=True)


@part("pictures", tolerance=SINGLE)
def pictures() -> Numbers:
    from x_transformers import Encoder, ViTransformerWrapper

    layers = Encoder(dim=16, depth=2, heads=2, attn_dim_head=8)
    model = ViTransformerWrapper(image_size=16, patch_size=4, num_classes=5, attn_layers=layers)
    return step(model, uniform(2, 3, 16, 16))


@part("series", tolerance=SINGLE)
def series() -> Numbers:
    from x_transformers import ContinuousTransformerWrapper, Encoder

    layers = Encoder(dim=16, depth=2, heads=2, attn_dim_head=8)
    return step(
        ContinuousTransformerWrapper(dim_in=5, dim_out=3, max_seq_len=32, attn_layers=layers),
        normal(2, 16, 5),
    )


@part("autoregressive loss", quick=True, tolerance=SINGLE)
def autoregressive_loss() -> Numbers:
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8)
    model = TransformerWrapper(num_tokens=20, max_seq_len=32, attn_layers=layers)
    return step(AutoregressiveWrapper(model), integers(20, 2, 17))


@part("encoder and decoder", tolerance=SINGLE)
def encoder_and_decoder() -> Numbers:
    from x_transformers import XTransformer

    model = XTransformer(
        dim=16,
        enc_num_tokens=20,
        enc_depth=1,
        enc_heads=2,
        enc_max_seq_len=16,
        dec_num_tokens=20,
        dec_depth=1,
        dec_heads=2,
        dec_max_seq_len=16,
    )
    return step(model, integers(20, 2, 12), integers(20, 2, 13, seed=1))
