"""Operations under way: who moves them on, and who waits for them.

Note [waits]
An operation between processes is a generator. It yields what it waits for (`Pending`: requests of
MPI, and the ranks on the other side) and goes on when that is done. Nobody waits inside MPI:
  - `run`, on the caller's thread, tests, looks whether somebody has failed and whether the deadline
    has passed, and sleeps a little. It ends with the operation, with an error of the operation,
    with a failure that the watch heard of, at the deadline, or with an interrupt of the user.
  - The carrier, one thread, does the same for all operations that were begun with `async_op=True`,
    and sleeps on its condition when there are none: woken by `submit`.
  - An operation whose message MPI could not move asks MPI no more, and waits for what the watch
    hears, or ends after `_HEARSAY` seconds.
  - `Work.wait` waits for an event. The carrier sets it when the operation ends, with an error or
    without; an error that is not foreseen, in the carrier itself, ends all operations that it has,
    and so does the end of the groups.
Collectives of a group run one after the other, in the order in which they were begun; the group's
`turn` belongs to the one that runs. Messages between two processes run all at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..errors import DistributedError
from . import watch
from .wire import Broken

if TYPE_CHECKING:
    from .groups import ProcessGroup

PAUSE = 50e-6  # seconds between two looks
_PATIENCE = 5.0  # seconds for the carrier to end what it has
_HEARSAY = 1.0  # seconds in which the watch hears why a message failed
SPIN = 50e-6  # seconds of looking without a pause, with a processor for everyone


class Pending:
    """Requests, and the rank that each of them needs."""

    __slots__ = ("ranks", "requests")

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.ranks: list[int] = []

    def add(self, request: Any, rank: int) -> None:
        """One more."""
        self.requests.append(request)
        self.ranks.append(rank)

    def __add__(self, other: Pending) -> Pending:
        both = Pending()
        both.requests = self.requests + other.requests
        both.ranks = self.ranks + other.ranks
        return both


Steps = Generator[Pending, None, Any]
_NOTHING = Pending()
# Operations that ended with an error. MPI may still write into their memory, so they keep it.
_ABANDONED: list[Any] = []


class Work:
    """An operation under way, as `async_op=True` returns it."""

    def __init__(self, group: ProcessGroup, steps: Steps, what: Any, timeout: float) -> None:
        self._group = group
        self._steps = steps
        self._what = what
        self._timeout = timeout
        self._began = time.monotonic()
        self._pending = _NOTHING
        self._broken: tuple[Broken, float] | None = None  # what MPI said, and when
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._result: Any = None
        self._then: list[Callable[[], None]] = []

    # What a user asks ---------------------------------------------------------------------------
    def wait(self, timeout: Any = None) -> bool:
        """Wait until it is over; its error is raised here."""
        limit = seconds(timeout)
        if not self._over.wait(limit):
            raise DistributedError(f"{self._what} is not over after {limit:g} s: {self._waiting()}")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it is over."""
        return self._over.is_set()

    def is_success(self) -> bool:
        """Whether it is over, and without an error."""
        return self._over.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        """The error that ended it."""
        return self._error

    def result(self) -> Any:
        """The tensors that it has filled."""
        self.wait()
        return self._result

    def get_future(self) -> Future:
        """The result as a future."""
        return Future(self)

    def source_rank(self) -> int:
        """The rank that a message came from."""
        self.wait()
        return int(self._result)

    # Who moves it on ----------------------------------------------------------------------------
    def advance(self) -> bool:
        """Go on as far as it goes now; whether it is over."""
        try:
            while self._broken is None and self._group.wire.done(self._pending.requests):
                self._pending = next(self._steps)
            self._look()
            return False
        except Broken as error:  # the watch will hear who is gone, and that says more
            self._broken = error, time.monotonic()
            return False
        except StopIteration as stop:
            self._result = stop.value
            self._end()
        except BaseException as error:
            self.fail(error)
        return True

    def fail(self, error: BaseException) -> None:
        """End it with an error; the group cannot be used any more."""
        if not isinstance(error, DistributedError):
            wrapped = DistributedError(f"{self._what}: {type(error).__name__}: {error}")
            wrapped.__cause__ = error
            self._error = error if not isinstance(error, Exception) else wrapped
        else:
            self._error = error
        if self._group.error is None:
            self._group.error = self._error
        _ABANDONED.append((self._steps, self._pending, error))
        self._end()

    def _end(self) -> None:
        self._pending = _NOTHING
        self._over.set()
        for call in self._then:
            call()

    def _look(self) -> None:
        """Raise what has come between."""
        now = time.monotonic()
        heard = self._group.watch
        if heard is not None:
            if heard.failure is not None:
                raise DistributedError(f"{self._what}: {watch.told(heard.failure)}")
            if heard.left:
                self._look_who_left(heard, now)
        if self._broken is not None and now - self._broken[1] > _HEARSAY:
            ranks = ", ".join(map(str, sorted(set(self._pending.ranks)))) or "another rank"
            raise DistributedError(
                f"{self._what}: a message from or to rank {ranks} failed: {self._broken[0]}"
            ) from self._broken[0]
        if now - self._began > self._timeout:
            raise DistributedError(
                f"{self._what}: no answer in {self._timeout:g} s; {self._waiting()}"
            )

    def _look_who_left(self, heard: watch.Watch, now: float) -> None:
        for rank in self._outstanding():
            if now - heard.left.get(rank, now) > watch.GRACE:
                raise DistributedError(
                    f"{self._what}: rank {rank} has left: its program ended, or it called "
                    "destroy_process_group"
                )

    def _outstanding(self) -> list[int]:
        if self._broken is not None:  # requests that failed must not be asked again
            return sorted(set(self._pending.ranks))
        pairs = zip(self._pending.requests, self._pending.ranks, strict=True)
        return sorted({rank for request, rank in pairs if not self._group.wire.done([request])})

    def _waiting(self) -> str:
        ranks = self._outstanding()
        names = "rank " if len(ranks) == 1 else "ranks "
        names += ", ".join("any" if r < 0 else str(r) for r in ranks)
        return f"rank {self._group.wire.rank} waits for {names if ranks else 'its turn'}"


