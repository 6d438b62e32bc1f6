"""Interpolation keeps what it must keep; shuffles undo each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.autograd import grad

MODES = [
    ("nearest", 1),
    ("nearest-exact", 3),
    ("linear", 1),
    ("bilinear", 2),
    ("bicubic", 2),
    ("trilinear", 3),
    ("area", 2),
    ("lanczos", 2),
]


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("mode, rank", MODES)
@pytest.mark.parametrize("size", [1, 3, 7, 11])
def test_a_constant_stays(mode: str, rank: int, size: int) -> None:
    """The weights of every output element add up to 1."""
    smooth = mode == "lanczos"
    x = ut.full((1, 1, *[6] * rank), 3.0, dtype=ut.float64)
    found = F.interpolate(x, size, mode=mode, antialias=smooth)
    np.testing.assert_allclose(found.numpy(), np.full((1, 1, *[size] * rank), 3.0))


@pytest.mark.parametrize("mode, rank", MODES[2:6])
def test_a_ramp_stays(mode: str, rank: int) -> None:
    """Corner to corner, as linear as before."""
    ramp = np.linspace(0, 1, 5)
    x = ut.tensor(np.broadcast_to(ramp, (1, 1, *[5] * rank)).copy())
    found = F.interpolate(x, 9, mode=mode, align_corners=True)
    inner = slice(2, -2) if mode == "bicubic" else slice(None)  # which bends near the ends
    for row in found.numpy().reshape(-1, 9):
        np.testing.assert_allclose(row[inner], np.linspace(0, 1, 9)[inner], atol=1e-12)


def test_nearest_is_exact() -> None:
    """Whole numbers decide; torch rounds in single precision and misses some elements by one."""
    for n in range(1, 40):
        x = ut.arange(n, dtype=ut.float32).reshape(1, 1, n)
        for m in range(1, 60):
            assert F.interpolate(x, m).tolist()[0][0] == [i * n // m for i in range(m)]


def test_nearest_takes_any_dtype() -> None:
    x = ut.tensor([[[True, False]]])
    assert F.interpolate(x, 4).tolist() == [[[True, True, False, False]]]
    assert F.interpolate(ut.tensor([[[1, 2]]]), scale_factor=2).dtype is ut.int64


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_half_precision_is_computed_in_single(dtype: Any) -> None:
    x = ut.tensor(normal(1, 2, 5, 6)).to(dtype)
    found = F.interpolate(x, (7, 9), mode="bicubic")
    assert ut.equal(found, F.interpolate(x.float(), (7, 9), mode="bicubic").to(dtype))


def test_the_same_size_copies() -> None:
    x = ut.ones(1, 1, 3)
    F.interpolate(x, 3).zero_()
    F.interpolate(x, scale_factor=1.2, mode="linear").zero_()
    assert x.sum() == 3


def test_antialias_sees_every_pixel() -> None:
    """Each input pixel counts when an image is made smaller; without antialias most do not."""
    x = ut.tensor(normal(1, 1, 12, 12), requires_grad=True)
    for smooth in (False, True):
        (g,) = grad(F.interpolate(x, 3, mode="bilinear", antialias=smooth).sum(), x)
        assert bool((g != 0).all()) is smooth


def test_antialias_of_narrow_images() -> None:
    """Rows do not depend on the width being 1."""
    x = ut.arange(1.0, 6.0).reshape(1, 1, 5, 1)
    narrow = F.interpolate(x, (3, 1), mode="bilinear", antialias=True)
    wide = F.interpolate(x.expand(1, 1, 5, 2), (3, 2), mode="bilinear", antialias=True)
    assert ut.equal(narrow[..., 0], wide[..., 0])


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_rounded_after_each_dimension(mode: str) -> None:
    """The widths first and a half up, within 0 to 255: one step from the image in floats."""
    x = ut.tensor(np.random.default_rng(0).integers(90, 166, (2, 3, 9, 7)), dtype=ut.uint8)
    for smooth in (False, True):
        found = F.interpolate(x, (5, 11), mode=mode, antialias=smooth)
        floats = F.interpolate(x.float(), (5, 11), mode=mode, antialias=smooth)
        assert found.dtype is ut.uint8
        assert (found.float() - floats).abs().max() <= 1.0
    edge = ut.tensor([[[[0, 255]]]], dtype=ut.uint8)
    assert F.interpolate(edge, (1, 5), mode="bicubic").flatten().tolist() == [0, 21, 128, 234, 255]
    small = ut.tensor([[[[0, 1], [1, 2]]]], dtype=ut.uint8)
    twice = F.interpolate(small, (3, 3), mode="bilinear", align_corners=True)
    assert twice.tolist() == [[[[0, 1, 1], [1, 2, 2], [1, 2, 2]]]]
    with pytest.raises(ut.errors.DTypeError, match=r"\[interpolate\].*images of uint8"):
        F.interpolate(x[0], 5, mode="linear")


# Shuffles ------------------------------------------------------------------------------------
def test_shuffles_undo_each_other() -> None:
    x = ut.tensor(normal(2, 3, 12, 4, 5))
    assert ut.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)
    y = ut.tensor(normal(2, 12, 5))
    assert ut.equal(F.channel_shuffle(F.channel_shuffle(y, 3), 4), y)


def test_shuffles_of_nothing_have_the_right_shape() -> None:
    """torch returns an empty batch as it is."""
    assert F.pixel_shuffle(ut.zeros(0, 8, 2, 3), 2).shape == (0, 2, 4, 6)
    assert F.pixel_unshuffle(ut.zeros(0, 2, 4, 6), 2).shape == (0, 8, 2, 3)


def test_nearest_pixels_have_a_gradient_of_zeros_by_the_grid() -> None:
    image = ut.randn(1, 1, 3, 3)
    grid = ut.tensor([[[[0.1, 0.2], [-5.0, float("inf")]]]], requires_grad=True)
    out = F.grid_sample(image, grid, mode="nearest", align_corners=False)
    out.sum().backward()
    assert grid.grad.abs().sum() == 0
