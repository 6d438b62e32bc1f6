"""torchvision: models of pictures and films, detection, transforms, boxes and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from part import Numbers, compare, fill, integers, measure, normal, part, step, tensors, uniform

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


# Models of classes, with settings that make them small. Each gets `torchvision.models`.
BUILT: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "densenet": (64, lambda m: m.DenseNet(8, (2, 2, 2, 2), 16, num_classes=5)),
    "resnext": (
        64,
        lambda m: m.ResNet(
            m.resnet.Bottleneck, [1, 1, 1, 1], num_classes=5, groups=4, width_per_group=2
        ),
    ),
    "vgg": (32, lambda m: m.vgg.make_layers([8, "M", 16, 16, "M", 32], batch_norm=True)),
    "convnext": (
        64,
        lambda m: m.ConvNeXt(
            [m.convnext.CNBlockConfig(*c) for c in ((16, 24, 1), (24, 32, 1), (32, None, 1))],
            num_classes=5,
        ),
    ),
    "swin": (64, lambda m: m.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=5)),
    "swin v2": (
        64,
        lambda m: m.SwinTransformer(
            [4, 4],
            16,
            [2, 2],
            [2, 4],
            [4, 4],
            num_classes=5,
            block=m.swin_transformer.SwinTransformerBlockV2,
            downsample_layer=m.swin_transformer.PatchMergingV2,
        ),
    ),
    "maxvit": (64, lambda m: m.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=5)),
    "googlenet": (64, lambda m: m.GoogLeNet(5, aux_logits=False, init_weights=False)),
}


def build(name: str, size: int, make: Callable[[Any], Any]) -> None:
    """A part that runs a model of a class."""
    single: dict[str, Any] = {"dtype": "float32", "tolerance": 1e-4} if name == "swin v2" else {}

    @part(name, quick=name == "swin", **single)
    def run() -> Numbers:
        import torchvision

        return step(make(torchvision.models), uniform(1, 3, size, size))


for name, (size, make) in BUILT.items():
    build(name, size, make)


def small_backbone(channels: int = 16, strides: int = 3) -> Any:
    """A few convolutions, with the number of channels that detection asks for."""
    import torch

    layers: list[Any] = []
    for number in range(strides):
        layers += [torch.nn.Conv2d(channels if number else 3, channels, 3, 2, 1), torch.nn.ReLU()]
    made = torch.nn.Sequential(*layers)
    made.out_channels = channels
    return made


def found_and_lost(made: Any) -> Numbers:
    """What a detector finds in two pictures, and its losses and their gradients."""
    pictures = [uniform(3, 40, 48), uniform(3, 36, 40, seed=1)]
    targets = [
        {"boxes": boxes(3, seed), "labels": integers(3, 3, low=1, seed=seed)} for seed in (2, 3)
    ]
    fill(made).eval()
    found = {f"found {n}": measure(t) for n, t in tensors(made(pictures)).items()}
    made.train()
    for layer in made.modules():
        if isinstance(layer, torch_dropout()):
            layer.eval()
    lost = compare(made, pictures, targets=targets, parameters=made.named_parameters())
    return found | {n: v for n, v in lost.items() if "targets" not in n}


def torch_dropout() -> Any:
    """The class of dropout layers."""
    import torch

    return torch.nn.Dropout


SIZES = {"min_size": 40, "max_size": 64}


@part("faster rcnn", quick=True)
def faster_rcnn() -> Numbers:
    from torchvision.models import detection

    head = detection.faster_rcnn.TwoMLPHead(16 * 9, 24)
    from torchvision.ops import MultiScaleRoIAlign

    return found_and_lost(
        detection.FasterRCNN(
            small_backbone(),
            rpn_anchor_generator=detection.anchor_utils.AnchorGenerator(((8, 16),), ((0.5, 1.0),)),
            box_roi_pool=MultiScaleRoIAlign(["0"], 3, 2),
            box_head=head,
            box_predictor=detection.faster_rcnn.FastRCNNPredictor(24, 3),
            rpn_post_nms_top_n_train=20,
            rpn_post_nms_top_n_test=20,
            **SIZES,
        )
    )


@part("retinanet")
def retinanet() -> Numbers:
    from torchvision.models import detection

    anchors = detection.anchor_utils.AnchorGenerator(((8, 16),), ((0.5, 1.0),))
    return found_and_lost(
        detection.RetinaNet(
            small_backbone(32), 3, anchor_generator=anchors, topk_candidates=50, **SIZES
        )
    )


@part("fcos")
def fcos() -> Numbers:
    from torchvision.models import detection

    anchors = detection.anchor_utils.AnchorGenerator(((8,),), ((1.0,),))
    return found_and_lost(
        detection.FCOS(small_backbone(32), 3, anchor_generator=anchors, topk_candidates=50, **SIZES)
    )


@part("ssd")
def ssd() -> Numbers:
    from torchvision.models import detection

    body = small_backbone()
    body.out_channels = [16]
    anchors = detection.anchor_utils.DefaultBoxGenerator([[2]], scales=[0.2, 0.5])
    return found_and_lost(detection.ssd.SSD(body, anchors, (48, 48), 3, topk_candidates=20))


def segment(name: str, head: Callable[[Any], Any]) -> None:
    """A part that segments a picture."""

    @part(name)
    def run() -> Numbers:
        from torchvision.models import segmentation
        from torchvision.models._utils import IntermediateLayerGetter

        body = IntermediateLayerGetter(small_backbone(), {"3": "low", "5": "out"})
        return step(head(segmentation)(body), uniform(2, 3, 32, 32))


segment("fcn", lambda s: lambda body: s.FCN(body, s.fcn.FCNHead(16, 5)))
segment("deeplab", lambda s: lambda body: s.DeepLabV3(body, s.deeplabv3.DeepLabHead(16, 5, (2, 3))))


@part("lraspp")
def lraspp() -> Numbers:
    from torchvision.models import segmentation
    from torchvision.models._utils import IntermediateLayerGetter

    body = IntermediateLayerGetter(small_backbone(), {"3": "low", "5": "high"})
    return step(segmentation.LRASPP(body, 16, 16, 5, 8), uniform(2, 3, 32, 32))


@part("films")
def films() -> Numbers:
    from torchvision.models import video

    r = video.resnet
    made = r.VideoResNet(
        r.BasicBlock, [r.Conv2Plus1D] * 4, [1, 1, 1, 1], r.R2Plus1dStem, num_classes=5
    )
    return step(made.layer1, normal(1, 64, 2, 6, 6))


@part("regions")
def regions() -> Numbers:
    import torch
    from torchvision import ops

    places = torch.cat([integers(2, 6, 1).double(), boxes(6, 0)], 1)
    kinds: dict[str, Any] = {
        "align": lambda x: ops.roi_align(x, places, (3, 2), 0.25, 2, True),
        "align all": lambda x: ops.roi_align(x, places, (3, 2), 0.25),
        "ps align": lambda x: ops.ps_roi_align(x, places, 2, 0.25),
        "pool": lambda x: ops.roi_pool(x, places, (3, 2), 0.25),
    }
    found: Numbers = {}
    for name, run in kinds.items():
        of = compare(run, normal(2, 8, 16, 16))
        found |= {f"{name} {n}": numbers for n, numbers in of.items()}
    scores = uniform(40, grad=False)
    kept = ops.batched_nms(boxes(40, 1), scores, integers(3, 40), 0.3)
    return found | {"nms": [float(k) for k in kept.tolist()]}


@part("deformable convolution", quick=True)
def deformable() -> Numbers:
    from torchvision import ops

    made = ops.DeformConv2d(4, 6, 3, padding=1, groups=2)
    moves, mask = normal(2, 36, 8, 8, seed=1), uniform(2, 18, 8, 8, seed=2)
    return step(made, normal(2, 4, 8, 8), moves, mask)


@part("transforms", dtype="float32", tolerance=1e-4)
def transforms() -> Numbers:
    from torchvision.transforms import v2

    picture = uniform(3, 20, 24, grad=False)
    f = v2.functional
    kinds: dict[str, Any] = {
        "resize": lambda x: f.resize(x, [11, 13], antialias=True),
        "crop": lambda x: f.resized_crop(x, 2, 3, 12, 14, [10, 10]),
        "affine": lambda x: f.affine(x, 20.0, [2, 3], 1.2, [5.0, 3.0]),
        "rotate": lambda x: f.rotate(x, 30.0, f.InterpolationMode.BILINEAR, expand=True),
        "perspective": lambda x: f.perspective(
            x, [[0, 0], [23, 0], [23, 19], [0, 19]], [[1, 2], [20, 1], [22, 18], [2, 17]]
        ),
        "elastic": lambda x: f.elastic(x, normal(1, 20, 24, 2, grad=False) / 20),
        "blur": lambda x: f.gaussian_blur(x, [5, 3]),
        "hue": lambda x: f.adjust_hue(x, 0.2),
        "contrast": lambda x: f.adjust_contrast(x, 1.4),
        "saturation": lambda x: f.adjust_saturation(x, 0.6),
        "sharpness": lambda x: f.adjust_sharpness(x, 1.7),
        "posterize": lambda x: f.posterize((x * 255).byte(), 3),
        "equalize": lambda x: f.equalize((x * 255).byte()),
        "solarize": lambda x: f.solarize(x, 0.4),
        "gray": lambda x: f.rgb_to_grayscale(x),
        "normalize": lambda x: f.normalize(x, [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]),
        "pad": lambda x: f.pad(x, [2, 3, 4, 1], padding_mode="reflect"),
        "five": lambda x: f.five_crop(x, [8, 8]),
    }
    found: Numbers = {}
    for name, run in kinds.items():
        for number, result in tensors([run(picture)]).items():
            found[f"{name} {number}"] = measure(result)
    return found


@part("transforms of boxes and masks")
def targets() -> Numbers:
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    picture = tv_tensors.Image(uniform(3, 40, 48, grad=False))
    places = tv_tensors.BoundingBoxes(boxes(4, 0), format="XYXY", canvas_size=(40, 48))
    mask = tv_tensors.Mask(integers(2, 2, 40, 48))
    run = v2.Compose(
        [
            v2.RandomHorizontalFlip(1.0),
            v2.Resize((30, 36)),
            v2.CenterCrop((24, 30)),
            v2.ClampBoundingBoxes(),
            v2.SanitizeBoundingBoxes(labels_getter=None),
            v2.Normalize([0.5] * 3, [0.5] * 3),
        ]
    )
    return {f"{n}": measure(t) for n, t in enumerate(run(picture, places, mask))}


@part("pyramid and layers")
def layers() -> Numbers:
    import torch
    from torchvision import ops

    pyramid = ops.FeaturePyramidNetwork([4, 8], 6)
    found = step(pyramid, {"a": normal(1, 4, 8, 8), "b": normal(1, 8, 4, 4, seed=1)})
    for name, made in {
        "squeeze": ops.SqueezeExcitation(8, 2),
        "mlp": ops.MLP(8, [6, 4]),
        "frozen": ops.FrozenBatchNorm2d(8),
        "conv": ops.Conv2dNormActivation(8, 6, activation_layer=torch.nn.Hardswish),
    }.items():
        given = normal(2, 8) if name == "mlp" else normal(1, 8, 4, 4)
        found |= {f"{name} {n}": numbers for n, numbers in step(made, given).items()}
    return found
