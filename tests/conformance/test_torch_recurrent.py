"""Recurrent modules against torch's in float64: results, states and all gradients, packed too."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.nn.utils import rnn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
FEATURES, SIZE, STEPS, BATCH = 5, 6, 4, 3
LENGTHS = [2, 4, 1]


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def pair(kind: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Ours and torch's with the same weights."""
    theirs = getattr(torch.nn, kind)(*args, dtype=torch.float64, **kwargs)
    ours = getattr(ut.nn, kind)(*args, dtype=ut.float64, **kwargs)
    weights = {name: ut.tensor(w.detach().numpy()) for name, w in theirs.state_dict().items()}
    assert list(weights) == list(ours.state_dict())
    ours.load_state_dict(weights)
    assert repr(ours) == repr(theirs)
    return ours, theirs


def listed(value: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in listed(v)]
    return [] if value is None else [value]


def close(found: Any, expected: Any) -> None:
    found, expected = listed(found), listed(expected)
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(f.detach()), e.detach().numpy(), rtol=1e-9, atol=1e-11
        )


def compare(ours: Any, theirs: Any, call: Any) -> None:
    """`call(library, module, tensor)`: the same results, and the same gradients of them."""
    sides = []
    for library, module in ((ut, ours), (torch, theirs)):
        leaves: list[Any] = []

        def leaf(array: Any, library: Any = library, leaves: list[Any] = leaves) -> Any:
            leaves.append(library.tensor(array, requires_grad=True))
            return leaves[-1]

        out = call(library, module, leaf)
        floats = [t for t in listed(out) if t.is_floating_point()]
        leaves += list(module.parameters())
        first = library.autograd.grad(
            sum((t * t * t).sum() for t in floats), leaves, create_graph=True
        )
        second = library.autograd.grad(sum((t * t).sum() for t in first), leaves)
        sides.append([out, first, second])
    close(sides[0], sides[1])


OPTIONS = [
    dict(zip(("num_layers", "bias", "batch_first", "bidirectional"), values, strict=True))
    for values in itertools.product((1, 2), (True, False), (False, True), (False, True))
]
NETWORKS = [
    *((kind, options) for kind in ("LSTM", "GRU", "RNN") for options in OPTIONS),
    *(("LSTM", options | {"proj_size": 2}) for options in OPTIONS),
    *(("RNN", options | {"nonlinearity": "relu"}) for options in OPTIONS[:4]),
]
CASES = [
    (kind, options, how)
    for kind, options in NETWORKS
    for how in ("plain", "with states", "unbatched", "packed")
    if how in ("with states", "packed") or not options["bias"]
]


def given(kind: str, options: dict[str, Any], leaf: Any, *batch: int) -> Any:
    """A first state as the module takes it."""
    count = options["num_layers"] * (1 + options["bidirectional"])
    h = leaf(normal(count, *batch, options.get("proj_size", SIZE), seed=1))
    return (h, leaf(normal(count, *batch, SIZE, seed=2))) if kind == "LSTM" else h


@pytest.mark.parametrize("kind, options, how", CASES, ids=str)
def test_network(kind: str, options: dict[str, Any], how: str) -> None:
    shape = (BATCH, STEPS) if options["batch_first"] else (STEPS, BATCH)

    def call(library: Any, module: Any, leaf: Any) -> Any:
        if how == "plain":
            return module(leaf(normal(*shape, FEATURES)))
        if how == "with states":
            x = leaf(normal(*shape, FEATURES))
            return module(x, given(kind, options, leaf, BATCH))
        if how == "unbatched":
            x = leaf(normal(STEPS, FEATURES))
            return module(x, given(kind, options, leaf))
        tools = rnn if library is ut else torch.nn.utils.rnn
        x = leaf(normal(*shape, FEATURES))
        first = options["batch_first"]
        packed = tools.pack_padded_sequence(x, LENGTHS, first, enforce_sorted=False)
        out, last = module(packed, given(kind, options, leaf, BATCH))
        return [*out, *tools.pad_packed_sequence(out, first, 0.5, STEPS + 1), last]

    compare(*pair(kind, FEATURES, SIZE, **options), call)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch", [(), (3,), (20,)])
def test_cell(kind: str, bias: bool, batch: tuple[int, ...]) -> None:
    def call(library: Any, module: Any, leaf: Any) -> Any:
        state: Any = leaf(normal(*batch, SIZE, seed=1))
        if kind == "LSTM":
            state = (state, leaf(normal(*batch, SIZE, seed=2)))
        found = [state]
        for t in range(3):
            found.append(module(leaf(normal(*batch, FEATURES, seed=5 + t)), found[-1]))
        return [*found[1:], module(leaf(normal(*batch, FEATURES, seed=9)))]

    compare(*pair(f"{kind}Cell", FEATURES, SIZE, bias=bias), call)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_single_precision(kind: str) -> None:
    """The kernels that everybody uses, at a size with several blocks of rows."""
    theirs = getattr(torch.nn, kind)(24, 40, 2, bidirectional=True)
    ours = getattr(ut.nn, kind)(24, 40, 2, bidirectional=True)
    ours.load_state_dict({n: ut.tensor(w.numpy()) for n, w in theirs.state_dict().items()})
    x, g = normal(12, 37, 24).astype("f"), normal(12, 37, 80, seed=1).astype("f")
    out, wanted = ours(ut.tensor(x))[0], theirs(torch.tensor(x))[0]
    out.backward(ut.tensor(g))
    wanted.backward(torch.tensor(g))
    np.testing.assert_allclose(out.detach().numpy(), wanted.detach().numpy(), atol=2e-6)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        scale = q.grad.abs().max().item()
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), atol=3e-6 * scale)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("first", [False, True])
def test_padding(first: bool, side: str) -> None:
    arrays = [normal(n, 2, seed=n) for n in (3, 1, 4)]
    for make, lib in ((rnn, ut), (torch.nn.utils.rnn, torch)):
        tensors = [lib.tensor(a) for a in arrays]
        padded = make.pad_sequence(tensors, first, 7.0, side)
        packed = make.pack_sequence(tensors, enforce_sorted=False)
        found = [padded, *packed, *make.unpack_sequence(packed)]
        if lib is ut:
            ours = found
    close(ours, found)


def test_everything_has_torchs_names() -> None:
    for name in torch.nn.utils.rnn.__all__:
        theirs, ours = getattr(torch.nn.utils.rnn, name), getattr(rnn, name)
        if inspect.isfunction(theirs):
            assert list(inspect.signature(ours).parameters) == list(
                inspect.signature(theirs).parameters
            )
    for name in ("RNNBase", "RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"):
        theirs, ours = getattr(torch.nn, name), getattr(ut.nn, name)
        public = {n for n in vars(theirs) if not n.startswith("_")}
        assert {n for n in public if not hasattr(ours, n)} <= {"jit_unused_properties"}
