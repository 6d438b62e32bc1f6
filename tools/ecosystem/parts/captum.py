"""captum: attributions of a small network's output to its inputs."""

from __future__ import annotations

from typing import Any

import torch
from part import Numbers, compare, fill, part, uniform
from torch import nn


class Small(nn.Module):
    """A network with convolutions, of the kind that captum's methods take apart."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.relu1 = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(64, 8)
        self.relu2 = nn.ReLU()
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        x = self.pool(self.relu1(self.conv(x)))
        return self.out(self.relu2(self.linear(x.flatten(1))))


def attribute(
    kind: str, layer: str = "", make: dict[str, Any] | None = None, **options: Any
) -> Numbers:
    """What a method says of two small pictures."""
    import captum.attr

    model = fill(Small()).eval()
    where = (getattr(model, layer),) if layer else ()
    method = getattr(captum.attr, kind)(model, *where, **(make or {}))
    given = uniform(2, 1, 8, 8)
    return compare(lambda: method.attribute(given, target=1, **options), gradients=False)


for kind, options in {
    "Saliency": {},
    "InputXGradient": {},
    "IntegratedGradients": {"n_steps": 8},
    "GuidedBackprop": {},
    "Deconvolution": {},
    "Occlusion": {"sliding_window_shapes": (1, 2, 2)},
    "FeatureAblation": {},
    "LRP": {},
}.items():
    part(kind, quick=kind in ("Saliency", "IntegratedGradients"))(
        lambda kind=kind, options=options: attribute(kind, **options)
    )
for kind in ("LayerGradCam", "GuidedGradCam", "LayerActivation", "LayerConductance"):
    steps = {"n_steps": 8} if kind == "LayerConductance" else {}
    if kind == "LayerActivation":
        steps = {}
    part(kind)(lambda kind=kind, steps=steps: layered(kind, **steps))


def layered(kind: str, **options: Any) -> Numbers:
    """What a method says of a layer."""
    import captum.attr

    model = fill(Small()).eval()
    method = getattr(captum.attr, kind)(model, model.conv)
    given = uniform(2, 1, 8, 8)
    if kind != "LayerActivation":
        options["target"] = 1
    return compare(lambda: method.attribute(given, **options), gradients=False)


@part("DeepLift", quick=True)
def deep_lift() -> Numbers:
    return attribute("DeepLift", baselines=uniform(2, 1, 8, 8, seed=3, grad=False))


@part("GradientShap")
def gradient_shap() -> Numbers:
    import numpy as np

    np.random.seed(0)  # noqa: NPY002 captum draws from it
    return attribute("GradientShap", baselines=uniform(3, 1, 8, 8, seed=3, grad=False), n_samples=4)


@part("ShapleyValueSampling")
def shapley_value_sampling() -> Numbers:
    mask = (torch.arange(64).reshape(1, 1, 8, 8) // 16).expand(2, 1, 8, 8).clone()
    return attribute("ShapleyValueSampling", feature_mask=mask, n_samples=3)


@part("NoiseTunnel")
def noise_tunnel() -> Numbers:
    import captum.attr

    model = fill(Small()).eval()
    method = captum.attr.NoiseTunnel(captum.attr.Saliency(model))
    given = uniform(2, 1, 8, 8)
    return compare(
        lambda: method.attribute(given, nt_samples=2, stdevs=0.0, target=1), gradients=False
    )
