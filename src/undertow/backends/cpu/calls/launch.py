"""Launches: calls of kernels as values, and the one place that finds and runs them.

Note [launches]
Whatever generated code computes for a form is a launch: a kernel, with the sizes and steps that the
layout of operands gives it. A plan is a launch with the memory that it needs: its results, scratch
memory and tables. Arrays and numbers are what is left to give when it runs. So a plan depends on
dtypes, shapes and strides, on options and on the number of threads, never on values or addresses,
and is made once: `plan_of` finds it, by one key in one cache, or has the form's maker make it. A
maker gives None or raises NotCompiled where there is no kernel, and that is remembered, too.

Most kernels take their buffers in one order: results, operands, scratch memory, tables; then sizes
and steps, which the launch knows, then numbers (Note [packed arguments]). `run` does this for a
plan. A form whose kernel has another order asks for memory (`prepare`) and calls the launch.

Note [scratch]
Scratch memory whose content nobody needs after the launch is `kept`: one block of the calling
thread, for all threads of its job. Between any two instructions of Python a signal handler, a
finaliser or the collector may compute something on this thread, which may need more memory and put
its own in the place of this. So whoever has asked for it holds it as long as it is in use, it is
replaced by one store, and who needs its content after the code has returned takes it away for the
time (`take_kept`). A launch that is written down has scratch memory of its own, of the size that it
asked for: in a program it needs room as long as it runs, and not what others have asked for.
"""

from __future__ import annotations

import functools
import gc
import math
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.ir import STREAM
from ....kernel.layout import Sizes
from ....kernel.lower import NotCompiled
from ... import debug, memory
from ...threads import current_limit
from ..codegen import jit
from ..codegen.kernels import Kernel, address
from ..threads.pool import pointer
from . import native

MOST = 1 << 14  # plans; then all are forgotten
TABLES = 128 << 20  # bytes of their tables; likewise
_ndarray = np.ndarray
_BYTE = np.dtype(np.uint8)


# Who is told of launches ------------------------------------------------------------------------
def _printed(
    name: str, arrays: Sequence[Any], numbers: Sequence[Any], work: int, go: Callable[[], None]
) -> None:
    debug.launch(name, arrays, numbers, work)
    go()


_watcher: debug.Watcher | None = _printed if debug.wants("launches") else None
_launches: weakref.WeakSet[Launch] = weakref.WeakSet()


def watch(watcher: debug.Watcher | None) -> debug.Watcher | None:
    """Let `watcher(kernel, arrays, numbers, work, go)` run every launch by `go()`; None: nobody.

    Returns who did so before. Launches that nobody watches are the native calls themselves.
    """
    global _watcher
    before, _watcher = _watcher, watcher
    for launch in list(_launches):
        launch.run = launch.bare if watcher is None else launch.told(watcher)
    return before


debug.WATCHED.append(watch)


# What a plan is ---------------------------------------------------------------------------------
class Launch:
    """A call of a kernel, but for the pool, the arrays and the numbers, which `run` takes."""

    __slots__ = (
        "__weakref__",
        "bare",
        "buffers",
        "holds",
        "ints",
        "kernel",
        "release",
        "run",
        "work",
    )

    def __init__(
        self,
        kernel: Kernel,
        buffers: int,
        ints: Sequence[int],
        release: bool = True,
        work: int = 0,
        noting: bool = True,
    ) -> None:
        """`release` is that of Note [native calls]; `work` counts operations, for those who ask."""
        self.kernel, self.buffers, self.ints, self.work = kernel, buffers, tuple(ints), work
        self.release = release
        self.holds: tuple[Any, ...] = ()  # a plan's tables, and what it remembers
        numbers = kernel.kinds[1 + buffers + len(ints) :]
        self.bare: Callable[..., None] = (
            native.launcher(kernel.address, buffers, ints, numbers, release)
            if native.possible()
            else _by_addresses(kernel, buffers, self.ints)
        )
        if tapped and noting:
            self.bare = self._tapped(self.bare)
        self.run = self.bare if _watcher is None else self.told(_watcher)
        _launches.add(self)

    def told(self, watcher: debug.Watcher) -> Callable[..., None]:
        """`run` by way of a watcher."""
        bare, count, name, work = self.bare, self.buffers, self.kernel.name, self.work

        def run(pool: int, *given: Any) -> None:
            if _tap.doubts is None:
                watcher(name, given[:count], given[count:], work, lambda: bare(pool, *given))
            else:  # it does not run
                bare(pool, *given)

        return run

    def _tapped(self, run: Callable[..., None]) -> Callable[..., None]:
        """`run` that writes each launch down first, for who has asked on this thread."""

        def noted(pool: int, *given: Any) -> None:
            note(self, pool, given)
            if _tap.doubts is None:
                run(pool, *given)

        return noted

    def plain(self, holds: Sequence[Any] = ()) -> Launch:
        """The same, which does not write itself down, and holds more."""
        twin = Launch(self.kernel, self.buffers, self.ints, self.release, self.work, noting=False)
        twin.holds = (*self.holds, *holds)
        return twin

    def __repr__(self) -> str:
        return f"Launch({self.kernel.name}, {self.buffers} buffers, {list(self.ints)})"


