"""What a graph keeps, when it lets go, and graphs of a million nodes; saved-tensor hooks."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import weakref
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import grad, gradgradcheck
from undertow.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)
from undertow.core.op import OPS
from undertow.errors import DTypeError, FreedError, GradientError, InplaceError, VersionError


def leaf(values: Any, **how: Any) -> ut.Tensor:
    return ut.tensor(values, requires_grad=True, **how)


# 8. Values are freed as the backward runs ----------------------------------------------------
def chain(length: int, x: ut.Tensor) -> tuple[ut.Tensor, list[Any]]:
    """A chain in which every intermediate is saved by the next operation, and watched."""
    watched = []
    y = x * 1
    for _ in range(length):
        watched.append(weakref.ref(y))
        y = y * y
    return y, watched


@pytest.mark.parametrize("workers", [1, 2])
def test_saved_values_are_freed_during_the_backward(workers: int) -> None:
    x = leaf([1.0])
    alive_at: list[int] = []
    y, watched = chain(10, x)
    first = watched[0]()
    first.register_hook(lambda g: alive_at.append(sum(w() is not None for w in watched)))
    del first
    assert all(w() is not None for w in watched)
    y.backward(workers=workers)
    # When the gradient of the first value arrives, all others are gone, though `y` is still there.
    assert alive_at[0] <= 1
    assert x.grad.tolist() == [1024]


def test_retain_graph_keeps_values() -> None:
    x = leaf([1.0])
    y, watched = chain(5, x)
    y.backward(retain_graph=True)
    assert all(w() is not None for w in watched)
    y.backward()
    assert all(w() is None for w in watched)
    with pytest.raises(FreedError, match=r"MulBackward0.*retain_graph"):
        y.backward()


def test_a_dropped_graph_is_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf([1.0])
        y, watched = chain(5, x)
        y.exp().sigmoid().sum()
        del y
        assert all(w() is None for w in watched)
        # Operations that save their own output make no cycle either.
        z = x.exp()
        node = weakref.ref(z.grad_fn)
        del z
        assert node() is None
        y = (x * 2).tanh()
        y.backward()
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_an_unneeded_input_is_not_kept() -> None:
    """Addition saves nothing; multiplication by a constant saves the constant only."""
    x = leaf(np.ones(10))
    a = x * 2
    reference = weakref.ref(a)
    c = ut.ones(10, dtype=ut.float64)
    y = (a + 1) * c
    del a
    assert reference() is None
    kept = weakref.ref(c)
    del c
    assert kept() is not None
    y.sum().backward()
    assert kept() is None


def test_a_leaf_that_is_gone_takes_nothing_with_it() -> None:
    x = leaf([1.0])
    y = leaf([2.0])
    z = x + y
    del y
    z.backward()
    assert x.grad.tolist() == [1]


def test_plans_of_many_inputs_are_not_all_remembered() -> None:
    """Joining ever more tensors costs no memory when it is over."""
    x = ut.ones(1, requires_grad=True)
    for count in range(1, 300):
        ut.cat([x] * count).sum().backward()
    assert x.grad.item() == sum(range(300))
    assert sum(len(plan.needs) for plan in OPS["cat"].plans.values()) < 10_000


def test_gradients_do_not_keep_the_graph() -> None:
    x = leaf([1.0])
    y = (x * x).exp()
    node = weakref.ref(y.grad_fn)
    y.backward()
    del y
    assert node() is None
    assert x.grad is not None


# A million nodes -----------------------------------------------------------------------------
# In a process of its own, so that its memory can be measured and the recursion limit is real.
DEEP = """
import ctypes, gc, resource, sys, time
import undertow as ut

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20

def build(x, length, kind):
    y = x
    for _ in range(length):
        y = KINDS[kind](y, x)
    return y

