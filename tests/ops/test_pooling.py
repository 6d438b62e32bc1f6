"""Pooling: ties, NaN, windows without elements, half precision, and the sums' own transpose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
import undertow.nn.functional as F
from undertow.autograd import grad, gradcheck, gradgradcheck
from undertow.kernel.windows import Geometry
from undertow.ops.nn.pooling import window_sums


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def leaf(array: Any) -> ut.Tensor:
    return ut.tensor(np.asarray(array, np.float64), requires_grad=True)


# Maximum -------------------------------------------------------------------------------------
def test_the_first_of_equal_elements_wins() -> None:
    """In rows and columns, and it alone receives the gradient."""
    x = ut.ones(1, 3, 3, requires_grad=True)
    y, places = F.max_pool2d(x, 2, 1, return_indices=True)
    assert places.tolist() == [[[0, 1], [3, 4]]]
    y.sum().backward()
    assert x.grad.tolist() == [[[1, 1, 0], [1, 1, 0], [0, 0, 0]]]
    assert F.adaptive_max_pool2d(ut.ones(1, 3, 3), 2, return_indices=True)[1].tolist() == [
        [[0, 1], [3, 4]]
    ]


def test_overlapping_windows_add_up() -> None:
    """An element that wins twice receives both cotangents."""
    x = ut.tensor([[0.0, 9.0, 1.0]], requires_grad=True)
    F.max_pool1d(x, 2, 1).backward(ut.tensor([[2.0, 3.0]]))
    assert x.grad.tolist() == [[0.0, 5.0, 0.0]]


@pytest.mark.parametrize(
    "pool", [lambda x: F.max_pool1d(x, 2, 1), lambda x: F.adaptive_max_pool1d(x, 2)]
)
def test_nan_wins(pool: Any) -> None:
    """As in torch, wherever it stands in the window."""
    for row in ([math.nan, 1.0, 2.0], [1.0, math.nan, 2.0]):
        found = pool(ut.tensor([row], dtype=ut.float64)).numpy()
        assert np.isnan(found[0, 0])
    assert found.shape == (1, 2)


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64, ut.float16, ut.bfloat16])
@pytest.mark.parametrize("kernel", [4, 3])
def test_the_last_nan_wins(kernel: int, dtype: Any) -> None:
    """As in torch, also of a window that is everything."""
    for length in (1, 500):
        x = ut.tensor([[math.nan, 1.0, math.nan, 2.0]] * length, dtype=dtype)
        values, places = F.max_pool1d(x, kernel, return_indices=True)
        assert np.isnan(values.float().numpy()).all()
        assert (places.numpy() == 2).all()


def test_padding_never_wins() -> None:
    """Not over -inf, nor over the smallest integers."""
    lowest = ut.full((1, 1, 3), -math.inf)
    values, places = F.max_pool1d(lowest, 3, 2, 1, return_indices=True)
    assert values.tolist() == [[[-math.inf, -math.inf]]]
    assert places.tolist() == [[[0, 1]]]
    integers = ut.full((1, 2, 2), -128, dtype=ut.int8)
    assert F.max_pool2d(integers, 2, 2, 1).tolist() == [[[-128, -128], [-128, -128]]]


def test_a_window_without_elements() -> None:
    """Where dilation steps over everything, the maximum is that of nothing."""
    values, places = F.max_pool1d(ut.ones(1, 1, 2), 2, 1, 1, 3, return_indices=True)
    assert values.tolist() == [[[-math.inf]]]
    assert 0 <= places.item() < 2


def test_indices_go_back_through_unpool() -> None:
    """Pooling what was unpooled gives it again."""
    x = ut.tensor(normal(2, 3, 7, 8))
    values, places = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(values, places, 2, output_size=x.shape)
    assert back.shape == x.shape
    assert ut.equal(back[back != 0].sort()[0], values.flatten().sort()[0])
    flat = back.flatten(2).gather(2, places.flatten(2)).reshape(values.shape)
    assert ut.equal(flat, values)


def test_integers_keep_their_dtype() -> None:
    x = ut.tensor([[1, 7, 3, 2]], dtype=ut.int16)
    assert F.max_pool1d(x, 2).dtype is ut.int16


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_max_in_half_precision(dtype: Any) -> None:
    """Comparing needs no rounding."""
    x = ut.tensor(normal(2, 2, 6, 6)).to(dtype)
    values, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    wide, wide_places = F.max_pool2d(x.float(), 3, 2, 1, return_indices=True)
    assert ut.equal(values.float(), wide)
    assert ut.equal(places, wide_places)


# Mean ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.avg_pool2d(x, 4, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
        lambda x: F.adaptive_avg_pool2d(x, 1),
        lambda x: F.adaptive_avg_pool2d(x, 4),
    ],
)
def test_mean_in_half_precision(dtype: Any, pool: Any) -> None:
    """Summed in single precision, where sums do not overflow, and rounded once."""
    x = (ut.tensor(normal(1, 2, 8, 8)) + 30000).to(dtype)
    found = pool(x)
    assert found.dtype is dtype
    assert ut.equal(found, pool(x.float()).to(dtype))
    assert found.isfinite().all()


def geometries() -> Any:
    def of(rank: int) -> Any:
        def each(values: Any) -> Any:
            return st.tuples(*[values] * rank)

        small = st.integers(-1, 3)
        return st.builds(
            Geometry,
            each(st.integers(1, 6)),
            each(st.integers(1, 3)),
            each(st.integers(1, 3)),
            each(st.tuples(small, small)),
            each(st.integers(1, 3)),
            each(st.integers(1, 3)),
        )

    return st.integers(1, 3).flatmap(of)


@settings(max_examples=100, deadline=None)
@given(geometries())
def test_sums_transpose_into_themselves(geometry: Geometry) -> None:
    """<sums(x), y> = <x, sums'(y)>, with the geometry of the input's gradient."""
    x, y = normal(2, *geometry.size), normal(2, *geometry.output, seed=1)
    found = window_sums(ut.tensor(x), geometry)
    assert found.shape == y.shape
    back = window_sums(ut.tensor(y), geometry.of_input)
    assert back.shape == x.shape
    np.testing.assert_allclose((found.numpy() * y).sum(), (back.numpy() * x).sum(), atol=1e-10)


def test_infinities_stay_in_their_window() -> None:
    """The windows of an uneven size share elements, and nothing else."""
    x = ut.tensor([[math.inf, 1.0, 2.0, 3.0, 4.0]])
    assert F.adaptive_avg_pool1d(x, 2).tolist() == [[math.inf, 3.0]]
    assert F.adaptive_avg_pool1d(x, 3).tolist() == [[math.inf, 2.0, 3.5]]
    assert F.avg_pool1d(x, 2, 2).tolist() == [[math.inf, 2.5]]


def test_pooling_to_nothing() -> None:
    """A size of 0 gives an empty result that still has a gradient."""
    x = ut.ones(1, 2, 5, requires_grad=True)
    y = F.adaptive_avg_pool1d(x, 0)
    assert y.shape == (1, 2, 0)
    assert grad(y.sum(), x)[0].tolist() == [[[0.0] * 5] * 2]
    assert F.adaptive_max_pool2d(ut.ones(2, 3, 4), (0, 2)).shape == (2, 0, 2)


def test_pooling_to_the_same_size_copies() -> None:
    x = ut.ones(1, 2, 5)
    y = F.adaptive_avg_pool1d(x, 5)
    y.zero_()
    assert x.sum() == 10


def test_lp_pool_of_zeros_has_no_slope() -> None:
    """The root's infinite slope does not become NaN."""
    x = ut.zeros(1, 1, 4, requires_grad=True)
    F.lp_pool1d(x, 2, 2).sum().backward()
    assert x.grad.tolist() == [[[0.0] * 4]]


