"""Loading in worker processes: order, seeds, shared memory, errors, and every way to end.

Every wait has somebody who ends it (Notes [loader waits] and [worker waits]); here is what would
hang if that were wrong. A test that takes longer than its watchdog fails with a traceback.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends import shared_memory
from undertow.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from undertow.utils.data._utils import processes

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
Point = namedtuple("Point", "x y")
SECONDS = 300  # of the watchdog, on a machine where others compute, too
SOON = 30.0  # seconds, on such a machine


@pytest.fixture(autouse=True)
def forked() -> Iterator[None]:
    """Workers are forked unless a test says otherwise: from 3.14 on Python would not do so."""
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    """No test hangs, and none leaves a process or a file in shared memory behind."""

    def bark(*_: Any) -> None:
        raise TimeoutError(f"still running after {SECONDS} seconds")

    named = shared_names()
    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(SECONDS)
    try:
        yield
        if multiprocessing.active_children():
            gc.collect()
        assert multiprocessing.active_children() == []
        assert shared_names() <= named
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def shared_names() -> set[str]:
    place = Path("/dev/shm")
    return {p.name for p in place.iterdir() if "undertow" in p.name} if place.is_dir() else set()


class Mapped(Dataset[Any]):
    """Samples by a function of their number."""

    def __init__(self, size: int, sample: Callable[[int], Any] = int) -> None:
        self.size, self.sample = size, sample

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)

    def __len__(self) -> int:
        return self.size


class Stream(IterableDataset[Any]):
    """The samples of a function's iterator, which gets the number of the worker."""

    def __init__(self, samples: Callable[[int], Any]) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        assert info is not None
        return iter(self.samples(info.id))


def load(sample: Any = int, size: int = 12, batch_size: Any = 2, **how: Any) -> DataLoader[Any]:
    how.setdefault("num_workers", 2)
    return DataLoader(Mapped(size, sample), batch_size, **how)


def numbers(loader: Any) -> list[Any]:
    return [batch.tolist() for batch in loader]


def pids(iterator: Any) -> list[int]:
    return [worker.process.pid for worker in iterator._workers]


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


def gone(numbers: list[int], seconds: float = SOON) -> bool:
    """Whether these processes end within some seconds."""
    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in numbers):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# What comes back -----------------------------------------------------------------------------
def picture(i: int) -> Any:
    return ut.full((3, 64, 64), float(i))


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("how", [{}, {"drop_last": True}, {"shuffle": True}], ids=str)
def test_batches_do_not_depend_on_the_number_of_workers(workers: int, how: Any) -> None:
    ut.manual_seed(7)
    alone = numbers(load(size=11, num_workers=0, **how))
    ut.manual_seed(7)
    assert numbers(load(size=11, num_workers=workers, **how)) == alone


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_small_datasets(size: int) -> None:
    assert numbers(load(size=size)) == numbers(load(size=size, num_workers=0))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    for x, y in load(pair, size=6, multiprocessing_context=method):
        assert x[:, 0, 0, 0].tolist() == y.tolist()


def pair(i: int) -> Any:
    return picture(i), i


def test_what_spawn_cannot_pickle_is_explained() -> None:
    with pytest.raises(Exception) as caught:
        iter(load(lambda i: i, multiprocessing_context="spawn"))
    assert "starts by 'spawn'" in " ".join(caught.value.__notes__)


def nested(i: int) -> Any:
    return {
        "picture": picture(i),
        "array": np.full((2, 5000), i),
        "point": Point(i, float(i)),
        "list": [i, str(i)],
        "bytes": bytes([i]),
    }


def test_nested_batches() -> None:
    for ours, alone in zip(load(nested), load(nested, num_workers=0), strict=True):
        assert ours.keys() == alone.keys()
        assert bool((ours["picture"] == alone["picture"]).all())
        assert bool((ours["array"] == alone["array"]).all())
        assert isinstance(ours["point"], Point)
        assert ours["point"].y.tolist() == alone["point"].y.tolist()
        assert (ours["list"][1], ours["bytes"]) == (alone["list"][1], alone["bytes"])


class Custom:
    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples
        self.text = "x" * 300_000  # longer than what goes through the socket


def test_any_object_that_can_be_pickled() -> None:
    found = list(load(collate_fn=Custom))
    assert [batch.samples for batch in found] == numbers(load(num_workers=0))
    assert all(len(batch.text) == 300_000 for batch in found)


