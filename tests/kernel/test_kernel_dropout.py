"""Dropout in one kernel each way: the same coins as the generator's words give."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow import dtypes
from undertow.backends.cpu.forms.random import run_random_map
from undertow.backends.philox import philox_words
from undertow.backends.reference import NumpyBackend
from undertow.backends.registry import CPU
from undertow.devices import Device
from undertow.ops.nn.dropout import _kept, _kept_or_saturated

F = ut.nn.functional
REFERENCE = NumpyBackend(Device("reference"))
TYPES = [np.float32, np.float64, np.float16, dtypes.bfloat16.numpy]
SEED, OFFSET = 0xFEDCBA9876543210, 4 * (2**32 - 100)  # the counter's upper word changes in between


@pytest.mark.parametrize("n", [1, 3, 4, 5, 63, 64, 65, 1023, 1024, 1025, 16385, 50000])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_coins(n, dtype):
    """Every element has the coin of its own word, whatever is packed with it."""
    x = np.arange(1, n + 1).astype(dtype)
    heads = philox_words(SEED, OFFSET, n) < 2**31
    assert n < 64 or 0.3 < heads.mean() < 0.7
    got = run_random_map(_kept, x, (0.5,), 2**31, SEED, OFFSET)
    np.testing.assert_array_equal(got, np.where(heads, x * x.dtype.type(0.5), x.dtype.type(0)))
    numbers = (0.25, -1.0, 2.0)
    got = run_random_map(_kept_or_saturated, x, numbers, 2**31, SEED, OFFSET)
    want = REFERENCE.random_map(_kept_or_saturated, x, numbers, 2**31, SEED, OFFSET)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("limit", [0, 1, 2**32 - 1, 2**32])
def test_chances(limit):
    """Nothing is kept below 0, everything below 2**32."""
    x = np.ones(3000, np.float32)
    got = run_random_map(_kept, x, (2.0,), limit, SEED, 0)
    np.testing.assert_array_equal(got, 2 * (philox_words(SEED, 0, 3000) < limit))


def test_layouts():
    """A coin belongs to a position in row-major order, wherever the element lies in memory."""
    x = np.random.default_rng(0).standard_normal((30, 40, 50)).astype(np.float32)
    want = run_random_map(_kept, x, (2.0,), 2**31, SEED, 8)
    for same in (np.asfortranarray(x), np.repeat(x, 2, 2)[..., ::2], x[::-1].copy()[::-1]):
        np.testing.assert_array_equal(run_random_map(_kept, same, (2.0,), 2**31, SEED, 8), want)
    assert run_random_map(_kept, x, (2.0,), 2**31, SEED, 7) is None


def test_dropped_infinities():
    """As in torch they become NaN, since they are multiplied by zero."""
    x = np.full(5000, np.inf, np.float32)
    got = run_random_map(_kept, x, (2.0,), 2**31, SEED, 0)
    heads = philox_words(SEED, 0, 5000) < 2**31
    assert np.isposinf(got[heads]).all()
    assert np.isnan(got[~heads]).all()


def test_any_number_of_threads_gives_the_same_bits():
    before = ut.get_num_threads()
    x = np.random.default_rng(0).standard_normal(200001).astype(np.float32)
    want = run_random_map(_kept, x, (2.0,), 2**30, SEED, 0).tobytes()
    try:
        for count in (1, 2, 5):
            ut.set_num_threads(count)
            assert run_random_map(_kept, x, (2.0,), 2**30, SEED, 0).tobytes() == want
    finally:
        ut.set_num_threads(before)


@pytest.mark.parametrize("dropout", [F.dropout, F.alpha_dropout])
def test_no_mask_is_kept(dropout, monkeypatch):
    """The backward tosses the same coins again; nothing is saved for it, and nothing else runs."""
    forms = []

    def counting(form, run):
        return lambda *args: forms.append(form) or run(*args)

    for form in ("random_map", "map", "maps", "philox", "cast", "full", "copy"):
        monkeypatch.setattr(CPU, form, counting(form, getattr(CPU, form)))
    x = ut.ones(100, 300, requires_grad=True)
    g = ut.full((100, 300), 3.0)
    forms.clear()
    saved = []
    with ut.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        out = dropout(x, 0.25, training=True)
    out.backward(g)
    assert forms == ["random_map", "random_map"]
    assert saved == []
    kept = out.detach() != out.detach().min()
    assert 0.7 < float(kept.double().mean()) < 0.8
    assert ((x.grad != 0) == kept).all()
