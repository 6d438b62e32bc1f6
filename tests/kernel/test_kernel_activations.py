"""Activations on large arrays: one generated kernel forward and one backward, as in the table."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu import backend
from undertow.backends.cpu.forms import maps
from undertow.backends.reference import NumpyBackend

F = ut.nn.functional
PLAIN = """
relu relu6 leaky_relu elu celu selu silu mish softplus softsign softshrink hardshrink tanhshrink
hardtanh hardsigmoid hardswish logsigmoid gelu sigmoid tanh
""".split()  # noqa: SIM905
ACTIVATIONS = {
    **{name: getattr(F, name) for name in PLAIN},
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "prelu": lambda x: F.prelu(x, ut.tensor([0.2], dtype=x.dtype)),
    "threshold": lambda x: F.threshold(x, 0.1, 0.2),
}
X = np.random.default_rng(0).standard_normal((150, 333)) * 3


@pytest.fixture
def kernels(monkeypatch):
    """How many kernels have run; what NumPy computes is an error."""
    ran = []

    def counting(*args, run=maps.run_maps):
        found = run(*args)
        ran.append(found is not None)
        return found

    def refuse(self, expr, *args):
        raise AssertionError(f"NumPy computes {expr}")

    monkeypatch.setattr(backend, "run_maps", counting)
    monkeypatch.setattr(NumpyBackend, "map", refuse)
    return ran


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64, ut.float16, ut.bfloat16], ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_one_kernel_each_way(name, dtype, kernels):
    """Forward and backward are a kernel each, and agree with small arrays, which NumPy computes."""
    x = ut.from_numpy(X).to(dtype).requires_grad_()
    weights = ut.from_numpy(np.cos(X)).to(dtype)
    before = len(kernels)
    out = ACTIVATIONS[name](x)
    assert kernels[before:] == [True]
    before = len(kernels)
    out.backward(weights)
    assert kernels[before:] == [True]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_agrees_with_numpy(name):
    """The same numbers as row by row, where arrays are small."""
    x = ut.from_numpy(X).requires_grad_()
    weights = ut.from_numpy(np.cos(X))
    out = ACTIVATIONS[name](x)
    out.backward(weights)
    for i in range(0, 150, 13):
        row = ut.from_numpy(X[i]).requires_grad_()
        small = ACTIVATIONS[name](row)
        small.backward(weights[i])
        for found, exact in ((out[i], small), (x.grad[i], row.grad)):
            np.testing.assert_allclose(
                found.detach().numpy(), exact.detach().numpy(), rtol=1e-12, atol=1e-13
            )


@pytest.mark.parametrize("size", [7, 100_000])
def test_integers_between_bounds_that_are_not(size: int) -> None:
    """Bounds are truncated to integers; tensors of many elements failed in the kernel."""
    x = ut.arange(size) - 3
    assert F.hardtanh(x, -1.5, 2.5)[:7].tolist() == [-1, -1, -1, 0, 1, 2, 2]
    assert F.threshold(x, 0.5, 7.9)[:7].tolist() == [7, 7, 7, 7, 1, 2, 3]
    assert F.relu6(x)[:7].tolist() == [0, 0, 0, 0, 1, 2, 3]


def test_bounds_that_the_integers_do_not_have() -> None:
    """-1 was 255, so everything was 1 between -1 and 1."""
    x = ut.tensor([0, 3], dtype=ut.uint8)
    with pytest.raises(ValueError, match=r"\[hardtanh\] -1.0 has no value in undertow.uint8"):
        F.hardtanh(x)
    with pytest.raises(ValueError, match=r"\[threshold\] -9.0 has no value"):
        F.threshold(x, 1.0, -9.0)
    assert F.hardtanh(x, 0, 1).tolist() == [0, 1]
    assert F.hardtanh(x, -0.5, 255.5).tolist() == x.tolist()
