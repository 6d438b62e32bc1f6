"""Functions of complex numbers in all quadrants and at all sizes, beside torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

QUADRANTS = np.array(
    [
        direction * size
        for direction in (1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j, 1 + 0.1j, -1 - 0.1j, -0.1 - 1j)
        for size in (0.3, 1.3, 3.0, 40.0)
    ]
)
FUNCTIONS = """exp expm1 log log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh
atanh sigmoid sinc reciprocal abs angle""".split()  # noqa: SIM905


def derivatives(lib: Any, function: Any, *values: Any) -> list[Any]:
    """The output, the gradients by both ways, and second gradients."""
    inputs = [lib.tensor(v, requires_grad=True) for v in values]
    out = function(*inputs)
    g = lib.tensor(np.exp(1j * np.arange(out.numel())).reshape(out.shape))
    seed = g if out.is_complex() else g.real.clone()
    plain = lib.autograd.grad(out, inputs, seed, retain_graph=True)
    first = lib.autograd.grad(out, inputs, seed, create_graph=True)
    second = lib.autograd.grad(first, inputs, [v.detach() + 1j for v in inputs])
    return [np.asarray(t.detach().resolve_conj().numpy()) for t in (out, *plain, *first, *second)]


def compare(function: Any, *values: Any, atol: float = 1e-12) -> None:
    """Ours and torch's."""
    ours = derivatives(ut, function, *values)
    theirs = derivatives(torch, function, *values)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=atol)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_quadrants(name: str) -> None:
    """Branches of values and of derivatives are torch's."""
    compare(lambda x: getattr(x, name)(), QUADRANTS)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("first", [None, 1e4])
def test_running_sums_of_logarithms(dim: int, first: float | None) -> None:
    """Angles go on from element to element as torch's do, and far elements have gradients."""
    draw = np.random.default_rng(3)
    x = draw.uniform(-9, 9, (17, 19)) + 1j * draw.uniform(-9, 9, (17, 19))
    if first is not None:
        x[0] = first
    compare(lambda x: x.logcumsumexp(dim), x, atol=1e-6)


def test_the_gradient_of_a_maximum_pooling_depends_on_its_input() -> None:
    """By a derivative that is zero; so the operator may stand in a graph, as in torch."""
    x = np.random.default_rng(0).normal(size=(1, 2, 4, 4))

    def run(lib: Any) -> Any:
        image = lib.tensor(x, requires_grad=True)
        _, at = lib.nn.functional.max_pool2d_with_indices(image, 2)
        back = lib.ops.aten.max_pool2d_with_indices_backward
        out = back(lib.ones(1, 2, 2, 2).double(), image, [2, 2], [2, 2], [0, 0], [1, 1], False, at)
        (zero,) = lib.autograd.grad(out.sum(), image)
        return out.detach().numpy(), zero.numpy()

    for ours, theirs in zip(run(ut), run(torch), strict=True):
        np.testing.assert_array_equal(ours, theirs)
