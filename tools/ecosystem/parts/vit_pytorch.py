"""vit-pytorch: vision transformers of many kinds."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from part import Numbers, normal, part, step, uniform

SMALL = {"num_classes": 5, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32, "dim_head": 8}
IMAGE = {**SMALL, "image_size": 32, "patch_size": 8}
VIDEO = {
    **{k: v for k, v in SMALL.items() if k != "depth"},
    "image_size": 16,
    "image_patch_size": 8,
    "frames": 4,
    "frame_patch_size": 2,
}
STAGES = {"num_classes": 5, "dim": (8, 8, 16, 16), "depth": (1, 1, 1, 1)}


def picture(size: int = 32) -> Any:
    """Two pictures with three channels."""
    return uniform(2, 3, size, size)


def add(
    name: str, path: str, options: dict[str, Any], data: Callable[[], Any] = picture, **more: Any
) -> None:
    """A part that runs one model forward and backward."""
    quick = more.pop("quick", False)

    @part(name, quick=quick)
    def run() -> Numbers:
        file, _, kind = path.rpartition(".")
        model = getattr(import_module(f"vit_pytorch.{file}"), kind)
        return step(model(**options, **more), data())


# Models that are made of the same few arguments.
for file, kind in {
    "vit": "ViT",
    "simple_vit": "SimpleViT",
    "deepvit": "DeepViT",
    "learnable_memory_vit": "ViT",
    "parallel_vit": "ViT",
    "rvt": "RvT",
    "jumbo_vit": "JumboViT",
    "jet_vit": "JetViT",
    "vit_5": "ViT",
    "vit_for_small_dataset": "ViT",
    "vit_with_patch_dropout": "ViT",
    "vit_with_patch_merger": "ViT",
    "vit_with_decorr": "ViT",
    "vit_with_keel_post_ln": "ViT",
    "simple_uvit": "SimpleUViT",
    "simple_flash_attn_vit": "SimpleViT",
    "simple_vit_attn_residual": "SimpleViTAttnResidual",
    "simple_vit_orthog_residual_update": "SimpleViT",
    "simple_vit_with_patch_dropout": "SimpleViT",
    "simple_vit_with_qk_norm": "SimpleViT",
    "simple_vit_with_register_tokens": "SimpleViT",
    "simple_vit_with_relative_proj_pos_bias": "SimpleViT",
    "simple_vit_with_specialized_cls": "SimpleViT",
    "simple_vit_with_value_residual": "SimpleViT",
    "attn_residual_with_dca_simple_vit": "SimpleViT",
    "normalized_vit": "nViT",
}.items():
    add(file, f"{file}.{kind}", IMAGE, quick=file in ("vit", "parallel_vit"))

add("ats_vit", "ats_vit.ViT", IMAGE, max_tokens_per_depth=(12, 6), quick=True)
add("cait", "cait.CaiT", IMAGE, cls_depth=1)
add("xcit", "xcit.XCiT", IMAGE, cls_depth=1)
add("pit", "pit.PiT", {**IMAGE, "depth": (1, 1)})
add("simple_vit_with_fft", "simple_vit_with_fft.SimpleViT", IMAGE, freq_patch_size=8)
add(
    "simple_vit_with_hyper_connections",
    "simple_vit_with_hyper_connections.SimpleViT",
    IMAGE,
    num_residual_streams=2,
)
add("vit_1d", "vit_1d.ViT", {**SMALL, "seq_len": 32, "patch_size": 8}, lambda: normal(2, 3, 32))
add(
    "simple_vit_1d",
    "simple_vit_1d.SimpleViT",
    {**SMALL, "seq_len": 32, "patch_size": 8},
    lambda: normal(2, 3, 32),
)
add("vit_3d", "vit_3d.ViT", {**VIDEO, "depth": 2}, lambda: uniform(1, 3, 4, 16, 16))
add(
    "simple_vit_3d",
    "simple_vit_3d.SimpleViT",
    {**VIDEO, "depth": 2},
    lambda: uniform(1, 3, 4, 16, 16),
)
add(
    "vivit",
    "vivit.ViViT",
    {**VIDEO, "spatial_depth": 1, "temporal_depth": 1},
    lambda: uniform(1, 3, 4, 16, 16),
)
add(
    "cct",
    "cct.CCT",
    {
        "img_size": 32,
        "embedding_dim": 16,
        "n_conv_layers": 1,
        "num_layers": 2,
        "num_heads": 2,
        "mlp_ratio": 2.0,
        "num_classes": 5,
        "positional_embedding": "learnable",
    },
)
add(
    "cross_vit",
    "cross_vit.CrossViT",
    {
        "image_size": 48,
        "num_classes": 5,
        "depth": 1,
        "sm_dim": 16,
        "sm_patch_size": 8,
        "sm_enc_depth": 1,
        "sm_enc_heads": 2,
        "sm_enc_mlp_dim": 16,
        "sm_enc_dim_head": 8,
        "lg_dim": 16,
        "lg_patch_size": 16,
        "lg_enc_depth": 1,
        "lg_enc_heads": 2,
        "lg_enc_mlp_dim": 16,
        "lg_enc_dim_head": 8,
        "cross_attn_depth": 1,
        "cross_attn_heads": 2,
    },
    lambda: picture(48),
)
add(
    "cvt",
    "cvt.CvT",
    {
        "num_classes": 5,
        "s1_emb_dim": 8,
        "s2_emb_dim": 8,
        "s3_emb_dim": 16,
        "s2_heads": 1,
        "s3_heads": 2,
        "s2_depth": 1,
        "s3_depth": 1,
    },
    quick=True,
)
add(
    "levit",
    "levit.LeViT",
    {
        "image_size": 64,
        "num_classes": 5,
        "stages": 2,
        "dim": (16, 32),
        "depth": 1,
        "heads": (2, 2),
        "mlp_mult": 2,
    },
    lambda: picture(64),
)
add(
    "look_vit",
    "look_vit.LookViT",
    {
        "image_size": 48,
        "num_classes": 5,
        "dim": 16,
        "depth": 1,
        "heads": 2,
        "dim_head": 8,
        "patch_size": 16,
        "highres_patch_size": 8,
        "cross_attn_heads": 2,
        "cross_attn_dim_head": 8,
    },
    lambda: picture(48),
)
add(
    "max_vit",
    "max_vit.MaxViT",
    {"num_classes": 5, "dim": 8, "depth": (1, 1), "dim_head": 4, "window_size": 2},
)
add(
    "max_vit_with_registers",
    "max_vit_with_registers.MaxViT",
    {"num_classes": 5, "dim": 8, "depth": (1, 1), "dim_head": 4, "window_size": 2},
)
add(
    "mobile_vit",
    "mobile_vit.MobileViT",
    {
        "image_size": (64, 64),
        "dims": [8, 8, 8],
        "num_classes": 5,
        "channels": [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 16],
    },
    lambda: picture(64),
)
add(
    "nest",
    "nest.NesT",
    {
        "image_size": 32,
        "patch_size": 4,
        "num_classes": 5,
        "dim": 8,
        "heads": 2,
        "num_hierarchies": 2,
        "block_repeats": (1, 1),
    },
)
add(
    "regionvit",
    "regionvit.RegionViT",
    {**STAGES, "window_size": 2, "dim": (32, 32, 32, 32)},
    lambda: picture(64),
)
add(
    "scalable_vit",
    "scalable_vit.ScalableViT",
    {
        "num_classes": 5,
        "dim": 8,
        "heads": (1, 1),
        "depth": (1, 1),
        "reduction_factor": (2, 1),
        "window_size": (4, None),
    },
)
add(
    "sep_vit",
    "sep_vit.SepViT",
    {"num_classes": 5, "dim": 8, "dim_head": 8, "heads": (1, 2), "depth": (1, 1)},
    lambda: picture(56),
)
add(
    "twins_svt",
    "twins_svt.TwinsSVT",
    {
        "num_classes": 5,
        "s1_emb_dim": 8,
        "s2_emb_dim": 8,
        "s3_emb_dim": 8,
        "s4_emb_dim": 8,
        "s1_local_patch_size": 4,
        "s2_local_patch_size": 4,
        "s3_local_patch_size": 2,
        "s4_local_patch_size": 1,
        "s1_global_k": 2,
        "s2_global_k": 2,
        "s3_global_k": 2,
        "s4_global_k": 1,
        "s3_depth": 1,
        "s4_depth": 1,
    },
)
add(
    "t2t",
    "t2t.T2TViT",
    {
        "image_size": 32,
        "num_classes": 5,
        "dim": 16,
        "depth": 1,
        "heads": 2,
        "mlp_dim": 16,
        "dim_head": 8,
        "t2t_layers": ((3, 2), (3, 2)),
    },
)


@part("mae")
def mae() -> Numbers:
    from vit_pytorch import MAE, ViT

    vit = ViT(**IMAGE, pool="mean")
    return step(MAE(encoder=vit, decoder_dim=16, decoder_heads=2, decoder_dim_head=8), picture())


@part("na_vit", quick=True)
def na_vit() -> Numbers:
    from vit_pytorch.na_vit import NaViT

    pictures = [uniform(3, 16, 24, seed=1), uniform(3, 32, 32, seed=2), uniform(3, 8, 16, seed=3)]
    return step(NaViT(**IMAGE), pictures, group_images=True, group_max_seq_len=20)


@part("na_vit_nested_tensor")
def na_vit_nested_tensor() -> Numbers:
    from vit_pytorch.na_vit_nested_tensor import NaViT

    pictures = [uniform(3, 16, 24, seed=1), uniform(3, 32, 32, seed=2), uniform(3, 8, 16, seed=3)]
    return step(NaViT(**IMAGE), pictures)


@part("distill")
def distill() -> Numbers:
    import torch
    from part import fill, integers
    from vit_pytorch.distill import DistillableViT, DistillWrapper

    student = DistillableViT(**IMAGE)
    teacher = fill(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 5)))
    wrapper = DistillWrapper(teacher=teacher, student=student, temperature=3, alpha=0.5)
    return step(wrapper, picture(), integers(5, 2))
