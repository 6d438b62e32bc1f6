"""Plans of calls: the bounded cache, and the layouts that all forms share."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from undertow.backends.cpu.calls import launch
from undertow.backends.cpu.calls.launch import Plans
from undertow.backends.cpu.calls.layouts import lay_out, like
from undertow.backends.cpu.forms import maps
from undertow.backends.cpu.forms.maps import run_maps
from undertow.kernel.expr import trace
from undertow.kernel.layout import row_major, some
from undertow.kernel.lower import NotCompiled


def test_a_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MOST", 10)
    found = Plans()
    for number in range(95):
        assert found.make(number, lambda x: (x,), number) == (number,)
        assert found[number] == (number,)
        assert len(found) <= 10


def test_that_there_is_no_kernel_is_remembered() -> None:
    def refuse(number: int) -> None:
        calls.append(number)
        if number:
            raise NotCompiled("not this one")

    calls: list[int] = []
    found = Plans()
    for number in (0, 1):
        assert found.make(number, refuse, number) is False
        assert found.get(number) is False
    assert calls == [0, 1]


def test_a_plan_can_be_asked_for_without_running_it() -> None:
    expr, x = trace(lambda a, b: a * b + a, 2), np.ones((3, 40), np.float32)
    plan = launch.plan_of(maps._make, (x, x.T.copy().T), (expr,), (x.dtype,), 0)
    assert plan.launch.kernel.name.startswith("map_")
    assert plan.launch.work == 2 * x.size
    assert [(room.shape, room.dtype) for room in plan.results] == [((3, 40), np.float32)]
    assert plan.launch.ints[:2] in ((3, 40), (40, 3))


def test_plans_depend_on_layouts_alone() -> None:
    """Neither on values nor on addresses, nor on numbers beside arrays."""
    expr = trace(lambda a, number: a * number, 2)
    arrays = [np.full((5, 7), value) for value in (1.0, np.nan, np.inf)]
    arrays.append(np.ones((7, 5))[:5].repeat(2, 1)[:, :7].copy())
    plans = set()
    for number, x in enumerate(arrays):
        (found,) = run_maps((expr,), (x, float(number)), (x.dtype,)) or (None,)
        np.testing.assert_array_equal(found, x * number)
        plans.add(id(launch.plan_of(maps._make, (x, 2.5), (expr,), (x.dtype,), 0)))
    assert len(plans) == 1


def test_launches_are_printed() -> None:
    """Each with its kernel, arrays, bytes and operations."""
    code = "import undertow as ut; x = ut.ones(300, 400); (x @ x.T).softmax(0)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "UNDERTOW_DEBUG": "launches", "UNDERTOW_KERNELS": "always"},
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("undertow: launch")]
    product = next(line for line in lines if "launch gemm" in line)
    assert "float32[300, 400]" in product
    assert f"{2 * 300 * 300 * 400} operations" in product
    assert any("launch rows" in line for line in lines)


def test_a_freed_expression_leaves_no_plan_to_another() -> None:
    """Expressions are found by identity, which may come again when one is freed."""
    x = np.arange(6.0)
    for number in range(20):
        (found,) = run_maps((trace(lambda a: a + number, 1),), (x,), (x.dtype,)) or (None,)  # noqa: B023
        np.testing.assert_array_equal(found, x + number)


@pytest.mark.parametrize(
    "array",
    [
        np.empty((0, 3)),
        np.empty(3, complex),
        np.empty((2, 3), "i1,i4")["f1"],  # steps of five bytes
    ],
)
def test_what_no_kernel_can_walk(array: np.ndarray) -> None:
    with pytest.raises(NotCompiled):
        lay_out([np.ones(3), array])


def test_steps_reach_the_elements_of_a_broadcast() -> None:
    base = np.arange(120)
    arrays = [base.reshape(2, 3, 4, 5).transpose(2, 0, 3, 1), base[10::-1][:5, None], base[7]]
    shape, types, steps = lay_out(arrays)
    assert (shape, types) == ((4, 2, 5, 3), ["i64"] * 3)
    for a, mine in zip(arrays, steps, strict=True):
        wide = np.broadcast_to(a, shape)
        first = wide[0, 0, 0, 0]
        for index in np.ndindex(shape):
            offset = int(np.dot(index, mine))
            assert wide[index] == base[first + offset]


def test_some_dimensions_keep_their_elements() -> None:
    shape, steps = (4, 2, 5, 3), row_major((4, 2, 5, 3))
    assert some(shape, (2, 3), [steps]) == ((15,), [(1,)])
    assert some(shape, (0, 2), [steps]) == ((4, 5), [(30, 3)])
    assert some(shape, (), [steps]) == ((1,), [(0,)])


def test_results_lie_like_the_first_whole_operand() -> None:
    x = np.ones((3, 4, 5))
    assert like([x], x.shape) is None
    assert like([np.ones(5), x.transpose(2, 0, 1).copy().transpose(1, 2, 0)], x.shape) == 1
    assert like([x[:, ::2]], (3, 2, 5)) is None
