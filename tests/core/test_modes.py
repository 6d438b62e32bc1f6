"""Grad mode, inference mode and anomaly detection: per thread, per context, as decorators."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import undertow as ut
from undertow.autograd import grad
from undertow.core import modes
from undertow.errors import GradientError, InplaceError, VersionError


def leaf(values: Any, **how: Any) -> ut.Tensor:
    return ut.tensor(values, requires_grad=True, **how)


# What the modes do ---------------------------------------------------------------------------
def test_no_grad_and_enable_grad() -> None:
    x = leaf(1.0)
    with ut.no_grad():
        assert not (x * 2).requires_grad
        assert not ut.is_grad_enabled()
        with ut.enable_grad():
            assert (x * 2).requires_grad
            with ut.no_grad():
                assert not (x * 2).requires_grad
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
        assert ut.ones(1, requires_grad=True).requires_grad
        assert x.requires_grad
    assert ut.is_grad_enabled()


def test_modes_end_when_an_error_passes() -> None:
    for mode in (ut.no_grad, ut.inference_mode, ut.autograd.detect_anomaly):
        with pytest.raises(KeyError), mode():
            raise KeyError
    assert ut.is_grad_enabled()
    assert not ut.is_inference_mode_enabled()
    assert not ut.autograd.is_anomaly_enabled()


def test_an_interrupt_of_backward_leaves_the_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that comes before its first node."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    x = ut.ones(2, requires_grad=True)
    loss = (x * x).sum()
    with monkeypatch.context() as patch:
        patch.setattr("undertow.autograd.api.silence", interrupt)
        with pytest.raises(KeyboardInterrupt):
            loss.backward()
    assert ut.is_grad_enabled()
    loss.backward()
    assert x.grad.tolist() == [2, 2]


def test_set_grad_enabled() -> None:
    try:
        ut.set_grad_enabled(False)
        assert not ut.is_grad_enabled()
    finally:
        ut.set_grad_enabled(True)
    with ut.set_grad_enabled(False):
        assert not ut.is_grad_enabled()
    assert ut.is_grad_enabled()

    @ut.set_grad_enabled(False)
    def f() -> bool:
        return ut.is_grad_enabled()

    assert ut.is_grad_enabled()
    assert f() is False
    assert f() is False
    assert ut.is_grad_enabled()


def test_inference_tensors_cannot_enter_a_graph() -> None:
    x = leaf([1.0, 2.0])
    with ut.inference_mode():
        assert ut.is_inference_mode_enabled()
        assert not ut.is_grad_enabled()
        c = ut.ones(2) * 3
        y = x * 2
        with ut.enable_grad():
            assert not (x * 2).requires_grad
        c.add_(1)  # inside, it may change
        assert not x[:1].is_inference()  # a view is what its base is
        assert c[:1].is_inference()
        with ut.inference_mode(False):
            assert (x * 2).requires_grad
            assert not ut.ones(1).is_inference()
    assert c.is_inference()
    assert y.is_inference()
    assert not y.requires_grad
    assert not x.is_inference()
    with pytest.raises(GradientError, match=r"\[mul\].*inference"):
        x * c
    with pytest.raises(GradientError):
        c.requires_grad_()
    with pytest.raises(InplaceError):
        c.add_(1)
    assert not (c * 2).requires_grad  # without a graph it is a tensor like any other
    assert (x + c).requires_grad  # nothing is saved
    (x * c.clone()).sum().backward()
    assert x.grad.tolist() == [4, 4]
    view = c[:1]
    assert view.is_inference()
    with pytest.raises(GradientError):
        x[:1] * view


# Per thread, per context ---------------------------------------------------------------------
def test_modes_are_per_thread() -> None:
    seen = []

    def look() -> None:
        seen.append((ut.is_grad_enabled(), ut.is_inference_mode_enabled()))
        ut.set_grad_enabled(False)  # stays in this thread

    for mode in (ut.no_grad(), ut.inference_mode()):
        with mode:
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
    assert seen == [(True, False)] * 2
    assert ut.is_grad_enabled()


def test_modes_reach_worker_threads() -> None:
    """Hooks and rules in a worker see the caller's modes."""
    from undertow.autograd import executors

    seen = set()
    worth, executors.worth_pooling = executors.worth_pooling, lambda task: True
    try:
        for create_graph in (False, True):
            x = leaf([1.0, 2.0])
            total = x.sum() * 0
            for i in range(20):
                y = x * float(i)
                y.register_hook(
                    lambda g: seen.add((ut.is_grad_enabled(), ut.autograd.is_anomaly_enabled()))
                )
                total = total + y.sum()
            with ut.autograd.detect_anomaly():
                total.backward(workers=3, create_graph=create_graph)
    finally:
        executors.worth_pooling = worth
    assert seen == {(False, True), (True, True)}


