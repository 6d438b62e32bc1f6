"""Backward passes inside backward passes: how deep, in which modes, and that they end."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

import undertow as ut
from undertow.autograd import checkpoint, grad


def leaf(values: Any, **how: Any) -> ut.Tensor:
    return ut.tensor(values, requires_grad=True, **how)


def nested(depth: int, innermost: Any = lambda: None, **how: Any) -> tuple[ut.Tensor, set[int]]:
    """Passes started by hooks to some depth; the leaf, and the threads that they ran on."""
    x = leaf(1.0)
    threads: list[int] = []

    def hook(g: Any) -> None:
        threads.append(threading.get_ident())
        if len(threads) == depth:
            innermost()
        elif len(threads) < depth:
            with ut.enable_grad():
                y = x * 2
            y.backward(**how)

    x.register_hook(hook)
    (x * 2).backward(**how)
    assert len(threads) == depth
    return x, set(threads)


@pytest.mark.parametrize("how", [{}, {"create_graph": True}, {"workers": 2}])
def test_nine_hundred_deep(how: Any) -> None:
    before = threading.active_count()
    x, threads = nested(900, **how)
    assert x.grad.item() == 1800
    assert len(threads) > 1
    if "workers" not in how:
        assert threading.active_count() == before


def test_threads_are_gone_when_the_pass_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine where ending a thread takes its time."""
    end = threading.Thread._delete  # type: ignore[attr-defined]

    def late(thread: threading.Thread) -> None:
        if thread.name == "undertow-nested":
            time.sleep(0.2)
        end(thread)

    monkeypatch.setattr(threading.Thread, "_delete", late)
    before = threading.active_count()
    nested(200)
    assert threading.active_count() == before


def test_shallow_passes_stay_on_their_thread() -> None:
    assert nested(5)[1] == {threading.get_ident()}


@pytest.mark.parametrize("depth", [200, 2000])
def test_custom_functions_that_differentiate_inside(depth: int) -> None:
    class Deep(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with ut.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.x.item() >= 0:
                with ut.enable_grad():
                    Deep.apply(ctx.x).backward()
            return g

    for _ in range(2):
        x = leaf(float(depth))
        Deep.apply(x).backward()
        assert x.grad.item() == 1


user = ContextVar("user", default="outside")


def test_the_context_is_one() -> None:
    """Modes and variables of the caller are there, and what is set inside stays set."""
    seen: list[Any] = []

    def innermost() -> None:
        seen.append((ut.is_grad_enabled(), ut.autograd.is_anomaly_enabled(), user.get()))
        user.set("inside")
        ut.set_grad_enabled(True)

    token = user.set("caller")
    try:
        with ut.autograd.set_detect_anomaly(True), ut.no_grad():
            with ut.enable_grad():
                nested(150, innermost)
            assert not ut.is_grad_enabled()
            assert user.get() == "inside"
    finally:
        user.reset(token)
    assert seen == [(False, True, "caller")]
    assert ut.is_grad_enabled()
    assert not ut.autograd.is_anomaly_enabled()


def test_an_error_comes_up_all_the_way() -> None:
    def fail() -> None:
        raise LookupError("from below")

    before = threading.active_count()
    with pytest.raises(LookupError, match="from below") as caught:
        nested(300, fail)
    assert any("in the backward of" in note for note in caught.value.__notes__)
    assert threading.active_count() == before
    assert ut.is_grad_enabled()
    assert nested(300)[0].grad.item() == 600


def test_without_an_end_it_ends() -> None:
    x = leaf(1.0)

    def forever(g: Any) -> None:
        with ut.enable_grad():
            y = x * 2
        y.backward()

    x.register_hook(forever)
    before = threading.active_count()
    with pytest.raises(RecursionError):
        (x * 2).backward()
    assert threading.active_count() == before
    assert ut.is_grad_enabled()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_an_interrupt_reaches_the_innermost_pass() -> None:
    reached = threading.Event()
    main = threading.main_thread().ident
    if main != threading.get_ident():
        pytest.skip("signals reach the main thread only")

    def interrupt() -> None:
        reached.wait(60)
        time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGINT)  # type: ignore[arg-type]

    def innermost() -> None:
        reached.set()
        while True:
            time.sleep(0.001)

    sender = threading.Thread(target=interrupt)
    sender.start()
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        nested(200, innermost)
    sender.join()
    assert threading.active_count() < before
    assert ut.is_grad_enabled()


def test_a_checkpoint_whose_second_run_nests_deeply() -> None:
    """Its lock is held meanwhile; the passes of its own line of work need not wait for it."""
    depth = sys.getrecursionlimit() // 5

    def g(x: Any) -> Any:
        nested(depth)
        return (x.exp() * x).tanh()

    x = leaf([0.5, 1.0], dtype=ut.float64)
    (expected,) = grad((x.exp() * x).tanh().sum(), x)
    for _ in range(2):
        y = checkpoint(g, x).sum()
        assert (grad(y, x, retain_graph=True)[0] == expected).all()
        assert (grad(y, x)[0] == expected).all()


def test_a_pass_on_a_fresh_stack_may_need_the_checkpoint_that_is_being_computed() -> None:
    x = leaf([0.5, 1.0], dtype=ut.float64)
    inside: list[ut.Tensor] = []

    def g(x: Any) -> Any:
        y = x.exp()
        z = y * y
        if not inside:
            inside.append(z)  # of the first run, with tickets of the checkpoint
        else:
            slopes.append(nested_grad(inside[0]))
        return z.tanh()

    def nested_grad(z: ut.Tensor) -> Any:
        found: list[Any] = []
        leaf_ = leaf(1.0)
        calls = [0]

        def hook(_: Any) -> None:
            calls[0] += 1
            if calls[0] < 150:
                with ut.enable_grad():
                    y = leaf_ * 2
                y.backward()
            else:
                found.append(grad(z.sum(), x, retain_graph=True)[0])

        leaf_.register_hook(hook)
        (leaf_ * 2).backward()
        return found[0]

    slopes: list[Any] = []
    y = checkpoint(g, x)
    with pytest.raises((RecursionError, ut.errors.UndertowError)):
        y.sum().backward()  # it asks for what is only being computed: an error, not a wait


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))
