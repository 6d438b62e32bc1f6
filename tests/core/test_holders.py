"""Who holds memory: nothing is used again that somebody still looks at, whatever Python counts."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends import holders, memory
from undertow.backends.registry import backend_on
from undertow.core.tensor import wrap
from undertow.devices import Device


def by_variable(found: list[Any]) -> Any:
    kept = found[0]
    return lambda: kept


def by_frame(found: list[Any]) -> Iterator[Any]:
    kept = found[0]
    yield
    del kept


def by_argument(found: list[Any]) -> Any:
    def waits(kept: Any) -> Iterator[Any]:
        yield
        del kept

    return waits(found[0])


WAYS: list[Callable[[list[Any]], Any]] = [
    by_variable,
    by_frame,
    by_argument,
    lambda found: [found[0]],
    lambda found: {"kept": found[0]},
    lambda found: wrap(found[0]),
    lambda found: wrap(found[0]).view(1, 3),
]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_owned_only_by_who_asks(device: str, way: int) -> None:
    """Often enough that the interpreter has made quicker instructions of the question."""
    k = backend_on(Device(device))
    for _ in range(40):
        found = [k.full((3,), 1.0, np.dtype(np.float32))]
        assert k.owned(found, 0) is holders.COUNTED
        kept = WAYS[way](found)
        if isinstance(kept, Iterator):
            next(kept)
        assert not k.owned(found, 0)
        del kept
        assert k.owned(found, 0) is holders.COUNTED


def test_owned_by_who_called() -> None:
    """Callers further up hold what they gave, though nobody below counted it."""
    k = backend_on(Device("cpu"))

    def asked(array: Any) -> bool:
        return k.owned([array], 0)

    def between(array: Any) -> bool:
        return asked(array)

    for _ in range(40):
        array = np.ones(3)
        assert not asked(array)
        assert not between(array)


def test_views_of_what_somebody_holds() -> None:
    for _ in range(40):
        whole = np.ones((2, 3))
        flat = whole.reshape(6)
        assert not memory.owns(flat)
        del whole
        assert memory.owns(flat) is holders.COUNTED


def test_blocks_of_what_somebody_holds() -> None:
    """Large arrays: a block is handed out again only after all that look at it have gone."""
    for i in range(40):
        array = memory.empty((1 << 16,), np.float32)
        array.fill(i)
        tail = array[-1:]
        del array
        other = memory.empty((1 << 16,), np.float32)
        other.fill(-1)
        assert tail[0] == i


def test_gradients_that_the_caller_keeps() -> None:
    """A gradient is given by reference all the way to `.grad`; the hook's copy must stay."""
    for _ in range(30):
        x = ut.ones(4, requires_grad=True)
        kept: list[Any] = []
        y = x * 2
        y.register_hook(kept.append)
        (y * 1.0 + y * 3.0).sum().backward()
        (gradient,) = kept
        assert gradient.tolist() == [4.0] * 4
        given = x.grad
        (x * 2).sum().backward()
        assert gradient.tolist() == [4.0] * 4
        assert given is x.grad


def test_counts_that_borrow_more_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that does not count what a list or a variable holds is found out."""
    true = sys.getrefcount
    for wrong in (lambda o: true(o) - 5, lambda o: 2, lambda o: true(o) + 5):
        monkeypatch.setattr(holders, "_COUNT", wrong)
        assert not holders._counts()
        assert holders.refusal()


def test_without_counts() -> None:
    """Where counts tell nothing, gradients, programs and large arrays are right all the same."""
    script = textwrap.dedent("""
        import sysconfig
        asked = sysconfig.get_config_var
        sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else asked(name)
        import numpy as np
        import undertow as ut
        from undertow.backends import holders, memory
        from undertow.backends.cpu.calls import native
        assert not holders.COUNTED and "lock" in holders.refusal()
        assert not native.possible() and "lock" in native.refusal()
        assert memory._blocks is None
        sysconfig.get_config_var = asked
        model = ut.nn.Sequential(ut.nn.Linear(300, 300), ut.nn.ReLU(), ut.nn.Linear(300, 1))
        optimizer = ut.optim.SGD(model.parameters(), lr=1e-4)
        x = ut.ones(64, 300)
        def step():
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            optimizer.step()
            return loss
        compiled = ut.compile(step)
        losses = [compiled().item() for _ in range(8)]
        assert losses == sorted(losses, reverse=True)
        assert "without its lock" in compiled.explain()
        loader = ut.utils.data.DataLoader(list(range(12)), batch_size=4, num_workers=1)
        assert [b.tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        print("fine")
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "fine", done.stderr


def test_no_import_without_the_lock() -> None:
    script = "import sys; sys._is_gil_enabled = lambda: False; import undertow"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ImportError: undertow needs the lock" in done.stderr
    assert "PYTHON_GIL=1" in done.stderr


def test_this_python_counts() -> None:
    """A build with the lock is one whose counts tell, or memory is used once only, silently."""
    assert holders.COUNTED or sysconfig.get_config_var("Py_GIL_DISABLED")
