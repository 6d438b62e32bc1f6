"""diffusers: small networks of pictures, and steps of schedulers."""

from __future__ import annotations

from typing import Any

from part import Numbers, fill, integers, measure, normal, part, step

BLOCKS = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}


@part("unet", quick=True)
def unet() -> Numbers:
    import diffusers

    made = diffusers.UNet2DModel(
        sample_size=16,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=4,
        **BLOCKS,
    )
    return step(made, normal(2, 3, 16, 16), integers(1000, 2))


@part("unet with a text")
def conditional() -> Numbers:
    import diffusers

    made = diffusers.UNet2DConditionModel(
        sample_size=16,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=12,
        attention_head_dim=4,
        **BLOCKS,
    )
    return step(made, normal(2, 4, 16, 16), integers(1000, 2), normal(2, 5, 12, seed=1))


@part("autoencoder")
def autoencoder() -> Numbers:
    import diffusers

    made = diffusers.AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        sample_size=16,
        **BLOCKS,
    )
    return step(made, normal(1, 3, 16, 16))


@part("quantised autoencoder")
def quantised() -> Numbers:
    import diffusers

    made = diffusers.VQModel(
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        num_vq_embeddings=8,
        **BLOCKS,
    )
    return step(made, normal(1, 3, 16, 16), loss=lambda out: out.sample)


@part("transformer of pictures", tolerance=1e-5)  # its times are float32
def dit() -> Numbers:
    import diffusers

    made = diffusers.DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        sample_size=8,
        num_embeds_ada_norm=10,
        norm_num_groups=4,
    )
    return step(
        made, normal(1, 4, 8, 8), timestep=integers(1000, 1), class_labels=integers(10, 1, seed=1)
    )


def schedule(name: str, **settings: Any) -> None:
    """A part that takes a few steps of a scheduler, whose tables are float32."""

    @part(name, tolerance=1e-6)
    def run() -> Numbers:
        import diffusers

        made = getattr(diffusers, f"{name}Scheduler")(num_train_timesteps=100, **settings)
        made.set_timesteps(5)
        sample = made.init_noise_sigma * normal(1, 3, 4, 4, grad=False)
        for number, time in enumerate(made.timesteps):
            scaled = made.scale_model_input(sample, time)
            guess = (scaled + normal(1, 3, 4, 4, seed=number, grad=False)) / 2
            sample = made.step(guess, time, sample).prev_sample
        return {"sample": measure(sample), "times": measure(made.timesteps)}


schedule("DDPM", variance_type="fixed_large", clip_sample=False)
schedule("DDIM", clip_sample=False)
schedule("EulerDiscrete")
schedule("DPMSolverMultistep")


@part("pipeline", tolerance=1e-5)
def pipeline() -> Numbers:
    import diffusers

    network = diffusers.UNet2DModel(
        sample_size=8,
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
        **BLOCKS,
    )
    scheduler = diffusers.DDIMScheduler(num_train_timesteps=100)
    run = diffusers.DDIMPipeline(unet=fill(network).eval(), scheduler=scheduler)
    run.set_progress_bar_config(disable=True)
    found = run(batch_size=1, num_inference_steps=3, output_type="np")
    return {"picture": [float(found.images.size), float((found.images**2).sum() ** 0.5)]}