def layouts(_: Any) -> Any:
    base = ut.arange(60000.0).reshape(20, 30, 100)
    return [
        base,
        base.permute(2, 0, 1),
        base[:, ::2],
        base.to(ut.bfloat16),
        base.to(ut.bfloat16).permute(1, 0, 2),
        base > 5,
        base[:0],
        ut.tensor(3.0),
        base.expand(2, 20, 30, 100),
        base.clone().requires_grad_(),
        base.to("reference"),
        base,
    ]


def test_layouts_dtypes_and_devices() -> None:
    for found, wanted in zip(next(iter(load(collate_fn=layouts))), layouts(None), strict=True):
        assert (found.shape, found.dtype, found.device) == (
            wanted.shape,
            wanted.dtype,
            wanted.device,
        )
        assert bool((found == wanted).all())
        assert found.requires_grad == wanted.requires_grad
    batch = next(iter(load(collate_fn=layouts)))
    assert batch[0] is batch[-1]
    assert batch[1].stride() == (1, 3000, 100)


# Shared memory -------------------------------------------------------------------------------
def blocks(iterator: Any) -> list[int]:
    return [len(worker.borrower._blocks) for worker in iterator._workers]


def test_batches_lie_in_the_memory_that_the_worker_wrote() -> None:
    iterator = iter(load(picture, size=40, batch_size=4))
    batch = next(iterator)
    mine = {id(b.memory): b.memory for w in iterator._workers for b in w.borrower._blocks.values()}
    looked = batch._array
    while not isinstance(looked, memoryview):
        looked = looked.base
    assert id(looked.obj) in mine
    assert batch.data_ptr() % 4096 == 0
    batch += 1  # it may be written
    assert batch[0, 0, 0, 0].item() == 1.0


def test_memory_is_used_again() -> None:
    iterator = iter(load(picture, size=400, batch_size=4))
    for i, batch in enumerate(iterator):
        assert batch[:, 2, 63, 63].tolist() == list(range(4 * i, 4 * i + 4))
    assert max(blocks(iterator)) <= 5


def test_whoever_keeps_all_batches_has_them_all() -> None:
    iterator = iter(load(picture, size=600, batch_size=4))
    kept = list(iterator)
    assert max(blocks(iterator)) <= shared_memory.MOST
    assert [int(b[0, 0, 0, 0]) for b in kept] == list(range(0, 600, 4))
    del iterator
    gc.collect()
    assert [int(b[3, 2, 63, 63]) for b in kept] == list(range(3, 600, 4))


def test_batches_of_many_large_tensors() -> None:
    def many(i: int) -> Any:
        return [ut.full((5000,), float(i + k)) for k in range(100)]

    for i, batch in enumerate(load(many, size=8, batch_size=1)):
        assert [int(t[0, -1]) for t in batch] == [i + k for k in range(100)]


def test_views_keep_their_block() -> None:
    iterator = iter(load(picture, size=200, batch_size=4))
    kept = [batch[1, 1] for batch in iterator]
    assert [int(k[5, 5]) for k in kept] == list(range(1, 200, 4))


class Again:
    """Collates once and returns the same tensor ever after, and another one beside it."""

    kept: Any = None

    def __call__(self, samples: Any) -> Any:
        from undertow.utils.data import default_collate

        fresh = default_collate([picture(i) for i in samples])
        self.kept = fresh if self.kept is None else self.kept
        return self.kept, fresh


def test_a_worker_may_keep_what_it_sent() -> None:
    """Its block is not overwritten, though this process has returned it."""
    for i, (kept, fresh) in enumerate(load(collate_fn=Again(), size=80)):
        assert kept[0, 0, 0, 0].item() == 2 * (i % 2)
        assert fresh[:, 0, 0, 0].tolist() == [2 * i, 2 * i + 1]


def test_a_forked_child_keeps_the_batch_that_it_saw() -> None:
    """After a fork memory is shared and not copied, so it must not be used again."""
    iterator = iter(load(picture, size=100, batch_size=4))
    batch = next(iterator)
    read, write = os.pipe()
    wake, go = os.pipe()
    pid = os.fork()
    if not pid:
        os.read(wake, 1)
        os.write(write, bytes([int(v) for v in batch[:, 0, 0, 0].tolist()]))
        os._exit(0)
    del batch
    for _ in iterator:
        pass
    os.write(go, b"x")
    assert os.read(read, 4) == bytes([0, 1, 2, 3])
    os.waitpid(pid, 0)
    for descriptor in (read, write, wake, go):
        os.close(descriptor)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files")
