"""Attention's generated kernels against the NumPy definition in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.forms.attention import run_attention, run_attention_backward
from undertow.backends.reference import NumpyBackend
from undertow.devices import Device

REFERENCE = NumpyBackend(Device("cpu"))
BOUND = {"f": 5e-6, "d": 1e-14}

# (batch, heads, queries, keys, width of keys, width of values): one block, several, last ones short
SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (2, 3, 37, 41, 8, 5),
    (2, 3, 16, 41, 8, 5),
    (1, 2, 1, 1027, 16, 24),
    (1, 2, 128, 512, 16, 16),
    (1, 2, 300, 1100, 16, 24),
    (2, 1, 129, 513, 7, 33),
]
MASKS = ["none", "bool", "add", "causal"]


def data(shape: tuple[int, ...], mask: str, dtype: str) -> tuple[list[Any], Any]:
    """Queries in the layout (batch, queries, heads, width), as a transformer has them; the mask."""
    b, h, length, s, e, ev = shape
    rng = np.random.default_rng(sum(shape))
    q = rng.standard_normal((b, length, h, e)).astype(dtype).transpose(0, 2, 1, 3)
    k, v = (rng.standard_normal((b, h, s, n)).astype(dtype) for n in (e, ev))
    given = None
    if mask == "bool":
        given = rng.random((b, 1, length, s)) > 0.3
        given[0, 0, 0] = False  # looks nowhere
        given = np.broadcast_to(given, (b, h, length, s))
    elif mask == "add":
        given = rng.standard_normal((b, h, length, s)).astype(dtype)
    return [q, k, v], given


def exact(x: Any) -> Any:
    return x if x is None or x.dtype == bool else x.astype("d")


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_numpy(shape: tuple[int, ...], mask: str, dtype: str) -> None:
    """Results, the saved logarithms and all three cotangents."""
    qkv, given = data(shape, mask, dtype)
    out, lse = run_attention(*qkv, given, 0.3, mask == "causal")
    wide = [exact(x) for x in qkv]
    expected, expected_lse = REFERENCE.attention(*wide, exact(given), 0.3, mask == "causal")
    g = np.random.default_rng(1).standard_normal(out.shape).astype(dtype)
    found = run_attention_backward(g, *qkv, given, out, lse, 0.3, mask == "causal")
    grads = REFERENCE.attention_backward(
        g.astype("d"), *wide, exact(given), expected, expected_lse, 0.3, mask == "causal"
    )
    for a, b in zip([out, lse, *found], [expected, expected_lse, *grads], strict=True):
        assert a.dtype == np.dtype(dtype)
        finite = np.isfinite(b)
        assert (np.isfinite(a) == finite).all()
        np.testing.assert_allclose(a[finite], b[finite], rtol=BOUND[dtype], atol=BOUND[dtype])


def test_a_query_that_looks_nowhere_gets_zeros() -> None:
    qkv, given = data((2, 3, 37, 41, 8, 5), "bool", "f")
    out, lse = run_attention(*qkv, given, 0.3, False)
    assert (out[0, :, 0] == 0).all()
    assert (lse[0, :, 0] == np.inf).all()
    grads = run_attention_backward(np.ones_like(out), *qkv, given, out, lse, 0.3, False)
    assert (grads[0][0, :, 0] == 0).all()


def test_nan_and_infinity_show() -> None:
    """A NaN in one query stays with it; one in a key reaches every query."""
    qkv, _ = data((1, 1, 20, 600, 8, 8), "none", "f")
    qkv[0][0, 0, 3, 0] = np.nan
    out, _ = run_attention(*qkv, None, 1.0, False)
    assert np.isnan(out[0, 0, 3]).all()
    assert np.isfinite(np.delete(out[0, 0], 3, 0)).all()
    qkv[1][0, 0, 550, 0] = np.nan
    assert np.isnan(run_attention(*qkv, None, 1.0, False)[0]).all()


def test_few_queries_in_any_layout() -> None:
    """Rows whose elements lie apart, or not a whole number of elements apart, are copied."""
    (q, k, v), _ = data((2, 3, 2, 41, 8, 8), "none", "f")
    expected, _ = run_attention(q, k, v, None, 0.3, False)
    apart = np.zeros((*k.shape, 3), "f")[..., 1]
    apart[...] = k
    raw = np.zeros((2, 3, 41, 8 * 4 + 1), "u1")
    odd = np.ndarray(v.shape, "f", raw.data, 0, (3 * 41 * 33, 41 * 33, 33, 4))
    odd[...] = v
    out, _ = run_attention(q, apart, odd, None, 0.3, False)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("shape", [(2, 3, 300, 600, 16, 16), (2, 3, 2, 3000, 16, 16)], ids=str)
def test_bits_do_not_depend_on_the_number_of_threads(shape: tuple[int, ...]) -> None:
    qkv, _ = data(shape, "none", "f")
    before = ut.get_num_threads()
    results = []
    try:
        for number in (1, 2, 3, 8):
            ut.set_num_threads(number)
            out, lse = run_attention(*qkv, None, 0.25, False)
            grads = run_attention_backward(np.ones_like(out), *qkv, None, out, lse, 0.25, False)
            results.append([out, lse, *grads])
    finally:
        ut.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_output_has_the_layout_of_the_query() -> None:
    """So that joining the heads afterwards needs no copy."""
    qkv, _ = data((2, 3, 40, 40, 16, 16), "none", "f")
    out, _ = run_attention(*qkv, None, 0.25, False)
    assert out.strides == qkv[0].strides


def test_scores_are_not_stored() -> None:
    """Memory grows with the length, not with its square."""
    import tracemalloc

    q = ut.randn(1, 1, 4096, 8)
    F = ut.nn.functional
    F.scaled_dot_product_attention(q, q, q)
    tracemalloc.start()
    F.scaled_dot_product_attention(q, q, q)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4096 * 4096 * 4 / 8


@pytest.mark.parametrize("causal", [False, True])
def test_a_row_whose_scores_are_all_minus_infinity_gives_zeros(causal: bool) -> None:
    """As in torch, and as with a mask that hides all."""
    keys = np.full((2, 2, 70, 32), -np.inf, np.float32)
    keys[:, :, 35:] = 0.1
    values = np.random.default_rng(0).random((2, 2, 70, 32), np.float32)
    query = ut.ones(2, 2, 70, 32)
    found = ut.nn.functional.scaled_dot_product_attention(
        query, ut.tensor(keys), ut.tensor(values), is_causal=causal
    ).numpy()
    seen = np.tril(np.ones((70, 70), bool)) if causal else np.ones((70, 70), bool)
    weights = (seen & (np.arange(70) >= 35)).astype(np.float64)
    expected = weights / np.maximum(weights.sum(1, keepdims=True), 1) @ values
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
