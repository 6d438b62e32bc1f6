"""The parallel backward: the same bits as the serial one, and it always ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow.autograd import executors
from undertow.autograd.task import Task
from undertow.core.tensor import wrap

worth_pooling = executors.worth_pooling


@pytest.fixture(autouse=True)
def pooled_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send even the smallest graphs to the pool."""
    monkeypatch.setattr(executors, "worth_pooling", lambda task: True)


def within(seconds: float, function: Callable[[], Any]) -> Any:
    """The result or exception of `function`, or a failure if it has not ended in time."""
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["value"] = function()
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"still running after {seconds} s: a backward pass hangs"
    if "error" in outcome:
        raise outcome["error"]
    return outcome.get("value")


# The same bits -------------------------------------------------------------------------------
def build(program: bytes, leaves: list[ut.Tensor]) -> ut.Tensor:
    """A graph from a program: each byte triple applies one op to tensors made so far."""
    made: list[ut.Tensor] = list(leaves)
    for i in range(0, len(program) - 2, 3):
        code, first, second = program[i : i + 3]
        a, b = made[first % len(made)], made[second % len(made)]
        kind = code % 7
        if kind == 0:
            out = a + b
        elif kind == 1:
            out = a * b
        elif kind == 2:
            out = a - b * 0.5
        elif kind == 3:
            out = (a * 0.3).tanh()
        elif kind == 4:
            out = a @ b * 0.1
        elif kind == 5:
            out = a.t() + b
        else:
            out = a.detach() * b
        if code & 64 and out.requires_grad:
            out.register_hook(lambda g: g * 1.25)
        made.append(out)
    total = made[-1]
    for t in made[len(leaves) : -1]:
        total = total + t
    return total.sum()


def gradients(program: bytes, workers: int) -> list[bytes]:
    """The exact bits of every leaf's gradient."""
    random = np.random.default_rng(0)
    leaves = [
        wrap(random.standard_normal((3, 3)).astype(np.float32)).requires_grad_() for _ in range(3)
    ]
    root = build(program, leaves)
    root.backward(workers=workers)
    return [b"" if t.grad is None else t.grad.numpy().tobytes() for t in leaves]


@settings(
    max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(min_size=3, max_size=60))
def test_random_graphs_give_the_same_bits(program: bytes) -> None:
    """Serial and parallel gradients agree bit for bit, hooks included."""
    serial = gradients(program, 1)
    assert gradients(program, 2) == serial
    if len(program) % 5 == 0:
        assert gradients(program, 4) == serial


def test_large_sums_give_the_same_bits() -> None:
    """A leaf used by many branches is summed in slot order whatever the schedule."""
    random = np.random.default_rng(1)
    w = wrap(random.standard_normal((64, 64)).astype(np.float32)).requires_grad_()
    xs = [wrap(random.standard_normal((64, 64)).astype(np.float32)) for _ in range(40)]
    results = []
    for workers in (1, 2, 3, 8):
        w.grad = None
        total = sum(((x @ w).tanh() @ w).sum() for x in xs)
        total.backward(workers=workers)
        results.append(w.grad.numpy().tobytes())
    assert len(set(results)) == 1


def test_grad_and_create_graph_in_parallel() -> None:
    """grad() and second order run on the pool as well."""
    x = ut.tensor([[0.5, -1.0], [2.0, 0.1]], requires_grad=True)
    for workers in (1, 2):
        y = sum((x * (i + 1)).tanh().sum() for i in range(6))
        (g,) = ut.autograd.grad(y, x, create_graph=True, workers=workers)
        (h,) = ut.autograd.grad(g.sum(), x, workers=workers)
        if workers == 1:
            first, second = g.detach().numpy().copy(), h.numpy().copy()
    np.testing.assert_array_equal(g.detach().numpy(), first)
    np.testing.assert_array_equal(h.numpy(), second)


