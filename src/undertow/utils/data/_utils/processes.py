"""The iterator that loads in worker processes: it hands out tasks and takes results.

Note [loader waits]
The loader's process waits in three places, and nowhere else.
  - In `_wait`, for a result of any worker. A result wakes it, and so does the end of a worker, by
    the end of its socket. Should that stay open, because a process that the worker started has a
    copy, the worker is missed within `PULSE` seconds. A `timeout` and Ctrl-C end the wait too. What
    is posted to a worker is sent when there is room and never waited for, and results are read at
    the same time: so two that send to each other cannot lock up.
  - In `_stop`, for a process that was told to end: its socket is shut down, then it gets SIGTERM
    (whose default action a worker has), then SIGKILL, each after `PATIENCE` seconds.
  - In `start` of a process, which is the system's.
An exception that arrives while a message is half read or half sent (Ctrl-C, or what the handler of
another signal raises) leaves a stream that nobody can read on. So it stops the workers, and a
loader with persistent workers starts new ones. An error of the user's code, here or there, does
not: it stands in the place of its batch, and the next batch follows.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import selectors
import signal
import socket
import time
import warnings
import weakref
from collections.abc import Iterator
from itertools import cycle
from typing import Any

from ....backends.shared_memory import Borrower
from .channel import Channel, Message
from .interrupts import late_interrupts
from .iterator import BaseIterator
from .worker import END, FAILURE, RESUME, Result, Work, content, ignored, work_loop

PULSE = 1.0  # seconds after which the workers are looked for
PATIENCE = 1.0  # seconds that a worker has to end by itself

_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class _Worker:
    """A worker as the loader's process sees it."""

    __slots__ = ("active", "borrower", "channel", "number", "process", "tasks")

    def __init__(self, number: int, process: Any, channel: Channel) -> None:
        self.number = number
        self.process = process
        self.channel = channel
        self.borrower = Borrower()
        self.active = True  # whether it has more to give in this pass
        self.tasks = 0  # that it was given and that were not delivered

    def alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process.pid is not None and self.process.exitcode is None

    def death(self) -> RuntimeError:
        """What to raise when it has ended before its time."""
        self.process.join(PATIENCE)
        pid, code = self.process.pid, self.process.exitcode
        if code is not None and code < 0:
            name = signal.strsignal(-code) or "unknown"
            how = f"is killed by signal: {name} ({-code})"
            if -code == getattr(signal, "SIGKILL", 0):
                how += "; if nobody did that, the system has run out of memory"
        else:
            how = f"exited unexpectedly with exit code {code}"
        return RuntimeError(f"[DataLoader] DataLoader worker {self.number} (pid {pid}) {how}")


