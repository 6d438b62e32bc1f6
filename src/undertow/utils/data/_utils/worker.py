"""A worker process of a DataLoader: it fetches the batches that it is asked for.

Note [worker waits]
A worker waits in two places: for the next task (`receive`) and for room to send a result (`send`).
Either is woken by the loader's process when it sends or reads; when that shuts down, or dies, the
socket ends, which is EOFError here and OSError there, and the worker leaves. Should the socket stay
open because another child of that process has a copy of it, or should the user's code never come
back, a thread that looks for the parent twice a second ends the process. Nothing else is waited
for: what goes through the socket has no locks, so a worker that is killed leaves none behind.
(After a fork the worker itself has a copy of the other end. So it is that thread that finds the
parent dead, while a loader that is done shuts the connection down, whoever has copies.)
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from ....backends import shared_memory
from ....backends.registry import backend_of, backend_on
from ....backends.shared_memory import Reference
from ....backends.threads import set_num_threads
from ....core.generator import manual_seed
from ....core.tensor import Tensor, wrap
from ....dtypes import DType
from .channel import Channel
from .failure import ExceptionWrapper
from .fetch import DatasetKind

LOOK = 0.5  # seconds between two looks for the parent
INLINE = 64 << 10  # bytes of a pickle from which on it travels in a block

DATA, FAILURE, END = range(3)  # what a Result is
RESUME = "resume"  # the task that begins a new pass


@dataclass(frozen=True)  # with slots, Python answers a new attribute with a strange TypeError
class WorkerInfo:
    """Which worker this process is: its number of `num_workers`, its seed and its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker of a DataLoader this process is; None in a process that is none.

    >>> print(get_worker_info())
    None
    """
    return _info


class Work(NamedTuple):
    """What a worker needs to know from the beginning."""

    kind: int
    dataset: Any
    batched: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], None] | None
    id: int
    num_workers: int
    parent: int | None  # the parent's pid, if that is known


class Result(NamedTuple):
    """The answer to a task; `what` is a pickle, or a reference to one."""

    task: Any
    kind: int
    what: bytes | Reference
    references: list[Reference]
    blocks: list[tuple[int, int]]  # number and size, for each descriptor that comes with it
    dropped: list[int]


def work_loop(work: Work, end: Any) -> None:
    """Answer tasks until there are no more: the target of the process."""
    global _info
    _settle(work.parent)
    channel = Channel(end)
    if shared_memory.AVAILABLE:
        shared_memory.lender = shared_memory.Lender()
    seed = work.base_seed + work.id
    _seed(work.base_seed, work.id)
    _info = WorkerInfo(work.id, work.num_workers, seed, work.dataset)
    where = f"in DataLoader worker process {work.id}"
    broken: ExceptionWrapper | None = None
    try:
        if work.init_fn is not None:
            work.init_fn(work.id)
    except Exception:
        broken = ExceptionWrapper(where=where)
    fetcher = broken or _begun(work, where)
    try:
        while True:
            task, index, returned = pickle.loads(channel.receive().content)
            if shared_memory.lender is not None:
                shared_memory.lender.returned(returned)
            if task == RESUME:
                fetcher = broken or _begun(work, where)
                continue
            batch = _fetched(fetcher, index, work.kind, where)
            try:
                message, descriptors = _message(task, *batch)
            except Exception:  # what the user returned cannot be pickled
                failure = ExceptionWrapper(where=where).sendable()
                message, descriptors = _message(task, FAILURE, failure)
            del batch  # or its block would look as if somebody needed it
            try:
                channel.send(message, descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
    except (EOFError, OSError):  # the loader is done; see Note [worker waits]
        channel.close()


def _begun(work: Work, where: str) -> Any:
    """What fetches the batches of one pass, or why there is nothing to fetch them."""
    try:
        return DatasetKind.create_fetcher(
            work.kind, work.dataset, work.batched, work.collate_fn, work.drop_last
        )
    except Exception:
        return ExceptionWrapper(where=where)


def _fetched(fetcher: Any, index: bytes, kind: int, where: str) -> tuple[int, Any]:
    """A batch, or why there is none."""
    if isinstance(fetcher, ExceptionWrapper):
        return FAILURE, fetcher.sendable()
    try:
        return DATA, fetcher.fetch(pickle.loads(index))
    except Exception as error:
        if isinstance(error, StopIteration) and kind == DatasetKind.Iterable:
            return END, None
        return FAILURE, ExceptionWrapper(where=where).sendable()


def _settle(parent: int | None) -> None:
    """Make this a process that ends when it is told to, or when its parent does."""
    # Ctrl-C goes to all processes of a terminal; the parent says when to stop. The parent's own
    # handlers, which a fork has inherited, are not for this process.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked while it started
    if os.name == "posix":
        expected = parent or os.getppid()
        threading.Thread(target=_follow, args=(expected,), daemon=True).start()
    set_num_threads(1)


def _follow(parent: int) -> None:
    """End this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)


