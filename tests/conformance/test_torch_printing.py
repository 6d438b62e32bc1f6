"""The repr of a tensor against torch's, character for character."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

random = np.random.default_rng(0)
nan, inf = np.nan, np.inf
ARRAYS = [
    np.float32([1, 2]),
    np.float64([1, 2.5]),
    np.arange(5),
    np.arange(5, dtype=np.int32),
    np.zeros((0, 3), np.float32),
    np.zeros(0, np.int64),
    np.zeros(0, np.float64),
    np.zeros((2, 0, 3), np.int64),
    np.float32(3.5),
    np.float32(3),
    np.int64(7),
    np.array(True),
    np.array([[True, False]]),
    np.float32([nan, inf, 1]),
    np.float32([nan, inf, -inf]),
    np.float32([0, nan]),
    np.float32([0, 0]),
    np.float32([1e-5, 1]),
    np.float32([1e10]),
    np.float32([1e9, 1, 0, inf]),
    np.float32([1001, 1]),
    np.float32([0.1, 1000]),
    np.float32([0.0001, 0.01]),
    np.float32([0.00011, 0.01]),
    np.float32([-0.0, 1]),
    np.float32([1e8, 2e8]),
    np.float32([123456.78]),
    np.float64([1e300, 1e-300]),
    np.float64([5e-324]),
    np.float32([999.99995]),
    random.standard_normal((3, 4)).astype("f"),
    random.standard_normal((2, 3, 4)),
    random.standard_normal((2, 1, 2, 3)),
    random.standard_normal((50, 60)),
    np.arange(2000),
    np.arange(2000.0).reshape(2, 1000),
    random.standard_normal((3, 40)),
    random.standard_normal((1001,)).astype("f"),
    (random.standard_normal(3) + 1j * random.standard_normal(3)).astype(np.complex64),
    np.complex128(1 + 2j),
    np.complex64([1 - 0j, 1 - 2j, complex(nan, inf)]),
    random.standard_normal((40, 40)) + 1j * random.standard_normal((40, 40)),
    np.complex64([complex(1, nan), complex(0, -0.0)]),
    np.float16([1.5, 2]),
    np.float16([65504, 1e-7]),
    np.arange(30),
    np.zeros((11, 11, 11), np.float32),
    np.uint8([1, 200]),
    np.int8([-5, 3]),
    np.zeros(1001, bool),
    np.arange(1200.0).reshape(400, 3),
    np.int64([2**62, -1]),
    np.arange(100).reshape(2, 50) * 1000,
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"precision": 2},
    {"sci_mode": True},
    {"sci_mode": False},
    {"edgeitems": 0},
    {"linewidth": 40},
    {"threshold": 5, "edgeitems": 1},
    {"profile": "short"},
    {"profile": "full"},
    {"precision": 0},
    {"profile": "short", "precision": 6},
]


@pytest.fixture(autouse=True)
def _defaults() -> Any:
    yield
    ut.set_printoptions(profile="default")
    torch.set_printoptions(profile="default")


def in_our_words(text: str) -> str:
    """torch's repr with our names; suffixes on one line, since our names are longer."""
    text = re.sub(r"Backward\d+", "Backward", text.replace("torch.", "undertow."))
    return re.sub(r",\s+(dtype|requires_grad|grad_fn|size)=", r", \1=", text)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{np.asarray(a).dtype}{np.shape(a)}")
def test_repr(array: Any, options: dict[str, Any]) -> None:
    array = np.asarray(array)
    ut.set_printoptions(**options)
    torch.set_printoptions(**options)
    for requires_grad in (False, True) if array.dtype.kind == "f" else (False,):
        found = ut.tensor(array).requires_grad_(requires_grad)
        expected = torch.tensor(array).requires_grad_(requires_grad)
        assert in_our_words(repr(found)) == in_our_words(repr(expected))
        assert str(found) == repr(found)


def test_bfloat16() -> None:
    values = [1.5, -3.25, 1e30, 0.1]
    found = repr(ut.tensor(values, dtype=ut.bfloat16))
    assert in_our_words(found) == in_our_words(repr(torch.tensor(values, dtype=torch.bfloat16)))


def test_suffixes() -> None:
    x, y = (m.ones(2, requires_grad=True) for m in (ut, torch))
    assert in_our_words(repr(x * 2)) == in_our_words(repr(y * 2))
    assert in_our_words(repr(x.double() + 1)) == in_our_words(repr(y.double() + 1))
    long = (m.ones(3, 12, requires_grad=True) for m in (ut, torch))
    a, b = (t * 1.5 for t in long)
    assert in_our_words(repr(a)) == in_our_words(repr(b))


def test_default_dtype_is_not_named() -> None:
    try:
        ut.set_default_dtype(ut.float64)
        torch.set_default_dtype(torch.float64)
        for array in (np.float64([1]), np.float32([1]), np.complex128([1]), np.complex64([1])):
            assert in_our_words(repr(ut.tensor(array))) == in_our_words(repr(torch.tensor(array)))
    finally:
        ut.set_default_dtype(ut.float32)
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("spec", ["", ".2f", "8.3f", "e", "d"])
def test_format(spec: str) -> None:
    value = 3 if spec == "d" else 3.14159
    assert format(ut.tensor(value), spec) == format(torch.tensor(value), spec)
