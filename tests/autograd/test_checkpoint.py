"""Checkpointing: the same numbers, computed again instead of kept."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    grad,
    gradcheck,
    gradgradcheck,
)
from undertow.core.op import OPS
from undertow.errors import ArgumentError, VersionError
from undertow.utils.checkpoint import (
    CheckpointPolicy,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)


def leaf(values: Any, **how: Any) -> ut.Tensor:
    return ut.tensor(values, requires_grad=True, **how)


def double(*shape: int, seed: int = 0) -> ut.Tensor:
    return leaf(np.random.default_rng(seed).standard_normal(shape), dtype=ut.float64)


def f(x: Any) -> Any:
    return (x * x).exp().tanh() * x


both = pytest.mark.parametrize("use_reentrant", [None, False, True])


@both
def test_same_gradients(use_reentrant: Any) -> None:
    x, y = double(3, 4), double(3, 4)
    f(x).sum().backward()
    checkpoint(f, y, use_reentrant=use_reentrant).sum().backward()
    assert (x.grad == y.grad).all()


@pytest.mark.parametrize("workers", [1, 2])
def test_derivatives_of_any_order(workers: int) -> None:
    x, w = double(3), double(3, seed=1)

    def g(x: Any, w: Any) -> Any:
        return checkpoint(lambda x, w: (x * w).sin() * x, x * 2, w)

    assert gradcheck(g, (x, w))
    assert gradgradcheck(g, (x, w))
    (first,) = grad(g(x, w).sum(), x, create_graph=True, workers=workers)
    (second,) = grad(first.sum(), x, create_graph=True, workers=workers)
    (third,) = grad(second.sum(), x, workers=workers)
    (first,) = grad(((x * 2 * w).sin() * x * 2).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    np.testing.assert_allclose(third.numpy(), grad(second.sum(), x)[0].numpy(), rtol=1e-10)


def test_several_inputs_outputs_and_keywords() -> None:
    a, b, c, d = (double(2, seed=i) for i in range(4))

    def g(a: Any, pair: Any, *, scale: float, more: Any, unused: Any = None) -> Any:
        b, options = pair
        y = a * b * scale
        return y.exp(), [y.sin(), "text"], {"k": y * options["c"] * more}

    def run(call: Any) -> Any:
        y, (z, text), rest = call(g, a, (b, {"c": c}), scale=2.0, more=d)
        assert text == "text"
        return grad((y + z * rest["k"]).sum(), (a, b, c, d))

    plain = run(lambda g, *args, **kwargs: g(*args, **kwargs))
    again = run(checkpoint)
    for p, q in zip(plain, again, strict=True):
        assert (p == q).all()


def test_captured_tensors_get_gradients() -> None:
    w = leaf([3.0])
    x = ut.tensor([2.0])  # needs no gradient itself
    y = checkpoint(lambda x: x * w * w, x)
    y.backward()
    assert w.grad.tolist() == [12]


def test_nothing_is_kept_and_it_is_computed_again_once() -> None:
    runs: list[int] = []
    inside: list[Any] = []

    def g(x: Any) -> Any:
        runs.append(1)
        a = x * x
        inside.append(weakref.ref(a))
        return a * a * a

    x = leaf([2.0])
    y = checkpoint(g, x)
    gc.collect()
    assert inside[0]() is None
    assert len(runs) == 1
    y.backward()
    assert len(runs) == 2
    assert x.grad.tolist() == [6 * 32]
    gc.collect()
    assert inside[1]() is None


def test_arguments_are_released_after_the_backward() -> None:
    x = leaf(np.ones(10))
    a = x * 2
    reference = weakref.ref(a)
    y = checkpoint(f, a).sum()
    del a
    assert reference() is not None
    y.backward()
    assert reference() is None


def counted() -> tuple[list[int], Any]:
    runs: list[int] = []

    def g(x: Any) -> Any:
        runs.append(1)
        return x * x.tanh() + x

    return runs, g


def test_chained_checkpoints_cost_is_linear() -> None:
    runs, g = counted()
    x = leaf([0.5], dtype=ut.float64)
    y = x * 1
    for _ in range(40):
        y = checkpoint(g, y)
    y.backward()
    assert len(runs) == 80
    z = leaf([0.5], dtype=ut.float64)
    w = z * 1
    for _ in range(40):
        w = g(w)
    w.backward()
    assert (x.grad == z.grad).all()


def test_nested_checkpoints_cost_is_linear_in_the_depth() -> None:
    runs, g = counted()

    def nest(depth: int) -> Any:
        if depth == 0:
            return g
        inner = nest(depth - 1)
        return lambda x: checkpoint(inner, x * 1.5) * x

    depth = 8
    x = leaf([0.5], dtype=ut.float64)
    nest(depth)(x).backward()
    assert len(runs) <= depth + 1
    found = x.grad.clone()
    x.grad = None

    def plain(depth: int, x: Any) -> Any:
        return g(x) if depth == 0 else plain(depth - 1, x * 1.5) * x

    plain(depth, x).backward()
    np.testing.assert_allclose(found.numpy(), x.grad.numpy(), rtol=1e-12)


def test_nested_checkpoints_keep_nothing_either() -> None:
    inside: list[Any] = []

    def inner(x: Any) -> Any:
        return x.exp() * x

    def outer(x: Any) -> Any:
        a = x * 2
        inside.append(weakref.ref(a))
        return checkpoint(inner, a)

    x = double(4)
    y = checkpoint(outer, x)
    assert inside[0]() is None
    y.sum().backward()
    xs = x.detach().numpy()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * xs) * (1 + 2 * xs))
    assert gradgradcheck(lambda x: checkpoint(outer, x), (x,))


def test_random_numbers_are_the_same_again() -> None:
    x = leaf(np.ones(1000))

    def g(x: Any) -> Any:
        masks.append((ut.rand(1000) < 0.5).to(x.dtype))
        return x * x * masks[-1]

    masks: list[Any] = []
    ut.manual_seed(3)
    y = checkpoint(g, x).sum()
    ut.rand(7)
    before = ut.rand(3)
    state = ut.get_rng_state()
    y.backward()
    assert (masks[0] == masks[1]).all()
    assert (x.grad == 2 * masks[0]).all()
    assert (ut.get_rng_state() == state).all()  # the backward draws nothing
    del before
    x.grad = None
    y = checkpoint(g, x, preserve_rng_state=False).sum()
    y.backward()
    assert not (masks[2] == masks[3]).all()


def test_random_numbers_are_the_same_again_in_several_threads() -> None:
    """Each replays its own, also while the other does, and nobody else's stream moves."""
    first, meeting = [True], threading.Barrier(3, timeout=120)
    masks: dict[int, list[Any]] = {0: [], 1: []}

    def g(x: Any, number: int) -> Any:
        if not first:
            meeting.wait()
        masks[number].append(ut.rand(5))
        return x * masks[number][-1]

    inputs = [leaf(np.ones(5, np.float32)) for _ in masks]
    sums = [checkpoint(g, x, number).square().sum() for number, x in enumerate(inputs)]
    first.clear()
    state = ut.get_rng_state()
    threads = [threading.Thread(target=y.backward) for y in sums]
    for thread in threads:
        thread.start()
    meeting.wait()
    drawn = ut.rand(5)
    for thread in threads:
        thread.join()
    for number, x in enumerate(inputs):
        forward, again = masks[number]
        assert (forward == again).all()
        assert (x.grad == 2 * forward * forward).all()
    ut.set_rng_state(state)
    assert (ut.rand(5) == drawn).all()


