"""The operators that torchvision has in C++: against plain loops, and their derivatives.

The loops say what torchvision's kernels compute; the parts of tools/ecosystem were recorded with
those kernels themselves.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import gradcheck, gradgradcheck
from undertow.errors import ArgumentError


@pytest.fixture(scope="module")
def ops() -> Any:
    """`ops.torchvision`, as torchvision asks for it."""
    ut.ops.load_library("site-packages/torchvision/_C_stable.so")
    return ut.ops.torchvision


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.RandomState(seed).standard_normal(shape)


def boxes(count: int) -> Any:
    """Boxes of pictures 0 and 1 of 8 x 8 pixels at twice that scale, some beyond the border."""
    random = np.random.RandomState(3)
    corner = random.uniform(-3, 12, (count, 2))
    return np.concatenate(
        [random.randint(0, 2, (count, 1)), corner, corner + random.uniform(1, 9, (count, 2))], 1
    )


def between(picture: Any, y: float, x: float, outside: float) -> Any:
    """A picture (C, H, W) at a point between pixels."""
    _, height, width = picture.shape
    if y < -outside or y > height - 1 + outside or x < -outside or x > width - 1 + outside:
        return np.zeros(picture.shape[0])
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    down, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = picture[:, top, left] * (left + 1 - x) + picture[:, top, right] * (x - left)
    lower = picture[:, down, left] * (left + 1 - x) + picture[:, down, right] * (x - left)
    return upper * (top + 1 - y) + lower * (y - top)


def aligned_by_loops(
    input: Any, rois: Any, scale: float, bins: tuple[int, int], ratio: int, aligned: bool
) -> Any:
    found = np.zeros((len(rois), input.shape[1], *bins))
    for k, (picture, *ends) in enumerate(rois):
        left, top, right, bottom = (e * scale - 0.5 * aligned for e in ends)
        tall, wide = bottom - top, right - left
        if not aligned:
            tall, wide = max(tall, 1.0), max(wide, 1.0)
        points = [ratio or math.ceil(s / b) for s, b in zip((tall, wide), bins, strict=True)]
        for p, q in product(*map(range, bins)):
            for i, j in product(*map(range, points)):
                y = top + (p + (i + 0.5) / points[0]) * tall / bins[0]
                x = left + (q + (j + 0.5) / points[1]) * wide / bins[1]
                found[k, :, p, q] += between(input[int(picture)], y, x, 1.0)
            found[k, :, p, q] /= max(points[0] * points[1], 1)
    return found


def nms_by_loops(given: Any, scores: Any, threshold: float) -> list[int]:
    left = list(np.argsort(-scores, kind="stable"))
    kept = []
    while left:
        first, *rest = left
        kept.append(int(first))
        left = []
        for other in rest:
            a, b = given[first], given[other]
            wide, tall = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
            area = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - wide * tall
            if not wide * tall / area > threshold:
                left.append(other)
    return kept


def test_nms_keeps_the_best_of_those_that_overlap(ops: Any) -> None:
    given, scores = boxes(30)[:, 1:], np.random.RandomState(1).uniform(size=30).round(1)
    for threshold in (0.0, 0.2, 0.6):
        found = ops.nms(ut.tensor(given), ut.tensor(scores), threshold)
        assert found.tolist() == nms_by_loops(given, scores, threshold)
    assert ops.nms(ut.zeros(0, 4), ut.zeros(0), 0.5).shape == (0,)
    with pytest.raises(ArgumentError, match="boxes of shape"):
        ops.nms(ut.zeros(3, 5), ut.zeros(3), 0.5)


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(ops: Any, ratio: int, aligned: bool) -> None:
    input, rois = drawn(2, 3, 8, 8), boxes(7)
    found = ops.roi_align(ut.tensor(input), ut.tensor(rois), 0.5, 3, 2, ratio, aligned)
    expected = aligned_by_loops(input, rois, 0.5, (3, 2), ratio, aligned)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_roi_align_of_no_boxes(ops: Any) -> None:
    assert ops.roi_align(ut.ones(1, 2, 4, 4), ut.ones(0, 5), 1.0, 3, 2, 0, False).shape == (
        0,
        2,
        3,
        2,
    )


def test_roi_align_has_gradients_of_any_order_also_of_the_boxes(ops: Any) -> None:
    input = ut.tensor(drawn(2, 2, 5, 5), requires_grad=True)
    ends = ut.tensor([[1.1, 2.3, 6.6, 8.2], [0.3, 0.6, 3.1, 4.9]], dtype=ut.float64)
    ends.requires_grad_()
    pictures = ut.tensor([[0.0], [1.0]], dtype=ut.float64)

    def run(input: ut.Tensor, ends: ut.Tensor) -> Any:
        return ops.roi_align(input, ut.cat([pictures, ends], 1), 0.5, 2, 2, 2, True)

    assert gradcheck(run, (input, ends))
    assert gradgradcheck(run, (input, ends))


def test_ps_roi_align_has_a_channel_for_each_bin(ops: Any) -> None:
    input, rois = drawn(2, 8, 8, 8), boxes(5)
    found, mapping = ops.ps_roi_align(ut.tensor(input), ut.tensor(rois), 0.5, 2, 2, 2)
    every = aligned_by_loops(input, rois, 0.5, (2, 2), 2, True)
    for k, c, p, q in product(range(5), range(2), range(2), range(2)):
        channel = (c * 2 + p) * 2 + q
        assert mapping[k, c, p, q].item() == channel
        assert abs(found[k, c, p, q].item() - every[k, channel, p, q]) < 1e-12
    with pytest.raises(ArgumentError, match="multiple of 4"):
        ops.ps_roi_align(ut.ones(1, 3, 4, 4), ut.ones(1, 5), 1.0, 2, 2, 2)


def pixels(start: float, end: float, bins: int, b: int, more: int, most: int) -> slice:
    """The pixels of a bin of a box that is rounded."""
    first = math.floor(start * 0.5 + 0.5)
    step = max(math.floor(end * 0.5 + 0.5) - first + more, 1) / bins
    low, high = math.floor(b * step) + first, math.ceil((b + 1) * step) + first
    return slice(min(max(low, 0), most), min(max(high, 0), most))


def test_roi_pool_takes_the_largest_pixel(ops: Any) -> None:
    input, rois = drawn(2, 3, 8, 8), boxes(7)
    x = ut.tensor(input, requires_grad=True)
    found, places = ops.roi_pool(x, ut.tensor(rois), 0.5, 3, 2)
    for k, p, q in product(range(7), range(3), range(2)):
        picture, left, top, right, bottom = rois[k]
        rows, columns = pixels(top, bottom, 3, p, 1, 8), pixels(left, right, 2, q, 1, 8)
        seen = input[int(picture), :, rows, columns].reshape(3, -1)
        for c in range(3):
            place = places[k, c, p, q].item()
            assert found[k, c, p, q].item() == (seen[c].max() if seen.size else 0)
            assert (
                place == -1
                if not seen.size
                else input[int(picture), c].flat[place] == seen[c].max()
            )
    (slope,) = ut.autograd.grad(found.sum(), x)
    assert slope.sum().item() == (places >= 0).sum().item()


def test_ps_roi_pool_has_the_gradient_of_its_means(ops: Any) -> None:
    input, rois = drawn(2, 8, 8, 8), boxes(5)
    x = ut.tensor(input, requires_grad=True)
    found, _ = ops.ps_roi_pool(x, ut.tensor(rois), 0.5, 2, 2)
    for k, c, p, q in product(range(5), range(2), range(2), range(2)):
        picture, left, top, right, bottom = rois[k]
        rows, columns = pixels(top, bottom, 2, p, 0, 7), pixels(left, right, 2, q, 0, 7)
        seen = input[int(picture), (c * 2 + p) * 2 + q, rows, columns]
        assert abs(found[k, c, p, q].item() - (seen.mean() if seen.size else 0)) < 1e-12
    assert gradcheck(lambda x: ops.ps_roi_pool(x, ut.tensor(rois), 0.5, 2, 2)[0], (x,))


def test_deform_conv2d(ops: Any) -> None:
    input, weight, bias = drawn(2, 4, 6, 7), drawn(4, 2, 3, 2, seed=1), drawn(4, seed=2)
    offset, mask = drawn(2, 2 * 2 * 6, 3, 7, seed=4), drawn(2, 2 * 6, 3, 7, seed=5)
    window = (2, 1, 1, 1, 1, 2, 2, 2, True)  # strides, paddings, dilations, groups of each kind
    found = ops.deform_conv2d(*map(ut.tensor, (input, weight, offset, mask, bias)), *window)
    padded = np.pad(input, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moved, shares = offset.reshape(2, 2, 3, 2, 2, 3, 7), mask.reshape(2, 2, 3, 2, 3, 7)
    for n, o, p, q in product(range(2), range(4), range(3), range(7)):
        total = bias[o]
        for c, i, j in product(range(2), range(3), range(2)):
            channel = o // 2 * 2 + c
            group = channel // 2
            dy, dx = moved[n, group, i, j, :, p, q]
            y, x = 2 * p + i + dy, q + 2 * j + dx  # in the padded picture, whose border is zero
            seen = between(padded[n, channel : channel + 1], y, x, 0.0)[0]
            total += weight[o, c, i, j] * seen * shares[n, group, i, j, p, q]
        assert abs(found[n, o, p, q].item() - total) < 1e-12


def test_deform_conv2d_has_gradients_of_any_order(ops: Any) -> None:
    shapes = [(1, 2, 4, 4), (2, 2, 2, 2), (1, 8, 3, 3), (1, 4, 3, 3), (2,)]
    given = [ut.tensor(drawn(*s, seed=i), requires_grad=True) for i, s in enumerate(shapes)]

    def run(*tensors: ut.Tensor) -> Any:
        return ops.deform_conv2d(*tensors, 1, 1, 0, 0, 1, 1, 1, 1, True)

    assert gradcheck(run, given)
    assert gradgradcheck(run, given)


def test_other_compiled_libraries_are_refused() -> None:
    for path in ("site-packages/torchvision/image_stable.so", "somewhere/_C.so"):
        with pytest.raises(OSError, match="cannot be loaded here"):
            ut.ops.load_library(path)
