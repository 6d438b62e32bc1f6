"""`ut.testing.make_tensor`: every dtype, its bounds and its errors."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut
from undertow.testing import make_tensor

DTYPES = [ut.bool, ut.uint8, ut.int64, ut.float32, ut.float64, ut.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_shape_and_default_bounds(dtype: Any) -> None:
    x = make_tensor((20, 30), dtype=dtype, device="cpu")
    assert x.dtype is dtype
    assert x.shape == (20, 30)
    parts = ut.view_as_real(x) if dtype.is_complex else x.to(ut.float64)
    low, high = (0, 1) if dtype is ut.bool else (0 if dtype is ut.uint8 else -9, 9)
    assert low <= float(parts.min()) < float(parts.max()) <= high


def test_whole_range_of_a_dtype_is_no_overflow() -> None:
    largest = ut.finfo(ut.float32).max
    x = make_tensor(100, dtype=ut.float32, device="cpu", low=-float("inf"), high=largest)
    assert bool(x.isfinite().all())
    assert float(x.abs().max()) > largest / 2


def test_noncontiguous_without_zeros_and_with_gradients() -> None:
    x = make_tensor(3, 40, dtype=ut.int64, device="cpu", noncontiguous=True, exclude_zero=True)
    assert not x.is_contiguous()
    assert bool((x != 0).all())
    assert make_tensor((), dtype=ut.float64, device="cpu", requires_grad=True).requires_grad


@pytest.mark.parametrize(
    "arguments",
    [
        {"dtype": ut.int64, "requires_grad": True},
        {"dtype": ut.int64, "low": 3, "high": 3},
        {"dtype": ut.float32, "low": float("nan")},
        {"dtype": ut.uint8, "low": 256, "high": 300},
        {"dtype": ut.float32, "noncontiguous": True, "memory_format": ut.contiguous_format},
    ],
)
def test_errors(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"\[make_tensor\]"):
        make_tensor(2, device="cpu", **arguments)


@pytest.mark.parametrize("dtype", [ut.float8_e4m3fn, ut.float8_e5m2, ut.float8_e4m3fnuz])
def test_float8(dtype: ut.dtype) -> None:
    x = make_tensor(50, dtype=dtype, device="cpu", low=-2, high=2)
    assert x.dtype is dtype
    assert float(x.float().abs().max()) <= 2
    assert float(x.float().abs().max()) > 1
