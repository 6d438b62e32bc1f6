"""Wider unsigned integers, floats of eight bits, and the dtypes that exist in name only."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import undertow as ut
from undertow.dtypes import FLOAT8, NAMED, RARE, UNSIGNED
from undertow.errors import ArgumentError, DTypeError, UnsupportedError


@pytest.mark.parametrize("dtype", RARE, ids=str)
def test_they_are_made_moved_and_seen_otherwise(dtype) -> None:
    x = ut.tensor([[1.0, 2.0], [0.5, 4.0]]).to(dtype)
    assert ut.dtypes.of_array(dtype.numpy) is dtype is ut.dtypes.as_dtype(dtype.name)
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert x.t().contiguous().tolist() == [list(row) for row in zip(*x.tolist(), strict=True)]
    assert ut.cat([x, x]).dtype is ut.stack([x, x]).dtype is dtype
    assert x[ut.tensor([1])].tolist() == x.tolist()[1:]
    assert x[x.bool()].tolist() == [v for row in x.tolist() for v in row if v]
    assert x.view(ut.uint8).view(dtype).tolist() == x.tolist()
    assert x.numpy().dtype == dtype.numpy
    assert ut.from_numpy(x.numpy()).data_ptr() == x.data_ptr()
    assert ut.ones(3, dtype=dtype).tolist() == [1, 1, 1]
    assert ut.full((2,), 2, dtype=dtype)[0].item() == 2
    assert ut.zeros(2, dtype=dtype).copy_(ut.tensor([1.0, 2.0])).tolist() == [1, 2]
    assert f"dtype=undertow.{dtype.name}" in repr(x)
    assert x.to("reference").cpu().tolist() == x.tolist()
    assert ut.zeros(0, dtype=dtype).sum().item() in (0, 2.0**-127)


@pytest.mark.parametrize("dtype", UNSIGNED, ids=str)
@pytest.mark.parametrize("shape", [(5,), (300, 400)])
def test_unsigned_arithmetic_is_numpys(dtype, shape) -> None:
    rng, top = np.random.default_rng(0), np.iinfo(dtype.numpy).max
    a = rng.integers(0, top, shape, dtype.numpy, endpoint=True)
    b = rng.integers(1, top, shape, dtype.numpy, endpoint=True)
    x, y = ut.tensor(a), ut.tensor(b)
    pairs = [
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x // y, a // b),
        (x % y, a % b),
        (x < y, a < b),
        (ut.maximum(x, y), np.maximum(a, b)),
        (~x, ~a),
        (x >> 3, a >> 3),
        (x.sort(-1)[0], np.sort(a, -1)),
        (x.amax(0), a.max(0)),
        (x.double(), a.astype(np.float64)),
        (x.long(), a.astype(np.int64)),
        (x.cumsum(0), a.astype(np.int64).cumsum(0)),
        (ut.unique(x), np.unique(a)),
        (x == y, a == b),
    ]
    for ours, numpys in pairs:
        assert ours.numpy().dtype == numpys.dtype
        assert np.array_equal(ours.numpy(), numpys)


def test_unsigned_limits() -> None:
    assert ut.iinfo(ut.uint64).max == 2**64 - 1
    assert ut.tensor([2**64 - 1], dtype=ut.uint64).item() == 2**64 - 1
    assert ut.full((2,), 2**64 - 1, dtype=ut.uint64).tolist() == [2**64 - 1] * 2
    assert ut.full((2,), -1, dtype=ut.uint16).tolist() == [65535] * 2  # as in torch
    with pytest.raises(ArgumentError, match=r"out of range for undertow\.uint16"):
        ut.tensor([65536], dtype=ut.uint16)
    for size in (1, 100_000):  # NumPy and kernels
        x = ut.tensor([1.8e19, 2.0**63, 5.0, -1.0], dtype=ut.float64).repeat(size)
        assert x.to(ut.uint64)[-4:].tolist() == [18 * 10**18, 2**63, 5, 2**64 - 1]
        y = ut.zeros(4 * size, dtype=ut.uint64).copy_(x)
        assert y[-4:].tolist() == [18 * 10**18, 2**63, 5, 2**64 - 1]
    assert ut.tensor([2.0**64]).to(ut.uint64).tolist() == [0]


def test_promotion_beyond_the_twelve() -> None:
    assert ut.promote_types(ut.uint16, ut.float16) is ut.float16
    assert ut.promote_types(ut.uint64, ut.complex64) is ut.complex64
    assert ut.promote_types(ut.uint16, ut.uint8) is ut.uint16
    assert ut.promote_types(ut.uint16, ut.int8) is ut.int32
    assert ut.promote_types(ut.int64, ut.uint32) is ut.int64
    assert ut.promote_types(ut.bool, ut.uint32) is ut.uint32
    for a, b in [(ut.uint64, ut.int8), (FLOAT8[0], ut.float32), FLOAT8[:2], (ut.int4, ut.int8)]:
        with pytest.raises(DTypeError, match=r"\[promote_types\]"):
            ut.promote_types(a, b)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_float8_is_for_storage(dtype) -> None:
    x = ut.tensor([1.0, 2.0, 4.0]).to(dtype)
    assert (x * x).tolist() == [1, 4, 16]
    assert (x == x).all()
    assert (x * x).dtype is dtype
    assert (
        ut.finfo(dtype).max
        == float(ut.dtypes.finfo(dtype).max)
        == x.float().new_tensor(ut.finfo(dtype).max, dtype=ut.float64).to(dtype).item()
    )
    assert (x.view(1, 3) @ x.view(3, 1)).item() == pytest.approx(21, rel=0.3)
    for wrong in (lambda: x + x, lambda: x.exp(), lambda: x / 2, lambda: x - 1):
        with pytest.raises(DTypeError, match=r"for storage; compute in another dtype: x.float\(\)"):
            wrong()
    w = ut.ones(3, requires_grad=True)
    w.to(dtype).float().sum().backward()
    assert w.grad.tolist() == [1, 1, 1]


def test_float8_rounds_and_saturates_as_torchs() -> None:
    x = [1e9, -1e9, math.inf, math.nan, 0.3, 0.0, -0.3]
    found = {d.name: ut.tensor(x).to(d).tolist() for d in FLOAT8}
    assert repr(found["float8_e4m3fn"]) == "[448.0, -448.0, 448.0, nan, 0.3125, 0.0, -0.3125]"
    assert repr(found["float8_e5m2"]) == "[inf, -inf, inf, nan, 0.3125, 0.0, -0.3125]"
    assert repr(found["float8_e4m3fnuz"]) == "[nan, nan, nan, nan, 0.3125, 0.0, -0.3125]"
    assert found["float8_e8m0fnu"][:2] == [2.0**30] * 2
    assert found["float8_e8m0fnu"][4:] == [0.25, 2.0**-127, 0.25]
    assert ut.tensor([500.0], dtype=ut.float8_e4m3fn).item() == 448
    with pytest.raises(ArgumentError, match="out of range"):
        ut.full((2,), 500.0, dtype=ut.float8_e4m3fn)


@pytest.mark.parametrize("dtype", NAMED, ids=str)
def test_names_exist_and_refuse_when_used(dtype) -> None:
    assert getattr(ut, dtype.name) is dtype is ut.dtypes.as_dtype(dtype.name)
    with pytest.raises(UnsupportedError, match="exists in name only"):
        ut.zeros(2, dtype=dtype)
    with pytest.raises(UnsupportedError, match="exists in name only"):
        ut.ones(2).to(dtype)


@pytest.mark.parametrize("draw", [ut.rand, ut.randn])
def test_random_numbers_of_a_name_only(draw) -> None:
    with pytest.raises(UnsupportedError, match="exists in name only"):
        draw(3, dtype=ut.complex32)


def test_attributes_of_dtypes() -> None:
    assert ut.float16.to_complex() is ut.complex32 is ut.chalf
    assert ut.complex32.to_real() is ut.float16
    assert ut.finfo(ut.complex32).dtype == "float16"
    assert ut.bit is ut.uint1
    assert [d.is_signed for d in (ut.uint16, ut.int4, ut.float8_e8m0fnu)] == [False, True, False]
    assert ut.float8_e4m3fn.itemsize == 1
    assert ut.float8_e4m3fn.is_floating_point
    for dtype in (ut.int8, ut.float8_e5m2):
        with pytest.raises(DTypeError, match="complex"):
            dtype.to_complex()


@pytest.mark.parametrize("dtype", [ut.float8_e4m3fn, ut.float8_e5m2])
def test_bytes_of_floats_are_compared_exactly(dtype) -> None:
    x = ut.tensor([-96.0, 2.0, math.nan], dtype=dtype)
    assert ut.isclose(x, x, rtol=0, atol=0).tolist() == [True, True, False]
    assert ut.isclose(x, x, rtol=0, atol=0, equal_nan=True).all()
    ut.testing.assert_close(x[:2], x[:2])
    with pytest.raises(AssertionError):
        ut.testing.assert_close(x[:1], x[1:2])
