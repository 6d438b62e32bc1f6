"""`flex_attention` and masks of blocks beside torch's eager ones."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.conformance, pytest.mark.filterwarnings("ignore")]


def both(call: Any) -> None:
    found = []
    for m in (ut, torch):
        flex = importlib.import_module(f"{m.__name__}.nn.attention.flex_attention")
        flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
        found.append(call(m, flex))
    for a, b in zip(*found, strict=True):
        if not hasattr(a, "numpy"):
            assert a == b
            continue
        assert a.shape == tuple(b.shape)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=2e-6)


MASKS = {
    "causal": lambda m: lambda b, h, q, k: q >= k,
    "window": lambda m: lambda b, h, q, k: (q - k).abs() < 3,
    "documents": lambda m: (lambda doc: lambda b, h, q, k: (doc[b, q] == doc[b, k]) & (q >= k))(
        m.tensor([[0] * 5 + [1] * 8, [0] * 9 + [1] * 4])
    ),
    "heads": lambda m: lambda b, h, q, k: (h > 0) | (q >= k),
    "nothing": lambda m: lambda b, h, q, k: q > k + 20,
}
SCORES = {
    "alibi": lambda m: (lambda slopes: lambda s, b, h, q, k: s + slopes[h] * (k - q))(
        m.tensor([0.5, 0.25, 0.1, 0.05])
    ),
    "softcap": lambda m: lambda s, b, h, q, k: m.tanh(s / 2) * 2,
    "relative": lambda m: (lambda table: lambda s, b, h, q, k: s + table[q - k + 12])(
        m.linspace(-1, 1, 25)
    ),
    "where": lambda m: lambda s, b, h, q, k: m.where(q >= k, s, -float("inf")),
    "batch": lambda m: lambda s, b, h, q, k: s * (b + 1),
}


def given(m: Any, kv: int = 4) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [(2, 4, 13, 8), (2, kv, 13, 8), (2, kv, 13, 8)]
    return [m.tensor(rng.standard_normal(s).astype(np.float32)) for s in shapes]


@pytest.mark.parametrize("name", SCORES)
def test_scores(name: str) -> None:
    both(lambda m, flex: [flex.flex_attention(*given(m), SCORES[name](m))])
    both(
        lambda m, flex: flex.flex_attention(
            *given(m), SCORES[name](m), return_aux=flex.AuxRequest(lse=True)
        )[1][:1]
    )
    both(lambda m, flex: [flex.flex_attention(*given(m, 2), SCORES[name](m), enable_gqa=True)])


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("size", [4, 128, (2, 8)])
def test_masks(name: str, size: Any) -> None:
    def call(m: Any, flex: Any) -> list[Any]:
        mask = flex.create_block_mask(MASKS[name](m), 2, 4, 13, 13, "cpu", size)
        dense = flex.create_mask(MASKS[name](m), 2, 4, 13, 13, "cpu")
        plain = flex.flex_attention(*given(m), block_mask=mask)
        capped = flex.flex_attention(*given(m), SCORES["softcap"](m), mask, scale=0.7)
        tensors = [t for t in mask.as_tuple() if hasattr(t, "numpy")]
        text = mask.to_string(limit=9), str(mask).splitlines()[0], round(mask.sparsity(), 6)
        return [dense, plain, capped, *tensors, mask.to_dense(), *text]

    both(call)


def test_slices() -> None:
    def call(m: Any, flex: Any) -> list[Any]:
        mask = flex.create_block_mask(MASKS["documents"](m), 2, 1, 13, 13, "cpu", 4)
        parts = [mask[0], mask[:, :, m.tensor([1, 2])], mask[1, 0, -1]]
        return [t for p in parts for t in p.as_tuple() if hasattr(t, "numpy")]

    both(call)
