"""Copies of inputs with zeros around them, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.convolution.padded import LINE, padded

# Sizes, where the first element stands, the sizes of the result.
CASES = [
    ((13,), (2,), (17,)),
    ((9,), (-3,), (4,)),
    ((5,), (0,), (40,)),
    ((6,), (9,), (8,)),  # nothing of it is there
    ((7, 8), (1, 1), (9, 10)),
    ((5, 33), (-1, 4), (8, 39)),
    ((4, 6), (2, -2), (5, 3)),
    ((2, 3, 5), (1, 0, 2), (4, 3, 9)),
    ((3, 4, 19), (-1, 2, -4), (2, 8, 11)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["whole", "channels last", "every other", "broadcast"])
@pytest.mark.parametrize(("size", "low", "reach"), CASES, ids=str)
def test_zeros_around_an_input(size, low, reach, layout, dtype):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((3, 2, 5, *size)).astype(dtype)
    if layout == "channels last":
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 2, -1)), -1, 2)
    elif layout == "every other":
        x = rng.standard_normal((3, 2, 5, *size[:-1], 2 * size[-1])).astype(dtype)[..., ::2]
    elif layout == "broadcast":
        x = np.broadcast_to(x[:1, :, :1], x.shape)
    right = np.zeros((3, 2, 5, *reach), dtype)
    for place in np.ndindex(*size):
        there = tuple(p + a for p, a in zip(place, low, strict=True))
        if all(0 <= t < n for t, n in zip(there, reach, strict=True)):
            right[(..., *there)] = x[(..., *place)]
    limit = ut.get_num_threads()
    try:
        for threads in (1, 2):
            ut.set_num_threads(threads)
            found = padded(x, low, reach, 3)
            whole = math.prod(reach)
            assert (found[..., :whole].reshape(right.shape) == right).all()
            assert (found[..., whole:] == 0).all()
            assert found.shape[-1] >= whole + 3
            assert found.strides[-2] // LINE % 2 == 1
            assert found.strides[-2] % LINE == 0
    finally:
        ut.set_num_threads(limit)


def test_many_channels_by_several_threads():
    x = np.random.default_rng(0).standard_normal((4, 1, 64, 30, 31)).astype(np.float32)
    found = padded(x, (1, 1), (32, 33), 0)
    right = np.pad(x, ((0, 0), (0, 0), (0, 0), (1, 1), (1, 1)))
    assert (found[..., : 32 * 33].reshape(right.shape) == right).all()
