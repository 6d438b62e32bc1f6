"""nn.utils beside torch's: norms of weights in both forms, parametrizations, clipping, fusion."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.core.tensor import wrap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

LAYERS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "Linear": (lambda nn: nn.Linear(3, 4), (5, 3)),
    "Conv2d": (lambda nn: nn.Conv2d(2, 4, 3), (1, 2, 4, 4)),
    "ConvTranspose1d": (lambda nn: nn.ConvTranspose1d(2, 4, 3), (1, 2, 5)),
}
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "weight_norm": lambda u, m: u.weight_norm(m),
    "weight_norm of dim 1": lambda u, m: u.weight_norm(m, dim=1),
    "weight_norm of all": lambda u, m: u.weight_norm(m, dim=None),
    "spectral_norm": lambda u, m: u.spectral_norm(m),
    "spectral_norm twice": lambda u, m: u.spectral_norm(m, n_power_iterations=2),
    "weight_norm as parametrization": lambda u, m: u.parametrizations.weight_norm(m),
    "weight_norm of dim 1 as parametrization": lambda u, m: u.parametrizations.weight_norm(
        m, dim=1
    ),
    "spectral_norm as parametrization": lambda u, m: u.parametrizations.spectral_norm(m),
}


def converted(library: Any, array: Any) -> Any:
    return wrap(np.array(array)) if library is ut else torch.from_numpy(np.array(array))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layer", LAYERS)
def test_norms_of_weights(form: str, layer: str) -> None:
    """The same state after three steps of training and one of evaluation, for the same start."""
    make, shape = LAYERS[layer]
    random = np.random.default_rng(0)
    start: dict[str, Any] = {}
    seen = []
    for library in (torch, ut):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = FORMS[form](library.nn.utils, make(library.nn).double())
        state = module.state_dict()
        for name, value in state.items():
            start.setdefault(name, random.normal(size=tuple(value.shape)))
        assert list(start) == list(state)
        module.load_state_dict({n: converted(library, v) for n, v in start.items()})
        x = converted(library, np.random.default_rng(1).normal(size=shape)).requires_grad_()
        log = []
        for _ in range(3):
            out = module(x)
            (out * out).sum().backward()
            log.append(out)
        log += [x.grad, *[p.grad for p in module.parameters()]]
        log += [module.eval()(x), *module.state_dict().values()]
        seen.append([v.detach().numpy() for v in log])
    for a, b in zip(*seen, strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)


def symmetric(library: Any) -> Any:
    class Symmetric(library.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).T

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    return Symmetric()


def parametrized(library: Any) -> Any:
    """What one sees of a layer with two parametrizations of its weight."""
    p = library.nn.utils.parametrize
    layer = library.nn.Linear(3, 3).double()
    layer.weight.data = converted(library, np.arange(9.0).reshape(3, 3))
    layer.bias.data.fill_(1.0)
    p.register_parametrization(layer, "weight", symmetric(library))
    p.register_parametrization(layer, "weight", symmetric(library))
    log = [repr(layer), type(layer).__name__, list(layer.state_dict())]
    log.append(p.type_before_parametrizations(layer).__name__)
    log += [layer.weight.tolist(), layer.parametrizations.weight.original.tolist()]
    layer(converted(library, np.ones(3))).sum().backward()
    log.append(layer.parametrizations.weight.original.grad.tolist())
    layer.weight = converted(library, np.ones((3, 3)))
    log.append(layer.parametrizations.weight.original.tolist())
    p.remove_parametrizations(layer, "weight")
    return [*log, repr(layer), sorted(layer.state_dict()), layer.weight.tolist()]


def test_parametrize() -> None:
    """The same text, names, values and gradients."""
    assert parametrized(ut) == parametrized(torch)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("largest", [0.5, 100.0, 0.0])
def test_clipping(order: float, largest: float) -> None:
    """The same norm, and the same gradients afterwards."""
    random = np.random.default_rng(0)
    grads = [random.normal(size=shape) for shape in [(3, 4), (5,), ()]]
    seen = []
    for library in (torch, ut):
        parameters = [
            library.nn.Parameter(library.zeros(g.shape, dtype=library.float64)) for g in grads
        ]
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = converted(library, grad)
        total = library.nn.utils.clip_grad_norm_(parameters, largest, order)
        library.nn.utils.clip_grad_value_(parameters, 0.1)
        seen.append([total.numpy(), *[p.grad.numpy() for p in parameters]])
    for a, b in zip(*seen, strict=True):
        np.testing.assert_allclose(a, b, 1e-12)
    both = [{*dir(library.nn.utils)} for library in (torch, ut)]
    public = {n for n in both[0] - both[1] if not n.startswith("_")}
    assert not public