def test_modes_reach_the_workers() -> None:
    """Hooks on workers see the grad mode of the pass, not the thread's default."""
    seen = []
    x = ut.ones(4, requires_grad=True)
    parts = [(x * i).tanh() for i in range(12)]
    for p in parts:
        p.register_hook(lambda g: seen.append((ut.is_grad_enabled(), threading.get_ident())))
    sum(p.sum() for p in parts).backward(workers=3)
    assert [mode for mode, _ in seen] == [False] * 12


# It always ends ------------------------------------------------------------------------------
class Boom(Exception):
    """Raised on purpose."""


class Abort(BaseException):
    """Raised on purpose, not an Exception."""


class Touchy(ut.autograd.Function):
    """The identity, whose backward does what it is told."""

    @staticmethod
    def forward(ctx: Any, x: ut.Tensor, action: Callable[[ut.Tensor], Any]) -> ut.Tensor:
        ctx.action = action
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: ut.Tensor) -> Any:
        return ctx.action(g), None


def branches(action: Callable[[ut.Tensor], Any], width: int = 16) -> ut.Tensor:
    """Many branches, one of which acts."""
    x = ut.ones(8, 8, requires_grad=True)
    parts = []
    for i in range(width):
        h = (x * (i + 1) * 0.1).tanh()
        if i == width // 2:
            h = Touchy.apply(h, action)
        parts.append((h @ x).sum())
    return sum(parts)


def raising(error: BaseException) -> Callable[[ut.Tensor], Any]:
    def act(g: ut.Tensor) -> Any:
        raise error

    return act


def pool_works() -> None:
    """A pass on the pool after trouble."""
    x = ut.ones(3, requires_grad=True)
    total = sum((x * i).sum() for i in range(10))
    within(20, lambda: total.backward(workers=2))
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 45.0, np.float32))


