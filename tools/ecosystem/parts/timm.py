"""timm: models of many families, small pictures."""

from __future__ import annotations

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
}
QUICK = {"resnet18", "mobilenetv3_small_050", "test_vit", "test_efficientnet", "test_convnext"}


def add(name: str, size: int) -> None:
    """A part that runs a model."""

    @part(name, quick=name in QUICK)
    def run() -> Numbers:
        import timm

        return step(timm.create_model(name, num_classes=5), uniform(1, 3, size, size))


for name, size in MODELS.items():
    add(name, size)