class Future:
    """The result of an operation that somebody will have."""

    def __init__(self, work: Work | None = None) -> None:
        self._work = work
        self._function: Callable[[Future], Any] | None = None
        self._before: Future | None = None
        self._known: list[Any] = []
        self._set = threading.Event()

    def wait(self) -> Any:
        """The result, once it is there."""
        if self._known:
            return self._known[0]
        if self._work is not None:
            self._work.wait()
            self._known.append(self._work._result)
        elif self._before is not None and self._function is not None:
            self._before.wait()
            self._known.append(self._function(self._before))
        else:
            self._set.wait()
        return self._known[0]

    value = wait

    def done(self) -> bool:
        """Whether the result is there."""
        if self._work is not None:
            return self._work.is_completed()
        return bool(self._known) or (self._before is not None and self._before.done())

    def then(self, function: Callable[[Future], Any]) -> Future:
        """A future of what a function makes of this one; it is called by who waits for it."""
        made = Future()
        made._before, made._function = self, function
        return made

    def set_result(self, result: Any) -> None:
        """Give the result to who waits for it."""
        self._known.append(result)
        self._set.set()


def seconds(timeout: Any) -> float | None:
    """A timeout as a number; None and zero are none."""
    if isinstance(timeout, timedelta):
        timeout = timeout.total_seconds()
    return float(timeout) if timeout else None


def run(work: Work, spins: bool) -> None:
    """Move an operation on, on this thread, until it is over; see Note [waits]."""
    begun = time.perf_counter()
    try:
        while not work.advance():
            if not spins or time.perf_counter() - begun > SPIN:
                time.sleep(PAUSE)
    except BaseException as interrupt:
        work.fail(interrupt)
        raise
    if work._error is not None:
        raise work._error


class Carrier:
    """The thread that moves on what was begun with `async_op=True`."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.queues: dict[ProcessGroup, deque[Work]] = {}
        self.messages: list[Work] = []
        self.running: set[ProcessGroup] = set()  # whose first operation has begun
        self.thread: threading.Thread | None = None
        self.closed = False

    def submit(self, work: Work, in_order: bool) -> None:
        """Take an operation over: after the others of its group, or at once."""
        with self.condition:
            if self.closed:
                raise DistributedError(f"{work._what}: the group has been destroyed")
            if in_order:
                self.queues.setdefault(work._group, deque()).append(work)
            else:
                self.messages.append(work)
            if self.thread is None:
                self.thread = threading.Thread(
                    target=self._work, name="undertow-carrier", daemon=True
                )
                self.thread.start()
            self.condition.notify()

    def has(self, group: ProcessGroup, messages: bool) -> bool:
        """Whether messages of a group are under way, or collectives wait for their turn."""
        if messages:
            return any(work._group is group for work in list(self.messages))
        return bool(self.queues.get(group))

    def close(self) -> None:
        """End the thread; what it still has ends with an error."""
        with self.condition:
            self.closed = True
            self.condition.notify()
            thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE)

    def _work(self) -> None:
        while True:
            with self.condition:
                while not (self.messages or any(self.queues.values()) or self.closed):
                    self.condition.wait()
                if self.closed:
                    break
                heads = [(g, q[0]) for g, q in self.queues.items() if q]
                messages = list(self.messages)
            try:
                moved = False
                for group, work in heads:
                    moved |= self._advance(group, work)
                for work in messages:
                    if work.advance():
                        moved = True
                        with self.condition:
                            self.messages.remove(work)
            except BaseException as error:  # nobody shall wait for a thread that is gone
                self._drop(error)
                raise
            if not moved:
                time.sleep(PAUSE)
        self._drop(None)

    def _drop(self, error: BaseException | None) -> None:
        """End all operations, with an error or as destroyed; the next one starts another thread."""
        with self.condition:
            held = [*(w for q in self.queues.values() for w in q), *self.messages]
            self.queues.clear()
            self.messages.clear()
            self.thread = None
        for work in held:
            if not work.is_completed():
                gone = f"{work._what}: the group has been destroyed"
                work.fail(error or DistributedError(gone))
        for group in self.running:
            group.turn.release()
        self.running.clear()

    def _advance(self, group: ProcessGroup, work: Work) -> bool:
        if group not in self.running:
            if not group.turn.acquire(blocking=False):
                return False
            self.running.add(group)
            work._began = time.monotonic()
        if group.error is not None and not work.is_completed():
            work.fail(group.error)
        elif not work.advance():
            return False
        with self.condition:
            self.queues[group].popleft()
        self.running.discard(group)
        group.turn.release()
        return True
