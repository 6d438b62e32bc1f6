"""Signals and errors in the middle of a program: everything as before the call, or as after it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.table import Table


def batch(i: int, *shape: int) -> ut.Tensor:
    return ut.tensor(np.random.default_rng(i).standard_normal(shape).astype("f4"))


def training() -> tuple[Callable[..., Any], Callable[[], list[Any]]]:
    """A step that changes parameters, states, counts, a rate, running statistics and a stream."""
    ut.manual_seed(0)
    generator = ut.Generator().manual_seed(1)
    model = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.BatchNorm1d(4), ut.nn.Linear(4, 1))
    optimizer = ut.optim.Adam(model.parameters(), lr=0.1)
    schedule = ut.optim.lr_scheduler.StepLR(optimizer, 2, 0.9)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        noise = ut.rand(8, 1, generator=generator)
        loss = (model(x) - noise).square().mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.detach()

    def state() -> list[Any]:
        found = [t.clone().numpy() for t in model.state_dict().values()]
        found += [p.grad.clone().numpy() for p in model.parameters()]
        for kept in optimizer.state_dict()["state"].values():
            found += [kept[name].clone().numpy() for name in sorted(kept)]
        return [*found, optimizer.param_groups[0]["lr"], schedule.last_epoch, generator._offset]

    return step, state


def same(a: list[Any], b: list[Any]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def program_of(compiled: Any) -> Any:
    """The program, which does not step aside any more, nor change its table."""
    (entry,) = compiled._entries.values()
    assert entry.program is not None
    entry.next_witness = 1 << 60
    entry.program.joiner = entry.program.joiner or threading.Thread()
    entry.program.better = None
    return entry.program


@pytest.mark.parametrize("name", ["SIGINT", "SIGALRM"])
def test_a_signal_in_the_middle_comes_when_the_call_is_done(name: str) -> None:
    """At each place between two steps of the program; its handler raises."""
    number = getattr(signal, name)
    one, one_state = training()
    other, other_state = training()
    step, peer = ut.compile(one), ut.compile(other)
    for i in range(5):
        step(batch(i, 8, 3))
        peer(batch(i, 8, 3))
    program, other_program = program_of(step), program_of(peer)
    before = signal.signal(number, signal.default_int_handler)
    try:
        for at in range(len(program.table._steps) + 1):
            x = batch(20 + at, 8, 3)
            program.table._steps.insert(at, lambda: signal.raise_signal(number))
            program.table._mark += 1
            with pytest.raises(KeyboardInterrupt):
                step(x)
            del program.table._steps[at]
            program.table._mark -= 1
            peer(x)
            assert same(one_state(), other_state()), at
            assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert program.calls == other_program.calls > 3


@pytest.mark.parametrize("what", ["_write", "_settle"])
def test_an_interrupt_while_memory_is_placed(what: str, monkeypatch: Any) -> None:
    """The next call knows that addresses may not have been written."""
    plain = getattr(Table, what)
    left = [0]

    def interrupted(self: Any, *args: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        plain(self, *args)

    @ut.compile
    def f(x: Any, y: Any) -> Any:
        return x @ y + x, (x - y).sum()

    def right(i: int) -> None:
        x, y = batch(i, 3, 3), batch(i + 1, 3, 3)
        a, b = f(x, y)
        assert np.allclose(a.numpy(), x.numpy() @ y.numpy() + x.numpy(), atol=1e-5)
        assert np.allclose(b.numpy(), (x.numpy() - y.numpy()).sum(), atol=1e-5)

    for i in range(5):
        right(i)
    monkeypatch.setattr(Table, what, interrupted)
    stopped = 0
    for at in range(1, 8):
        left[0] = at
        x, y = batch(at, 3, 3), batch(at + 50, 3, 3)
        try:
            f(x, y)
        except KeyboardInterrupt:
            stopped += 1
        left[0] = 0
        a, _ = f(x, y)  # the same arrays again
        assert np.allclose(a.numpy(), x.numpy() @ y.numpy() + x.numpy(), atol=1e-5)
        right(at + 100)
    assert stopped
    assert program_of(f).calls > 5


def test_an_interrupt_in_the_backward_of_a_program(monkeypatch: Any) -> None:
    plain = Table._write
    left = [0]

    def interrupted(self: Any, *args: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        plain(self, *args)

    model = ut.nn.Linear(3, 2)
    compiled = ut.compile(model)
    for i in range(5):
        compiled(batch(i, 4, 3)).sum().backward()
    monkeypatch.setattr(Table, "_write", interrupted)
    for at in (1, 2):
        x, g = batch(at, 4, 3), batch(at, 4, 2)
        out = compiled(x)
        left[0] = at
        with pytest.raises(KeyboardInterrupt):
            ut.autograd.grad(out, [model.weight], g, retain_graph=True)
        left[0] = 0
        (found,) = ut.autograd.grad(out, [model.weight], g)
        assert np.allclose(found.numpy(), g.numpy().T @ x.numpy(), atol=1e-5), at
