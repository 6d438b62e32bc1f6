"""Every layer of the table beside torch's: state, text, outputs, gradients and start values."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from layer_table import TABLE, Case, Layer, made, outputs
from undertow.core.tensor import wrap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

CASES = [
    pytest.param(entry, case, id=f"{entry.name}-{case!r}")
    for entry in TABLE.values()
    for case in entry.cases
]


def pair(entry: Layer, case: Case) -> tuple[Any, Any]:
    """Our layer and torch's, in float64."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, about nested tensors and empty inits
        theirs = made(torch.nn, entry, case, lambda a: torch.from_numpy(np.array(a))).double()
    return made(ut.nn, entry, case, lambda a: wrap(np.array(a))).double(), theirs


def called(library: Any, module: Any, case: Case) -> tuple[list[Any], list[Any]]:
    """The outputs, and the inputs that are differentiated; one array is one tensor."""
    seen: dict[int, Any] = {}

    def one(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in seen:
            array = np.array(value)
            seen[id(value)] = wrap(array) if library is ut else torch.from_numpy(array)
            masks = any(value is v for v in case.options.values())
            seen[id(value)].requires_grad_(value.dtype == np.float64 and not masks)
        return seen[id(value)]

    inputs = [one(v) for v in case.inputs]
    options = {n: one(v) for n, v in case.options.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = outputs(module(*inputs, **options))
    return found, [t for t in seen.values() if t.requires_grad]


def numbers(t: Any) -> Any:
    return None if t is None else t.detach().numpy()


def copied(ours: Any, theirs: Any) -> None:
    """Random values in every parameter and buffer of both."""
    random = np.random.default_rng(0)
    with ut.no_grad(), torch.no_grad():
        state, other = ours.state_dict(), theirs.state_dict()
        for name, value in state.items():
            if value.is_floating_point() and not name.endswith("_random_samples"):
                array = random.uniform(0.3, 1.2, value.shape)
                array *= 1 if "running" in name else random.choice([-1, 1], value.shape)
                value.copy_(wrap(array))
                other[name].copy_(torch.from_numpy(array))


@pytest.mark.parametrize("entry, case", CASES)
def test_layer(entry: Layer, case: Case) -> None:
    """Same names and shapes, same text, same outputs and gradients, same state afterwards."""
    ours, theirs = pair(entry, case)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    if entry.becomes:
        called(ut, ours, case), called(torch, theirs, case)
        assert type(ours).__name__ == type(theirs).__name__
        assert repr(ours) == repr(theirs)
    shapes = [tuple(v.shape) for v in theirs.state_dict().values()]
    assert [v.shape for v in ours.state_dict().values()] == shapes
    grads = [p.requires_grad for p in theirs.parameters()]
    assert [p.requires_grad for p in ours.parameters()] == grads
    copied(ours, theirs)
    found, given = called(ut, ours, case)
    wanted, theirs_given = called(torch, theirs, case)
    if entry.random and case.training and case.kwargs.get("p", *case.args[:1] or (1,)) != 0:
        return
    compare(found, wanted)
    compare(ours.state_dict().values(), theirs.state_dict().values())
    if not entry.torch_grad:
        return
    backward(found, wanted)
    compare([t.grad for t in given], [t.grad for t in theirs_given])
    compare([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


def compare(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
            np.testing.assert_allclose(numbers(a), numbers(b), 1e-7, 1e-9)


def backward(found: list[Any], wanted: list[Any]) -> None:
    """The gradients of all outputs, each weighted with other random numbers."""
    ours, theirs, random = [], [], np.random.default_rng(1)
    for a, b in zip(found, wanted, strict=True):
        weights = random.normal(size=a.shape)
        assert a.requires_grad == b.requires_grad
        if a.requires_grad:
            ours.append((a * wrap(weights)).sum())
            theirs.append((b * torch.from_numpy(weights)).sum())
    if ours:
        sum(ours).backward()
        sum(theirs).backward()


STARTS = [pytest.param(entry, id=entry.name) for entry in TABLE.values() if entry.starts]


@pytest.mark.parametrize("entry", STARTS)
def test_start_values(entry: Layer) -> None:
    """Parameters start with the same constants, or the same spread and the same bounds."""
    assert entry.starts is not None
    ut.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = pair(entry, entry.starts)
    wanted = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        a, b = numbers(parameter), numbers(wanted[name])
        if b.std() == 0:
            np.testing.assert_array_equal(a, b)
            continue
        few = 4 / np.sqrt(a.size)
        assert abs(a.mean()) < few * b.std()
        np.testing.assert_allclose(a.std(), b.std(), few)
        bounded = a.size > 200 and np.abs(b).max() < 2 * b.std()  # a uniform one ends at 1.73
        if bounded:
            np.testing.assert_allclose(np.abs(a).max(), np.abs(b).max(), 0.1)


@pytest.mark.parametrize("entry", STARTS)
def test_states_cross(entry: Layer) -> None:
    """A state of torch's is loaded as it is, and the other way round."""
    ours, theirs = pair(entry, entry.cases[0])
    state = {n: wrap(v.numpy().copy()) for n, v in theirs.state_dict().items()}
    assert ours.load_state_dict(state) == ([], [])
    back = {n: torch.from_numpy(v.numpy().copy()) for n, v in ours.state_dict().items()}
    assert tuple(theirs.load_state_dict(back)) == ([], [])


def arguments(kind: Any) -> list[tuple[str, Any]]:
    """The names and defaults of a constructor's arguments."""
    import inspect

    given = inspect.signature(kind.__init__).parameters.values()
    return [
        (p.name, getattr(p.default, "__name__", p.default), p.kind)
        for p in given
        if p.name != "self"
    ]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_arguments(name: str) -> None:
    """The same names, order and defaults in the constructor and in forward."""
    ours, theirs = getattr(ut.nn, name), getattr(torch.nn, name)
    if name not in FREE:
        assert arguments(ours) == arguments(theirs)
    names = ours.forward.__code__.co_varnames[1 : ours.forward.__code__.co_argcount]
    theirs_names = theirs.forward.__code__.co_varnames[1 : theirs.forward.__code__.co_argcount]
    assert names == theirs_names


# Constructors without arguments are Module's own in torch, which takes anything and refuses it.
FREE = {"Identity"}


def test_nothing_is_left_out() -> None:
    """No module class of torch is missing."""
    theirs = {
        name
        for name, value in vars(torch.nn).items()
        if isinstance(value, type) and issubclass(value, torch.nn.Module)
    }
    assert not {name for name in theirs if not hasattr(ut.nn, name)}


VALUES = [
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "binary_cross_entropy",
    "kl_div",
    "poisson_nll_loss",
]
SIGNS = ["soft_margin_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss"]
CLASSES = ["nll_loss", "cross_entropy", "multi_margin_loss"]


@pytest.mark.parametrize("name", [*VALUES, *SIGNS, *CLASSES])
def test_reductions_from_before_reduction(name: str) -> None:
    """size_average and reduce mean what they mean in torch, with its warning."""
    random = np.random.default_rng(0)
    x, y = random.random((4, 5)), random.random((4, 5))
    target = np.arange(4) if name in CLASSES else y if name in VALUES else np.sign(y - 0.5)
    for average, reduce in itertools.product((None, True, False), repeat=2):
        if average is None and reduce is None:
            continue
        given = {"size_average": average, "reduce": reduce}
        found = []
        for lib in (ut, torch):
            function = getattr(lib.nn.functional, name)
            with pytest.warns(UserWarning, match=r"please use reduction='\w+' instead"):
                found.append(function(lib.tensor(x), lib.tensor(target), **given).numpy())
        np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