def test_modes_are_per_task() -> None:
    async def quiet(log: list[Any]) -> None:
        with ut.no_grad():
            for _ in range(3):
                log.append(ut.is_grad_enabled())
                await asyncio.sleep(0)

    async def loud(log: list[Any]) -> None:
        for _ in range(3):
            log.append(ut.is_grad_enabled())
            await asyncio.sleep(0)

    async def main() -> tuple[list[Any], list[Any]]:
        a: list[Any] = []
        b: list[Any] = []
        await asyncio.gather(quiet(a), loud(b), quiet(a), loud(b))
        return a, b

    a, b = asyncio.run(main())
    assert set(a) == {False}
    assert set(b) == {True}


def test_modes_are_per_context() -> None:
    context = contextvars.copy_context()
    context.run(ut.set_grad_enabled, False)
    assert ut.is_grad_enabled()
    assert context.run(ut.is_grad_enabled) is False


def test_one_switch_in_several_tasks_and_threads() -> None:
    shared = ut.no_grad()

    async def use(log: list[bool], delay: int) -> None:
        with shared:
            for _ in range(delay):
                await asyncio.sleep(0)
            log.append(ut.is_grad_enabled())
        log.append(ut.is_grad_enabled())

    async def main() -> list[bool]:
        log: list[bool] = []
        await asyncio.gather(*(use(log, d) for d in (3, 1, 2)))
        return log

    assert sorted(asyncio.run(main())) == [False] * 3 + [True] * 3
    barrier = threading.Barrier(4)
    log: list[bool] = []

    def work() -> None:
        for _ in range(20):
            with shared:
                barrier.wait()
                log.append(ut.is_grad_enabled())
            log.append(not ut.is_grad_enabled())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(log) == {False}


def test_a_switch_is_reentrant() -> None:
    mode = ut.no_grad()
    with mode, mode:
        with ut.enable_grad(), mode:
            assert not ut.is_grad_enabled()
        assert not ut.is_grad_enabled()
    assert ut.is_grad_enabled()


# Decorators ----------------------------------------------------------------------------------
def test_decorators_of_functions() -> None:
    @ut.no_grad()
    def f(x: Any, *, factor: int) -> Any:
        """Doc."""
        return x * factor

    @ut.no_grad
    def bare(x: Any) -> Any:
        return x * 2

    @ut.inference_mode
    def inferred(x: Any) -> Any:
        return x * 2

    x = leaf(1.0)
    assert f.__name__ == "f"
    assert f.__doc__ == "Doc."
    assert not f(x, factor=2).requires_grad
    assert not bare(x).requires_grad
    assert inferred(x).is_inference()

    class Model:
        @ut.no_grad()
        def predict(self, x: Any) -> Any:
            return x * 2

    assert not Model().predict(x).requires_grad
    assert (x * 2).requires_grad

    @ut.no_grad()
    def recursive(n: int) -> bool:
        return ut.is_grad_enabled() or (n > 0 and recursive(n - 1))

    assert not recursive(3)
    assert ut.is_grad_enabled()


def test_decorated_generator() -> None:
    """The mode is on in the body, and off for the one who iterates."""
    log: list[Any] = []

    @ut.no_grad()
    def numbers() -> Iterator[Any]:
        try:
            got = yield ut.is_grad_enabled()
            log.append(got)
            try:
                yield ut.is_grad_enabled()
            except KeyError:
                log.append(("caught", ut.is_grad_enabled()))
                yield "after"
        finally:
            log.append(("closed", ut.is_grad_enabled()))

    it: Any = numbers()
    assert next(it) is False
    assert ut.is_grad_enabled()
    assert it.send("hello") is False
    assert ut.is_grad_enabled()
    assert it.throw(KeyError()) == "after"
    it.close()
    assert log == ["hello", ("caught", False), ("closed", False)]
    assert ut.is_grad_enabled()

    @ut.no_grad()
    def returning() -> Iterator[Any]:
        yield 1
        return 2

    def outer() -> Iterator[Any]:
        log.append((yield from returning()))

    assert list(outer()) == [1]
    assert log[-1] == 2


def test_decorated_coroutine_and_async_generator() -> None:
    @ut.no_grad()
    async def f() -> Any:
        before = ut.is_grad_enabled()
        await asyncio.sleep(0)
        return before, ut.is_grad_enabled()

    @ut.no_grad()
    async def numbers() -> AsyncIterator[Any]:
        try:
            for i in range(3):
                await asyncio.sleep(0)
                yield i, ut.is_grad_enabled()
        finally:
            closed.append(ut.is_grad_enabled())

    closed: list[bool] = []

    async def main() -> list[Any]:
        seen = [await f(), ut.is_grad_enabled()]
        async for i, mode in numbers():
            seen.append((i, mode, ut.is_grad_enabled()))
        again: Any = numbers()
        await again.__anext__()
        await again.aclose()
        return seen

    expected = [(False, False), True, (0, False, True), (1, False, True), (2, False, True)]
    assert asyncio.run(main()) == expected
    assert closed == [False, False]