def test_no_descriptors_and_mappings_are_left() -> None:
    def used() -> tuple[int, int]:
        gc.collect()
        maps = Path("/proc/self/maps").read_text()
        return len(os.listdir("/proc/self/fd")), maps.count("memfd:undertow")

    list(load(picture, size=40))
    before = used()
    for _ in range(3):
        list(load(picture, size=40))
        next(iter(load(picture, size=40)))
    files, mappings = used()
    assert files <= before[0]
    assert mappings == before[1]


def test_without_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything travels in the messages; large ones both ways must not lock up."""
    monkeypatch.setattr(shared_memory, "AVAILABLE", False)
    many = [list(range(40_000))] * 40
    loader = DataLoader(
        Mapped(40_000), batch_sampler=many, num_workers=2, collate_fn=np.asarray, prefetch_factor=20
    )
    assert [batch.sum() for batch in loader] == [sum(range(40_000))] * 40


def test_when_no_block_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(size: int) -> int:
        raise OSError("no more files")

    monkeypatch.setattr(shared_memory, "_anonymous_file", refuse)
    for i, batch in enumerate(load(picture, size=12)):
        assert batch[:, 0, 0, 0].tolist() == [2 * i, 2 * i + 1]


# Workers -------------------------------------------------------------------------------------
def test_worker_info_and_seeds() -> None:
    def about(_: int) -> Any:
        info = get_worker_info()
        assert info is not None
        drawn = (random.random(), float(np.random.rand()), ut.rand(()).item())  # noqa: NPY002
        return info.id, info.num_workers, info.seed, len(info.dataset), ut.get_num_threads(), drawn

    def run() -> Any:
        return list(load(about, size=8, batch_size=None, generator=ut.Generator().manual_seed(3)))

    first = run()
    assert run() == first
    assert [f[0] for f in first] == [0, 1] * 4
    assert {f[1] for f in first} == {2}
    assert first[1][2] == first[0][2] + 1
    assert {f[3] for f in first} == {8}
    assert {f[4] for f in first} == {1}
    assert len({tuple(f[5]) for f in first}) == 8
    random.seed(first[0][2])
    assert first[0][5][0] == random.random()


def test_the_base_seed_follows_manual_seed() -> None:
    def seed(_: int) -> int:
        return get_worker_info().seed  # type: ignore[union-attr]

    ut.manual_seed(1)
    a = list(load(seed, batch_size=None))
    b = list(load(seed, batch_size=None))
    ut.manual_seed(1)
    assert list(load(seed, batch_size=None)) == a
    assert a != b


def test_worker_init_fn() -> None:
    def init(number: int) -> None:
        get_worker_info().dataset.sample = lambda i: (number, i)  # type: ignore[union-attr]

    found = list(load(size=4, batch_size=None, worker_init_fn=init))
    assert found == [[0, 0], [1, 1], [0, 2], [1, 3]]


def test_kernels_run_in_workers_after_threads_have_run() -> None:
    """The pool of threads and its locks are left behind in order."""
    big = ut.rand(600, 600)
    (big @ big).exp().sum()
    loader = load(lambda i: (ut.full((300, 300), float(i)) @ ut.ones(300, 300)).sum(), size=8)
    assert [b.tolist() for b in loader] == [
        [i * 300.0**3, (i + 1) * 300.0**3] for i in (0, 2, 4, 6)
    ]


def test_forking_while_other_threads_compute() -> None:
    done = threading.Event()

    def compute() -> None:
        x = ut.rand(200, 200)
        while not done.is_set():
            (x @ x).tanh().sum().item()
            ut.zeros(64 << 10)

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            loader = load(lambda i: (ut.ones(200, 200) @ ut.ones(200, 200)).tanh().amax() * i)
            assert numbers(loader) == [[i, i + 1] for i in range(0, 12, 2)]
    finally:
        done.set()
        for thread in threads:
            thread.join()


# Streams -------------------------------------------------------------------------------------
def test_streams_of_different_lengths() -> None:
    def share(number: int) -> Any:
        return range(10 * number, 10 * number + 3 + 4 * number)

    for _ in range(3):  # in order, so no clock decides
        found = numbers(DataLoader(Stream(share), 2, num_workers=2))
        assert found == [[0, 1], [10, 11], [2], [12, 13], [14, 15], [16]]
    found = list(DataLoader(Stream(share), None, num_workers=2))
    assert sorted(found) == [0, 1, 2, *range(10, 17)]
    assert numbers(DataLoader(Stream(share), 2, num_workers=2, drop_last=True)) == [
        [0, 1], [10, 11], [12, 13], [14, 15],
    ]  # fmt: skip
    assert numbers(DataLoader(Stream(lambda _: ()), 2, num_workers=2)) == []


def test_the_length_of_a_stream_is_held_against_it() -> None:
    class Copied(Stream):
        def __len__(self) -> int:
            return 3

    loader = DataLoader(Copied(lambda _: range(3)), None, num_workers=2)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="get_worker_info"):
        assert len(list(loader)) == 6


# Passes --------------------------------------------------------------------------------------
def test_persistent_workers() -> None:
    loader = load(lambda i: (i, os.getpid()), size=6, persistent_workers=True, shuffle=True)
    seen = [list(loader) for _ in range(4)]
    assert len({int(p) for batches in seen for _, ps in batches for p in ps}) == 2
    for batches in seen:
        assert sorted(i for numbers, _ in batches for i in numbers.tolist()) == list(range(6))
    left = pids(loader._iterator)
    assert all(alive(pid) for pid in left)
    del loader
    assert gone(left, 3.0)  # at once: there is no cycle for the collector to find


def test_persistent_workers_after_a_pass_that_was_left() -> None:
    loader = load(picture, size=40, persistent_workers=True)
    for stop in (1, 3, 0, 19):
        for i, batch in enumerate(loader):
            assert batch[:, 0, 0, 0].tolist() == [2 * i, 2 * i + 1]
            if i == stop:
                break
    assert len(list(loader)) == 20
    assert max(blocks(loader._iterator)) <= 12


def test_persistent_streams_begin_again() -> None:
    loader = DataLoader(
        Stream(lambda n: range(n + 2)), None, num_workers=2, persistent_workers=True
    )
    assert [sorted(loader) for _ in range(3)] == [[0, 0, 1, 1, 2]] * 3


def test_persistent_workers_are_replaced_when_one_has_died() -> None:
    loader = load(persistent_workers=True)
    first = numbers(loader)
    os.kill(pids(loader._iterator)[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed by signal"):
        numbers(loader)
    assert numbers(loader) == first


def test_two_loaders_at_once() -> None:
    one, two = load(picture), load(lambda i: -i)
    found = [(int(a[0, 0, 0, 0]), int(b[0])) for a, b in zip(one, two, strict=True)]
    assert found == [(i, -i) for i in range(0, 12, 2)]
    same = load()
    assert [(a.tolist(), b.tolist()) for a, b in zip(same, same, strict=True)] == [
        ([i, i + 1],) * 2 for i in range(0, 12, 2)
    ]


def test_a_loader_in_a_thread() -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(numbers(load()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [numbers(load(num_workers=0))] * 3


def test_not_in_order() -> None:
    def slow_first(i: int) -> int:
        time.sleep(0.5 if i == 0 else 0)
        return i

    how = {"size": 8, "batch_size": None, "persistent_workers": True}
    loader = load(slow_first, in_order=False, **how)
    for _ in range(2):
        found = list(loader)
        assert sorted(found) == list(range(8))
        assert found[0] != 0
    assert list(load(slow_first, **how)) == list(range(8))


def test_tensor_datasets() -> None:
    x = ut.arange(20000.0).reshape(10, 2000)
    for i, (batch,) in enumerate(DataLoader(TensorDataset(x), 5, num_workers=2)):
        assert bool((batch == x[5 * i : 5 * i + 5]).all())


# Errors --------------------------------------------------------------------------------------
class Odd(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)


def failing(error: Exception) -> Callable[[int], int]:
    def sample(i: int) -> int:
        if i == 5:
            raise error
        return i

    return sample


@pytest.mark.parametrize(
    "error, raised",
    [
        (ValueError("bad sample"), ValueError),
        (KeyError("bad sample"), KeyError),
        (FileNotFoundError("bad sample"), FileNotFoundError),
        (EOFError("bad sample"), EOFError),
        (ut.errors.ShapeError("bad sample"), ut.errors.ShapeError),
        (Odd(3, "bad sample"), RuntimeError),
    ],
    ids=lambda e: str(e),
)
def test_an_error_of_a_sample(error: Exception, raised: type[Exception]) -> None:
    """It arrives in its turn, with its traceback, and the iterator goes on behind it."""
    iterator = iter(load(failing(error)))
    assert [next(iterator).tolist(), next(iterator).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(raised) as caught:
        next(iterator)
    text = str(caught.value)
    assert f"Caught {type(error).__name__} in DataLoader worker process 0" in text
    assert "Original Traceback" in text
    assert "raise error" in text
    assert "bad sample" in text
    assert numbers(iterator) == [[6, 7], [8, 9], [10, 11]]


def test_an_error_ends_the_workers_without_the_cycle_collector() -> None:
    """Whoever caught it and went on has none left: they belong to an iterator that is gone."""
    workers: list[int] = []

    def run() -> None:
        iterator = iter(load(failing(ValueError("bad sample"))))
        workers.extend(pids(iterator))
        list(iterator)

    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            run()
        assert gone(workers)
    finally:
        gc.enable()


def test_an_error_of_a_type_that_only_the_worker_has() -> None:
    def sample(i: int) -> int:
        class Local(Exception):
            pass

        raise Local("here only")

    with pytest.raises(RuntimeError, match=r"\(Local\) in DataLoader worker(.|\n)*here only"):
        next(iter(load(sample)))


def test_an_error_of_collate() -> None:
    def collate(_: Any) -> Any:
        raise TypeError("cannot collate")

    with pytest.raises(TypeError, match=r"worker process 0(.|\n)*cannot collate"):
        next(iter(load(collate_fn=collate)))


def test_a_batch_that_cannot_be_pickled() -> None:
    iterator = iter(load(collate_fn=lambda b: (default(b), lambda: b)))
    with pytest.raises(Exception, match=r"Caught .*(.|\n)*<lambda>"):
        next(iterator)


def default(samples: list[int]) -> Any:
    return ut.full((10000,), float(samples[0]))


def test_an_error_of_worker_init_fn() -> None:
    def init(number: int) -> None:
        if number:
            raise OSError("no database")

    loader = load(worker_init_fn=init, persistent_workers=True)
    for _ in range(2):
        iterator = iter(loader)
        assert next(iterator).tolist() == [0, 1]
        with pytest.raises(OSError, match=r"worker process 1(.|\n)*no database"):
            next(iterator)
        assert next(iterator).tolist() == [4, 5]


@pytest.mark.parametrize("persistent", [False, True])
def test_an_error_of_a_streams_iter(persistent: bool) -> None:
    def samples(number: int) -> Any:
        raise LookupError("no stream")

    loader = DataLoader(Stream(samples), 2, num_workers=2, persistent_workers=persistent)
    for _ in range(2):
        with pytest.raises(LookupError, match="no stream"):
            next(iter(loader))


def test_an_error_in_the_middle_of_a_stream() -> None:
    def samples(number: int) -> Any:
        yield number
        raise ArithmeticError("half way")

    iterator = iter(DataLoader(Stream(samples), None, num_workers=2))
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises(ArithmeticError, match="half way"):
        next(iterator)


class Sampled:
    def __init__(self, indices: Callable[[], Any]) -> None:
        self.indices = indices

    def __iter__(self) -> Any:
        return self.indices()


@pytest.mark.parametrize("count", [1, 7])
def test_an_error_of_the_sampler(count: int) -> None:
    """At the beginning there is no iterator; later the batches before it are not lost for good."""

    def indices() -> Any:
        yield from [[0]] * count
        raise ZeroDivisionError("sampler")

    loader = DataLoader(Mapped(4), batch_sampler=Sampled(indices), num_workers=2)
    with pytest.raises(ZeroDivisionError):
        list(loader)
    gc.collect()
    assert multiprocessing.active_children() == []


def test_indices_that_cannot_be_pickled() -> None:
    """No task is waited for that was never sent."""

    def indices() -> Any:
        for i in range(8):
            yield [i] if i != 5 else [lambda: None]

    iterator = iter(DataLoader(Mapped(8), batch_sampler=Sampled(indices), num_workers=2))
    found, errors = [], 0
    while True:
        try:
            found.append(next(iterator).item())
        except StopIteration:
            break
        except Exception:
            errors += 1
    assert errors == 1
    assert set(found) < {0, 1, 2, 3, 4, 6, 7}


# Deaths --------------------------------------------------------------------------------------
def hang(i: int) -> int:
    if i >= 4:
        time.sleep(1000)
    return i


@pytest.mark.parametrize("state", ["idle", "busy", "between"])
def test_a_killed_worker_is_an_error_soon(state: str) -> None:
    sample = {"idle": int, "busy": hang, "between": picture}[state]
    iterator = iter(load(sample, size=400))
    next(iterator)
    pid = pids(iterator)[0]
    os.kill(pid, signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"\(pid {pid}\) is killed by signal: .* \(9\)"):
        for _ in iterator:
            pass
    assert time.monotonic() - begin < SOON
    with pytest.raises(RuntimeError, match="workers of this iterator are gone"):
        next(iterator)
    assert gone(pids(iterator))


def test_a_worker_that_exits() -> None:
    def leave(i: int) -> int:
        if i == 4:
            os._exit(3)
        return i

    with pytest.raises(RuntimeError, match="exited unexpectedly with exit code 3"):
        list(load(leave))
    with pytest.raises(RuntimeError, match="exited unexpectedly with exit code 1"):
        list(load(failing(SystemExit(1))))  # type: ignore[arg-type]


def test_a_killed_worker_whose_child_holds_its_socket() -> None:
    """The socket stays open, so only looking for the process finds it gone."""

    def fork(i: int) -> int:
        if i == 4 and not os.fork():
            os.closerange(0, 3)  # lest whoever reads the output wait for it
            time.sleep(2 * SOON)
            os._exit(0)
        if i == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return i

    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="killed by signal"):
        list(load(fork))
    assert time.monotonic() - begin < SOON


def test_workers_killed_at_any_moment() -> None:
    """Kill at random times while batches pass: an error or the end, never a hang or a wrong one."""
    chance = random.Random(1)
    for _ in range(12):
        iterator = iter(load(picture, size=2000, batch_size=4))
        victim = chance.choice(pids(iterator))
        killer = threading.Timer(chance.random() * 0.05, os.kill, (victim, signal.SIGKILL))
        killer.start()
        try:
            for i, batch in enumerate(iterator):
                assert batch[:, 0, 0, 0].tolist() == list(range(4 * i, 4 * i + 4))
        except RuntimeError as error:
            assert "killed by signal" in str(error)  # noqa: PT017
        killer.join()


def test_timeout() -> None:
    iterator = iter(load(hang, timeout=2.5))
    assert [next(iterator).tolist(), next(iterator).tolist()] == [[0, 1], [2, 3]]
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"timed out after 2.5 seconds"):
        next(iterator)
    assert 2.4 < time.monotonic() - begin < SOON
    left = pids(iterator)
    del iterator
    assert gone(left)


def test_another_process_has_no_part_in_an_iterator() -> None:
    """The child of a fork neither reads its batches nor ends its workers; its loader is usable."""
    loader = load(persistent_workers=True)
    iterator = iter(loader)
    first = next(iterator).tolist()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            next(iterator)
        except RuntimeError as error:
            code = 2 if "belongs to process" in str(error) else 3
        if code == 2 and next(iter(loader)).tolist() == first:
            del iterator
            loader._iterator = None
            gc.collect()
            code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [first, *numbers(iterator)] == numbers(load(num_workers=0))


# Ends ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("sample", [int, picture, hang], ids=["small", "large", "hanging"])
def test_leaving_midway_ends_the_workers(sample: Any) -> None:
    iterator = iter(load(sample, size=400))
    left = pids(iterator)
    for _ in iterator:
        break
    begin = time.monotonic()
    del iterator
    assert time.monotonic() - begin < 2 * processes.PATIENCE + SOON
    assert gone(left)


def test_a_worker_that_ignores_everything_is_killed() -> None:
    def stubborn(i: int) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return hang(i)

    iterator = iter(load(stubborn))
    left = pids(iterator)
    next(iterator)
    time.sleep(0.2)
    del iterator
    assert gone(left)


def test_the_handlers_of_the_parent_are_not_the_workers() -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        iterator = iter(load(hang))
        left = pids(iterator)
        next(iterator)
        begin = time.monotonic()
        del iterator
        assert gone(left)
        assert time.monotonic() - begin < SOON
    finally:
        signal.signal(signal.SIGTERM, before)


PROGRAM = """
import os, sys, time
import undertow as ut
from undertow.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        time.sleep({seconds})
        return ut.full((3, 64, 64), float(index))

