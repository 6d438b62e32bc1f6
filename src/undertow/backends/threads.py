"""How many threads a kernel may use: a process-wide number, lowered while several kernels run.

For now the only kernels with threads of their own are the matrix products of NumPy's BLAS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from ..errors import ArgumentError

_lock = Lock()
_users = 0  # runs that share the cores at this moment
_number = 0  # 0: not set yet
_limit = 0  # 0: no limit beyond the number
_blas: Any = None  # (get, set) of the BLAS library; False when there is none to control


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
    if type(number) is not int or number < 1:
        raise ArgumentError(f"[set_num_threads] expects a positive integer, got {number!r}")
    with _lock:
        _number = number
        if not _users:
            _set_blas(number)


@contextmanager
def shared_between(workers: int) -> Iterator[None]:
    """While this lasts, `workers` threads run kernels at once, so each kernel uses fewer."""
    global _users, _limit
    number = get_num_threads()
    with _lock:
        _users += 1
        _limit = max(1, number // workers)
        _set_blas(_limit)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _limit = 0
                _set_blas(_number)


def current_limit() -> int:
    """How many threads a kernel that starts now may use."""
    return _limit or get_num_threads()


def _initial() -> int:
    given = os.environ.get("UNDERTOW_NUM_THREADS", "")
    if given:
        if not given.isdigit() or int(given) < 1:
            raise ArgumentError(f"UNDERTOW_NUM_THREADS must be a positive integer, got {given!r}")
        _set_blas(int(given))
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _set_blas(number: int) -> None:
    global _blas
    if _blas is None:
        _blas = _find_blas() or False
    if _blas and _blas[0]() != number:
        _blas[1](number)


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
        for name in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads",
                     "openblas_{}_num_threads64_", "openblas_{}_num_threads"):  # fmt: skip
            try:
                return getattr(loaded, name.format("get")), getattr(loaded, name.format("set"))
            except AttributeError:
                continue
    return None