class MultiProcessIterator(BaseIterator):
    """Keeps `prefetch_factor` tasks with each worker, and delivers their results."""

    def __init__(self, loader: Any) -> None:
        self._workers: list[_Worker] = []
        self._owner = os.getpid()
        self._stopped: str | None = None  # why there are no workers; "" at the end of the pass
        self._pass = 0
        self._in_order = loader.in_order
        self._prefetch_factor = loader.prefetch_factor
        self._persistent = loader.persistent_workers
        if self._prefetch_factor <= 0:
            raise AssertionError(
                "[DataLoader] prefetch_factor must be greater than 0 with workers, got "
                f"{self._prefetch_factor}"
            )
        super().__init__(loader)
        try:
            self._start(loader.multiprocessing_context, loader.worker_init_fn)
            self._prefetch()
        except BaseException:
            self._stop("they could not be started")
            raise

    # The life of the workers ------------------------------------------------------------------
    def _start(self, context: Any, init_fn: Any) -> None:
        import multiprocessing.util  # whose own end of processes is registered before ours

        atexit.unregister(_stop_all)
        atexit.register(_stop_all)
        _living[:] = [ref for ref in _living if ref() is not None] + [weakref.ref(self)]
        context = context or multiprocessing.get_context()
        method = context.get_start_method()
        for number in range(self._num_workers):
            work = Work(
                self._dataset_kind,
                self._dataset,
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
                self._base_seed,
                init_fn,
                number,
                self._num_workers,
                self._owner if method in ("fork", "spawn") else None,
            )
            ours, theirs = socket.socketpair()
            process = context.Process(target=work_loop, args=(work, theirs), daemon=True)
            self._workers.append(_Worker(number, process, Channel(ours, waits=False)))
            try:
                with theirs, _undisturbed():
                    process.start()
            except (TypeError, AttributeError, pickle.PicklingError) as error:
                error.add_note(
                    f"[DataLoader] a worker that starts by {method!r} gets the dataset, collate_fn "
                    "and worker_init_fn as a pickle: no lambdas, nothing local. "
                    'multiprocessing_context="fork" needs none'
                )
                raise

    def _stop(self, why: str) -> None:
        """End the workers; see Note [loader waits]."""
        if self._stopped is not None:
            return
        self._stopped = why
        if os.getpid() != self._owner:  # the child of a fork: they are another's workers
            for worker in self._workers:
                worker.channel.socket.close()
            return
        try:
            for worker in self._workers:
                worker.channel.close()
            self._join()
        finally:
            for tell in ("terminate", "kill"):
                for worker in self._workers:
                    if worker.alive():
                        getattr(worker.process, tell)()
                self._join()

    def _join(self) -> None:
        deadline = time.monotonic() + PATIENCE
        for worker in self._workers:
            if worker.process.pid is not None:
                worker.process.join(max(0.0, deadline - time.monotonic()))

    def _dismiss(self, why: str) -> None:
        """End the workers and forget them, here, since multiprocessing has callbacks for that."""
        self._stop(why)
        self._workers.clear()

    def __del__(self) -> None:
        if self._workers:
            with late_interrupts(delay=0.02):
                self._dismiss("the iterator was dropped")

    @property
    def usable(self) -> bool:
        """Whether its workers can begin another pass."""
        return self._stopped is None and os.getpid() == self._owner

    # Tasks ------------------------------------------------------------------------------------
    def _begin(self, loader: Any) -> None:
        super()._begin(loader)
        self._sent = 0  # the number of the next task to be sent
        self._next = 0  # the number of the next task to be delivered, if in order
        self._open: set[int] = set()  # tasks without a result
        self._results: dict[int, tuple[_Worker, Result]] = {}  # not delivered, as they arrived
        self._turns = cycle(range(self._num_workers))

    def resume(self, loader: Any) -> None:
        """Begin another pass with the same workers."""
        try:
            for worker, result in self._results.values():
                ignored(result, worker.borrower)
            self._pass += 1
            self._begin(loader)
            for worker in self._workers:
                worker.active, worker.tasks = True, 0
                self._post(worker, RESUME, b"")
            self._prefetch()
        except BaseException as error:
            self._stop(f"{type(error).__name__} at the beginning of a pass")
            raise

    def _prefetch(self) -> None:
        for _ in range(self._prefetch_factor * self._num_workers):
            self._send_task()

    def _send_task(self) -> None:
        """Give the next task to the next worker that has more to give."""
        for _ in self._workers:
            worker = self._workers[next(self._turns)]
            if worker.active and (self._in_order or worker.tasks < self._prefetch_factor):
                break
        else:
            return
        try:
            index = pickle.dumps(next(self._indices), 5)
        except StopIteration:
            return
        self._open.add(self._sent)
        worker.tasks += 1
        self._post(worker, (self._pass, self._sent), index)
        self._sent += 1

    def _post(self, worker: _Worker, task: Any, index: bytes) -> None:
        message = pickle.dumps((task, index, worker.borrower.returns()), 5)
        try:
            worker.channel.post(message)
        except BaseException as error:
            self._stop(f"{type(error).__name__} while a task was sent")
            raise

    # Results ----------------------------------------------------------------------------------
    def _next_data(self) -> Any:
        try:
            return self._delivered()
        except Exception:
            raise
        except BaseException as error:  # an interrupt, between any two statements
            self._stop(f"{type(error).__name__} while a batch was loaded")
            raise

    def _delivered(self) -> Any:
        """The next batch."""
        if os.getpid() != self._owner:
            raise RuntimeError(
                f"[DataLoader] this iterator belongs to process {self._owner}; iterate over the "
                "loader again in this one"
            )
        if self._stopped:
            raise RuntimeError(
                f"[DataLoader] the workers of this iterator are gone: {self._stopped}; iterate "
                "over the loader again"
            )
        while True:
            # Which task comes next, or goes to whom, depends on no clock if in order: so an end is
            # noticed when it would be delivered, not when it arrives.
            task = self._next if self._in_order else next(iter(self._results), -1)
            if task in self._results:
                worker, result = self._results.pop(task)
                self._next += 1
                worker.tasks -= 1
                worker.active = worker.active and result.kind != END
                self._send_task()
                if result.kind == END:
                    continue
                batch = content(result, worker.borrower)
                if result.kind == FAILURE:
                    batch.reraise()
                return batch
            if not self._open:
                if not self._persistent:
                    self._stop("")
                raise StopIteration
            self._wait()

    def _wait(self) -> None:
        """Wait until a result arrives; see Note [loader waits]."""
        begin, known = time.monotonic(), len(self._open)
        while len(self._open) == known:
            left = begin + self._timeout - time.monotonic() if self._timeout else PULSE
            if left <= 0:
                raise RuntimeError(
                    f"[DataLoader] DataLoader timed out after {self._timeout} seconds"
                )
            try:
                self._exchange(min(left, PULSE))
            except BaseException as error:
                self._stop(f"{type(error).__name__} while waiting for them")
                raise

    def _exchange(self, seconds: float) -> None:
        """Send what there is room for and take what has arrived, waiting so long at most."""
        with _Selector() as selector:
            for worker in self._workers:
                events = selectors.EVENT_READ
                if worker.channel.waiting:
                    events |= selectors.EVENT_WRITE
                selector.register(worker.channel.socket, events, worker)
            ready = selector.select(seconds)
        for key, events in ready:
            worker = key.data
            if events & selectors.EVENT_WRITE:
                worker.channel.flush()
            for message in worker.channel.arrived():
                self._take(worker, message)
        for worker in self._workers:
            if worker.channel.ended or not (ready or worker.alive()):
                raise worker.death()

    def _take(self, worker: _Worker, message: Message) -> None:
        result = Result(*pickle.loads(message.content))
        for (number, size), descriptor in zip(result.blocks, message.descriptors, strict=True):
            worker.borrower.attach(number, size, descriptor)
        worker.borrower.drop(result.dropped)
        number_of_pass, task = result.task
        if number_of_pass == self._pass:
            self._open.discard(task)
            self._results[task] = worker, result
        else:  # nobody waits for it any more
            ignored(result, worker.borrower)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """While a process starts: Ctrl-C comes later, in the worker too, and Python does not warn.

    It would say that forking with threads may lock up the child. Ours are left behind in order:
    see Note [termination] in backends/cpu/threads/pool.py.
    """
    blocks = hasattr(signal, "pthread_sigmask")
    with late_interrupts(), warnings.catch_warnings():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
        try:
            warnings.filterwarnings("ignore", ".*fork.*deadlock", DeprecationWarning)
            yield
        finally:
            if blocks:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


# Not a WeakSet: its callbacks, too, are places where an interrupt gets lost.
_living: list[weakref.ref[MultiProcessIterator]] = []


def _stop_all() -> None:
    for ref in _living:
        iterator = ref()
        if iterator is not None:
            iterator._dismiss("the program is at its end")