@pytest.mark.parametrize("error", [Boom("rule"), Abort("rule"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_rule_that_raises(error: BaseException, workers: int) -> None:
    """The caller gets that very exception, promptly, and the pool goes on working."""
    for _ in range(20):
        root = branches(raising(error))
        with pytest.raises(type(error)) as caught:
            within(20, lambda root=root: root.backward(workers=workers))
        assert caught.value is error
    pool_works()


@pytest.mark.parametrize("error", [Boom("hook"), Abort("hook")])
def test_a_hook_that_raises(error: BaseException) -> None:
    """Tensor hooks, node hooks and post-accumulate hooks."""
    for place in ("tensor", "pre", "post", "accumulate"):
        x = ut.ones(4, requires_grad=True)
        parts = [(x * i).tanh() for i in range(12)]
        act = raising(error)
        if place == "tensor":
            parts[5].register_hook(act)
        elif place == "pre":
            parts[5].grad_fn.register_prehook(act)
        elif place == "post":
            parts[5].grad_fn.register_hook(lambda a, b, act=act: act(a))
        else:
            x.register_post_accumulate_grad_hook(act)
        root = sum(p.sum() for p in parts)
        with pytest.raises(type(error)):
            within(20, lambda root=root: root.backward(workers=3))
    pool_works()


def test_a_rule_that_returns_no_gradient() -> None:
    """None counts down its inputs like any gradient."""
    x = ut.ones(8, 8, requires_grad=True)
    y = x * 2
    root = (Touchy.apply(y, lambda g: None) * 3).sum() + sum((y * i).sum() for i in range(10))
    within(20, lambda: root.backward(workers=3))
    np.testing.assert_array_equal(x.grad.numpy(), np.full((8, 8), 90.0, np.float32))


def test_only_none_arrives() -> None:
    """A part of the graph that no gradient reaches is run through all the same."""
    x = ut.ones(8, 8, requires_grad=True)
    y = x
    for _ in range(10):
        y = y * 2
    within(20, lambda: Touchy.apply(y, lambda g: None).sum().backward(workers=2))
    assert x.grad is None


def test_nested_backward_from_a_hook() -> None:
    """A hook may run a whole pass of its own, on the pool too."""
    inner = ut.ones(4, requires_grad=True)

    def act(g: ut.Tensor) -> Any:
        with ut.enable_grad():
            nested = sum((inner * i).tanh().sum() for i in range(10))
            nested.backward(workers=2)
        return g

    within(30, lambda: branches(act).backward(workers=2))
    assert inner.grad is not None
    pool_works()


def test_deep_nesting_of_passes() -> None:
    """Every level waits for the next; threads are hired as needed, so none starves."""

    def at(level: int) -> None:
        if level:

            def act(g: ut.Tensor) -> Any:
                with ut.enable_grad():
                    at(level - 1)
                return g

            branches(act, width=4).backward(workers=2)

    within(60, lambda: at(12))
    pool_works()


def test_two_threads_through_one_graph() -> None:
    """With retain_graph both succeed and the gradients add up."""
    x = ut.ones(16, 16, requires_grad=True)
    y = sum(((x * i) @ x).tanh().sum() for i in range(8))
    y.backward(retain_graph=True)
    expected = x.grad.numpy().copy()
    for _ in range(10):
        x.grad = None
        threads = [
            threading.Thread(target=lambda: y.backward(retain_graph=True, workers=2), daemon=True)
            for _ in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join(200)
            assert not t.is_alive(), "two passes through one graph hang"
        np.testing.assert_allclose(x.grad.numpy(), 4 * expected, rtol=1e-5)


def test_two_threads_without_retain() -> None:
    """One or both succeed; whoever comes too late is told so, and nothing hangs."""
    for _ in range(20):
        x = ut.ones(16, 16, requires_grad=True)
        y = sum(((x * i) @ x).tanh().sum() for i in range(8))
        outcomes: list[Any] = []

        def run(y: ut.Tensor = y, outcomes: list[Any] = outcomes) -> None:
            try:
                y.backward(workers=2)
                outcomes.append(None)
            except ut.errors.FreedError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(200)
            assert not t.is_alive()
        assert len(outcomes) == 2


def test_stress() -> None:
    """Many passes at once from many threads, some failing, under a watchdog."""
    stop = time.monotonic() + 8
    failures: list[str] = []

    def hammer(seed: int) -> None:
        random = np.random.default_rng(seed)
        while time.monotonic() < stop:
            error = Boom(str(seed))
            fails = random.random() < 0.3
            act = raising(error) if fails else (lambda g: g)
            try:
                branches(act, width=int(random.integers(2, 12))).backward(
                    workers=int(random.integers(1, 5))
                )
                if fails:
                    failures.append("an error was swallowed")
            except Boom as caught:
                if caught is not error:
                    failures.append("somebody else's error")

    threads = [threading.Thread(target=hammer, args=(s,), daemon=True) for s in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(200)
        assert not t.is_alive(), "a pass hangs under stress"
    assert failures == []
    pool_works()


def test_keyboard_interrupt_in_the_caller() -> None:
    """Ctrl-C during a pooled pass ends it promptly, and the next pass works."""
    script = textwrap.dedent("""
        import sys, threading, time
        import undertow as ut
        from undertow.autograd import executors
        executors.worth_pooling = lambda task: True
        x = ut.ones(4, requires_grad=True)
        parts = [(x * i).tanh() for i in range(300)]
        for p in parts:
            p.register_hook(lambda g: time.sleep(0.2))
        total = sum(p.sum() for p in parts)
        print("ready", flush=True)
        start = time.monotonic()
        try:
            total.backward(workers=2)
        except KeyboardInterrupt:
            assert time.monotonic() - start < 15, "the interrupt came through late"
            y = sum((x * i).sum() for i in range(10))
            x.grad = None
            y.backward(workers=2)
            assert x.grad.tolist() == [45.0] * 4
            print("interrupted", flush=True)
        else:
            print("not interrupted", flush=True)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert out.strip() == "interrupted", err


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_interrupts_at_any_point() -> None:
    """Thousands of passes, interrupted at random moments: none hangs, none leaves a mode behind."""
    script = textwrap.dedent("""
        import faulthandler, random, signal, time
        import undertow as ut
        from undertow.autograd import executors
        executors.worth_pooling = lambda task: True
        armed = False
        def interrupt(*_):
            if armed:
                raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        random.seed(3)
        xs = [ut.ones(4, requires_grad=True) for _ in range(6)]
        def build():
            return sum(((x * 2).tanh() * x for x in xs[1:]), xs[0] * 1).sum()
        build().backward(workers=2)
        start = time.perf_counter()
        build().backward(workers=2)
        usual = time.perf_counter() - start
        end = time.monotonic() + 5
        interrupted = 0
        while time.monotonic() < end:
            loss = build()
            faulthandler.dump_traceback_later(20, exit=True)  # the watchdog
            try:
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, random.random() * usual * 1.3 + 2e-6)
                    loss.backward(workers=2)
                    armed = False
                except KeyboardInterrupt:
                    armed = False
                    interrupted += 1
            except KeyboardInterrupt:
                armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert ut.is_grad_enabled()
        faulthandler.cancel_dump_traceback_later()
        xs[0].grad = None
        build().backward(workers=2)
        assert xs[0].grad.tolist() == [1.0] * 4
        print("fine" if interrupted > 100 else interrupted)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_fork() -> None:
    """The child hires threads of its own."""
    script = textwrap.dedent("""
        import os
        import undertow as ut
        from undertow.autograd import executors
        executors.worth_pooling = lambda task: True
        def run():
            x = ut.ones(4, requires_grad=True)
            sum((x * i).sum() for i in range(10)).backward(workers=2)
            assert x.grad.tolist() == [45.0] * 4
        run()
        child = os.fork()
        if child == 0:
            run()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print("fine")
    """)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_bad_numbers_of_workers(workers: Any) -> None:
    """Named in the error; nothing runs."""
    x = ut.ones(2, requires_grad=True)
    with pytest.raises(ut.errors.ArgumentError, match="workers"):
        (x * 2).sum().backward(workers=workers)
    assert x.grad is None


@pytest.fixture
def pooled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of workers of the passes that went to the pool, as they go."""
    seen: list[int] = []
    run_pooled = executors.run_pooled

    def watched(run: Any, ready: Any, workers: int) -> None:
        seen.append(workers)
        run_pooled(run, ready, workers)

    monkeypatch.setattr(executors, "run_pooled", watched)
    return seen


def test_set_workers_is_the_default(pooled: list[int]) -> None:
    """set_workers holds for passes that do not say."""
    ut.autograd.set_workers(3)
    try:
        assert ut.autograd.get_workers() == 3
        x = ut.ones(3, requires_grad=True)
        (x * x).sum().backward()
        ut.autograd.grad((x * x).sum(), x)
        (x * x).sum().backward(workers=2)
        (x * x).sum().backward(workers=1)
        assert pooled == [3, 3, 2]
    finally:
        ut.autograd.set_workers(1)


def test_small_graphs_stay_serial(pooled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Few nodes, or nodes that compute little, are not worth a second thread."""
    monkeypatch.setattr(executors, "worth_pooling", worth_pooling)
    for width, branches, expected in ((4, 50, []), (400, 1, []), (400, 10, [2])):
        x = ut.ones(width, width, requires_grad=True)
        total = (x * 2.0).tanh()
        for i in range(1, branches):
            total = total + (x * i).tanh()
        total.backward(ut.ones(width, width), workers=2)
        assert pooled == expected


def test_what_other_processes_wait_for_stays_serial(
    pooled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums over processes in branches would meet in another order on each of them."""

    class Sum(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor, in_order: bool) -> ut.Tensor:
            ctx.in_order = in_order
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return gradients[0], None

    monkeypatch.setattr(executors, "worth_pooling", worth_pooling)
    for in_order, expected in ((True, []), (False, [2])):
        x = ut.ones(400, 400, requires_grad=True)
        total = sum((Sum.apply((x * i).tanh(), in_order) for i in range(10)), x)
        total.backward(ut.ones(400, 400), workers=2)
        assert pooled == expected


def test_layers_stay_serial(pooled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each node waits for the one before, kernels do better with all threads."""
    monkeypatch.setattr(executors, "worth_pooling", worth_pooling)
    weights = [(ut.randn(300, 300) / 17).requires_grad_() for _ in range(6)]
    biases = [ut.zeros(300, requires_grad=True) for _ in range(6)]

    def network(h: ut.Tensor) -> ut.Tensor:
        for w, b in zip(weights, biases, strict=True):
            h = (h @ w + b).tanh()
        return (h * h).sum()

    network(ut.randn(200, 300)).backward(workers=2)
    assert pooled == []
    sum(network(ut.randn(200, 300)) for _ in range(3)).backward(workers=2)
    assert pooled == [2]


def test_the_longest_path() -> None:
    """Paths of different lengths, that part and meet again."""
    x = ut.ones(10, 10, requires_grad=True)
    short, long = x.tanh(), x.exp().sin().cos()
    task = Task([((short + long).sum()._node, 0)], None)
    costs = executors._costs(task.nodes)
    assert sorted(costs) == [0, 1, 100, 100, 100, 100, 100]
    assert executors._longest(task, costs) == 401


def test_kernel_threads_are_shared() -> None:
    """While workers run, each kernel has fewer threads, and gets them back."""
    from undertow.backends import threads

    before = ut.get_num_threads()
    ut.set_num_threads(4)
    seen = []
    try:
        x = ut.ones(4, requires_grad=True)
        parts = [(x * i).tanh() for i in range(10)]
        parts[3].register_hook(lambda g: seen.append(threads.current_limit()))
        sum(p.sum() for p in parts).backward(workers=2)
        assert seen == [2]
        assert threads.current_limit() == 4
    finally:
        ut.set_num_threads(before)


def test_interrupts_at_each_instruction_of_a_wait() -> None:
    """The caller is interrupted before the k-th instruction of `Condition.wait`, for every k."""
    script = textwrap.dedent("""
        import faulthandler, sys, threading, time
        import undertow as ut
        from undertow.autograd import executors
        executors.worth_pooling = lambda task: True
        faulthandler.dump_traceback_later(60, exit=True)  # the watchdog
        caller = threading.get_ident()

        class Slow(ut.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1
            @staticmethod
            def backward(ctx, g):
                global helped
                if threading.get_ident() == caller:  # it gives the other branch to a helper
                    while not helped:
                        time.sleep(1e-4)
                else:  # the caller runs out of work and waits
                    helped = True
                    time.sleep(3e-3)
                return g

        xs = [ut.ones(4, requires_grad=True) for _ in range(2)]
        def interrupt_at(k):
            global helped
            helped, seen = False, 0
            def trace(frame, event, arg):
                nonlocal seen
                if frame.f_code is not threading.Condition.wait.__code__:
                    return None
                frame.f_trace_opcodes = True
                if event == "opcode":
                    seen += 1
                    if seen == k:
                        raise KeyboardInterrupt
                return trace
            loss = (Slow.apply(xs[0]) + Slow.apply(xs[1])).sum()
            sys._getframe().f_trace_opcodes = True  # 3.12 asks before settrace if any frame wants
            sys.settrace(trace)
            try:
                loss.backward(workers=2)
            finally:
                sys.settrace(None)
            return seen
        steps = interrupt_at(0)  # never
        interrupted = 0
        for k in range(1, steps + 1):
            try:
                interrupt_at(k)
            except KeyboardInterrupt:
                interrupted += 1
        print("fine" if interrupted > 20 else (interrupted, steps))
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "fine", done.stderr
