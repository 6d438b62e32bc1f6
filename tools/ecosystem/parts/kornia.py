"""kornia: image processing that can be differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from part import Numbers, compare, integers, normal, part, step, uniform


def picture(channels: int = 3, seed: int = 0) -> Any:
    """Two pictures of 16 by 16."""
    return uniform(2, channels, 16, 16, seed=seed)


# Functions of pictures, by the name of the part.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "hsv": lambda k, x: k.color.hsv_to_rgb(k.color.rgb_to_hsv(x)),
    "hls": lambda k, x: k.color.rgb_to_hls(x),
    "lab": lambda k, x: k.color.rgb_to_lab(x),
    "luv": lambda k, x: k.color.rgb_to_luv(x),
    "ycbcr": lambda k, x: k.color.ycbcr_to_rgb(k.color.rgb_to_ycbcr(x)),
    "grey": lambda k, x: k.color.rgb_to_grayscale(x),
    "sepia": lambda k, x: k.color.sepia(x),
    "gaussian blur": lambda k, x: k.filters.gaussian_blur2d(x, (5, 5), (1.0, 1.5)),
    "bilateral blur": lambda k, x: k.filters.bilateral_blur(x, (3, 3), 0.2, (1.0, 1.0)),
    "median blur": lambda k, x: k.filters.median_blur(x, (3, 3)),
    "box blur": lambda k, x: k.filters.box_blur(x, (3, 3)),
    "motion blur": lambda k, x: k.filters.motion_blur(x, 5, 35.0, 0.5),
    "sobel": lambda k, x: k.filters.sobel(x),
    "laplacian": lambda k, x: k.filters.laplacian(x, 3),
    "canny": lambda k, x: k.filters.canny(x)[0],
    "unsharp mask": lambda k, x: k.filters.unsharp_mask(x, (3, 3), (1.5, 1.5)),
    "spatial gradient": lambda k, x: k.filters.spatial_gradient(x, order=2),
    "rotate": lambda k, x: k.geometry.rotate(x, torch.tensor([30.0, -45.0])),
    "resize": lambda k, x: k.geometry.resize(x, (12, 20), antialias=True),
    "translate": lambda k, x: k.geometry.translate(x, torch.tensor([[1.5, -2.0], [0.0, 1.0]])),
    "shear": lambda k, x: k.geometry.shear(x, torch.tensor([[0.2, 0.0], [0.1, -0.1]])),
    "pyramid": lambda k, x: k.geometry.transform.build_pyramid(x, 3),
    "elastic": lambda k, x: k.geometry.transform.elastic_transform2d(
        x, normal(2, 2, 16, 16, grad=False)
    ),
    "adjust": lambda k, x: [
        k.enhance.adjust_brightness(x, 0.1),
        k.enhance.adjust_contrast(x, 0.7),
        k.enhance.adjust_hue(x, 0.3),
        k.enhance.adjust_saturation(x, 1.3),
        k.enhance.adjust_gamma(x, 1.7),
    ],
    "equalize": lambda k, x: k.enhance.equalize_clahe(x, grid_size=(2, 2)),
    "histogram": lambda k, x: k.enhance.histogram(
        x.reshape(2, -1), torch.linspace(0, 1, 8), torch.tensor(0.1)
    ),
    "dilation": lambda k, x: [
        k.morphology.dilation(x, torch.ones(3, 3)),
        k.morphology.erosion(x, torch.ones(3, 3)),
        k.morphology.gradient(x, torch.ones(3, 3)),
    ],
    "harris": lambda k, x: k.feature.harris_response(x),
    "spatial soft argmax": lambda k, x: k.geometry.subpix.spatial_soft_argmax2d(x),
    "non maxima": lambda k, x: k.geometry.subpix.nms2d(x, (3, 3)),
    "ssim": lambda k, x: k.metrics.ssim(x, picture(seed=1).detach(), 5),
    "psnr": lambda k, x: k.metrics.psnr(x, picture(seed=1).detach(), 1.0),
}
QUICK = ("hsv", "gaussian blur", "rotate", "ssim")
for name, function in FUNCTIONS.items():

    @part(name, quick=name in QUICK)
    def run(function: Callable[[Any, Any], Any] = function) -> Numbers:
        import kornia

        return compare(lambda x: function(kornia, x), picture())


@part("warp perspective", quick=True)
def warp_perspective() -> Numbers:
    import kornia

    return compare(
        lambda x, m: kornia.geometry.warp_perspective(x, torch.eye(3) + 0.03 * m, (16, 16)),
        picture(),
        normal(2, 3, 3, seed=2),
    )


@part("homography")
def homography() -> Numbers:
    import kornia

    find = kornia.geometry.find_homography_dlt
    return compare(lambda a, b: find(a, a + 0.1 * b), uniform(2, 8, 2), uniform(2, 8, 2, seed=1))


@part("rotations")
def rotations() -> Numbers:
    import kornia.geometry.conversions as c

    def run(axis: Any) -> list[Any]:
        matrix = c.axis_angle_to_rotation_matrix(axis)
        return [matrix, c.rotation_matrix_to_quaternion(matrix), c.axis_angle_to_quaternion(axis)]

    return compare(run, normal(4, 3))


@part("losses")
def losses() -> Numbers:
    import kornia.losses as losses

    labels = integers(3, 2, 16, 16)

    def run(x: Any, y: Any) -> list[Any]:
        return [
            losses.dice_loss(x, labels),
            losses.focal_loss(x, labels, 0.5, reduction="mean"),
            losses.tversky_loss(x, labels, 0.4, 0.6),
            losses.ssim_loss(x, y, 5),
            losses.total_variation(x),
            losses.lovasz_softmax_loss(x, labels),
            losses.charbonnier_loss(x, y),
            losses.welsch_loss(x, y),
        ]

    return compare(run, picture(), picture(seed=1))


@part("augmentation", quick=True)
def augmentation() -> Numbers:
    import kornia.augmentation as aug

    sure = {"p": 1.0}
    both = aug.AugmentationSequential(
        aug.RandomHorizontalFlip(**sure),
        aug.Normalize(torch.tensor(0.4), torch.tensor(0.3)),
        aug.CenterCrop(12),
        data_keys=["input"],
    )
    return step(both, picture())


@part("descriptors")
def descriptors() -> Numbers:
    import kornia.feature as feature

    return step(feature.SIFTDescriptor(16), uniform(3, 1, 16, 16))
