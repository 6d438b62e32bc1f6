"""Wrappers that require gradients: results of them have a history; see Note [wrappers]."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import undertow as ut
from undertow.core import wrapping
from undertow.core.dispatch import apply
from undertow.core.op import OPS
from undertow.errors import UnsupportedError
from undertow.utils._pytree import tree_map_only

asked: list[str] = []


class Wrapper(ut.Tensor):
    inner: ut.Tensor

    @staticmethod
    def __new__(cls, inner: ut.Tensor, requires_grad: bool = False) -> Any:
        made = ut.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=requires_grad
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        asked.append(str(func))
        args, kwargs = tree_map_only(Wrapper, lambda w: w.inner, (args, kwargs or {}))
        return tree_map_only(ut.Tensor, Wrapper, func(*args, **kwargs))


def values(*shape: int) -> ut.Tensor:
    return ut.randn(*shape, dtype=ut.float64, generator=ut.Generator().manual_seed(sum(shape)))


def network(w: ut.Tensor, b: ut.Tensor, x: ut.Tensor) -> ut.Tensor:
    hidden = ut.nn.functional.gelu((w * b).tanh().reshape(4, 3) @ x + b)
    return (ut.cat([hidden, hidden[1:]]).softmax(0).mean(0)[1:3] ** 3).sum()


def test_gradients_flow_to_wrappers() -> None:
    given = values(3, 4), values(4), values(3, 4)
    plain = [t.clone().requires_grad_() for t in given]
    wrapped = [Wrapper(t, requires_grad=True) for t in given[:2]] + [given[2].clone()]
    wrapped[2].requires_grad_()
    network(*plain).backward()
    result = network(*wrapped)
    assert type(result) is Wrapper
    assert result.grad_fn is not None
    result.backward()
    for p, w in zip(plain, wrapped, strict=True):
        assert type(w.grad) is Wrapper
        ut.testing.assert_close(w.grad.inner, p.grad)
    result = network(*wrapped)
    result.backward()  # and are added up
    ut.testing.assert_close(wrapped[0].grad.inner, 2 * plain[0].grad)


def test_they_are_asked_by_the_names_of_aten() -> None:
    w = Wrapper(values(2, 3), requires_grad=True)
    asked.clear()
    y = (w.exp() @ w.t()).sum()
    assert asked == [
        "aten.exp.default",
        "aten.permute.default",
        "aten.mm.default",
        "aten.sum.dim_IntList",
    ]
    asked.clear()
    y.backward()
    assert {"aten.ones_like.default", "aten.expand.default", "aten.mul.Tensor"} <= {*asked}


def test_a_backward_of_wrappers_is_recorded_itself() -> None:
    x = values(3)
    plain, wrapped = x.clone().requires_grad_(), Wrapper(x, requires_grad=True)
    for t in (plain, wrapped):
        (first,) = ut.autograd.grad((t.sigmoid() * t).sum(), t, create_graph=True)
        (second,) = ut.autograd.grad((first * first).sum(), t)
        if t is plain:
            wanted = first, second
    assert type(first) is type(second) is Wrapper
    ut.testing.assert_close(first.inner, wanted[0].detach())
    ut.testing.assert_close(second.inner, wanted[1])


def test_what_has_no_history() -> None:
    w = Wrapper(values(3), requires_grad=True)
    with ut.no_grad():
        assert not (w * 2).requires_grad
        w.mul_(2)
    ut.testing.assert_close(w.inner, 2 * values(3))
    for t in (w.detach(), w.data, ut.zeros_like(w)):
        assert type(t) is Wrapper
        assert not t.requires_grad
    assert not (w * 2).is_meta
    assert (w * 2).device == ut.device("cpu")
    assert bool((w > 0).any()) == bool((w.inner > 0).any())


@pytest.mark.parametrize(
    "change",
    [
        lambda w, y: y.mul_(2),
        lambda w, y: y.__setitem__(0, 1.0),
        lambda w, y: y.__iadd__(1),
        lambda w, y: ut.zeros(3, dtype=ut.float64).add_(w),
        lambda w, y: ut.ops.aten.add_.Tensor(y, 1),
    ],
)
def test_changes_in_place_of_what_has_a_history_are_refused(change: Any) -> None:
    w = Wrapper(values(3), requires_grad=True)
    with pytest.raises(UnsupportedError, match="in place"):
        change(w, w * 1)


def test_a_plain_graph_takes_gradients_of_wrappers() -> None:
    x = values(3).requires_grad_()
    w = Wrapper(values(3), requires_grad=True)
    (x.exp() * w).sum().backward()
    assert type(x.grad) is Wrapper
    ut.testing.assert_close(x.grad.inner, x.detach().exp() * w.inner)
    ut.testing.assert_close(w.grad.inner, x.detach().exp())


def test_saved_wrappers_survive_their_names() -> None:
    w = Wrapper(values(3), requires_grad=True)
    y = w.exp().exp().sum()
    y.backward()
    ut.testing.assert_close(w.grad.inner, (w.inner.exp() + w.inner).exp())


def test_copies_parameters_and_hooks() -> None:
    w = Wrapper(values(3), requires_grad=True)
    for made in (
        copy.copy(w),
        copy.deepcopy(w),
        pickle.loads(pickle.dumps(w)),
        ut.nn.Parameter(Wrapper(values(3))),
    ):
        seen: list[type] = []
        y = made * 3
        y.retain_grad()
        made.register_hook(lambda g, seen=seen: seen.append(type(g)))
        y.sum().backward()
        assert seen == [Wrapper]
        assert type(y.grad) is type(made.grad) is Wrapper
        ut.testing.assert_close(made.grad.inner, ut.full((3,), 3.0, dtype=ut.float64))
    assert w.grad is None


class Slotted(Wrapper):
    __slots__ = ("kept",)

    @staticmethod
    def __new__(cls, inner: ut.Tensor, requires_grad: bool = False) -> Any:
        made = Wrapper.__new__(cls, inner, requires_grad)
        made.kept = made.__dict__.pop("inner")
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map_only(Slotted, lambda w: w.kept, (args, kwargs or {}))
        return tree_map_only(ut.Tensor, Slotted, func(*args, **kwargs))


def test_what_stands_in_slots_is_kept_as_well() -> None:
    x = values(3)
    w = Slotted(x, requires_grad=True)
    w.exp().exp().sum().backward()
    ut.testing.assert_close(w.grad.kept, (x.exp() + x).exp())
    rows = ut.autograd.functional.jacobian(lambda w: w.exp(), Slotted(x))
    ut.testing.assert_close(rows.kept, x.exp().diag())


def test_a_plain_graph_runs_from_a_wrapper() -> None:
    x = values(3).requires_grad_()
    y = x.expand(2, 3).exp()
    g = values(2, 3)
    (found,) = ut.autograd.grad(y, x, Wrapper(g))
    assert type(found) is Wrapper
    ut.testing.assert_close(found.inner, (y.detach() * g).sum(0))


def test_optimizers_do_not_pass_wrappers_by() -> None:
    w = Wrapper(values(3), requires_grad=True)
    (w * 3).sum().backward()
    with pytest.raises(UnsupportedError, match="wrapper"):
        ut.optim.SGD([w], lr=0.1).step()


# What operators take as numbers.
PARAMETERS: dict[str, list[float]] = {
    "celu": [1.0],
    "clamp_max": [1.0],
    "clamp_min": [1.0],
    "elu": [1.5],
    "hardshrink": [0.5],
    "hardtanh": [-1.0, 1.0],
    "leaky_relu": [0.1],
    "nan_to_num": [0.0, 1.0, -1.0],
    "softplus": [1.0, 20.0],
    "softshrink": [0.5],
    "threshold": [1.0, 7.0],
}
NAMES = sorted(
    name for name, op in OPS.items() if op.scalar is not None and wrapping._is_in_aten(name)
)


@pytest.mark.parametrize("name", NAMES)
def test_operators_compute_what_ops_do(name: str) -> None:
    """An op that is asked for under aten's name is called as that operator is."""
    op = OPS[name]
    kinds = [ut.tensor([0.3, 1.5, 2.0]), ut.tensor([True, False, True]), ut.tensor([1, 2, 3])]
    kinds.append(ut.tensor([1j, 2.0, 1 + 1j]))
    for like in [k for k, letter in zip(kinds, "fbic", strict=True) if letter in op.domain]:
        inputs = [like.roll(i) for i in range(op.arity)]
        if name == "where":
            inputs[0] = kinds[1]
        elif name in PARAMETERS:
            inputs[1:] = PARAMETERS[name]
        elif op.kind == "float" and like is not kinds[0]:
            continue
        func, args, kwargs = wrapping._as_asked(op, inputs, ())
        assert func.namespace == "aten"
        ut.testing.assert_close(func(*args, **kwargs), apply(op, inputs), equal_nan=True)
        return
    raise AssertionError("never tried")


