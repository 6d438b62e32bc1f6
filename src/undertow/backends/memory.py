"""Memory for tensors: freed memory is kept for the next one, and large arrays begin a cache line.

A training step frees large arrays and asks for the same sizes again. With glibc's defaults the
pages go back to the kernel in between, and fetching them again, a page fault every 4 kB, can cost
more than the computation. So up to `KEEP` bytes at the top of the heap stay with the process.
`UNDERTOW_KEEP_MEMORY=0` leaves the allocator alone; so does anything that is not glibc.

Note [lines]
NumPy's arrays begin wherever malloc puts them, 16 bytes past the beginning of a cache line as a
rule. Then every vector of 64 bytes, and every row of 16 floats, lies on two lines: reading random
rows costs a fifth more. `empty` makes an array in the middle of a larger one, by way of an object
that NumPy does not look through: so the array's base is no array, and it counts as the owner of its
memory (`owns`).

Note [pages]
To a processor, a load and an earlier store in the same place of two pages look alike for a while,
and a streaming store is slow to prove it wrong: where the result began one line further into its
page than the operand, exp took three times as long. So an array that is large enough to be streamed
past the caches (see maps.py) begins a page, or, beside operands that do not, where no load of
theirs follows such a store closely.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Sequence
from pickle import PickleBuffer
from typing import Any

import numpy as np

from ..errors import does_not_fit

KEEP = 512 << 20
LINE = 64  # bytes
PAGE = 4096
LARGE = 64 << 10  # bytes from which on an array begins a line
HUGE = 1 << 20  # bytes from which on it begins a page
NEAR = 512  # bytes within which a store and a load get in each other's way
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's <malloc.h>


def keep_memory() -> bool:
    """Tell glibc to keep freed memory; whether it was told."""
    if not sys.platform.startswith("linux") or os.environ.get("UNDERTOW_KEEP_MEMORY") == "0":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    # Above the mmap threshold an array has a mapping of its own, given back when it is freed.
    told = [mallopt(option, KEEP) for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD)]
    return all(told)


def empty(shape: tuple[int, ...], dtype: Any, beside: Sequence[int] = ()) -> Any:
    """Uninitialised row-major memory; see Note [lines] and Note [pages].

    `beside` are the addresses of large arrays that are read while this one is written.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < LARGE:
        return np.empty(shape, dtype)
    try:
        block: Any = np.empty(size + (LINE if size < HUGE else 2 * PAGE), np.uint8)
    except MemoryError as error:  # which speaks of the block
        raise MemoryError(does_not_fit(shape, dtype)) from error
    if size < HUGE:
        start = -_address(block) % LINE
    else:
        places = range(0, PAGE, NEAR // 2)
        place = next((p for p in places if not any(_follows(p, b) for b in beside)), 0)
        start = -_address(block) % PAGE + place
    behind: Any = PickleBuffer(block)
    return np.ndarray(shape, dtype, behind, start)


def _address(array: Any) -> int:
    """Where an array's elements are: read from the object, at a tenth of the public way's cost."""
    return _at(id(array) + _DATA).value


_at = ctypes.c_size_t.from_address
_DATA = object.__basicsize__
_sample = np.zeros(1)
if sys.implementation.name != "cpython" or _address(_sample) != _sample.ctypes.data:

    def _address(array: Any) -> int:
        """The address of an array's elements, for another layout of objects."""
        return int(array.__array_interface__["data"][0])


def _follows(place: int, operand: int) -> bool:
    """Whether a result at this place of a page lies closely behind an operand in its page."""
    return 0 < (place - operand) % PAGE < NEAR


def owns(array: Any) -> bool:
    """Whether nobody else looks at the memory of an array by way of its base.

    >>> whole = empty((1000, 1000), np.float32)
    >>> owns(whole), owns(whole[1:])
    (True, False)
    """
    base = array.base
    return base is None or base.__class__ is PickleBuffer
