"""The memory of large arrays: what is used again, what is kept, and what goes back."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow.backends import memory
from undertow.backends.cpu.calls import choice
from undertow.backends.memory import PAGE, Blocks

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def address(block: Any) -> int:
    return int(np.frombuffer(block, np.uint8).__array_interface__["data"][0])


def test_a_free_block_is_used_again() -> None:
    blocks = Blocks(64 * PAGE)
    first = blocks.take(4 * PAGE)
    at = address(first)
    assert address(blocks.take(4 * PAGE)) != at, "it is in use"
    del first
    found = [blocks.take(4 * PAGE) for _ in range(4)]
    assert [address(b) for b in found].count(at) == 1


def test_a_view_keeps_its_block() -> None:
    """Whoever looks at an array's memory, by whatever way, keeps it from being used again."""
    shape, kind = (memory.LARGE,), np.dtype(np.uint8)
    held: list[Any] = []
    for look in (lambda a: a[5:9], memoryview, lambda a: a.reshape(2, -1).T, np.from_dlpack):
        array = memory.empty(shape, kind)
        array.fill(7)
        held.append(look(array))
        del array
        for _ in range(20):
            memory.empty(shape, kind).fill(9)
        assert np.unique(np.asarray(held[-1])).tolist() == [7]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), max_size=80))
def test_blocks_never_overlap_and_are_bounded(steps: list[tuple[int, int]]) -> None:
    """Random sizes, freed in random order: nobody's memory is written by another."""
    blocks = Blocks(20 * PAGE)
    live: list[Any] = []
    for number, (pages, free) in enumerate(steps):
        if live and free:
            live.pop(free % len(live))
        array = np.frombuffer(blocks.take(pages * PAGE), np.uint8)
        assert array.size == pages * PAGE
        array[:] = number
        live.append((number, array))
        array = None  # type: ignore[assignment]
        assert blocks.held == sum(size * len(b) for size, b in blocks._sizes.items())
        assert blocks.held <= blocks.keep
        for expected, found in live:
            assert found[0] == found[-1] == expected


def test_sizes_that_are_no_longer_used_go_first() -> None:
    blocks = Blocks(16 * PAGE)
    old = address(blocks.take(8 * PAGE))
    for _ in range(5):
        blocks.take(4 * PAGE)  # one block, again and again
    assert blocks.held == 12 * PAGE
    kept = [blocks.take(4 * PAGE) for _ in range(4)]
    assert blocks.held == 16 * PAGE
    assert 8 * PAGE not in blocks._sizes, f"the block at {old:#x} should have gone"
    assert len({address(b) for b in kept}) == 4


def test_what_is_larger_than_all_that_is_kept() -> None:
    blocks = Blocks(4 * PAGE)
    assert len(blocks.take(5 * PAGE)) == 5 * PAGE
    assert blocks.held == 0


