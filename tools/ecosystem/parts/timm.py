"""timm: models of many families, small pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from part import Numbers, part, step, uniform

MODELS = {
    "resnet18": 64,
    "seresnet18": 64,
    "mobilenetv2_050": 64,
    "mobilenetv3_small_050": 64,
    "efficientnet_b0": 64,
    "regnety_002": 64,
    "ghostnet_050": 64,
    "convnext_atto": 64,
    "convnextv2_atto": 64,
    "vit_tiny_patch16_224": 224,
    "pvt_v2_b0": 64,
    "poolformer_s12": 64,
    "edgenext_xx_small": 64,
    "mobilevit_xxs": 64,
    "mobilevitv2_050": 64,
    "repvgg_a0": 64,
    "starnet_s1": 64,
    "test_resnet": 64,
    "test_vit": 160,
    "test_efficientnet": 64,
    "test_convnext": 64,
    "test_byobnet": 64,
    "mobilenetv4_conv_small_035": 64,
    "lcnet_035": 64,
    "tinynet_e": 64,
    "repghostnet_050": 64,
    "regnetx_002": 64,
    "dla46x_c": 64,
    "ese_vovnet19b_slim_dw": 64,
    "efficientvit_m0": 64,
    "test_nfnet": 64,
    "test_vit2": 64,
    "test_mambaout": 160,
}
TINY = {"depths": (1, 1, 1, 1)}
PICTURE = {"img_size": 64}
SWIN = {**PICTURE, **TINY, "window_size": 4, "embed_dim": 24}
VIT = {"img_size": 32, "depth": 2, "embed_dim": 48, "num_heads": 2}
WIDTHS = {"channels": (16, 16, 32, 32)}
MAXXVIT = {**PICTURE, **TINY, "embed_dim": (32, 32, 64, 64)}
MLP = {**PICTURE, "num_blocks": 2, "embed_dim": 32}
DIMS = {**TINY, "dims": (16, 32, 32, 32)}
NARROW = {"width_factor": 0.25}
# With settings that make them small.
SMALL: dict[str, tuple[int, dict[str, Any]]] = {
    "swin_tiny_patch4_window7_224": (64, SWIN),
    "swinv2_tiny_window8_256": (64, SWIN),
    "swinv2_cr_tiny_224": (64, SWIN),
    "deit_tiny_distilled_patch16_224": (32, {**VIT, "num_heads": 3}),
    "deit3_small_patch16_224": (32, VIT),
    "beit_base_patch16_224": (32, VIT),
    "eva02_tiny_patch14_224": (28, {**VIT, "img_size": 28}),
    "vit_small_patch16_dinov3": (32, {**VIT, "num_heads": 3}),
    "vit_relpos_small_patch16_224": (32, VIT),
    "flexivit_small": (64, {**VIT, **PICTURE}),
    "samvit_base_patch16_224": (32, VIT),
    "naflexvit_base_patch16_gap": (32, {"depth": 2, "embed_dim": 48, "num_heads": 2}),
    "convit_tiny": (32, {**VIT, "local_up_to_layer": 1}),
    "cait_xxs24_224": (32, VIT),
    "xcit_nano_12_p16_224": (32, VIT),
    "tnt_s_patch16_224": (32, {"img_size": 32, "depth": 2, "embed_dim": 48}),
    "twins_pcpvt_small": (64, {**PICTURE, **TINY, "embed_dims": (16, 32, 40, 64)}),
    "twins_svt_small": (64, {**PICTURE, **TINY, "embed_dims": (16, 32, 64, 128)}),
    "coat_tiny": (
        64,
        {
            **PICTURE,
            "embed_dims": (16, 16, 16, 16),
            "serial_depths": (1, 1, 1, 1),
            "parallel_depth": 1,
        },
    ),
    "levit_128s": (
        64,
        {**PICTURE, "embed_dim": (32, 48, 64), "num_heads": (2, 2, 2), "depth": (1, 1, 1)},
    ),
    "maxvit_tiny_tf_224": (64, MAXXVIT),
    "coatnet_pico_rw_224": (64, MAXXVIT),
    "efficientformer_l1": (224, {"embed_dims": (16, 32, 32, 48), "depths": (1, 1, 1, 2)}),
    "efficientformerv2_s0": (64, {**PICTURE, "embed_dims": (16, 16, 32, 32)}),
    "fastvit_t8": (64, {"layers": (1, 1, 1, 1), "embed_dims": (16, 16, 32, 32)}),
    "visformer_tiny": (64, {**PICTURE, "embed_dim": 48, "depth": (1, 1, 1), "num_heads": 2}),
    "tiny_vit_5m_224": (64, {**TINY, "embed_dims": (16, 32, 32, 64), "num_heads": (1, 2, 2, 4)}),
    "davit_tiny": (64, {**TINY, "embed_dims": (16, 32, 32, 64), "num_heads": (1, 2, 2, 4)}),
    "sequencer2d_s": (
        64,
        {"layers": (1, 1, 1, 1), "embed_dims": (16, 32, 32, 32), "hidden_sizes": (4, 8, 8, 8)},
    ),
    "pit_ti_224": (64, {**PICTURE, "depth": (1, 1, 1), "base_dims": (16, 16, 16)}),
    "hiera_tiny_224": (64, {**PICTURE, "stages": (1, 1, 1, 1), "embed_dim": 16}),
    "mambaout_femto": (64, DIMS),
    "inception_next_atto": (64, DIMS),
    "rexnet_100": (64, {"width_mult": 0.3, "depth_mult": 0.5}),
    "densenet121": (64, {"growth_rate": 8, "block_config": (2, 2, 2, 2)}),
    "dla34": (64, {"channels": (8, 8, 16, 16, 32, 32), "levels": (1, 1, 1, 2, 2, 1)}),
    "skresnet18": (64, WIDTHS),
    "resnest14d": (64, WIDTHS),
    "res2net50_26w_4s": (64, {**WIDTHS, "layers": (1, 1, 1, 1)}),
    "resnext50_32x4d": (64, {**WIDTHS, "layers": (1, 1, 1, 1), "cardinality": 4}),
    "resnetv2_18": (64, {"channels": (16, 16, 32, 32)}),
    "tresnet_m": (64, {"layers": (1, 1, 1, 1), **NARROW}),
    "eca_resnet33ts": (64, NARROW),
    "lambda_resnet26t": (64, NARROW),
    "botnet26t_256": (64, {**PICTURE, **NARROW}),
    "repvit_m0_9": (64, {"embed_dim": (16, 32, 32, 32), "depth": (1, 1, 1, 1)}),
    "hgnetv2_b0": (64, {}),
    "hrnet_w18_small": (64, {}),
    "dm_nfnet_f0": (64, {**TINY, "channels": (32, 32, 64, 64), "group_size": 8}),
    "efficientvit_b0": (64, {}),
}
# Of classes whose models by name are large. Each gets `timm.models` and the number of classes.
BUILT: dict[str, tuple[int, Callable[..., Any]]] = {
    "mixer": (64, lambda m, **n: m.mlp_mixer.MlpMixer(**MLP, **n)),
    "gmlp": (
        64,
        lambda m, **n: m.mlp_mixer.MlpMixer(
            **MLP,
            **n,
            mlp_ratio=4,
            block_layer=m.mlp_mixer.SpatialGatingBlock,
            mlp_layer=m.mlp_mixer.GatedMlp,
        ),
    ),
    "resmlp": (
        64,
        lambda m, **n: m.mlp_mixer.MlpMixer(
            **MLP, **n, mlp_ratio=4, block_layer=m.mlp_mixer.ResBlock, norm_layer=m.mlp_mixer.Affine
        ),
    ),
    "nest": (
        64,
        lambda m, **n: m.nest.Nest(
            64, embed_dims=(24, 24, 48), num_heads=(1, 2, 2), depths=(1, 1, 1), **n
        ),
    ),
    "caformer": (
        64,
        lambda m, **n: m.metaformer.MetaFormer(
            **DIMS,
            **n,
            token_mixers=[m.metaformer.SepConv] * 2 + [m.metaformer.Attention] * 2,
            norm_layers=[m.metaformer.LayerNorm2dNoBias] * 2 + [m.metaformer.LayerNormNoBias] * 2,
        ),
    ),
    "volo": (
        64,
        lambda m, **n: m.volo.VOLO(
            (1, 1, 1, 1), 64, embed_dims=(24, 48, 48, 48), num_heads=(2, 4, 4, 4), **n
        ),
    ),
    "focalnet": (64, lambda m, **n: m.focalnet.FocalNet(embed_dim=16, **TINY, **n)),
    "mvitv2": (
        64,
        lambda m, **n: m.mvitv2.MultiScaleVit(
            m.mvitv2.MultiScaleVitCfg(embed_dim=16, **TINY), (64, 64), **n
        ),
    ),
    "gcvit": (
        64,
        lambda m, **n: m.gcvit.GlobalContextVit(
            **PICTURE, **TINY, embed_dim=16, num_heads=(2, 2, 2, 2), **n
        ),
    ),
    "convmixer": (32, lambda m, **n: m.convmixer.ConvMixer(32, 2, **n)),
}
# torch's gradient of a batch norm is wrong for a batch of one whose gradient is transposed.
PAIRS = {"efficientvit_m0", "xcit_nano_12_p16_224", "levit_128s", "efficientformer_l1"}
PAIRS |= {"lambda_resnet26t"}
QUICK = {"resnet18", "mobilenetv3_small_050", "test_vit", "test_efficientnet", "test_convnext"}
QUICK |= {"swin_tiny_patch4_window7_224", "test_nfnet", "naflexvit_base_patch16_gap"}


def add(name: str, size: int, settings: dict[str, Any]) -> None:
    """A part that runs a model."""

    @part(name, quick=name in QUICK)
    def run() -> Numbers:
        import timm

        made = timm.create_model(name, num_classes=5, **settings)
        return step(made, uniform(2 if name in PAIRS else 1, 3, size, size))


def build(name: str, size: int, make: Callable[..., Any]) -> None:
    """A part that runs a model of a class."""

    @part(name)
    def run() -> Numbers:
        import timm

        return step(make(timm.models, num_classes=5), uniform(1, 3, size, size))


for name, size in MODELS.items():
    add(name, size, {})
for name, (size, settings) in SMALL.items():
    add(name, size, settings)
for name, (size, make) in BUILT.items():
    build(name, size, make)
