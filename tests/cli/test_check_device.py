"""`undertow check-device`: what is right passes, and each thing that can be wrong is told."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import undertow as ut
from undertow.backends import registry
from undertow.backends.boxed import BoxedBackend
from undertow.backends.generated.runtime import Limits
from undertow.cli import main
from undertow.cli.device_checks import CASES, check_cases, check_memory, measure_speed
from undertow.errors import DTypeError

EXP = ut.core.op.OPS["exp"].expr


@pytest.fixture(autouse=True)
def generator() -> Iterator[None]:
    state = ut.get_rng_state()
    yield
    ut.set_rng_state(state)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a device of a class, for this test alone."""
    monkeypatch.setattr(registry, "_makers", dict(registry._makers))
    monkeypatch.setattr(registry, "_running", dict(registry._running))

    def start(kind: type[BoxedBackend]) -> Any:
        ut.register_backend("made", kind)
        return registry.backend_on("made")

    return start


def test_every_case_is_right_on_the_reference_device() -> None:
    outcome = check_cases("reference", list(CASES), 1e9)
    assert outcome.failures == []
    assert outcome.right == sum(len(c.dtypes) for c in CASES.values())
    assert (outcome.refused, outcome.left, outcome.lost) == ({}, 0, False)


def test_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-device", "cpu", "--only", "layer norm"]) == 0
    told = capsys.readouterr().out
    assert "device     cpu" in told
    assert "2 of 2 right" in told
    assert "what was run is right" in told


@pytest.mark.parametrize(
    "words, message",
    [
        (["toaster"], "there is no device 'toaster' here"),
        (["cpu", "--seconds", "0"], "expected a whole number from 1 on"),
        ([], "required: device"),
    ],
)
def test_wrong_command_lines(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["check-device", *words])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_an_unknown_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-device", "cpu", "--only", "soup"]) == 1
    assert "these are arithmetic, broadcast" in capsys.readouterr().err


def test_no_driver(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("UNDERTOW_LIBCUDA", "/none/libcuda.so")
    with pytest.raises(SystemExit):
        main(["check-device", "cuda"])
    assert "there is no NVIDIA driver here (/none/libcuda.so" in capsys.readouterr().err


class Inexact(BoxedBackend):
    """exp is wrong by a thousandth."""

    def maps(self, exprs: Any, operands: Any, dtypes: Any, outs: Any = None) -> Any:
        found = super().maps(exprs, operands, dtypes, outs)
        if len(exprs) == 1 and exprs[0] is EXP:
            found = [super(Inexact, self).map(SCALED, (f,), f.dtype) for f in found]
        return found


SCALED = ut.kernel.expr.trace(lambda a: a * 1.001, 1)


def test_wrong_results_are_told(made: Any, capsys: pytest.CaptureFixture[str]) -> None:
    made(Inexact)
    outcome = check_cases("made", ["exp log sqrt", "sum of rows"], 1e9)
    assert [(f.case, f.dtype) for f in outcome.failures] == [
        ("exp log sqrt", "float32"),
        ("exp log sqrt", "float64"),
    ]
    assert "result off by" in outcome.failures[0].what
    assert outcome.right == 2
    assert main(["check-device", "made", "--only", "exp"]) == 1
    assert "WRONG      exp log sqrt, float32: result off by" in capsys.readouterr().out


class Restless(BoxedBackend):
    """Sums differ by their last bits from call to call."""

    calls = itertools.count()

    def reduce(self, *args: Any) -> Any:
        found = super().reduce(*args)
        if found.dtype.kind == "f" and next(self.calls) % 2:
            return super().map(LAST_BIT, (found,), found.dtype)
        return found


LAST_BIT = ut.kernel.expr.trace(lambda a: a * 1.0000005, 1)


def test_other_bits_in_a_second_run_are_told(made: Any) -> None:
    made(Restless)
    (failure, *_) = check_cases("made", ["sum of rows"], 1e9).failures
    assert failure.what == "other bits in a second run"


class Lost(BoxedBackend):
    """Sorting loses the device."""

    lost = False

    def sort(self, *args: Any) -> Any:
        self.lost = True
        raise RuntimeError("an illegal address")

    def maps(self, *args: Any, **kwargs: Any) -> Any:
        if self.lost:
            raise RuntimeError("the device was lost")
        return super().maps(*args, **kwargs)


def test_a_lost_device_ends_the_cases(made: Any, capsys: pytest.CaptureFixture[str]) -> None:
    made(Lost)
    outcome = check_cases("made", ["sort", "topk"], 1e9)
    assert [f.what for f in outcome.failures] == ["RuntimeError: an illegal address"]
    assert (outcome.lost, outcome.left) == (True, 3)
    registry._running.pop("made")
    assert main(["check-device", "made", "--only", "so"]) == 1  # softmax before sort
    assert "the device no longer answers" in capsys.readouterr().out


class Narrow(BoxedBackend):
    """There is no float64."""

    def from_host(self, array: Any) -> Any:
        if array.dtype == "float64":
            raise DTypeError("[to] no kernel on made: float64; convert to float32")
        return super().from_host(array)


def test_what_a_device_refuses_is_no_failure(made: Any) -> None:
    made(Narrow)
    outcome = check_cases("made", ["sum of rows"], 1e9)
    assert outcome.refused == {"sum of rows, float64": "[to] no kernel on made: float64"}
    assert (outcome.right, outcome.failures) == (1, [])


def test_the_time_ends_the_cases() -> None:
    outcome = check_cases("reference", ["sum of rows"], -1)
    assert (outcome.right, outcome.left) == (0, 2)


def test_leaks_are_told(made: Any) -> None:
    """A device that counts memory which never comes back, keeps ever more, and refuses nothing."""
    k = made(BoxedBackend)
    held = SimpleNamespace(allocated=0, reserved=0)
    k.runtime = SimpleNamespace(memory=held, limits=Limits(max_buffer=1 << 20))
    found = dict(check_memory("made"))
    assert found == {
        "0 bytes more in use after 10 trainings": True,
        "0 bytes more kept for reuse": True,
        "1052672 bytes at once are not refused": False,
        "and it computes after that": True,
    }

    class Leaking:
        count = 0
        reserved = property(lambda self: 10 * self.count)

        @property
        def allocated(self) -> int:
            self.count += 1
            return self.count

    k.runtime.memory = Leaking()
    assert [good for _, good in check_memory("made")][:2] == [False, False]


def test_speed_has_figures() -> None:
    found = list(measure_speed("reference"))
    assert len(found) >= 8
    assert all(speed.amount > 0 for speed in found)