KINDS = {
    "mul": lambda y, x: y * 1.0000001,
    "saved": lambda y, x: y * x,
    "view": lambda y, x: y.view(1),
}
kind, length, differentiate = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
sys.setrecursionlimit(200)
gc.freeze()
x = ut.ones(1, requires_grad=True)
build(x, 5000, kind).backward()  # warm up: after a thousand calls a function asks for machine code
x.grad = None
gc.collect()
before = resident()
y = build(x, length, kind)
built = resident()
if differentiate:
    y.backward()
    assert x.grad is not None and abs(x.grad.item()) > 0
y = None
gc.collect()
kept = resident()
getattr(ctypes.CDLL(None), "malloc_trim", bool)(0)  # what malloc keeps is no longer the graph's
after = resident()
print(f"{before:.0f} MB before, {built:.0f} built, {kept:.0f} kept by malloc, {after:.0f} after")
assert built - before > 20, "the graph is too small to tell"
assert kept - before < 1.7e-4 * length, "malloc keeps more than 170 bytes for each node"
assert after - before < 0.1 * (built - before), "memory does not return"
"""


def deep(kind: str, length: int, differentiate: bool) -> None:
    command = [sys.executable, "-c", textwrap.dedent(DEEP), kind, str(length)]
    result = subprocess.run(
        [*command, str(int(differentiate))], capture_output=True, text=True, timeout=180
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr[-2000:]}"


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@linux
@pytest.mark.slow
def test_a_million_nodes_are_built_differentiated_and_freed() -> None:
    deep("mul", 1_000_000, True)


@linux
@pytest.mark.slow
def test_a_million_nodes_are_freed_without_a_backward() -> None:
    deep("mul", 1_000_000, False)


@linux
@pytest.mark.parametrize("kind", ["saved", "view"])
@pytest.mark.parametrize("differentiate", [True, False])
def test_deep_graphs_of_other_kinds(kind: str, differentiate: bool) -> None:
    deep(kind, 150_000, differentiate)


def test_deep_graphs_in_every_way_of_differentiating() -> None:
    x = leaf([1.0])
    y = x * 1
    for _ in range(20_000):
        y = y + x
    (g,) = grad(y, x, retain_graph=True)
    assert g.tolist() == [20_001]
    (g,) = grad(y, x, retain_graph=True, create_graph=True)
    y.backward(inputs=[x], retain_graph=True, workers=2)
    assert x.grad.tolist() == [20_001]
    y.register_hook(lambda g: g * 2)
    y.backward()
    assert x.grad.tolist() == [60_003]


def test_deep_second_order() -> None:
    x = leaf(1.0, dtype=ut.float64)
    y = x * 1
    for _ in range(3000):
        y = y * x
    (g,) = grad(y, x, create_graph=True)
    (h,) = grad(g, x)
    assert g.item() == 3001
    assert h.item() == 3001 * 3000


# Saved-tensor hooks --------------------------------------------------------------------------
def test_hooks_get_tensors_without_history_and_without_recording() -> None:
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append((t.requires_grad, t.is_leaf, ut.is_grad_enabled(), t.tolist()))
        return t

    x = leaf([2.0])
    with saved_tensors_hooks(pack, lambda t: t):
        y = (x * 3).exp() * x
    saved = [values for *_, values in seen]
    assert all(s[:3] == (False, True, False) for s in seen)
    assert saved.count([2.0]) == 1  # x for the product; its factor 3 is no tensor
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(6) * 7, rtol=1e-6)


def test_every_saved_tensor_goes_through_the_hooks() -> None:
    x, w = leaf(np.full((3, 3), 0.5)), leaf(np.full((3, 3), 0.25))

    def run() -> Any:
        y = ut.cat([(x @ w).tanh(), x.exp()]).softmax(0)
        a, _ = y.sort(0)
        return (y * a).sum() + (x.sin() * w[:, ut.tensor([0, 2, 1])]).mean()

    plain = grad(run(), (x, w))
    stored: list[Any] = []

    def pack(t: Any) -> int:
        stored.append(t.clone())
        return len(stored) - 1

    with saved_tensors_hooks(pack, lambda i: stored[i]):
        y = run()
    assert len(stored) > 8
    for p, q in zip(plain, grad(y, (x, w)), strict=True):
        assert (p == q).all()


def test_hooks_are_right_to_second_order() -> None:
    x = leaf([0.5, 1.5], dtype=ut.float64)

    def f(x: Any) -> Any:
        with saved_tensors_hooks(lambda t: t.numpy().copy(), ut.tensor):
            return (x * x).exp() * x.sigmoid()

    assert gradgradcheck(f, (x,))


def test_hooks_apply_while_the_backward_records() -> None:
    packs: list[int] = []
    x = leaf([2.0])
    y = x * x * x
    with saved_tensors_hooks(lambda t: packs.append(1) or t, lambda t: t):
        (g,) = grad(y, x, create_graph=True)
    assert packs
    assert grad(g, x)[0].item() == 12


def test_the_innermost_hooks_apply() -> None:
    log: list[str] = []
    x = leaf([2.0])
    outer = saved_tensors_hooks(lambda t: log.append("outer") or t, lambda t: t)
    inner = saved_tensors_hooks(lambda t: log.append("inner") or t, lambda t: t)
    with outer:
        x.exp()
        with inner:
            x.exp()
        x.exp()
    x.exp()
    assert log == ["outer", "inner", "outer"]


def test_unpack_must_return_the_tensor() -> None:
    x = leaf([1.0, 2.0])
    for wrong, error in (
        (lambda t: None, TypeError),  # as in torch
        (lambda t: t.numpy(), TypeError),
        (lambda t: t[:1], GradientError),
        (lambda t: t.view(2, 1), GradientError),
        (lambda t: t.double(), GradientError),
        (lambda t: t.to("reference"), GradientError),
    ):
        with saved_tensors_hooks(lambda t: t, wrong):
            y = x.exp().sum()
        with pytest.raises(error, match=r"ExpBackward0.*unpack"):
            y.backward()
    assert x.grad is None


def test_pack_must_not_change_its_argument() -> None:
    x = leaf([1.0, 2.0])
    hooks = saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t)
    with hooks, pytest.raises(InplaceError, match="pack"):
        x.exp()


def test_a_change_after_packing_is_detected_if_memory_is_shared() -> None:
    x, w = leaf([1.0, 2.0]), ut.ones(2)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x * w).sum()
    w.add_(1)
    with pytest.raises(VersionError):
        y.backward()
    with save_on_cpu():  # already there: nothing is copied
        y = (x * w).sum()
    w.sub_(1)
    with pytest.raises(VersionError):
        y.backward()
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = (x * w).sum()
    w.add_(1)
    y.backward()
    assert x.grad.tolist() == [1, 1]


def test_errors_in_hooks_pass_and_the_mode_ends() -> None:
    x = leaf([1.0])

    def fails(t: Any) -> Any:
        raise LookupError("packed")

    with pytest.raises(LookupError, match="packed"), saved_tensors_hooks(fails, fails):
        x.exp()
    with saved_tensors_hooks(lambda t: t, fails):
        y = x.exp()
    with pytest.raises(LookupError, match="packed"):
        y.backward()
    x.exp().backward()
    assert ut.is_grad_enabled()
    with pytest.raises(DTypeError):
        saved_tensors_hooks(1, lambda t: t)  # type: ignore[arg-type]


def test_packed_values_are_freed() -> None:
    class Token:
        def __init__(self, t: Any) -> None:
            self.t = t
            tokens.append(weakref.ref(self))

    tokens: list[Any] = []
    x = leaf([1.0])
    with saved_tensors_hooks(Token, lambda token: token.t):
        y = x.exp().exp()
    y.backward()
    assert tokens
    assert all(t() is None for t in tokens)


def test_disable_saved_tensors_hooks() -> None:
    hooks = saved_tensors_hooks(lambda t: t, lambda t: t)
    with disable_saved_tensors_hooks("not now"):
        with pytest.raises(GradientError, match="not now"), hooks:
            pass
        with pytest.raises(GradientError, match="not now"):
            ut.autograd.checkpoint(lambda x: x * x, leaf([1.0]))
    disabled = disable_saved_tensors_hooks("not now")
    with hooks, pytest.raises(GradientError, match="not now"), disabled:
        pass
    x = leaf([1.0])
    with hooks:
        x.exp()


def test_save_on_cpu() -> None:
    for device in ("cpu", "reference"):
        x = leaf([1.0, 2.0], device=device)
        with save_on_cpu(pin_memory=True):
            y = (x * x).exp() * x
        y.sum().backward()
        expected = (1 + 2 * np.array([1.0, 4.0])) * np.exp(np.array([1.0, 4.0]))
        np.testing.assert_allclose(x.grad.cpu().numpy(), expected, rtol=1e-6)
        assert str(x.grad.device) == device


def test_increment_version() -> None:
    x, w = leaf([1.0]), ut.ones(1)
    y = x * w
    increment_version([w])
    with pytest.raises(VersionError):
        y.backward()
    with ut.inference_mode():
        c = ut.ones(1)
    increment_version(c)  # which has no version, and is never saved


@pytest.mark.parametrize("make", [lambda x: x.exp(), lambda x: x.softmax(0), lambda x: x.tanh()])
def test_a_changed_output_is_noticed_behind_hooks(make: Any) -> None:
    x = leaf([1.0, 2.0])
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = make(x)
    y.mul_(2)
    with pytest.raises(VersionError, match="changed in place"):
        y.sum().backward()


# Changing what was saved ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.zero_(),
        lambda y: y.mul_(3),
        lambda y: y[1:].zero_(),
        lambda y: y.view(2, 2).t_().fill_(7),
        lambda y: y.__setitem__(0, 5.0),
        lambda y: y.__setitem__(ut.tensor([0, 1]), 5.0),
        lambda y: y.index_add_(0, ut.tensor([0]), ut.ones(1, dtype=y.dtype)),
        lambda y: y.normal_(),
        lambda y: y.detach().zero_(),
        lambda y: (y.zero_(), y.add_(1), y.exp_()),
    ],
)
def test_what_is_saved_may_be_changed_where_that_is_allowed(change: Any) -> None:
    data = [1.0, 2.0, 3.0, 4.0]
    x = leaf(data, dtype=ut.float64)
    with allow_mutation_on_saved_tensors():
        y = x.clone()
        middle = y[1:3]
        z = (y * y).sum() + (middle**3).sum() + y.exp().sum()
        change(y)
        z.backward(retain_graph=True)
    expected = [2 * v + np.exp(v) + (3 * v * v if 1 < v < 4 else 0) for v in data]
    np.testing.assert_allclose(x.grad.numpy(), expected)
    x.grad = None
    z.backward()  # torch wants it inside
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_an_output_that_was_saved_may_be_changed_and_differentiated() -> None:
    x = leaf([0.5, 1.0], dtype=ut.float64)

    def f(x: Any) -> Any:
        with allow_mutation_on_saved_tensors():
            y = x.exp()
            z = y.tanh()
            y.mul_(x)
            z.mul_(y)
            return z * z

    assert ut.autograd.gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


def test_only_what_is_alive_and_changed_is_copied() -> None:
    x = leaf([1.0, 2.0])
    with allow_mutation_on_saved_tensors():
        y = x.clone()
        (y * y).sum().backward()
        before = y.data_ptr()
        y.zero_()  # nobody needs it any more
        z = (y * y).sum()
        z.backward()
        assert y.data_ptr() == before
    assert x.grad.tolist() == [2, 4]


def test_outside_of_the_block_a_change_is_an_error_again() -> None:
    x = leaf([1.0, 2.0])
    with allow_mutation_on_saved_tensors() as kept:
        y, v = x.clone(), x.clone()
        z = (y * y).sum()
        w = (v * v).sum()
        kept.clear()
        v.zero_()
        with pytest.raises(GradientError, match="nested"), allow_mutation_on_saved_tensors():
            pass
    y.zero_()
    for root in (z, w):
        with pytest.raises(VersionError, match="changed in place"):
            root.backward()
