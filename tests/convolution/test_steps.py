"""Convolutions as launches that were found out once: the bits of the algorithm itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.backends.cpu.calls import choice, launch, steps
from undertow.backends.cpu.convolution import conv
from undertow.backends.registry import backend_on

# Shapes of input and weight, and what else there is.
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "direct": ((2, 3, 40), (5, 3, 3), {"padding": 1}),
    "depthwise": ((2, 8, 40), (8, 1, 5), {"padding": 4, "groups": 8, "stride": 2}),
    "product": ((2, 32, 40), (24, 32, 1), {}),
    "fewer": ((2, 32, 60), (48, 32, 3), {"padding": 1}),
    "fewer2d": ((2, 32, 12, 12), (32, 32, 3, 3), {"padding": 1}),
    "parts": ((3, 16, 30, 30), (16, 16, 7, 7), {"padding": 3}),
    "lanes": ((2, 32, 90), (32, 32, 3), {"stride": 2, "padding": 2}),
    "woven": ((4, 32, 60), (32, 32, 5), {"stride": 2, "padding": 2}),
    "shifted": ((2, 48, 200), (16, 48, 3), {"dilation": 20}),
    "shifted2d": ((2, 192, 6, 22), (128, 48, 5, 2), {"dilation": (1, 4), "groups": 4}),
    "patches": ((2, 16, 320), (32, 16, 16), {"stride": 16}),
    "rest": ((2, 16, 325), (32, 16, 16), {"stride": 16}),
    "packed": ((2, 24, 7, 7, 5), (64, 24, 3, 3, 3), {"stride": 2, "padding": 1}),
    "double": ((2, 24, 31), (20, 24, 4), {"stride": 3, "padding": 1}),
    "gaps": ((2, 24, 9), (20, 24, 2), {"stride": 4, "padding": 1}),
}


@pytest.fixture(autouse=True)
def from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan is known, and none that a test spoils stays."""
    monkeypatch.setattr(choice, "MODE", "always")
    monkeypatch.setattr(launch, "PLANS", launch.Plans())


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = ut.get_num_threads()
    ut.set_num_threads(request.param)
    yield request.param
    ut.set_num_threads(before)


def products(case: str) -> list[bytes]:
    """A convolution with a bias and all gradients."""
    shape, kernel, how = CASES[case]
    rng = np.random.default_rng(0)
    dtype = np.float64 if case == "double" else np.float32
    arrays = [rng.standard_normal(s).astype(dtype) for s in (shape, kernel, kernel[:1])]
    leaves = [ut.from_numpy(a).requires_grad_() for a in arrays]
    y = (F.conv1d, F.conv2d, F.conv3d)[len(shape) - 3](*leaves, **how)
    gradients = ut.autograd.grad(y, leaves, y.detach().cos())
    return [t.detach().numpy().tobytes() for t in (y, *gradients)]


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_left_out(case: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in the memory before, bits are those of the algorithm's own Python."""

    def spoilt(take: Any) -> Any:
        def taken(size: int) -> Any:
            block = take(size)
            block[...] = 255  # NaN
            return block

        return taken

    made = []

    def noted(*given: Any) -> Any:
        made.append(find(*given))
        return made[-1]

    find = conv._steps
    with monkeypatch.context() as patch:
        patch.setattr(conv, "_steps", noted)
        patch.setattr(steps, "scratch", spoilt(steps.scratch))
        patch.setattr(launch, "take_kept", spoilt(launch.take_kept))
        found = [products(case), products(case)]
    assert len(made) == 3
    assert all(made)
    with monkeypatch.context() as patch:
        patch.setattr(conv, "_steps", lambda *given: None)
        patch.setattr(launch, "PLANS", launch.Plans())
        expected = products(case)
    assert found[0] == found[1]
    assert found[0] == expected


@pytest.mark.parametrize("layout", ["every second", "one for all", "backwards"])
@pytest.mark.parametrize("case", CASES)
def test_a_bias_that_is_not_dense(case: str, layout: str) -> None:
    """What NumPy would copy during the rehearsal is no launch, so nobody would write it later."""
    shape, kernel, how = CASES[case]
    rng = np.random.default_rng(0)
    n = kernel[0]
    dtype = np.float64 if case == "double" else np.float32
    x, w, b = (ut.from_numpy(rng.standard_normal(s).astype(dtype)) for s in (shape, kernel, 2 * n))
    b = {"every second": b[::2], "one for all": b[:1].expand(n), "backwards": b[:n]}[layout]
    if layout == "backwards":
        b = ut.from_numpy(b.numpy()[::-1])
    conv = (F.conv1d, F.conv2d, F.conv3d)[len(shape) - 3]
    for _ in range(2):
        np.testing.assert_allclose(
            conv(x, w, b, **how).numpy(), conv(x, w, b.clone(), **how).numpy(), 1e-5, 1e-5
        )


def test_operands_anywhere() -> None:
    """Steps know layouts, not places: views of one array, and parts of others."""
    rng = np.random.default_rng(1)
    memory = ut.from_numpy(rng.standard_normal(40000).astype(np.float32))
    w = memory[7 : 7 + 32 * 32 * 3].view(32, 32, 3)
    for first in (0, 1, 1001):
        x = memory[first : first + 2 * 32 * 60].view(2, 32, 60)
        found = F.conv1d(x, w, padding=1)
        assert ut.equal(found, F.conv1d(x.clone(), w.clone(), padding=1))
        right = F.conv1d(x.double(), w.double(), padding=1)
        assert float((found - right).abs().max()) < 1e-4


def test_what_is_rehearsed_does_not_run() -> None:
    """Neither on the operands, which are not touched, nor is it told to who watches launches."""
    told: list[str] = []

    def watcher(name: str, arrays: Any, numbers: Any, work: int, go: Any) -> None:
        told.append(name)
        go()

    x, w = np.ones((2, 32, 60), np.float32), np.ones((48, 32, 3), np.float32)
    out = np.zeros((2, 48, 58), np.float32)
    before = launch.watch(watcher)
    try:
        work = steps.Steps(lambda o, a, b: launch_all(o, a, b), (out, x, w))
        assert told == []
        assert not out.any()
        work.run(out, x, w)
        assert told == [one.kernel.name for one, *_ in work.calls]
    finally:
        launch.watch(before)
    assert (out == 96).all()


def launch_all(out: Any, a: Any, b: Any) -> None:
    from undertow.backends.cpu.convolution.problem import Problem
    from undertow.kernel.windows import Geometry

    geometry = Geometry((60,), (3,), (1,), ((0, 0),), (1,), (1,))
    views = out[:, None], a[:, None], b[None]
    found = conv.table.choose(Problem(*views, None, geometry, False, "auto"), "packed")
    assert found is not None
    found[1].compute(conv.Arrays(*views, None), False, backend_on("cpu"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # from Python 3.12 on
def test_a_child_that_is_forked_during_a_rehearsal() -> None:
    """The thread that rehearses does not exist there, so nobody would give back what it holds."""
    with launch._rehearsing, launch._tap_lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends the child if it waits for ever
            try:
                y = F.conv1d(ut.ones(1, 32, 61), ut.ones(32, 32, 3))
                os._exit(0 if float(y[0, 0, 0]) == 96 else 1)
            except BaseException:
                os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_what_is_not_all_launches_is_no_list() -> None:
    """A sum by NumPy would be missing."""

    def work(out: Any, x: Any) -> None:
        launch.unwritten()
        np.add(x, x, out)

    with pytest.raises(steps.NotCompiled, match="more than launches"):
        steps.Steps(work, (np.zeros(4), np.ones(4)))
