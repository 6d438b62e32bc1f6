"""dtypes and devices: conversion, promotion, limits, half precision through the whole library."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import undertow as ut

HALVES = [ut.float16, ut.bfloat16]


def test_names_and_aliases() -> None:
    assert [d.name for d in ut.dtypes.ALL] == [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
    assert ut.half is ut.float16
    assert ut.float is ut.float32
    assert ut.double is ut.float64
    assert ut.short is ut.int16
    assert ut.int is ut.int32
    assert ut.long is ut.int64
    assert ut.cfloat is ut.complex64
    assert ut.cdouble is ut.complex128
    assert repr(ut.bfloat16) == "undertow.bfloat16"


@pytest.mark.parametrize("dtype", ut.dtypes.ALL, ids=str)
def test_identity_survives(dtype) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert ut.dtypes.of_array(dtype.numpy) is dtype
    assert ut.dtypes.as_dtype(dtype.name) is dtype
    assert ut.zeros(2, dtype=dtype).dtype is dtype
    assert ut.zeros(2, dtype=dtype).element_size() == dtype.itemsize


@pytest.mark.parametrize(
    "given, expected",
    [
        (bool, ut.bool),
        (int, ut.int64),
        (float, ut.float64),
        (complex, ut.complex128),
        (np.float32, ut.float32),
        (np.dtype("int16"), ut.int16),
        ("uint8", ut.uint8),
        (">f4", ut.float32),
    ],
)
def test_as_dtype(given, expected) -> None:
    assert ut.dtypes.as_dtype(given) is expected
    assert ut.zeros(1, dtype=given).dtype is expected


@pytest.mark.parametrize(
    "given", ["float31", "uint24", np.longdouble, np.dtype("datetime64[s]"), 3, []]
)
def test_unknown_dtypes_are_named(given) -> None:
    with pytest.raises(ut.errors.DTypeError, match=r"\[zeros\].*dtype"):
        ut.zeros(1, dtype=given)


def test_default_dtype() -> None:
    assert ut.get_default_dtype() is ut.float32
    try:
        ut.set_default_dtype(ut.float64)
        assert ut.tensor(1.0).dtype is ut.float64
        assert ut.tensor(1j).dtype is ut.complex128
        assert (ut.tensor([1]) * 0.5).dtype is ut.float64
    finally:
        ut.set_default_dtype(ut.float32)
    with pytest.raises(ut.errors.DTypeError, match="int64"):
        ut.set_default_dtype(ut.int64)
    assert ut.get_default_dtype() is ut.float32


def test_limits() -> None:
    assert ut.finfo().dtype == "float32"
    assert isinstance(ut.finfo(ut.float16).max, float)
    assert ut.finfo(ut.bfloat16).eps == 2**-7
    assert ut.iinfo(ut.uint8).max == 255
    with pytest.raises(ut.errors.DTypeError, match="iinfo"):
        ut.finfo(ut.int64)
    with pytest.raises(ut.errors.DTypeError, match="finfo"):
        ut.iinfo(ut.float32)


def test_result_type() -> None:
    assert ut.result_type(ut.tensor([1]), 1.0) is ut.float32
    assert ut.result_type(ut.tensor([1.0]), np.float64(2)) is ut.float32
    assert ut.result_type(ut.tensor([1], dtype=ut.uint8), ut.tensor(1000)) is ut.uint8
    assert ut.result_type(True, 2, 3.0) is ut.float32


# Half precision -----------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_arithmetic_and_gradients(dtype) -> None:
    a = ut.tensor([[1.5, -2.0], [0.25, 3.0]], dtype=dtype, requires_grad=True)
    b = ut.tensor([[2.0, 1.0], [-1.0, 0.5]], dtype=dtype, requires_grad=True)
    out = (((a * b + a) @ b - a / b) * 0.125).exp().sum()
    assert out.dtype is dtype
    grads = ut.autograd.grad(out, (a, b), create_graph=True)
    second = ut.autograd.grad((grads[0] * 0.0625).sum() + (grads[1] * 0.0625).sum(), (a, b))
    wide = [t.detach().double().requires_grad_() for t in (a, b)]
    x, y = wide
    expected = (((x * y + x) @ y - x / y) * 0.125).exp().sum()
    first = ut.autograd.grad(expected, wide, create_graph=True)
    exact = ut.autograd.grad((first[0] * 0.0625).sum() + (first[1] * 0.0625).sum(), wide)
    assert out.item() == pytest.approx(expected.item(), rel=0.05)
    for found, wanted in zip((*grads, *second), (*first, *exact), strict=True):
        assert found.dtype is dtype
        scale = np.abs(wanted.detach().numpy()).max()
        np.testing.assert_allclose(
            found.detach().float().numpy(), wanted.detach().numpy(), rtol=0.1, atol=0.03 * scale
        )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_scalars_are_weak(dtype) -> None:
    x = ut.ones(3, dtype=dtype)
    for y in (x * 2.5, 2.5 * x, x + 1, x / 3, x**2, x - 0.5, 1 - x, -x, x.sum(), x.mean()):
        assert y.dtype is dtype
    assert (x == 1).dtype is ut.bool
    assert (x * ut.ones(3)).dtype is ut.float32
    assert (x * ut.ones(3, dtype=ut.int64)).dtype is dtype


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_sums_accumulate_in_single(dtype) -> None:
    assert ut.full((4096,), 1.0, dtype=dtype).sum().item() == 4096


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_in_place_and_views(dtype) -> None:
    x = ut.zeros(2, 3, dtype=dtype)
    x[0] = 1.5
    x.t()[1] += 2
    x.mul_(2)
    assert x.tolist() == [[3.0, 7.0, 3.0], [0.0, 4.0, 0.0]]
    w = ut.ones(2, dtype=dtype, requires_grad=True)
    (w * 3).sum().backward()
    assert w.grad.dtype is dtype
    assert w.grad.tolist() == [3.0, 3.0]


def test_mixed_products_give_each_its_own_dtype() -> None:
    a = ut.ones(2, dtype=ut.bfloat16, requires_grad=True)
    b = ut.ones(2, dtype=ut.float32, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.dtype is ut.bfloat16
    assert b.grad.dtype is ut.float32


# Devices ------------------------------------------------------------------------------------
def test_devices() -> None:
    assert ut.device("cpu") == ut.device("cpu")
    assert ut.device("cuda", 1) == ut.device("cuda:1")
    assert str(ut.device("cuda:1")) == "cuda:1"
    assert repr(ut.device("cuda:1")) == "device(type='cuda', index=1)"
    assert len({ut.device("cpu"), ut.device(ut.device("cpu"))}) == 1
    assert pickle.loads(pickle.dumps(ut.device("cuda:1"))) == ut.device("cuda:1")
    for bad in (3, None, "cpu:x", "cuda:-1"):
        with pytest.raises(ut.errors.DeviceError, match=r"\[device\]"):
            ut.device(bad)
    with pytest.raises(ut.errors.DeviceError, match=r"toaster.*cpu"):
        ut.zeros(1, device="toaster")


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


def test_clamp_promotes_all_three_together() -> None:
    """A zero-dimensional bound does not widen what a bound with dimensions decides."""
    x, low, high = ut.tensor([True, False]), ut.tensor(0.5, dtype=ut.float64), ut.tensor([0.6, 0.7])
    assert ut.clamp(x, low, high).dtype is ut.float32
    assert ut.clamp(x, high, low).dtype is ut.float32
    assert ut.clamp(x, low, high.double()).dtype is ut.float64


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_halves_beside_a_wider_tensor_that_stands_for_a_number(dtype: ut.DType) -> None:
    """It is taken as it is: a scale of 65536 is beyond float16, the product is not."""
    x = ut.tensor([0.5, 2**-12], dtype=dtype)
    scale = ut.tensor(65536.0)
    assert (x * scale)[1] == (scale * x)[1] == 16
    assert (x / ut.tensor(2.0**-17))[1] == 32
    assert (x * scale).dtype is dtype
    assert x.clone().mul_(scale)[1] == 16
    grown = scale.clone().requires_grad_()
    (x[1:] * grown).sum().backward()
    assert grown.grad.dtype is ut.float32


def test_randint_is_real() -> None:
    with pytest.raises(TypeError, match="complex64"):
        ut.randint(6, (2,), dtype=ut.complex64)
