"""torchvision: models of pictures and films, boxes and losses."""

from __future__ import annotations

from typing import Any

from part import Numbers, compare, measure, normal, part, step, uniform

MODELS = {
    "resnet18": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "shufflenet_v2_x0_5": 64,
    "squeezenet1_0": 64,
    "efficientnet_b0": 64,
    "regnet_y_400mf": 64,
    "mnasnet0_5": 64,
}


def add(name: str, size: int) -> None:
    """A part that runs a model."""

    @part(name, quick=name in ("resnet18", "shufflenet_v2_x0_5"))
    def run() -> Numbers:
        import torchvision

        made = torchvision.models.get_model(name, weights=None, num_classes=5)
        return step(made, uniform(1, 3, size, size))


for name, size in MODELS.items():
    add(name, size)


@part("vision transformer", quick=True)
def transformer() -> Numbers:
    from torchvision.models import VisionTransformer

    return step(VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5), uniform(2, 3, 32, 32))


def boxes(count: int, seed: int) -> Any:
    """Boxes with some width."""
    import torch

    given = 40 * uniform(count, 4, seed=seed, grad=False)
    return torch.cat([given[:, :2], given[:, :2] + 1 + given[:, 2:] / 2], 1)


@part("boxes", quick=True)
def overlaps() -> Numbers:
    from torchvision import ops

    measures = [ops.box_iou, ops.generalized_box_iou, ops.complete_box_iou, ops.distance_box_iou]
    return {f.__name__: measure(f(boxes(6, 0), boxes(5, 1))) for f in measures}


@part("losses")
def losses() -> Numbers:
    from torchvision import ops

    found = compare(
        lambda x: ops.sigmoid_focal_loss(x, (normal(4, 3, seed=1) > 0).double(), reduction="mean"),
        normal(4, 3),
    )
    found["boxes"] = measure(ops.complete_box_iou_loss(boxes(5, 0), boxes(5, 1), reduction="sum"))
    return found


@part("feature extraction", quick=True)
def features() -> Numbers:
    import torchvision
    from torchvision.models.feature_extraction import create_feature_extractor

    made = torchvision.models.get_model("resnet18", weights=None, num_classes=5)
    return step(create_feature_extractor(made, ["layer2", "avgpool"]), uniform(1, 3, 64, 64))
