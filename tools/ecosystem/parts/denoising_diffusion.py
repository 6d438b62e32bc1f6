"""denoising-diffusion-pytorch: its networks, the loss of a diffusion and a step back."""

from __future__ import annotations

from typing import Any

import torch
from part import Numbers, compare, fill, normal, part, step, uniform


@part("Unet", quick=True)
def unet() -> Numbers:
    from denoising_diffusion_pytorch import Unet

    model = Unet(dim=8, dim_mults=(1, 2), flash_attn=False, attn_heads=2, attn_dim_head=4)
    return step(model, normal(2, 3, 16, 16), torch.tensor([3, 17]))


@part("loss of a diffusion")
def gaussian_diffusion() -> Numbers:
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    model = Unet(dim=8, dim_mults=(1, 2), flash_attn=False, attn_heads=2, attn_dim_head=4)
    diffusion = GaussianDiffusion(model, image_size=16, timesteps=50)
    return step(diffusion, uniform(2, 3, 16, 16))


@part("sampling", quick=True, dtype="float32", tolerance=1e-3)
def sampling() -> Numbers:
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    model = Unet(dim=8, dim_mults=(1, 2), flash_attn=False, attn_heads=2, attn_dim_head=4)
    diffusion = fill(GaussianDiffusion(model, image_size=16, timesteps=10, sampling_timesteps=4))
    diffusion.eval()
    return compare(lambda: diffusion.sample(batch_size=1), gradients=False)


@part("one dimension")
def one_dimension() -> Numbers:
    from denoising_diffusion_pytorch import GaussianDiffusion1D, Unet1D

    model = Unet1D(dim=8, dim_mults=(1, 2), channels=4)
    diffusion = GaussianDiffusion1D(model, seq_length=16, timesteps=50, objective="pred_v")
    return step(diffusion, uniform(2, 4, 16))


@part("Karras Unet")
def karras() -> Numbers:
    from denoising_diffusion_pytorch.karras_unet import KarrasUnet

    model: Any = KarrasUnet(
        image_size=16,
        dim=8,
        dim_max=16,
        num_downsamples=1,
        num_blocks_per_stage=1,
        attn_res=(8,),
        attn_dim_head=4,
        fourier_dim=8,
    )
    return step(model, normal(2, 4, 16, 16), time=torch.tensor([0.1, 0.7]))