def test_with_inside_a_generator_leaks_only_into_its_own_thread() -> None:
    """As in torch: between yields the mode of an undecorated generator stays on."""

    def numbers() -> Iterator[int]:
        with ut.no_grad():
            yield 1
            yield 2

    it = numbers()
    next(it)
    assert not ut.is_grad_enabled()
    list(it)
    assert ut.is_grad_enabled()


# 10. Anomaly detection -----------------------------------------------------------------------
def line_of(text: str) -> int:
    """The number of the only line of this file that contains `text`."""
    with open(__file__) as file:
        lines = [i for i, line in enumerate(file, 1) if text in line and "line_of" not in line]
    assert len(lines) == 1
    return lines[0]


def whole(error: BaseException) -> str:
    return str(error) + "\n".join(getattr(error, "__notes__", ()))


@pytest.mark.parametrize("workers", [1, 2])
def test_nan_names_the_forward_line(workers: int) -> None:
    x = leaf([0.0, 1.0])
    with ut.autograd.detect_anomaly():
        a = x * 2
        b = (a * 0) / a  # this line makes the NaN
        with pytest.raises(GradientError) as caught:
            (b * 5).sum().backward(workers=workers)
    message = str(caught.value)
    assert "DivBackward0" in message
    assert "NaN" in message
    assert f'{__file__}", line {line_of("# this line makes the NaN")}' in message
    assert "b = (a * 0) / a" in message
    assert x.grad is None


def test_without_anomaly_detection_nan_passes() -> None:
    x = leaf([0.0, 1.0])
    ((x * 0) / x).sum().backward()
    assert x.grad[0].isnan()
    with ut.autograd.detect_anomaly(check_nan=False):
        ((x * 0) / x).sum().backward()