def test_retained_graph_computes_again_each_time() -> None:
    runs, g = counted()
    x = leaf([0.5])
    y = checkpoint(g, x)
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert len(runs) == 3
    x.grad = None
    y.backward()
    assert y.requires_grad
    assert x.grad is not None


def test_without_gradients_it_is_a_plain_call() -> None:
    runs, g = counted()
    with ut.no_grad():
        y = checkpoint(g, leaf([1.0]))
    assert not y.requires_grad
    assert len(runs) == 1
    assert not checkpoint(g, ut.ones(1)).requires_grad


def test_part_of_the_results_may_be_unused() -> None:
    x = double(3)

    def g(x: Any) -> Any:
        return x.exp(), x.sin(), ut.tensor([1])

    y, z, _ = checkpoint(g, x)
    z.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(x.detach().numpy()))
    del y


def test_gradients_inside_the_function() -> None:
    x = double(3)

    def g(x: Any) -> Any:
        with ut.enable_grad():
            y = (x * x * x).sum()
            (first,) = grad(y, x, create_graph=True)
        return first * first

    (found,) = grad(checkpoint(g, x * 1).sum(), x)
    (plain,) = grad(g(x * 1).sum(), x)
    np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=1e-12)
    (found,) = grad(checkpoint(g, x * 1, early_stop=False).sum(), x)
    np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=1e-12)


