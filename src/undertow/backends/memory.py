"""Memory for tensors: freed memory is kept for the next one, and large arrays begin a cache line.

A training step frees large arrays and asks for the same sizes again. If the pages go back to the
kernel in between, fetching them again, a page fault every 4 kB, can cost more than the computation.
So at most `KEEP` bytes stay with the process, in blocks; see Note [blocks]. Smaller arrays, and
those that NumPy makes, are malloc's, which with glibc is told to keep up to `HEAP` bytes at its
top. `UNDERTOW_KEEP_MEMORY=0` leaves both out.

Note [blocks]
A large array lies in a block, a mapping of its own. The last blocks that were handed out, `KEEP`
bytes of them and no more, are also held here. One that nobody else holds is free: it is found by
its count of references when a block of its size is wanted, so that nothing needs to run when an
array dies (a finaliser in Python would swallow an interrupt that arrives there). A block that is
not held here goes back to the kernel with its array. So what is kept is bounded at any moment,
whatever is freed in which order. Sizes are rounded up, to one of eight from each power of two to
the next, so that arrays of about one size share blocks; what is rounded up is not touched.

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

import contextlib
import ctypes
import math
import mmap
import os
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pickle import PickleBuffer
from typing import Any

import numpy as np

from ..errors import does_not_fit
from .holders import COUNTED, getrefcount

HEAP = 64 << 20  # bytes that malloc keeps
KEEP = (512 << 20) - HEAP  # bytes of blocks
LINE = 64  # bytes
PAGE = 4096
LARGE = 64 << 10  # bytes from which on an array has a block, or at least begins a line
HUGE = 1 << 20  # bytes from which on it begins a page
NEAR = 512  # bytes within which a store and a load get in each other's way
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's <malloc.h>


def keep_memory() -> bool:
    """Tell glibc to keep freed memory; whether it was told."""
    if not sys.platform.startswith("linux") or not KEEPING:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    # Its own limits, but from the beginning: above the mmap threshold an array has a mapping of its
    # own, given back when it is freed.
    told = [mallopt(_MMAP_THRESHOLD, HEAP // 2), mallopt(_TRIM_THRESHOLD, HEAP)]
    return all(told)


class Blocks:
    """Blocks of memory that are used again; see Note [blocks]."""

    def __init__(self, keep: int) -> None:
        self.keep = keep  # bytes, at most
        self.held = 0  # bytes
        # By size, the least recently used size first; in each the least recently used block first.
        self._sizes: dict[int, deque[Any]] = {}
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def take(self, size: int) -> Any:
        """A block of `size` bytes, a multiple of PAGE."""
        # Whoever comes while another thread is here gets a block that is not kept.
        if size > self.keep or not self._lock.acquire(blocking=False):
            return mapped(size)
        try:
            blocks = self._sizes.pop(size, None)
            if blocks is None:
                blocks = deque()
            self._sizes[size] = blocks
            # The last one is what caches know best.
            if not ((blocks and getrefcount(blocks[-1]) == _FREE) or self._found(blocks)):
                blocks.append(self._fresh(size))
                self._sizes[size] = blocks  # which may have been let go of to make room
                self.held += size
                while self.held > self.keep:
                    self._let_go()
            return blocks[-1]
        finally:
            self._lock.release()

    def _found(self, blocks: deque[Any]) -> bool:
        """Whether a free block was found; it is the last one then."""
        for _ in range(min(len(blocks), LOOKS)):
            blocks.rotate(-1)
            if getrefcount(blocks[-1]) == _FREE:
                return True
        return False

    def _fresh(self, size: int) -> Any:
        try:
            return mapped(size)
        except MemoryError:  # unless what is kept is in the way
            while self._sizes:
                self._let_go()
            return mapped(size)

    def _let_go(self) -> None:
        """Hold the least recently used block no longer; if it is free, that frees its memory."""
        size, blocks = next(iter(self._sizes.items()))
        if blocks:
            blocks.popleft()
            self.held -= size
        if not blocks:
            del self._sizes[size]

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # another thread may have been inside


def mapped(size: int) -> Any:
    """Fresh memory that begins a page and goes back to the kernel when nobody holds it."""
    try:
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError from error
    if size >= HUGE_PAGES and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            block.madvise(mmap.MADV_HUGEPAGE)
    return block


KEEPING = os.environ.get("UNDERTOW_KEEP_MEMORY") != "0"
LOOKS = 8  # blocks that may be in use until another one is mapped
HUGE_PAGES = 4 << 20  # bytes from which on the kernel is asked for huge pages, as NumPy does
_FREE = 2  # of what only a deque holds, and the question; see Note [holders]
_blocks = Blocks(KEEP) if KEEPING and COUNTED and hasattr(mmap, "MAP_ANONYMOUS") else None


def empty(shape: tuple[int, ...], dtype: Any, beside: Sequence[int] = ()) -> Any:
    """Uninitialised row-major memory; see Note [lines] and Note [pages].

    `beside` are the addresses of large arrays that are read while this one is written.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < LARGE:
        return np.empty(shape, dtype)
    try:
        behind, start = _lines(size, beside)
    except MemoryError as error:  # which speaks of the block
        raise MemoryError(does_not_fit(shape, dtype)) from error
    return np.ndarray(shape, dtype, behind, start)