def test_threads_get_blocks_of_their_own() -> None:
    blocks = Blocks(40 * PAGE)
    wrong: list[int] = []

    def work(number: int) -> None:
        live: list[Any] = []
        for i in range(2000):
            array = np.frombuffer(blocks.take((1 + i % 3) * PAGE), np.uint8)
            array[::512] = number
            live.append(array)
            if i % 5 == 0:
                wrong.extend([number for a in live if (a[::512] != number).any()])
                del live[: len(live) // 2]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert blocks.held <= blocks.keep


def test_kept_memory_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no memory, what is kept is let go before giving up."""
    blocks = Blocks(8 * PAGE)
    blocks.take(4 * PAGE)
    mapped = memory.mapped

    def scarce(size: int) -> Any:
        if blocks.held:
            raise MemoryError
        return mapped(size)

    monkeypatch.setattr(memory, "mapped", scarce)
    assert len(blocks.take(2 * PAGE)) == 2 * PAGE
    assert blocks.held == 2 * PAGE


def test_what_made_room_for_a_block_is_counted_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of the size that is wanted is let go of, too, and must come back."""
    blocks = Blocks(8 * PAGE)
    real, failing = memory.mapped, [True]

    def mapped(size: int) -> Any:
        if failing and failing.pop():
            raise MemoryError
        return real(size)

    monkeypatch.setattr(memory, "mapped", mapped)
    for _ in range(5):
        failing[:] = [True]
        first = blocks.take(4 * PAGE)
        assert len(first) == 4 * PAGE
        assert blocks.held == 4 * PAGE
        del first
        assert len(blocks.take(7 * PAGE)) == 7 * PAGE  # nothing left to count off would be an error
        assert blocks.held <= blocks.keep


def test_too_many_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then malloc may still have memory."""

    def refuse(size: int) -> Any:
        raise MemoryError

    monkeypatch.setattr(memory, "mapped", refuse)
    array = memory.empty((12345, 77), np.dtype(np.float32))
    array.fill(1)
    assert array.shape == (12345, 77)
    assert array.ctypes.data % memory.LINE == 0


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
@pytest.mark.parametrize("shape", [(40, 50, 60), (40, 1, 3000), (3, 5, 7)])
def test_layouts_are_those_of_numpy(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = np.empty(shape, np.float32).transpose(order)
    for array in (x, x[::2], x[..., ::-1]):
        for kind in (np.dtype(np.float64), np.dtype(np.int8)):
            made, expected = memory.empty_like(array, kind), np.empty_like(array, kind)
            wide = [i for i, n in enumerate(made.shape) if n > 1]
            assert made.shape == expected.shape
            assert made.dtype == kind
            assert [made.strides[i] for i in wide] == [expected.strides[i] for i in wide]
            assert memory.owns(made)


# In a process of its own, so that its memory can be measured.
RESIDENT = """
import resource, sys
import numpy as np
import undertow as ut

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20

x = ut.ones(1 << 18)
MAKERS = {
    "ones": (1, lambda: ut.ones(1 << 18)),
    "sum": (1, lambda: x + x),
    "clone": (1, lambda: x.clone()),
    "turned": (1, lambda: x.view(512, 512).T + 1),
    "cast": (2, lambda: x.double()),
    "scan": (1, lambda: x.cumsum(0)),
    "large": (10, lambda: ut.ones(10 << 18)),
    "small": (0.25, lambda: ut.exp(x[: 1 << 16])),
}
for _, make in MAKERS.values():
    make()  # compiles
before = resident()
for name, (size, make) in MAKERS.items():
    for _ in range(2):
        arrays = [make() for _ in range(int(1200 / size))]
        for a in arrays:
            a.detach().numpy().T.reshape(-1)[::1024] = 1
        made = resident() - before
        arrays = arrays[::100]
        left = resident() - before - len(arrays) * size
        print(f"{name}: made {made:.0f} MB, kept {left:.0f} MB beside {len(arrays)} arrays")
        assert made > 1100, "the arrays are too small to tell"
        assert left <= 512
    del arrays
"""


@linux
def test_at_most_512_mb_of_freed_memory_stay() -> None:
    """Also when arrays survive here and there among those that are freed."""
    ours = ("UNDERTOW_KEEP_MEMORY", "UNDERTOW_KERNELS")
    environment = {k: v for k, v in os.environ.items() if k not in ours}
    script = [sys.executable, "-c", RESIDENT]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(choice.MODE == "never", reason="NumPy makes the results")
def test_results_as_large_as_the_last_one_map_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written into pages that are there already; see Note [blocks]."""
    a, b = ut.ones(1 << 20), ut.ones(1 << 20).requires_grad_()

    def step() -> None:
        (a * b).exp().sum().backward()
        b.grad = None

    step()
    step()
    fresh: list[int] = []
    mapped = memory.mapped
    monkeypatch.setattr(memory, "mapped", lambda size: fresh.append(size) or mapped(size))
    for _ in range(10):
        step()
    assert not fresh


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_blocks_after_a_fork_inside() -> None:
    """A child that was forked while another thread took a block still has blocks of its own."""
    blocks = Blocks(8 * PAGE)
    blocks._lock.acquire()
    child = os.fork()
    if child == 0:
        held = 0
        try:
            blocks.take(2 * PAGE)
            held = blocks.held
        finally:
            os._exit(0 if held == 2 * PAGE else 1)
    blocks._lock.release()
    assert os.waitpid(child, 0)[1] == 0