def _seed(base_seed: int, id: int) -> None:
    """Seed Python's, NumPy's and our own generator as torch does: each worker otherwise."""
    random.seed(base_seed + id)
    manual_seed(base_seed + id)
    # NumPy's generator takes 32 bits at a time, so neighbouring seeds are first mixed.
    words = np.array([id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0], np.uint32)
    np.random.seed(np.random.SeedSequence(words).generate_state(4))  # noqa: NPY002 (the user's)


# Batches as messages -------------------------------------------------------------------------
class _Pickler(pickle.Pickler):
    """A pickler whose tensors hand out their bytes as buffers, whatever their layout and dtype."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not Tensor:
            return NotImplemented
        host = shared_memory.portable(backend_of(value._array).to_host(value._array))
        return _tensor, (host, value.dtype, str(value.device), value.requires_grad)


def _tensor(host: Any, dtype: DType, device: str, requires_grad: bool) -> Tensor:
    array = backend_on(device).from_host(shared_memory.restored(host, dtype.numpy))
    return wrap(array).requires_grad_(requires_grad)


def _message(task: Any, kind: int, content: Any) -> tuple[bytes, list[int]]:
    """A result, what is large in it by reference, and the descriptors of new blocks."""
    lender = shared_memory.lender
    references: list[Reference] = []

    def lent(buffer: pickle.PickleBuffer) -> bool:
        """Whether the bytes go into the pickle after all."""
        found = None if lender is None else lender.lend(buffer)
        if found is not None:
            references.append(found)
        return found is None

    stream = BytesIO()
    try:
        _Pickler(stream, 5, buffer_callback=lent).dump(content)
    except BaseException:
        if lender is not None:
            lender.take_back(references)
        raise
    what: bytes | Reference = stream.getvalue()
    blocks: list[tuple[int, int, int]] = []
    dropped: list[int] = []
    if lender is not None:
        if len(what) >= INLINE:
            what = lender.lend(pickle.PickleBuffer(stream.getbuffer())) or what
        blocks = lender.news([*references, *([what] if isinstance(what, Reference) else [])])
        dropped = lender.dropped()
    result = Result(task, kind, what, references, [block[:2] for block in blocks], dropped)
    return pickle.dumps(tuple(result), 5), [descriptor for _, _, descriptor in blocks]


def content(result: Result, borrower: shared_memory.Borrower) -> Any:
    """What a worker sent, over the memory that it was written to."""
    what: Any = result.what
    buffers = [borrower.buffer(reference) for reference in result.references]
    if isinstance(what, Reference):
        what = borrower.buffer(what)
    return pickle.loads(what, buffers=buffers)


def ignored(result: Result, borrower: shared_memory.Borrower) -> None:
    """Nobody wants what a worker sent."""
    borrower.ignore(result.references)
    if isinstance(result.what, Reference):
        borrower.ignore([result.what])