@pytest.mark.parametrize(("size", "windows"), [(1000, 7), (515, 8), (640, 3), (129, 2)])
def test_few_windows_of_long_lines(size, windows):
    """A gradient is a window's, or that of two where these overlap."""
    x = ut.zeros(40, 5, size, requires_grad=True)
    seed = ut.randn(40, 5, windows)
    (found,) = ut.autograd.grad(F.adaptive_avg_pool1d(x, windows), x, seed)
    right = np.zeros(x.shape)
    for i in range(windows):
        first, end = i * size // windows, -(-(i + 1) * size // windows)
        right[..., first:end] += seed.numpy()[..., i : i + 1] / (end - first)
    assert np.abs(found.numpy() - right).max() < 1e-7


# Orders --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
        lambda x: F.lp_pool2d(x, 3, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
        lambda x: F.adaptive_max_pool2d(x, (3, 2)),
        lambda x: F.unfold(x, 2, 1, 1, 2),
        lambda x: F.fold(x.reshape(1, 4, 5), (2, 6), 2),
        lambda x: F.pad(x, (2, 1), "reflect"),
    ],
)
def test_third_order(pool: Any) -> None:
    """What a cube of the result leaves to differentiate."""
    x = leaf(normal(1, 4, 5) + 3)

    def slopes(x: Any) -> Any:
        return grad((pool(x) ** 3).sum(), x, create_graph=True)[0]

    assert gradcheck(slopes, [x], fast_mode=True)
    assert gradgradcheck(slopes, [x], fast_mode=True, rtol=1e-2, atol=1e-4)


def test_unfold_is_convolution() -> None:
    """A matrix of kernels times the columns."""
    x, w = ut.tensor(normal(2, 3, 6, 5)), ut.tensor(normal(4, 3, 2, 3, seed=1))
    columns = F.unfold(x, (2, 3), padding=1, stride=2)
    direct = ut.conv2d(x, w, padding=1, stride=2)
    found = (w.reshape(4, 18) @ columns).reshape(direct.shape)
    np.testing.assert_allclose(found.numpy(), direct.numpy(), atol=1e-12)


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_fold_in_half_precision(dtype: Any) -> None:
    x = ut.tensor(normal(1, 9, 16)).to(dtype)
    found = F.fold(x, 4, 3, padding=1)
    assert ut.equal(found, F.fold(x.float(), 4, 3, padding=1).to(dtype))


@pytest.mark.parametrize(("rank", "size"), [(2, (0, 0)), (2, (0, 2)), (3, (2, 0, 1))])
def test_fractional_pooling_into_nothing(rank: int, size: tuple[int, ...]) -> None:
    """No windows make an empty result and a gradient of zero."""
    x = ut.rand(2, 3, *(6,) * rank, requires_grad=True)
    pool = getattr(ut.nn.functional, f"fractional_max_pool{rank}d")
    y, at = pool(x, 2, output_size=size, return_indices=True)
    assert y.shape == at.shape == (2, 3, *size)
    y.sum().backward()
    assert x.grad is not None
    assert not x.grad.any()
    assert pool(x, 2, output_ratio=0.1).shape == (2, 3, *(0,) * rank)
    with pytest.raises(ValueError, match="at least 0"):
        pool(x, 2, output_size=-1)
