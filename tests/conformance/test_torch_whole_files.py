"""Modules and optimisers that were saved whole: torch reads ours, and we read torch's."""

import io
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
WAYS = {"ours": (ut, torch), "theirs": (torch, ut)}
MODULES: dict[str, tuple[Any, Any]] = {
    "linear": (lambda nn: nn.Linear(2, 3), (3, 2)),
    "convolution": (
        lambda nn: nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten()),
        (2, 2, 8),
    ),
    "lstm": (lambda nn: nn.LSTM(2, 3, num_layers=2, bidirectional=True), (4, 3, 2)),
    "gru": (lambda nn: nn.GRU(2, 3, batch_first=True), (4, 3, 2)),
    "cell": (lambda nn: nn.GRUCell(2, 3), (3, 2)),
    "encoder": (lambda nn: nn.TransformerEncoderLayer(4, 2), (3, 2, 4)),
    "quick": (lambda nn: nn.TransformerEncoderLayer(4, 2, batch_first=True), (3, 2, 4)),
    "encoders": (
        lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True), 2),
        (3, 2, 4),
    ),
    "gelu": (lambda nn: nn.TransformerEncoderLayer(4, 2, activation="gelu"), (3, 2, 4)),
    "norms": (lambda nn: nn.Sequential(nn.LayerNorm(4), nn.PReLU(), nn.Dropout(0.5)), (2, 4)),
}


def moved(obj: Any, source: Any, target: Any) -> Any:
    file = io.BytesIO()
    source.save(obj, file)
    file.seek(0)
    return target.load(file, weights_only=False)


def output(net: Any, lib: Any, x: Any) -> Any:
    found = net.eval()(lib.tensor(x))
    return (found[0] if isinstance(found, tuple) else found).detach().numpy()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, way: str) -> None:
    source, target = WAYS[way]
    make, shape = MODULES[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    net = make(source.nn)
    found = moved(net, source, target)
    assert type(found).__name__ == type(net).__name__
    assert type(found).__module__.startswith("torch" if target is torch else "undertow")
    np.testing.assert_allclose(output(found, target, x), output(net, source, x), atol=1e-5)
    assert list(found.train().state_dict()) == list(net.state_dict())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_optimizers_go_on(kind: str, way: str) -> None:
    source, target = WAYS[way]
    p = source.nn.Parameter(source.ones(3))
    pairs = [(p, getattr(source.optim, kind)([p], lr=0.1))]

    def step(p: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()

    step(*pairs[0])
    pairs.append(moved(pairs[0], source, target))
    for pair in pairs:
        step(*pair)
    np.testing.assert_allclose(*(p.detach().numpy() for p, _ in pairs), rtol=1e-6)


def test_unsafe_names() -> None:
    file = io.BytesIO()
    torch.save(torch.nn.Sequential(torch.nn.Linear(2, 3)), file)
    file.seek(0)
    expected = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    file.seek(0)
    assert ut.serialization.get_unsafe_globals_in_checkpoint(file) == sorted(expected)


def doubled(module: Any, args: Any, output: Any) -> Any:
    return output * 2


def shifted(module: Any, args: Any, kwargs: Any) -> Any:
    return (args[0] + 1,), kwargs


def halved(module: Any, grad_input: Any, grad_output: Any) -> Any:
    return (grad_input[0] / 2,)


@pytest.mark.parametrize("way", [*WAYS, "own"])
def test_hooks_go_along(way: str) -> None:
    source, target = WAYS.get(way, (ut, ut))
    net = source.nn.Linear(2, 2)
    net.register_forward_hook(doubled)
    net.register_forward_pre_hook(shifted, with_kwargs=True)
    net.register_full_backward_hook(halved)
    with target.serialization.safe_globals([doubled, shifted, halved]):
        found = moved(net, source, target)
    found.register_forward_hook(doubled)  # one more does not replace them
    net.register_forward_hook(doubled)
    results = []
    for lib, module in ((source, net), (target, found)):
        x = lib.ones(1, 2, requires_grad=True)
        y = module(x)
        y.sum().backward()
        results.append((y.detach().numpy(), x.grad.numpy()))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