def test_a_frozen_wrapper_between_layers_passes_gradients_on() -> None:
    """As a quantised base does below trained layers."""
    first, frozen, last = ut.nn.Linear(3, 4), values(4, 4).float(), ut.nn.Linear(4, 2)
    x = values(5, 3).float()
    plain = ut.autograd.grad(
        last(ut.nn.functional.linear(first(x), frozen)).square().sum(), list(first.parameters())
    )
    hidden = ut.nn.functional.linear(first(x), Wrapper(frozen))
    found = ut.autograd.grad(
        ut.nn.functional.linear(hidden, last.weight, last.bias).square().sum(),
        list(first.parameters()),
    )
    for f, p in zip(found, plain, strict=True):
        ut.testing.assert_close(f.inner if isinstance(f, Wrapper) else f, p)


def test_a_change_in_place_is_noticed_by_the_backward() -> None:
    w = Wrapper(values(3), requires_grad=True)
    y = (w * w).sum()
    with ut.no_grad():
        w.mul_(3)
    with pytest.raises(RuntimeError, match="in place"):
        y.backward()


def test_the_first_gradient_is_a_copy() -> None:
    w, g = Wrapper(values(3), requires_grad=True), Wrapper(values(3))
    before = g.inner.clone()
    (w + 1).backward(g)
    with ut.no_grad():
        w.grad.mul_(10)
    ut.testing.assert_close(g.inner, before)


def test_numbers_and_devices_of_wrappers_with_a_history() -> None:
    w = Wrapper(values(3), requires_grad=True)
    y = (w * ut.tensor(2.0, dtype=ut.float64)).sum()
    assert str(y.device) == "cpu"
    assert y.item() == float(y) == float(2 * w.inner.sum())
    first, _ = w.chunk(2)
    first.sum().backward()
    ut.testing.assert_close(w.grad.inner, ut.tensor([1.0, 1.0, 0.0], dtype=ut.float64))
    with pytest.raises(UnsupportedError, match="tangents"):
        ut.func.jvp(ut.sin, (w,), (w,))
