"""Faults that a backward pass must survive: each function is one, with a random choice of how.

Afterwards the library must be as before: the same gradients to the bit, the modes unchanged.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import undertow as ut
import undertow.nn.functional as F


class Fault(Exception):
    """The error that a scenario raises on purpose."""


def network() -> Any:
    """Leaves, and a function that gives a loss of several branches."""
    ut.manual_seed(0)
    leaves = [ut.randn(64, 64).requires_grad_() for _ in range(4)]
    x = ut.randn(120, 64)

    def loss() -> ut.Tensor:
        h: Any = x
        parts = []
        for w in leaves:
            parts.append(ut.tanh(x @ w).sum() * 0.01)
            h = F.softmax(h @ w, -1)
        return (h * h).sum() + sum(parts)

    return leaves, loss


def gradients(leaves: Any, loss: Any, workers: int = 0) -> list[Any]:
    """The gradients, as arrays."""
    how = {"workers": workers} if workers else {}
    return [g.numpy() for g in ut.autograd.grad(loss(), leaves, **how)]


def unharmed(leaves: Any, loss: Any, expected: list[Any]) -> None:
    """Nothing is left of a fault."""
    assert ut.is_grad_enabled(), "grad mode is left off"
    assert not ut.is_inference_mode_enabled(), "inference mode is left on"
    for workers in (0, 2):
        for found, right in zip(gradients(leaves, loss, workers), expected, strict=True):
            assert np.array_equal(found, right), "gradients differ after a fault"


def child_status(pid: int, seconds: float = 30.0) -> int:
    """How a forked child ended; it must end in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("a forked child hangs")


def raising(seed: int) -> None:
    """Hooks, rules and packers that raise: the caller gets that error."""
    choose = random.Random(seed)
    leaves, loss = network()
    expected = gradients(leaves, loss)

    def fail(*_: Any) -> Any:
        raise Fault

    class Broken(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise Fault

    for _ in range(30):
        how = {"workers": 2} if choose.random() < 0.6 else {}
        kind = choose.choice(["hook", "node", "prehook", "accumulated", "rule", "unpack", "pack"])
        total, handle = None, None
        w = choose.choice(leaves)
        caught = False
        try:
            if kind in ("pack", "unpack"):
                same = lambda t: t
                hooks = (fail, same) if kind == "pack" else (same, fail)
                with ut.autograd.graph.saved_tensors_hooks(*hooks):
                    total = loss()
            else:
                total = loss()
            if kind == "rule":
                total = Broken.apply(total)
            if kind == "hook":
                handle = w.register_hook(fail)
            elif kind == "accumulated":
                handle = w.register_post_accumulate_grad_hook(fail)
            elif kind in ("node", "prehook"):
                node = total.grad_fn
                for _ in range(choose.randrange(3)):
                    node = next((n for n, _ in node.next_functions if n is not None), node)
                add = node.register_hook if kind == "node" else node.register_prehook
                handle = add(fail)
            total.backward(**how)
        except Fault:
            caught = True
        finally:
            if handle is not None:
                handle.remove()
            for leaf in leaves:
                leaf.grad = None
        assert caught, f"the error of a {kind} was lost"
    unharmed(leaves, loss, expected)


def interrupts(seed: int) -> None:
    """A signal handler that raises at any moment."""
    choose = random.Random(seed)
    leaves, loss = network()
    expected = gradients(leaves, loss)

    def fail(*_: Any) -> None:
        raise Fault

    signal.signal(signal.SIGALRM, fail)
    for _ in range(60):
        try:
            signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-5, 0.03))
            try:
                with ut.no_grad():
                    loss()
                for _ in range(4):
                    gradients(leaves, loss, choose.choice([0, 2, 3]))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Fault:
            pass
    unharmed(leaves, loss, expected)


def threads(seed: int) -> None:
    """Backwards in several threads over the same leaves, some of which raise."""
    leaves, loss = network()
    expected = gradients(leaves, loss)
    wrong: list[str] = []

    def work(number: int) -> None:
        choose = random.Random(seed * 100 + number)
        for _ in range(10):
            try:
                if choose.random() < 0.3:
                    total = loss()
                    total.register_hook(lambda g: 1 / 0)
                    total.backward()
                    wrong.append("no error")
                found = gradients(leaves, loss, choose.choice([0, 2]))
                if not all(map(np.array_equal, found, expected)):
                    wrong.append("other gradients")
            except ZeroDivisionError:
                pass
            except Exception as error:
                wrong.append(repr(error))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(40)
    assert not any(worker.is_alive() for worker in workers), "a thread hangs"
    assert not wrong, wrong[:3]
    unharmed(leaves, loss, expected)


def forks(seed: int) -> None:
    """Forks while a thread is inside a backward, and from inside a hook."""
    choose = random.Random(seed)
    leaves, loss = network()
    expected = gradients(leaves, loss)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            gradients(leaves, loss, 2)

    def born() -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            with ut.enable_grad():
                found = gradients(leaves, loss, choose.choice([0, 2]))
            os._exit(0 if all(map(np.array_equal, found, expected)) else 5)
        finally:
            os._exit(6)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(6):
            time.sleep(choose.uniform(0, 0.02))
            assert child_status(born()) == 0, "a forked child fails"
    finally:
        stop.set()
        thread.join()
    children: list[int] = []
    total = loss()
    total.grad_fn.register_prehook(lambda g: children.append(born()))
    total.backward(workers=2)
    for pid in children:
        assert child_status(pid) == 0, "a child forked in a hook fails"
    unharmed(leaves, loss, expected)


def nested(seed: int) -> None:
    """Backwards started by hooks, several deep, on the same graph and on others."""
    choose = random.Random(seed)
    leaves, loss = network()
    expected = gradients(leaves, loss)
    deep = choose.randrange(2, 40)

    def hook(left: int) -> Callable[[Any], None]:
        def run(g: Any) -> None:
            if left:
                with ut.enable_grad():
                    q = ut.ones(3, requires_grad=True)
                    total = (q * q).sum()
                    total.register_hook(hook(left - 1))
                    total.backward(**({"workers": 2} if choose.random() < 0.3 else {}))
                    assert q.grad.tolist() == [2, 2, 2]

        return run

    handle = leaves[0].register_hook(hook(deep))
    for found, right in zip(gradients(leaves, loss, choose.choice([0, 2])), expected, strict=True):
        assert np.array_equal(found, right)
    handle.remove()
    inner = [0]

    def again(g: Any) -> None:
        inner[0] += 1
        if inner[0] < 5:
            total.backward(retain_graph=True)

    total = loss()
    handle = leaves[1].register_hook(again)
    total.backward(retain_graph=True)
    handle.remove()
    unharmed(leaves, loss, expected)


def leaving(seed: int) -> None:
    """The interpreter ends while threads are inside backwards."""
    choose = random.Random(seed)
    leaves, loss = network()

    def busy() -> None:
        while True:
            gradients(leaves, loss, 2)

    for _ in range(3):
        threading.Thread(target=busy, daemon=True).start()
    time.sleep(choose.uniform(0.05, 0.6))


SCENARIOS = [raising, interrupts, threads, forks, nested, leaving]
