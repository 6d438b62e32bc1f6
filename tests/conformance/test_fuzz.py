"""A short run of the fuzzers on fixed seeds, and proof that they find, shrink and print."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

from fuzz import faults  # noqa: E402
from fuzz.case import Case, Line  # noqa: E402
from fuzz.hunt import differ  # noqa: E402
from fuzz.judge import UNDECIDED, verdict  # noqa: E402
from fuzz.shrink import shrink  # noqa: E402

LEAF = (Line("x0", "numbers(1, 3, 4)"), Line("x1", "numbers(2, 4)"))


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("name, count", [("programs", 40), ("windows", 25), ("edges", 150)])
def test_fixed_seeds(name: str, count: int, block: int) -> None:
    """No case fails; a failure shows a script that runs by itself."""
    reports = [differ(name, seed) for seed in range(block * count, (block + 1) * count)]
    failures = [report for report in reports if report not in ("", UNDECIDED)]
    assert not failures, failures[0]
    assert reports.count("") > count / 2, "too few cases were decided"


@pytest.mark.parametrize("seed", range(6))
def test_faults(seed: int) -> None:
    """Each scenario once."""
    assert faults.attempt(seed) == ""


def planted() -> Case:
    """A program in which only `lib.sin` will be wrong."""
    steps = ["x0 * 1", "v0 + x1", "v1.tanh()", "lib.sin(v2)", "v3.sum(0)", "lib.cat([v4, x1])"]
    lines = [Line(f"v{j}", code) for j, code in enumerate(steps)]
    return Case("planted", LEAF, (*lines, Line("", "v1.mul_(2)")), 2)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda sin: lambda x: sin(x) * 1.001, "v3 differs"),
        (lambda sin: lambda x: sin(x) + (x - x.detach()) * 0.01, "derivative 1 of x0 differs"),
        (lambda sin: lambda x: sin(x).detach(), "v3 has float64, requires_grad=False"),
        (lambda sin: lambda x: x.reshape(-1, 7), "refused with ShapeError"),
    ],
)
def test_a_defect_is_found_shrunk_and_printed(
    wrong: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong: value, derivative, graph, error."""
    case = planted()
    assert verdict(case) == ""
    monkeypatch.setattr(ut, "sin", wrong(ut.sin))
    assert verdict(case).startswith(said)
    small = shrink(case, lambda c: verdict(c) not in ("", UNDECIDED))
    assert len(small.lines) <= 4 < len(case.lines)
    assert any("lib.sin" in line.code for line in small.lines)
    command = [sys.executable, "-W", "ignore", "-c", small.script("planted")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "undertow" in shown
    assert "torch" in shown


def test_a_view_instead_of_a_copy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The later change in place shows through."""
    lines = [Line("v0", "x0 * 1"), Line("v1", "lib.clone(v0)"), Line("", "v0.add_(1)")]
    monkeypatch.setattr(ut, "clone", lambda x: x.view_as(x))
    assert verdict(Case("planted", LEAF, tuple(lines))).startswith("v1 differs")


def test_half_a_change_by_a_refused_step_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that raises must leave everything as it was."""

    def half(self: Any, other: Any) -> Any:
        with ut.no_grad():
            self.mul_(2)
        raise ValueError("too late")

    lines = [Line("v0", "x0 * 1"), Line("v1", "refused(lambda: v0.add_(x1[:3]))")]
    monkeypatch.setattr(ut.Tensor, "add_", half)
    assert verdict(Case("planted", LEAF, tuple(lines))).startswith("v0 differs")
