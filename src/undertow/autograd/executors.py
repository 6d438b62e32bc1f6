"""Serial and pooled execution of a backward pass; they only choose the thread.

Note [termination]
A pooled run ends when every needed node has been run, or at the first exception, or when the
caller is interrupted; in each case `_Board.stopped` is set and everybody who waits is woken. Who
waits, and who wakes them:
  - a worker waits for work: woken by whoever posts ready nodes, and by stop;
  - the caller works like any worker, so it waits only for work, and at the end until no helper is
    at work: each leaves at its next look at the board, which stop makes it take. A helper that
    comes late finds the board stopped and does nothing, so nobody waits for it.
A node that raises, a BaseException in a helper and an interrupt of the caller all go through
`_Board.fail`, which keeps the first error and stops. Counting is by nodes run, and every node
that is needed is delivered to (None counts too), so the count always reaches zero.

Note [interrupts]
KeyboardInterrupt comes between any two steps of Python code, also inside `threading`. So locks are
taken by `with lock`, whose two ends are C (a Condition's or a Semaphore's are Python, and an
interrupt there leaves the lock taken), and who waits asks about a state, which it may ask again,
not for a token, which an interrupt could lose after it was received. `Condition.wait` is Python,
too: interrupted between giving the lock away and taking it back, it returns without the lock, which
`_Board.wait` mends. A waiter that it forgets to strike off does no harm: the run has failed, and
from then on everybody is woken.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections import deque
from contextvars import Context, copy_context
from queue import SimpleQueue

from ..backends.locks import Lock
from ..backends.threads import shared_between
from ..core.node import AccumulateGrad, Node
from .engine import Run, advance
from .task import Task

_FEW = 8  # nodes
_LITTLE = 16384  # elements in the output of a node, on average
_SAMPLE = 50  # nodes, about
_WIDE = 2.0  # how much work there is for each piece of the longest path


def worth_pooling(task: Task) -> bool:
    """Whether a graph is large and wide enough that threads give more than they cost.

    Only large kernels run outside the interpreter's lock, so both the number of nodes and the
    size of what they compute count. And a kernel has all threads in a serial pass, one or few in
    a pooled one: nodes that wait for each other, as the layers of a network do, are better off in
    a serial pass. Leaves are not counted: as a rule they only take what arrives. Nodes that other
    processes wait for run in the order of a serial pass, which is the same everywhere.
    """
    if task.left < _FEW:
        return False
    some = _costs(task.nodes[:: 1 + task.left // _SAMPLE])
    if sum(some) * 4 < _LITTLE * len(some):  # by far too little: no need to look at all of them
        return False
    costs = _costs(task.nodes)
    total = sum(costs)
    if total < _LITTLE * sum(cost > 0 for cost in costs):
        return False
    return total >= _WIDE * _longest(task, costs) and not any(n.in_order for n in task.nodes)


def _costs(nodes: list[Node]) -> list[int]:
    """About how much each node computes: the elements of its outputs."""
    return [
        0 if node.__class__ is AccumulateGrad else sum([math.prod(s) for s, _ in node.metas])
        for node in nodes
    ]


def _longest(task: Task, costs: list[int]) -> int:
    """The cost of the costliest path through the graph."""
    edges = [0] * len(costs)  # into each node, from nodes that have not been looked at
    for row in task.targets:
        for target in row:
            if target is not None:
                edges[target[0]] += 1
    before = [0] * len(costs)  # the costliest way to a node
    ready = [i for i, count in enumerate(edges) if not count]
    longest = 0
    while ready:
        i = ready.pop()
        cost = before[i] + costs[i]
        longest = max(longest, cost)
        for target in task.targets[i]:
            if target is not None:
                j = target[0]
                before[j] = max(before[j], cost)
                edges[j] -= 1
                if not edges[j]:
                    ready.append(j)
    return longest


def run_serial(run: Run, ready: list[int]) -> None:
    """Run every node on this thread, newest first."""
    advance(run, ready, sys.maxsize)


class _Board:
    """What the threads of one pooled run share; see Note [interrupts]."""

    def __init__(self, run: Run, ready: list[int]) -> None:
        self.run = run
        self.lock = Lock()
        self.changed = threading.Condition(self.lock)
        self.ready = deque(ready)
        self.left = run.task.left
        self.helping = 0  # helpers at work here
        self.stopped = False
        self.error: BaseException | None = None

    def wait(self) -> None:
        """Sleep until something changed; the lock is held before and after, come what may."""
        try:
            self.changed.wait()
        except BaseException:
            if not self.lock._is_owned():
                self.lock.acquire()
            raise

    def next(self) -> int | None:
        """A ready node, waiting for one if need be; None when the run is over."""
        with self.lock:
            while not self.stopped:
                if self.ready:
                    return self.ready.pop()
                self.wait()
            return None

    def done(self, made_ready: list[int]) -> int | None:
        """A node has been run. Returns one of the nodes it made ready for the same thread."""
        with self.lock:
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

    def fail(self, error: BaseException) -> None:
        """Keep the first error and stop everybody."""
        self.stopped = True  # first of all, and without a call: nothing can come in between
        with self.lock:
            if self.error is None:
                self.error = error
            self.changed.notify_all()

    def help(self) -> None:
        """Work as a helper, unless the run is over already."""
        with self.lock:
            if self.stopped:
                return
            self.helping += 1
        self.work()
        with self.lock:
            self.helping -= 1
            self.changed.notify_all()

    def finish(self) -> None:
        """Stop, and wait until every helper has left."""
        with self.lock:
            self.stopped = True
            self.changed.notify_all()
            while self.helping:
                self.wait()


_jobs: SimpleQueue[tuple[Context, _Board]] = SimpleQueue()
_helpers: list[threading.Thread] = []


def _help(jobs: SimpleQueue[tuple[Context, _Board]]) -> None:
    while True:
        context, board = jobs.get()
        context.run(board.help)
        del context, board


def _hire(board: _Board, count: int) -> None:
    """Ask for `count` helpers; a run makes progress without them, since its caller works too."""
    while len(_helpers) < count:
        helper = threading.Thread(
            target=_help, args=(_jobs,), name="undertow-backward", daemon=True
        )
        try:
            helper.start()
        except RuntimeError:  # no more threads: fewer will do
            break
        _helpers.append(helper)
    for _ in range(count):
        _jobs.put((copy_context(), board))


def run_pooled(run: Run, ready: list[int], workers: int) -> None:
    """Run independent nodes on `workers` threads, this one included."""
    run.alone = False
    board = _Board(run, ready)
    with shared_between(workers):
        try:
            _hire(board, workers - 1)
            board.work()
        except BaseException as error:  # an interrupt between two statements
            board.fail(error)
        while True:
            try:
                board.finish()
                break
            except BaseException as error:  # an interrupt while the helpers finish their nodes
                board.fail(error)
    if board.error is not None:
        raise board.error


def forget_helpers() -> None:
    """After fork the helpers exist only in the parent."""
    global _jobs
    _helpers.clear()
    _jobs = SimpleQueue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_helpers)