def scratch(size: int) -> Any:
    """So many bytes that begin a line."""
    if size >= LARGE:
        return empty((size,), np.uint8)
    whole: Any = np.empty(size + LINE, np.uint8)
    behind: Any = PickleBuffer(whole)
    return np.ndarray((size,), np.uint8, behind, -_address(whole) % LINE)


def empty_like(array: Any, dtype: Any) -> Any:
    """Uninitialised memory in the layout of an array whose elements lie together.

    >>> empty_like(np.ones((300, 500)).T, np.float64).strides
    (8, 4000)
    """
    dtype = np.dtype(dtype)
    size = array.size * dtype.itemsize
    if size < LARGE:
        return np.empty_like(array, dtype)
    strides, step = [0] * array.ndim, dtype.itemsize
    for d in sorted(range(array.ndim), key=lambda d: (abs(array.strides[d]), -d)):
        strides[d] = step
        step *= array.shape[d]
    try:
        behind, start = _lines(size, ())
    except MemoryError as error:
        raise MemoryError(does_not_fit(array.shape, dtype)) from error
    return np.ndarray(array.shape, dtype, behind, start, strides)


def _lines(size: int, beside: Sequence[int]) -> tuple[Any, int]:
    """A buffer of more than `size` bytes, and where in it an array begins."""
    place = 0
    if beside and size >= HUGE:
        place = _apart(beside)
    if _blocks is not None:
        # Wherever the array begins, so that one block fits all arrays of a size.
        whole = size + PAGE if size >= HUGE else size
        try:
            step = max(PAGE, 1 << max(whole.bit_length() - 4, 0))
            # An eighth more at most, so that blocks fit arrays of other sizes, too.
            return PickleBuffer(_blocks.take(-(-whole // step) * step)), place
        except MemoryError:
            pass  # it may also be that there are too many mappings
    block: Any = np.empty(size + (LINE if size < HUGE else 2 * PAGE), np.uint8)
    return PickleBuffer(block), -_address(block) % (LINE if size < HUGE else PAGE) + place


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


def _apart(beside: Sequence[int]) -> int:
    """A place of a page that lies closely behind no operand in its page; 0 if there is none."""
    for place in range(0, PAGE, NEAR // 2):
        for operand in beside:
            if 0 < (place - operand) % PAGE < NEAR:
                break
        else:
            return place
    return 0


def owns(array: Any) -> bool:
    """Whether nobody else looks at the memory of an array by way of its base.

    >>> whole = empty((1000, 1000), np.float32)
    >>> owns(whole), owns(whole[1:])
    (True, False)

    So it is of one that was reshaped, and of which nobody has the original.

    >>> owns(np.ones((2, 3)).reshape(6)), owns(np.ones((2, 3))[1])
    (True, False)

    Other views are not for being written into or kept in its place, though their sizes may agree.

    >>> owns(np.ones((2, 3)).T), owns(np.broadcast_to(np.ones(4)[:1], 4))
    (False, False)
    """
    base: Any = array.base
    if base is None or base.__class__ is PickleBuffer:
        return True
    whole = base.__class__ is np.ndarray and base.size == array.size and array.flags.c_contiguous
    if not whole or getrefcount(array.base) > 3:  # held by the view, `base` and the question
        return False
    below: Any = base.base
    return below is None or below.__class__ is PickleBuffer
