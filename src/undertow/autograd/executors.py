"""Serial and pooled execution of a backward pass; they only choose the thread.

Note [termination]
A pooled run ends when every needed node has been run, or at the first exception, or when the
caller is interrupted; in each case `_Board.stop` is set under the board's lock and everybody who
waits is woken. Who waits, and who wakes them:
  - a worker waits for work: woken by whoever posts ready nodes, and by stop;
  - the caller works like any worker, so it waits only for work, and at the end for the helpers to
    leave: each leaves at its next look at the board, which stop makes it take.
A node that raises, a BaseException in a helper and an interrupt of the caller all go through
`_Board.fail`, which keeps the first error and stops. Counting is by nodes run, and every node
that is needed is delivered to (None counts too), so the count always reaches zero.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import deque
from contextvars import copy_context
from typing import Any

from ..backends.threads import shared_between
from .engine import Run, advance
from .task import Task

_FEW = 8  # nodes
_LITTLE = 16384  # elements in the output of a node, on average


def worth_pooling(task: Task) -> bool:
    """Whether a graph is large enough that threads give more than they cost.

    Only large kernels run outside the interpreter's lock, so both the number of nodes and the
    size of what they compute count.
    """
    if task.left < _FEW:
        return False
    elements = sum(math.prod(shape) for node in task.nodes for shape, _ in node.metas)
    return elements >= _LITTLE * task.left


def run_serial(run: Run, ready: list[int]) -> None:
    """Run every node on this thread, newest first."""
    advance(run, ready, sys.maxsize)


class _Board:
    """What the threads of one pooled run share."""

    def __init__(self, run: Run, ready: list[int]) -> None:
        self.run = run
        self.changed = threading.Condition()
        self.ready = deque(ready)
        self.left = run.task.left
        self.stopped = False
        self.error: BaseException | None = None

    def next(self) -> int | None:
        """A ready node, waiting for one if need be; None when the run is over."""
        with self.changed:
            while not self.stopped:
                if self.ready:
                    return self.ready.pop()
                self.changed.wait()
            return None

    def done(self, made_ready: list[int]) -> int | None:
        """A node has been run. Returns one of the nodes it made ready for the same thread."""
        with self.changed:
            self.left -= 1
            if self.left == 0:
                self.stopped = True
                self.changed.notify_all()
                return None
            if self.stopped or not made_ready:
                return None
            mine = made_ready.pop()
            if made_ready:
                self.ready.extend(made_ready)
                self.changed.notify(len(made_ready))
            return mine

    def fail(self, error: BaseException) -> None:
        """Keep the first error and stop everybody."""
        with self.changed:
            if self.error is None:
                self.error = error
            self.stopped = True
            self.changed.notify_all()

    def work(self) -> None:
        """Run nodes until the run is over."""
        try:
            mine: int | None = None
            while True:
                if mine is None or self.stopped:
                    mine = self.next()
                    if mine is None:
                        return
                ready = [mine]
                advance(self.run, ready, 1)
                mine = self.done(ready)
        except BaseException as error:  # whatever it is, the caller gets it
            self.fail(error)


class _Helper(threading.Thread):
    """A thread that waits for boards to work at; daemonic, so it never keeps the process alive."""

    def __init__(self) -> None:
        super().__init__(name="undertow-backward", daemon=True)
        self.jobs: deque[Any] = deque()
        self.wake = threading.Semaphore(0)
        self.start()

    def run(self) -> None:
        while True:
            self.wake.acquire()
            context, board, left = self.jobs.popleft()
            try:
                context.run(board.work)
            finally:
                del context, board
                left.release()
                _idle.append(self)
                del left


_idle: list[_Helper] = []


def _hire(context: Any, board: _Board, left: threading.Semaphore) -> None:
    try:
        helper = _idle.pop()
    except IndexError:
        helper = _Helper()
    helper.jobs.append((context, board, left))
    helper.wake.release()


def run_pooled(run: Run, ready: list[int], workers: int) -> None:
    """Run independent nodes on `workers` threads, this one included."""
    run.alone = False
    board = _Board(run, ready)
    left = threading.Semaphore(0)
    hired = 0
    with shared_between(workers):
        try:
            for _ in range(workers - 1):
                _hire(copy_context(), board, left)
                hired += 1
            board.work()
        except BaseException as error:  # an interrupt between two statements
            board.fail(error)
        while hired:
            try:
                left.acquire()
                hired -= 1
            except BaseException as error:  # an interrupt while the helpers finish their nodes
                board.fail(error)
    if board.error is not None:
        raise board.error


def forget_helpers() -> None:
    """After fork the helpers exist only in the parent."""
    _idle.clear()


def _register() -> None:
    import os

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget_helpers)


_register()