def test_functions_with_their_own_backward_inside() -> None:
    class Cube(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    x = double(3)
    assert gradgradcheck(lambda x: checkpoint(lambda x: Cube.apply(x.exp()), x), (x,))


def test_views_and_in_place_inside() -> None:
    x = double(4)

    def g(x: Any) -> Any:
        y = x * 2
        y[1:3].mul_(x[:2])
        y.exp_()
        return y.view(2, 2).t() * y.view(2, 2)

    assert gradcheck(lambda x: checkpoint(g, x), (x,))
    assert gradgradcheck(lambda x: checkpoint(g, x), (x,))


# What goes wrong is an error -----------------------------------------------------------------
def test_changed_argument() -> None:
    x = leaf([1.0, 2.0])
    c = ut.tensor([3.0, 4.0])
    y = checkpoint(lambda x, c: (x * c).exp(), x, c).sum()
    c.add_(1)
    with pytest.raises(VersionError, match=r"checkpoint.*an argument"):
        y.backward()


def test_changed_captured_tensor() -> None:
    """A weight that the optimiser changed in between."""
    w = leaf([1.0, 2.0])
    z = checkpoint(lambda x: (x * w).exp(), leaf([1.0, 1.0])).sum()
    with ut.no_grad():
        w.mul_(2)
    with pytest.raises(VersionError, match=r"checkpoint.*version"):
        z.backward()
    assert w.grad is None


def test_function_that_changes_its_mind() -> None:
    x = leaf([1.0, 2.0])
    for second in (lambda x: x + 1, lambda x: x.exp()[:1].exp().sum() + x):
        calls: list[int] = []

        def g(x: Any, second: Any = second, calls: Any = calls) -> Any:
            calls.append(1)
            return x.exp().exp() if len(calls) == 1 else second(x)

        with pytest.raises(CheckpointError, match="both times"):
            checkpoint(g, x).sum().backward()
    # Saving more is only seen when the second run is not cut short.
    calls = []

    def more(x: Any) -> Any:
        calls.append(1)
        y = x.exp()
        return y if len(calls) == 1 else y.exp()

    with pytest.raises(CheckpointError, match="1 tensors in the forward but 2"):
        checkpoint(more, x, early_stop=False).sum().backward()


def test_errors_in_the_function_pass_and_leave_the_modes() -> None:
    def bad(x: Any) -> Any:
        raise LookupError

    with pytest.raises(LookupError):
        checkpoint(bad, leaf([1.0]))
    x = leaf([1.0])
    y = x * x
    assert y.grad_fn.saved[0] is x  # no hook is left behind
    with pytest.raises(TypeError):
        checkpoint(3, x)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        checkpoint(f, x, determinism_check="maybe")


def test_early_stop_is_not_caught_by_the_function() -> None:
    caught: list[Any] = []

    def g(x: Any) -> Any:
        try:
            return x.exp()
        except Exception as error:
            caught.append(error)
            raise

    x = leaf([1.0])
    checkpoint(g, x).backward()
    assert caught == []
    assert x.grad is not None


def test_contexts() -> None:
    log: list[str] = []

    @contextmanager
    def named(name: str) -> Any:
        log.append(name)
        yield

    x = leaf([1.0])
    y = checkpoint(f, x, context_fn=lambda: (named("first"), named("second")))
    assert log == ["first"]
    y.backward()
    assert log == ["first", "second"]


# Sequences -----------------------------------------------------------------------------------
def test_sequential() -> None:
    runs, g = counted()
    x, y = double(3), double(3)
    checkpoint_sequential([g] * 7, 3, x).sum().backward()
    assert len(runs) == 7 + 4  # the last segment of three is kept
    z = y
    for _ in range(7):
        z = g(z)
    z.sum().backward()
    assert (x.grad == y.grad).all()
    for segments in (0, 8):
        with pytest.raises(ArgumentError, match="segments"):
            checkpoint_sequential([g] * 7, segments, x)


def test_other_devices() -> None:
    x = leaf([0.5, 1.0], device="reference")
    checkpoint(f, x).sum().backward()
    y = leaf([0.5, 1.0])
    f(y).sum().backward()
    np.testing.assert_array_equal(x.grad.cpu().numpy(), y.grad.numpy())


def test_torch_finds_it_in_utils() -> None:
    assert ut.utils.checkpoint.checkpoint is checkpoint
    assert ut.utils.checkpoint.checkpoint_sequential is checkpoint_sequential


# Which results are kept ----------------------------------------------------------------------
@contextmanager
def computing(name: str) -> Any:
    """How often the op `name` computes."""
    op, calls = OPS[name], [0]
    forward = op.forward

    def count(*args: Any) -> Any:
        calls[0] += 1
        return forward(*args)

    op.forward = count
    try:
        yield calls
    finally:
        op.forward = forward


def network(x: Any, w: Any) -> Any:
    return ((x @ w).tanh() @ w).exp()


def as_policy(choice: Any) -> Any:
    return lambda ctx, op, *args: choice if op.name == "matmul" else CheckpointPolicy.MUST_RECOMPUTE


@pytest.mark.parametrize(
    "choice, again",
    [
        (["matmul"], 0),
        ([OPS["matmul"]], 0),
        ([], 2),
        (["exp"], 2),
        (as_policy(CheckpointPolicy.MUST_SAVE), 0),
        (as_policy(CheckpointPolicy.PREFER_SAVE), 0),
        (as_policy(CheckpointPolicy.PREFER_CPU_OFFLOAD), 0),
        (as_policy(True), 0),
        ([ut.ops.aten.mm.default], 0),
        (lambda ctx, op, *args: op in {ut.ops.aten.mm.default, ut.ops.aten.view.default}, 0),
        (lambda ctx, op, *args: op == ut.ops.aten.bmm.default, 2),
        (as_policy(False), 2),
        (as_policy(CheckpointPolicy.PREFER_RECOMPUTE), 2),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_kept_results_are_not_computed_again(choice: Any, again: int, device: str) -> None:
    keep = partial(create_selective_checkpoint_contexts, choice)
    x, w = (double(3, 3, seed=s).detach().to(device).requires_grad_() for s in (0, 1))
    expected = grad(network(x, w).sum(), (x, w))
    y = checkpoint(network, x, w, context_fn=keep).sum()
    with computing("matmul") as calls:
        first = grad(y, (x, w), retain_graph=True, create_graph=True)
        assert calls[0] == again  # the backward's own products are other ops
    for a, b in zip(first, expected, strict=True):
        assert (a == b).all()
        assert a.device == ut.device(device)
    assert (grad(y, x)[0] == expected[0]).all()  # torch refuses a second time


def test_kept_results_differentiate_to_any_order() -> None:
    keep = partial(create_selective_checkpoint_contexts, ["matmul", "tanh"])
    x, w = double(2, 2), double(2, 2, seed=1)
    run = lambda x, w: checkpoint(network, x, w, context_fn=keep)
    assert gradcheck(run, (x, w))
    assert gradgradcheck(run, (x, w))


def test_ops_of_several_outputs_and_views_are_kept_or_not() -> None:
    def g(x: Any) -> Any:
        spread, mean = ut.var_mean(x.t().reshape(4), 0)
        return spread * mean

    x = double(2, 2)
    keep = partial(create_selective_checkpoint_contexts, lambda *_: True)
    with computing("var_mean") as calls:
        checkpoint(g, x, context_fn=keep).backward()
    assert calls[0] == 1
    assert (x.grad == grad(g(x), x)[0]).all()


def test_a_policy_sees_the_op_its_inputs_and_its_result() -> None:
    seen: list[Any] = []

    def policy(ctx: Any, op: Any, *args: Any) -> Any:
        seen.append((op.name, [tuple(a.shape) for a in args[:2]], tuple(ctx.op_output.shape)))
        assert not ctx.is_recompute
        return op.name == "matmul"

    x, w = double(2, 3), double(3, 4)
    keep = partial(create_selective_checkpoint_contexts, policy)
    checkpoint(lambda x, w: x @ w, x, w, context_fn=keep).sum().backward()
    assert seen == [("matmul", [(2, 3), (3, 4)], (2, 4))]


def test_a_kept_result_that_is_changed_is_an_error() -> None:
    def g(x: Any) -> Any:
        y = x @ x
        y.mul_(2)
        return y.exp()

    x = double(2, 2)
    keep = create_selective_checkpoint_contexts
    y = checkpoint(g, x, context_fn=lambda: keep(["matmul"]))
    with pytest.raises(VersionError, match=r"result of matmul .* version 0, .* version 1"):
        y.sum().backward()
    y = checkpoint(lambda x: (x @ x).add_(0).exp(), x, context_fn=lambda: keep(["matmul"], True))
    y.sum().backward()  # the change does no harm, as promised
    assert ut.allclose(x.grad, grad((x @ x).exp().sum(), x)[0])


def test_another_op_in_the_second_run_is_noticed() -> None:
    calls: list[int] = []

    def g(x: Any) -> Any:
        calls.append(1)
        return (x @ x).exp() if len(calls) == 1 else (x * x).exp()

    y = checkpoint(
        g, double(2, 2), context_fn=lambda: create_selective_checkpoint_contexts(["matmul"])
    )
    with pytest.raises(CheckpointError, match="was matmul in the forward but mul"):
        y.sum().backward()


def test_what_is_no_policy() -> None:
    with pytest.raises(ArgumentError, match="'product' is not the name of an op"):
        create_selective_checkpoint_contexts(["product"])
    with pytest.raises(ut.errors.DTypeError, match="got int"):
        create_selective_checkpoint_contexts(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("ruled", [None, False, True])
def test_the_early_stop_of_a_block(asked: bool, ruled: bool | None) -> None:
    calls: list[int] = []

    def g(x: Any) -> Any:
        y = x.exp()
        calls.append(1)
        return y * 2

    block = nullcontext() if ruled is None else set_checkpoint_early_stop(ruled)
    with block:
        y = checkpoint(g, double(2), early_stop=asked)
    y.sum().backward()
    stops = asked if ruled is None else ruled
    assert len(calls) == (1 if stops else 2)


def test_a_context_cannot_suppress_an_error_of_the_function() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("forward failed")

    with pytest.raises(RuntimeError, match="suppressed an error"):
        checkpoint(
            fails,
            ut.ones(1, requires_grad=True),
            use_reentrant=False,
            context_fn=lambda: (suppress(ValueError), nullcontext()),
        )


@pytest.mark.parametrize(
    "function",
    [
        lambda a: ut.func.vmap(lambda x: ut.linalg.qr(x)[0])(a).sum(),
        lambda a: ut.func.vmap(ut.func.vmap(lambda x: x.exp() * x.sum()))(a).sum(),
        lambda a: (ut.func.vmap(ut.func.grad(lambda x: (x.exp() * x).sum()))(a) ** 2).sum(),
    ],
)
def test_vmap_inside_of_a_checkpoint(function: Any) -> None:
    a = double(3, 4, 4)
    (wanted,) = grad(function(a), a)
    (found,) = grad(checkpoint(function, a, use_reentrant=False), a)
    ut.testing.assert_close(found, wanted)
