"""How many threads a kernel may use: a process-wide number, lowered while several kernels run.

Generated kernels ask for it (`current_limit`) and share one pool of threads; small products go to
NumPy's BLAS, which has threads of its own.

Note [BLAS threads]
The threads of OpenBLAS spin for 2^26 cycles after a product, so they take a core from whoever
works next, and they meet at barriers, so they crawl when the machine is busy. That pays only for
large products; others, and all products of a parallel backward, run on one BLAS thread. The number
that the user has set is put back at once. If NumPy has not been imported before undertow, the
spinning is cut to 2^20 cycles, some tenths of a millisecond: long enough for the next product of
a step, short enough for the threads of a parallel backward.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import ArgumentError
from .locks import Lock

MOST_THREADS = 4096  # a process that starts many more runs out of memory maps, and crashes

_number = 0  # 0: not set yet
_limit = 0  # 0: no limit beyond the number
_sharing = 0  # runs that share the cores at this moment
_lock = Lock()


def get_num_threads() -> int:
    """How many threads one kernel may use.

    >>> import undertow as ut
    >>> ut.get_num_threads() >= 1
    True
    """
    global _number
    if not _number:
        _number = _initial()
    return _number


def set_num_threads(number: int) -> None:
    """Set how many threads one kernel may use; `UNDERTOW_NUM_THREADS` sets it at the start.

    >>> import undertow as ut
    >>> before = ut.get_num_threads()
    >>> ut.set_num_threads(1)
    >>> ut.get_num_threads()
    1
    >>> ut.set_num_threads(before)
    """
    global _number
    if type(number) is not int or not 1 <= number <= MOST_THREADS:
        raise ArgumentError(f"[set_num_threads] expects 1 to {MOST_THREADS}, got {number!r}")
    _number = number


def current_limit() -> int:
    """How many threads a kernel that starts now may use."""
    return _limit or _number or get_num_threads()


@contextmanager
def shared_between(workers: int) -> Iterator[None]:
    """While this lasts, `workers` threads run kernels at once, so each kernel uses fewer."""
    global _sharing, _limit
    limit = max(1, get_num_threads() // workers)
    entered = False
    try:
        with _lock:
            _sharing, _limit, entered = _sharing + 1, limit, True
        with blas_threads(limit):
            yield
    finally:
        if entered:
            with _lock:
                _sharing -= 1
                if not _sharing:
                    _limit = 0


def _forget() -> None:
    """After fork nobody else shares the cores with the child, and nobody holds its locks."""
    global _lock, _sharing, _limit
    _lock, _sharing, _limit = Lock(), 0, 0
    blas_threads.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _initial() -> int:
    given = os.environ.get("UNDERTOW_NUM_THREADS", "")
    if given:
        if not given.isdecimal() or not 1 <= int(given) <= MOST_THREADS:
            raise ArgumentError(f"UNDERTOW_NUM_THREADS must be 1 to {MOST_THREADS}, got {given!r}")
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class blas_threads:
    """`with blas_threads(n):` BLAS uses n threads; see Note [BLAS threads].

    The setting is one for the whole process: where several of these overlap, in one thread or in
    several, the first one's number holds, and the last one out puts the user's back.
    """

    __slots__ = ("number",)
    _lock = Lock()
    _users = 0
    _before = 1
    _calls: Any = None  # (get, set) of the BLAS library; False when there is none to control

    def __init__(self, number: int) -> None:
        self.number = number

    @classmethod
    def forget(cls) -> None:
        """After fork: those who had set a number are not there to put it back."""
        cls._lock = Lock()
        if cls._users and cls._calls:
            cls._calls[1](cls._before)
        cls._users = 0

    def __enter__(self) -> None:
        cls = blas_threads
        with cls._lock:
            cls._users += 1
            if cls._users == 1:
                if cls._calls is None:
                    cls._calls = _find_blas() or False
                if cls._calls:
                    cls._before = cls._calls[0]()
                    if cls._before != self.number:
                        cls._calls[1](self.number)

    def __exit__(self, *exc: object) -> None:
        cls = blas_threads
        with cls._lock:
            cls._users -= 1
            if cls._users == 0 and cls._calls and cls._calls[0]() != cls._before:
                cls._calls[1](cls._before)


def _find_blas() -> Any:
    """The functions of the OpenBLAS that NumPy brought along, if it did."""
    import ctypes
    from pathlib import Path

    import numpy as np

    package = Path(np.__file__).parent
    bundled = (package.parent / "numpy.libs", package / ".dylibs")
    for library in [found for folder in bundled for found in folder.glob("*openblas*")]:
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError:
            continue
        for name in (
            "scipy_openblas_{}_num_threads64_",
            "scipy_openblas_{}_num_threads",
            "openblas_{}_num_threads64_",
            "openblas_{}_num_threads",
        ):
            try:
                return getattr(loaded, name.format("get")), getattr(loaded, name.format("set"))
            except AttributeError:
                continue
    return None
