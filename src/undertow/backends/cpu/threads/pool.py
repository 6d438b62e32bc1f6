"""A pool of native threads for kernels; results do not depend on how many there are.

A kernel calls `run` of the handle that it is given (`pointer`), with a body and a number of blocks:
the body is called for disjoint ranges of blocks on the calling thread and on the workers, and
`run` returns when all are done. The code is LLVM IR (`pool_code`); here is its life.

Note [workers]
A worker is a daemon thread of Python that calls the generated loop once through ctypes, outside the
interpreter's lock, and stays there. So starting, naming and joining a thread are Python's, on every
system, and a body that is a Python callback finds a thread state; a thread made by `pthread_create`
would gain nothing, since Python is not on the path of a job. Workers spin for the next job about
twice as long as waking one from sleep takes, then sleep: whenever the next job comes, that costs at
most three times the best choice, and Python takes 20 to 80 microseconds from one kernel of a
training step to the next. (A second-order step took 5.5 ms with 100 microseconds, 5.8 with 50, 6.4
with 20.) With more threads than processors nobody spins. Who spins also yields now and then: a
worker that was woken on the caller's processor would otherwise keep the caller from it.

One job has the pool at a time. A caller that finds it taken (another Python thread, or a body that
runs a kernel itself) does its blocks alone, as thread 0: nothing is queued, so nothing can lock up.

Note [termination]
Who waits, and who wakes them; see also Notes [gate] and [no lost wake-ups].
  - A worker waits for a job: woken by the next `run` or by `_close`, which both change the gate's
    number. A worker that misses a job is not waited for.
  - `run` waits for the workers that joined: each wakes it when it leaves, which it does when it
    finds no block left. Bodies are native code and end; there is no error on this path.
  - `_close`, at exit, waits until no job has the pool, then for the threads to return, which `halt`
    makes all of them do. It stops waiting after `PATIENCE` seconds: the memory of pool and code is
    never freed, so a thread that runs on does no harm. Whoever calls `run` later runs alone.
  - The child of a fork waits for nobody: it forgets the pool, whose threads it does not have, and
    marks it taken, so that a handle from before the fork still works, alone.
Forking inside a body, on a thread that is running a job, is not provided for.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import sys
import threading
import time
from typing import Any

from ...locks import Lock
from ...threads import current_limit
from ..codegen import jit
from .pool_code import FIELDS, FUTEX, MOST, SIZE, text

SPIN = 100.0  # microseconds; see Note [workers]
PATIENCE = 5.0  # seconds

_handles: dict[int, int] = {}  # number of threads -> address; 1 -> 0
_core = 0
_workers: list[threading.Thread] = []
_rounds = 0  # of the waiting loop in SPIN microseconds
_closed = False
_making = False  # a handle; see `_handle`
_lock = Lock()


def pointer(threads: int = 0) -> int:
    """The address of the pool to give to a kernel that starts now; 0 to run on this thread alone.

    A kernel whose scratch memory is for so many threads must be given that number's pool, since
    `current_limit` may change in between.

    >>> import undertow as ut
    >>> before = ut.get_num_threads()
    >>> ut.set_num_threads(1)
    >>> pointer()
    0
    >>> ut.set_num_threads(before)
    """
    try:
        return _handles[threads or current_limit()]
    except KeyError:
        return _handle(threads or current_limit())


def threads_of(handle: int) -> int:
    """How many threads a handle is for; 0 for the one that runs a kernel alone.

    >>> threads_of(pointer(2)), threads_of(0)
    (2, 0)
    """
    return next((n for n, known in [*_handles.items()] if handle and known == handle), 0)


def started() -> int:
    """How many workers there are."""
    return len(_workers)


def _handle(number: int) -> int:
    """Make the handle for so many threads, and start the workers that it needs.

    A signal handler or a finaliser that computes while this thread makes one runs alone.
    """
    global _making
    number = min(number, MOST)
    with _lock:
        if _making:
            return 0
        _making = True
        try:
            if number == 1 or _closed:
                _handles[number] = 0
            if number not in _handles:
                if not _core:
                    _build()
                _start(number - 1)
                spin = _rounds if number <= _processors() else 0
                address = _forever(32)
                for place, value in enumerate((_read("run"), number, _core, spin)):
                    ctypes.c_int64.from_address(address + 8 * place).value = value
                _handles[number] = address
            return _handles[number]
        finally:
            _making = False


def _build() -> None:
    """Compile the code and lay out the core."""
    global _core, _rounds
    core = _forever(SIZE)
    futex = FUTEX.get(platform.machine()) if sys.platform == "linux" else None
    if futex and (sys.maxsize < 1 << 32 or not hasattr(ctypes.CDLL(None), "sched_getcpu")):
        futex = None
    if sys.platform == "win32":
        library, unit = ctypes.windll.kernel32, 1000
        system, yields = library.Sleep, library.SwitchToThread
    else:
        library, unit = ctypes.CDLL(None), 1
        system = library.usleep if futex is None else library.syscall
        yields = library.sched_yield
    module = text(
        "undertow_pool",
        platform.machine(),
        futex,
        little=sys.byteorder == "little",
        microseconds=unit,
    )
    install = jit.load("undertow_pool", module, why="the thread pool")
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(install)(core)
    functions = {"system": system, "yield": yields}
    if futex is not None:
        functions["where"] = library.sched_getcpu
    for field, function in functions.items():
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        ctypes.c_int64.from_address(core + FIELDS[field]).value = address
    _core = core
    rounds = 400
    idle = _function("idle", ctypes.c_int64)
    spent = []
    for _ in range(5):
        begin = time.perf_counter()
        idle(core, rounds)
        spent.append(time.perf_counter() - begin)
    _rounds = max(1, int(rounds * SPIN * 1e-6 / min(spent)))


def _start(wanted: int) -> None:
    """Start workers up to the number wanted, or as many as the system lets us have."""
    while len(_workers) < wanted:
        worker = threading.Thread(
            target=_function("worker"),
            args=(_core,),
            daemon=True,
            name=f"undertow-{len(_workers) + 1}",
        )
        try:
            worker.start()
        except RuntimeError:  # no more threads
            return
        _workers.append(worker)


def _close() -> None:
    """Stop the workers and wait for them; kernels run without them from now on."""
    global _closed
    deadline = time.monotonic() + PATIENCE
    with _lock:
        if _closed or not _core:
            _closed = True
            return
        _closed = True
        for number in _handles:
            _handles[number] = 0
        take = _function("take", result=ctypes.c_int32)
        while not take(_core):
            if time.monotonic() > deadline:
                return
            time.sleep(0.0002)
        _function("halt")(_core)
        for worker in _workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        _workers.clear()


def _forget() -> None:
    """In the child of a fork: leave the parent's pool, whose threads are not here."""
    global _core, _lock, _making
    if _core:
        ctypes.c_int32.from_address(_core + FIELDS["busy"]).value = 1
    _core = 0
    _handles.clear()
    _workers.clear()
    _lock, _making = Lock(), False


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _function(name: str, *arguments: Any, result: Any = None) -> Any:
    """A function of the generated code that takes the core, outside the interpreter's lock."""
    return ctypes.CFUNCTYPE(result, ctypes.c_void_p, *arguments)(_read(name))


def _read(name: str) -> int:
    return ctypes.c_int64.from_address(_core + FIELDS[name]).value


def _forever(size: int) -> int:
    """The address of so many zero bytes, on lines of their own, that are never freed."""
    buffer = ctypes.create_string_buffer(size + 128)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(buffer))
    return (ctypes.addressof(buffer) + 127) & ~127


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