def _by_addresses(kernel: Kernel, buffers: int, ints: Sequence[int]) -> Callable[..., None]:
    """A launch where there are no native calls."""

    def run(pool: int, *given: Any) -> None:
        kernel(pool, *map(address, given[:buffers]), *ints, *given[buffers:])

    return run


class Room(NamedTuple):
    """Memory that a launch needs: of a result, or scratch."""

    shape: Sizes
    dtype: Any
    like: int | None = None  # the array whose layout it has; None for row-major
    each: int = 0  # of scratch memory: elements more for each thread
    kept: bool = False  # see Note [scratch]; in bytes


def for_each_thread(size: int, dtype: Any, alone: bool = False) -> Room:
    """Scratch memory of so many elements for each thread, of which there may be but one."""
    return Room((size,), dtype) if alone else Room((0,), dtype, None, size)


class Plan(NamedTuple):
    """A launch, and the memory that it needs."""

    launch: Launch
    results: tuple[Room, ...]
    scratch: tuple[Room, ...]
    tables: tuple[Any, ...]  # arrays that the kernel reads besides the operands
    alone: bool  # too little to wake another thread for
    stream: Launch | None  # the same with streaming stores, for results that begin whole lines
    # What makes results and scratch memory, if neither operands nor threads matter for it.
    makers: tuple[Callable[[], Any], ...]
    more: Any  # what the form itself remembers


def planned(
    launch: Launch,
    results: Sequence[Room] = (),
    scratch: Sequence[Room] = (),
    tables: Sequence[Any] = (),
    alone: bool = False,
    stream: Launch | None = None,
    more: Any = None,
) -> Plan:
    """The plan of a launch."""
    rooms = [*results, *scratch]
    makers: list[Callable[[], Any]] = []
    for room in rooms:
        size = math.prod(room.shape) * np.dtype(room.dtype).itemsize
        if room.like is None and not room.each and not room.kept and size < memory.HUGE:
            make = np.empty if size < memory.LARGE else memory.empty
            makers.append(functools.partial(make, room.shape, np.dtype(room.dtype)))
    if len(makers) < len(rooms):
        makers = []
    lists = tuple(results), tuple(scratch), tuple(tables)
    for each in (launch, stream):
        if each is not None:
            each.holds = (*tables, more)
    return Plan(launch, *lists, alone, stream, tuple(makers), more)


# Finding plans ----------------------------------------------------------------------------------
class Plans(dict[Any, Any]):
    """Plans by key; False where there is no kernel.

    At most MOST of them, with TABLES bytes of tables: then all are forgotten. A key holds
    expressions and programs themselves, so that these are not freed before it.
    """

    bytes = 0  # of tables

    def make(self, key: Any, make: Callable[..., Any], *given: Any) -> Any:
        """The plan for what is given, which is remembered.

        Not if the lists were exchanged meanwhile: its launches might be those of the other list.
        """
        switched = -1 if self is _lists[not tapped] else _tap_count
        try:
            plan = make(*given) or False
        except NotCompiled:
            plan = False
        if switched != _tap_count:
            return plan
        size = sum([t.nbytes for t in plan.tables]) if plan.__class__ is Plan else 0
        if len(self) >= MOST or self.bytes + size > TABLES:
            self.clear()
        kept = self.setdefault(key, plan)  # another thread may have made it meanwhile
        if kept is plan:
            self.bytes += size
        return kept

    def count(self, size: int) -> None:
        """A plan that is remembered has got tables of so many bytes."""
        self.bytes += size
        if self.bytes > TABLES:
            self.clear()

    def clear(self) -> None:
        """Forget all."""
        super().clear()
        self.bytes = 0


