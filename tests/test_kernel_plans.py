"""Plans of calls: the bounded cache, and the layouts that all forms share."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.backends.cpu import launch
from undertow.backends.cpu.launch import Plans
from undertow.backends.cpu.maps import run_maps
from undertow.backends.cpu.plans import lay_out, like, row_major, some
from undertow.kernel.expr import trace
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