class Fails(ut.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise LookupError("from the rule")


def test_an_error_names_the_forward_line() -> None:
    x = leaf(1.0)
    with ut.autograd.detect_anomaly():
        y = Fails.apply(x)  # this line fails in the backward
        with pytest.raises(LookupError) as caught:
            (y * 2).backward()
    note = whole(caught.value)
    assert "FailsBackward" in note
    assert "y = Fails.apply(x)" in note
    assert f'{__file__}", line {line_of("# this line fails in the backward")}' in note
    with pytest.raises(LookupError) as caught:
        Fails.apply(x).backward()
    assert "FailsBackward" in whole(caught.value)
    assert "detect_anomaly" in whole(caught.value)


def test_a_version_error_names_the_forward_line() -> None:
    x, w = leaf([1.0]), ut.ones(1)
    with ut.autograd.detect_anomaly():
        y = x * w  # this line saves w
    w.add_(1)
    with pytest.raises(VersionError) as caught:
        y.backward()
    assert f'{__file__}", line {line_of("# this line saves w")}' in str(caught.value)


def test_nan_in_second_order_names_both_lines() -> None:
    x = leaf(0.0, dtype=ut.float64)
    with ut.autograd.detect_anomaly():
        y = x.abs().pow(1.5)  # this line is bad to second order
        (g,) = grad(y, x, create_graph=True)  # this line differentiates it
        try:
            (h,) = grad(g * g.sign().detach(), x, create_graph=True)
            grad(h / x, x)
        except GradientError as error:
            message = whole(error)
        else:
            pytest.fail("no NaN was found")
    assert __file__ in message


def test_set_detect_anomaly() -> None:
    try:
        ut.autograd.set_detect_anomaly(True)
        assert ut.autograd.is_anomaly_enabled()
        assert ut.autograd.is_anomaly_check_nan_enabled()
    finally:
        ut.autograd.set_detect_anomaly(False)
    assert not ut.autograd.is_anomaly_enabled()
    assert modes.current() is modes._default  # else nothing would be compiled from now on
    with ut.autograd.set_detect_anomaly(True, check_nan=False):
        assert ut.autograd.is_anomaly_enabled()
        assert not ut.autograd.is_anomaly_check_nan_enabled()
    assert not ut.autograd.is_anomaly_enabled()


def test_anomaly_on_every_device_and_for_none() -> None:
    x = leaf([0.0], device="reference")
    with ut.autograd.detect_anomaly(), pytest.raises(GradientError, match="NaN"):
        ((x * 0) / x).sum().backward()
    y = leaf([1.0])
    with ut.autograd.detect_anomaly():
        (y * 2).sum().backward()
    assert y.grad.tolist() == [2]


def test_a_node_made_by_a_backward_tells_who_made_it() -> None:
    x = leaf(2.0)
    with ut.autograd.detect_anomaly():
        y = x.exp()  # the forward of the forward
        (g,) = grad(y, x, create_graph=True)
    stack = "".join(g.grad_fn.site)
    assert "create_graph=True" in stack
    assert "the forward of the forward" in stack


def test_contexts_can_be_referred_to_weakly() -> None:
    for make in (
        ut.no_grad,
        ut.inference_mode,
        ut.autograd.detect_anomaly,
        lambda: ut.set_grad_enabled(True),
        lambda: ut.autograd.graph.saved_tensors_hooks(id, id),
    ):
        context = make()
        reference = weakref.ref(context)
        with context:
            pass
        del context
        assert reference() is None


def test_threads_of_a_backward_can_be_forbidden() -> None:
    assert ut.autograd.is_multithreading_enabled()
    threads: set[int] = set()
    x = ut.ones(40000, requires_grad=True)

    def run() -> int:
        threads.clear()
        parts = []
        for _ in range(8):
            y = x * 2
            for _ in range(3):
                y = y.sin()
                y.register_hook(lambda g: threads.add(threading.get_ident()) or time.sleep(0.002))
            parts.append(y)
        ut.stack(parts).sum().backward(workers=2)
        return len(threads)

    assert run() == 2
    with ut.autograd.set_multithreading_enabled(False):
        assert run() == 1
        with ut.autograd.set_multithreading_enabled(True):
            assert run() == 2
    assert run() == 2
    assert ut.autograd.set_multithreading_enabled(False)(run)() == 1
    assert ut.autograd.is_multithreading_enabled()


def test_is_inference() -> None:
    with ut.inference_mode():
        x = ut.ones(2)
    assert ut.is_inference(x)
    assert not ut.is_inference(ut.ones(2))


@pytest.mark.parametrize(
    "mode",
    [
        lambda: ut.autocast("cpu"),
        lambda: ut.autograd.detect_anomaly(),
        lambda: ut.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
        lambda: ut.autograd.set_multithreading_enabled(False),
    ],
)
def test_what_was_set_inside_another_mode_stays(mode: Any) -> None:
    """As in torch: a mode ends itself and nothing else."""
    with mode():
        ut.set_grad_enabled(False)
    assert not ut.is_grad_enabled()
    with mode():
        ut.set_grad_enabled(True)
    assert ut.is_grad_enabled()
    with ut.no_grad():
        ut.set_grad_enabled(True)
    with ut.inference_mode():
        pass
    assert ut.is_grad_enabled()


def test_an_interrupt_leaves_no_mode_behind() -> None:
    """After a call anywhere in modes and optimisers: where Python looks for signals."""
    from undertow.core import modes
    from undertow.optim import elementwise

    p = ut.ones(2, requires_grad=True)
    optimizer = ut.optim.SGD([p], lr=0.1)
    p.grad = ut.ones(2)

    @ut.no_grad()
    def decorated() -> None:
        pass

    def used() -> None:
        optimizer.step()
        decorated()
        with ut.inference_mode():
            pass

    where: list[Any] = []
    files = {modes.__file__, elementwise.__file__}

    def interrupted(at: int) -> int:
        """How many calls have returned; KeyboardInterrupt after one of them."""
        seen = 0

        def profile(frame: Any, event: str, arg: Any) -> None:
            nonlocal seen
            back = frame if event == "c_return" else frame.f_back
            returned = event in ("c_return", "return") and back is not None
            # `with` looks for none between __enter__ and the block, nor is there one in `_leave`.
            inside = "__enter__" if event == "return" else "_leave"
            returned = returned and frame.f_code.co_name != inside
            if returned and back.f_code.co_filename in files:
                seen += 1
                if seen == at:
                    where[:] = [event, frame.f_code.co_name, back.f_lineno]
                    raise KeyboardInterrupt

        sys.setprofile(profile)
        try:
            used()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        return seen

    count = interrupted(0)
    assert count > 10
    left = []
    for at in range(1, count + 1):
        interrupted(at)
        if ut.is_inference_mode_enabled() or not ut.is_grad_enabled():
            left.append((at, *where))
            modes.enter(modes.State())
    assert left == []


def test_inference_resizes_leaves() -> None:
    """Nothing is recorded there, so a leaf may get another shape, as in torch."""
    with ut.inference_mode():
        x = ut.ones(1, 2, 3, requires_grad=True)
        assert x.resize_(1, 2).shape == (1, 2)
        assert x.requires_grad
    with pytest.raises(RuntimeError, match="requires gradients"):
        ut.ones(2, requires_grad=True).resize_(1)