PLANS = Plans()


# Writing launches down --------------------------------------------------------------------------
class _Tap(threading.local):
    """What this thread has launched, as (launch, pool, given), while somebody asks."""

    found: list[Any] | None = None
    mine = 0  # how often it wants that
    doubts: list[Any] | None = None  # while launches are only rehearsed, what `sound` was asked


_tap = _Tap()
_lists = PLANS, Plans()  # for eager calls, and those whose launches are written down
tapped = False  # whether plans come from the second one
_tap_count = 0  # how often that has changed
_taps = 0  # how many want it
_tap_lock, _rehearsing = threading.RLock(), threading.Lock()
_paused = False  # whether the collector is off since the first of them


def _after_fork() -> None:
    """In a child there is nobody who would give back what other threads of the parent held."""
    global _tap_lock, _rehearsing, _taps
    _tap_lock, _rehearsing = threading.RLock(), threading.Lock()
    _taps = _tap.mine + 1  # and none of the others
    tap(False, 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def tap(on: bool, mine: int = 1) -> None:
    """Take plans whose launches can be written down, or no longer: eager ones have no such wrap.

    Meanwhile there are no collections: they run finalisers of others, which may compute.
    """
    global PLANS, tapped, _tap_count, _taps, _lists, _paused
    with _tap_lock:
        _taps += 1 if on else -1
        _tap.mine += mine if on else -mine
        if on and _taps == 1:
            _paused = gc.isenabled()
            gc.disable()
        if not _taps and _paused:
            gc.enable()
            _paused = False
        if tapped != bool(_taps):
            if on:
                _lists = PLANS, _lists[1]
            _tap_count += 1
            PLANS, tapped = _lists[on], on


def launches(work: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """What `work` gives, and the launches that it consists of; None is one of unknown content."""
    before, found = _tap.found, []  # type: ignore[var-annotated]
    _tap.found = found
    try:
        return work(), found
    finally:
        _tap.found = before


def rehearsed(work: Callable[[], Any]) -> tuple[list[Any], list[Any]]:
    """The launches of `work`, none of which runs, and the arrays of which it asks `sound`.

    `work` has a thread of its own, where no signal handler, finaliser or collector may compute
    meanwhile: that would be taken for a part of it.
    """
    outcome: list[Any] = []

    def run() -> None:
        with _rehearsing:
            tap(True)
            _tap.doubts = []
            try:
                outcome.extend((launches(work)[1], _tap.doubts))
            except BaseException as error:  # for the caller to raise
                outcome.append(error)
            finally:
                tap(False)

    if jit.closed():
        raise NotCompiled("only the main thread may compile while the process ends")
    try:
        thread = threading.Thread(target=run, name="undertow-rehearsal", daemon=True)
        thread.start()
    except RuntimeError:  # there are no more threads to be had
        raise NotCompiled("no thread to find out launches on") from None
    thread.join()
    if len(outcome) == 1:
        raise outcome[0]
    found, doubts = outcome
    return found, doubts


def sound(number: Any) -> bool:
    """Whether the one element of an array is finite; asked later where launches are rehearsed."""
    if _tap.doubts is not None:
        _tap.doubts.append(number)
        return True
    return math.isfinite(number.item())


def written() -> bool:
    """Whether launches of this thread are written down."""
    return _tap.found is not None


def note(launch: Launch, pool: int, given: Sequence[Any]) -> None:
    """Write a launch down."""
    if _tap.found is not None:
        _tap.found.append((launch, pool, given))


def unwritten() -> None:
    """Something else than a launch works on arrays; a form that does so is no list of launches."""
    if _tap.found is not None:
        _tap.found.append(None)


FIXED: dict[int, Any] = {}  # by id


def fixed(array: Any) -> Any:
    """An array that is kept for good, whose content launches may read."""
    FIXED[id(array)] = array
    return array


def described(*operands: Any) -> Any:
    """What a plan depends on of any operands."""
    return tuple(
        [
            (o.shape, o.strides, o.dtype) if o.__class__ is _ndarray else o.__class__
            for o in operands
        ]
    )


def _first_layout(*operands: Any) -> Any:
    """Choose what describes arrays, numbers and Nones: one of Note [native calls] if possible."""
    global layout
    layout = native.layout() if native.possible() else described
    return layout(*operands)


layout: Callable[..., Any] = _first_layout  # None for operands that it does not know


def plan_of(make: Callable[..., Any], operands: Sequence[Any], *options: Any) -> Any:
    """The plan `make(operands, *options)` for operands like these; False if there is no kernel."""
    key = (make, options, layout(*operands) or described(*operands))
    plan = PLANS.get(key)
    return PLANS.make(key, make, operands, *options) if plan is None else plan


# Running plans ----------------------------------------------------------------------------------
def run(
    plan: Plan, arrays: Sequence[Any], numbers: Sequence[Any] = (), outs: Sequence[Any] = ()
) -> list[Any]:
    """Launch a plan over the arrays among its operands; the results, which may be given as `outs`.

    The arrays must lie like those that the plan was made for.
    """
    launch, results, scratch, tables, alone, stream, makers, _ = plan
    count = len(results)
    if makers and not outs:  # as `prepare`, at less overhead
        pool, made = 0 if alone else pointer(), []
        for make in makers:  # a comprehension is a call of its own
            made.append(make())
    else:
        if scratch:
            pool, made = prepare(plan, arrays, outs)
        else:
            pool, made = 0 if alone else pointer(), [*outs] or _results(results, arrays)
        if stream is not None and _may_stream(made[:count], arrays):
            launch = stream
    if count == len(made):
        launch.run(pool, *made, *arrays, *tables, *numbers)
        return made
    found = made[:count]
    launch.run(pool, *found, *arrays, *made[count:], *tables, *numbers)
    return found


def prepare(
    plan: Plan, arrays: Sequence[Any] = (), outs: Sequence[Any] = ()
) -> tuple[int, list[Any]]:
    """The pool for a launch, and memory: results, unless these are given, and scratch."""
    if plan.makers and not outs:
        return 0 if plan.alone else pointer(), [make() for make in plan.makers]
    threads = 1 if plan.alone else current_limit()
    made = [*outs] or _results(plan.results, arrays)
    for room in plan.scratch:
        made.append(_room(room, threads))
    return 0 if plan.alone else pointer(threads), made


def _may_stream(results: Sequence[Any], arrays: Sequence[Any]) -> bool:
    """Whether results begin whole lines, and are no operands."""
    places = {address(r) for r in results}
    return not any(p % STREAM for p in places) and places.isdisjoint(map(address, arrays))


def _results(rooms: Sequence[Room], arrays: Sequence[Any]) -> list[Any]:
    read: Sequence[int] = ()
    made = []
    for shape, dtype, like, _, _ in rooms:
        if like is not None:
            made.append(memory.empty_like(arrays[like], dtype))
        else:
            if not read and math.prod(shape) * np.dtype(dtype).itemsize >= memory.HUGE:
                read = [*map(address, arrays)]
            made.append(memory.empty(shape, dtype, read))
    return made


def _room(room: Room, threads: int) -> Any:
    shape, dtype, _, each, kept = room
    if kept:
        return keep(math.prod(shape) + each * threads)
    return memory.empty((shape[0] + each * threads,) if each else shape, dtype)


def launch_once(kernel: Kernel, arrays: Sequence[Any], *numbers: Any, threads: int = 0) -> None:
    """A launch that no plan is worth: its sizes, the first of the numbers, differ call by call."""
    unwritten()
    if _watcher is None:
        kernel(pointer(threads), *map(address, arrays), *numbers)
    else:
        go = functools.partial(kernel, pointer(threads), *map(address, arrays), *numbers)
        _watcher(kernel.name, arrays, numbers, 0, go)


# Scratch memory ---------------------------------------------------------------------------------
class _Kept(threading.local):
    """See Note [scratch]."""

    block = np.empty(0, np.uint8)


_own = _Kept()


def keep(size: int) -> Any:
    """So many bytes from the beginning of a page on, which stay the thread's own."""
    if written():
        return memory.empty((size,), _BYTE)
    block = _own.block
    if block.size < size:
        block = _own.block = _pages(size)
    return block


def take_kept(size: int) -> Any:
    """The same, which nobody else gets until it is put back."""
    block, _own.block = keep(size), _Kept.block
    return block


def put_back(block: Any) -> None:
    """Let the thread's next launch have what was taken."""
    _own.block = block


def _pages(size: int) -> Any:
    block = np.empty(size + memory.PAGE, np.uint8)
    return block[-address(block) % memory.PAGE :]