if __name__ == "__main__":
    loader = DataLoader(Slow(), 4, num_workers=2, persistent_workers={persistent},
                        multiprocessing_context="{method}")
    iterator = iter(loader)
    if {wait}:
        next(iterator)
    print(*[w.process.pid for w in iterator._workers], flush=True)
    for batch in iterator:
        time.sleep({pause})
"""


def start(folder: Path, **how: Any) -> tuple[subprocess.Popen[str], list[int]]:
    """A program that loads, in a process group of its own, and the pids of its workers."""
    defaults = {"seconds": 0.001, "pause": 0, "persistent": False, "method": "fork", "wait": True}
    source = textwrap.dedent(PROGRAM).format(**{**defaults, **how})
    place = folder / "loading.py"  # a file, which a spawned worker imports
    place.write_text(source)
    pipe = subprocess.PIPE
    program = subprocess.Popen(
        [sys.executable, str(place)], stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    assert program.stdout is not None
    return program, [int(word) for word in program.stdout.readline().split()]


def ended(program: subprocess.Popen[str], seconds: float) -> str:
    """What a program wrote to stderr, if it ends within some seconds."""
    try:
        return program.communicate(timeout=seconds)[1]
    finally:
        program.kill()


@pytest.mark.parametrize(
    "how, everybody",
    [
        ({}, True),
        ({"persistent": True}, True),
        ({"seconds": 0.2}, False),
        ({"pause": 100}, False),
        ({"seconds": 1000, "wait": False}, True),
        pytest.param({"method": "spawn"}, True, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_ctrl_c(how: Any, everybody: bool, tmp_path: Path) -> None:
    """One KeyboardInterrupt, nothing else on the screen, and nobody is left."""
    program, workers = start(tmp_path, **how)
    assert len(workers) == 2
    time.sleep(0.3)
    begin = time.monotonic()
    if everybody:  # as a terminal does
        os.killpg(program.pid, signal.SIGINT)
    else:
        program.send_signal(signal.SIGINT)
    text = ended(program, 60)
    assert time.monotonic() - begin < SOON
    assert text.count("Traceback") == 1, text
    assert text.rstrip().endswith("KeyboardInterrupt"), text
    assert program.returncode == -signal.SIGINT
    assert gone(workers)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"seconds": 1000, "wait": False},
        pytest.param({"method": "spawn"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_no_orphans_when_the_parent_is_killed(how: Any, tmp_path: Path) -> None:
    program, workers = start(tmp_path, **how)
    assert len(workers) == 2
    program.kill()
    program.communicate(timeout=300)
    assert gone(workers)


def test_the_end_of_a_program_with_living_workers() -> None:
    program = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(EXIT)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (program.returncode, program.stderr) == (0, "")
    assert gone([int(word) for word in program.stdout.split()], 1)


EXIT = """
import time
import undertow as ut
from undertow.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(ut.zeros(64, 5000)), 4, num_workers=2, persistent_workers=True)
kept = iter(loader)
batch = next(kept)
print(*[w.process.pid for w in kept._workers])
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_moment() -> None:
    """Ctrl-C at random times, in this very process: it arrives, and persistent loaders recover."""
    chance = random.Random(2)
    loader = load(picture, size=60, persistent_workers=True)
    interrupts = 0
    for _ in range(15):
        timer = threading.Timer(chance.random() * 0.06, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            for i, batch in enumerate(loader):
                assert batch[:, 0, 0, 0].tolist() == [2 * i, 2 * i + 1]
            timer.join()
            time.sleep(0.05)
        except KeyboardInterrupt:
            interrupts += 1
        timer.join()
    assert interrupts >= 14  # one may hit a callback of Python's own library, which swallows it
    assert len(list(loader)) == 30
