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
    "max": lambda m, x: m.max(x),
    "max of parts": lambda m, x: x.max(1)[0],
    "max of rows": lambda m, x: m.max(x, dim=-1, keepdim=True).values,
    "min of rows": lambda m, x: m.min(x, dim=2).values,
    "larger": lambda m, x: m.max(x, x * 2),
    "places": lambda m, x: x.argmax(1),
    "places of rows": lambda m, x: m.argmin(x, dim=-1, keepdim=True),
    "place": lambda m, x: m.argmax(x),
    "places beside": lambda m, x: m.max(x, dim=1, keepdim=True).indices,
    "split_with_sizes": lambda m, x: x.split_with_sizes([1, 3, 2], -1)[1],
    "matrix times": lambda m, x: m.arange(18.0).reshape(3, 6) @ x.transpose(1, 2),
    "matrices times": lambda m, x: m.arange(54.0).reshape(3, 3, 6) @ x.transpose(1, 2),
    "summed over": lambda m, x: x.transpose(1, 2) @ x,
    "angle": lambda m, x: m.angle(x.detach()),
    "norm of parts": lambda m, x: m.nn.functional.layer_norm(x.detach(), x.shape[1:]),
    "nothing dropped": lambda m, x: m.nn.functional.dropout(x, p=0.0),
    "infinite": lambda m, x: m.isposinf(x),
    "copied": lambda m, x: x.detach().clone().copy_(x.detach() * 2),
}
# torch has no gradient of these, or (of the last one) one whose columns do not sum to zero.
WITHOUT = (
    "sum of parts",
    "sum of rows",
    "kept",
    "mean",
    "ragged softmax",
    "max",
    "max of parts",
    "max of rows",
    "min of rows",
    "places",
    "places of rows",
    "place",
    "places beside",
    "larger",
    "split_with_sizes",
    "matrix times",
    "matrices times",
    "summed over",
    "infinite",
    "copied",
    "angle",
    "norm of parts",
)


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


def test_gradients_of_maxima() -> None:
    """torch has none of nested tensors: as of the parts, one by one."""
    for dim in (1, 2):
        parts = [ut.randn(n, 6, dtype=ut.float64, requires_grad=True) for n in LENGTHS]
        found = ut.nested.as_nested_tensor(parts, layout=ut.jagged).max(dim)[0]
        pieces = found.unbind()
        ours = ut.autograd.grad(sum((p * p).sum() for p in pieces), parts)
        alone = ut.autograd.grad(sum((p.max(dim - 1)[0] ** 2).sum() for p in parts), parts)
        for a, b in zip(ours, alone, strict=True):
            assert a.equal(b)


def test_a_product_with_a_matrix_in_front_has_gradients() -> None:
    parts = [ut.randn(n, 6, dtype=ut.float64, requires_grad=True) for n in LENGTHS]
    left = ut.randn(2, 6, dtype=ut.float64, requires_grad=True)
    nested = ut.nested.as_nested_tensor(parts, layout=ut.jagged).transpose(1, 2)
    pieces = (left @ nested).unbind()
    ours = ut.autograd.grad(sum((p * p).sum() for p in pieces), [left, *parts])
    plain = sum(((left @ p.T) ** 2).sum() for p in parts)
    for a, b in zip(ours, ut.autograd.grad(plain, [left, *parts]), strict=True):
        ut.testing.assert_close(a, b)


def test_grad_begins_and_ends_at_nested_tensors() -> None:
    found = []
    for m in (ut, torch):
        parts = [m.full((n, 2), float(n)) for n in LENGTHS]
        x = m.nested.nested_tensor(parts, layout=m.jagged, requires_grad=True)
        y = x * x
        (g,) = m.autograd.grad(y, x, y.detach())
        found.append([t.tolist() for t in g.unbind()])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "text",
    ["s > 1", "s >= 2", "s < 2", "s <= 1", "s >= s", "s > s", "s < s", "s == -1", "s == s", "s"],
)
def test_a_size_that_differs_compares_as_torchs(text: str) -> None:
    found = []
    for m in (ut, torch):
        x = m.nested.nested_tensor([m.ones(3, 2), m.ones(1, 2)], layout=m.jagged)
        found.append(bool(eval(text, {"s": x.size(1)})))
    assert found[0] == found[1]


def test_a_size_that_differs_is_no_number() -> None:
    x = ut.nested.nested_tensor([ut.ones(3, 2), ut.ones(1, 2)], layout=ut.jagged)
    for act in (lambda s: x * s, lambda s: s * 2, lambda s: s + 1, lambda s: s > 3):
        with pytest.raises(RuntimeError, match="no number"):
            act(x.size(1))


def test_what_is_nested_already_is_itself() -> None:
    for m in (ut, torch):
        x = m.nested.nested_tensor([m.ones(3), m.ones(1)], layout=m.jagged)
        assert m.nested.as_nested_tensor(x, layout=m.jagged) is x
        assert m.nested.as_nested_tensor(x, m.float64, layout=m.jagged).dtype is m.float64


def test_a_gradient_can_be_forgotten() -> None:
    for m in (ut, torch):
        x = m.nested.nested_tensor([m.ones(3), m.ones(1)], layout=m.jagged, requires_grad=True)
        (x * 2).values().sum().backward()
        x.grad = None
        assert x.grad is None
        assert m.as_tensor(x) is x


def test_a_norm_over_parts_has_gradients() -> None:
    parts = [ut.randn(n, 6, dtype=ut.float64, requires_grad=True) for n in LENGTHS]
    x = ut.nested.as_nested_tensor(parts, layout=ut.jagged)
    pieces = ut.nn.functional.layer_norm(x, x.shape[1:]).unbind()
    ours = ut.autograd.grad(sum((p**3).sum() for p in pieces), parts)
    alone = [(ut.nn.functional.layer_norm(p, p.shape) ** 3).sum() for p in parts]
    for a, b in zip(ours, ut.autograd.grad(sum(alone), parts), strict=True):
        ut.testing.assert_close(a, b)


def test_dropout_in_all_its_forms() -> None:
    for m in (ut, torch):
        parts = [m.ones(300, 2), m.ones(100, 2)]
        x = m.nested.nested_tensor(parts, layout=m.jagged, requires_grad=True)
        drop = m.nn.functional.dropout
        for y in (drop(x, 0.5), drop(x, p=0.5), m.dropout(x, 0.5, True), m.nn.Dropout(0.5)(x)):
            assert 200 < y.detach().values().sum().item() < 1400
            assert set(y.detach().values().unique().tolist()) == {0.0, 2.0}
        for y in (drop(x, 0.5, False), m.dropout(x, 0.5, False), m.nn.Dropout(0.5).eval()(x)):
            assert y.detach().values().sum().item() == 800
