"""Nested tensors beside torch's jagged ones."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.conformance, pytest.mark.filterwarnings("ignore")]
LENGTHS = (2, 4, 1)

CALLS = {
    "sum": lambda m, x: x.sum(),
    "sum of parts": lambda m, x: x.sum(dim=1),
    "sum of rows": lambda m, x: x.sum(dim=2),
    "kept": lambda m, x: x.sum(dim=2, keepdim=True),
    "mean": lambda m, x: x.mean(dim=1),
    "amax": lambda m, x: x.amax(dim=1),
    "arithmetic": lambda m, x: x * x + 1 - x / 3,
    "row": lambda m, x: x + m.arange(6.0),
    "padded": lambda m, x: x * m.ones(3, 4, 6),
    "softmax": lambda m, x: x.softmax(-1),
    "ragged softmax": lambda m, x: x.softmax(1),
    "linear": lambda m, x: m.nn.functional.linear(x, m.ones(5, 6), m.ones(5)),
    "matmul": lambda m, x: x @ m.ones(6, 2),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (6,)),
    "part": lambda m, x: x[1],
    "select": lambda m, x: x.select(0, 1),
    "heads": lambda m, x: x.unflatten(-1, [2, 3]).transpose(1, 2).transpose(1, 2),
    "cat": lambda m, x: m.cat([x, x], -1),
    "relu": lambda m, x: m.nn.functional.relu(x),
    "where": lambda m, x: m.where(x > 0, x, x * 2),
    "padding": lambda m, x: x.to_padded_tensor(-1.0),
    "chunk": lambda m, x: x.chunk(3, -1)[1],
    "attention": lambda m, x: m.nn.functional.scaled_dot_product_attention(
        *(t.unflatten(-1, [2, 3]).transpose(1, 2) for t in (x, x * 2, x + 1))
    ).transpose(1, 2),
    "view": lambda m, x: x.view(3, -1, 2, 3),
    "unsqueeze": lambda m, x: x.unsqueeze(-1),
}
# torch has no gradient of these, or (of the last one) one whose columns do not sum to zero.
WITHOUT = ("sum of parts", "sum of rows", "kept", "mean", "ragged softmax")


@pytest.mark.parametrize("name", CALLS)
def test_it_is_torchs(name: str) -> None:
    found = []
    for m in (ut, torch):
        rng = np.random.default_rng(0)
        parts = [m.tensor(rng.standard_normal((n, 6)).astype(np.float32)) for n in LENGTHS]
        x = m.nested.nested_tensor(parts, layout=m.jagged, requires_grad=True)
        out = CALLS[name](m, x)
        pieces = list(out.unbind()) if out.is_nested else [out]
        if name not in WITHOUT:
            sum((p * p).sum() for p in pieces).backward()
            pieces += x.grad.unbind()
        found.append(pieces)
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == tuple(theirs.shape)
        a, b = (t.detach().numpy() for t in (ours, theirs))
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_names_and_shapes() -> None:
    for name in torch.nested.__all__:
        assert callable(getattr(ut.nested, name))
