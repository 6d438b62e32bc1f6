"""Memory that one process fills with arrays and another one uses in place, without a copy.

Note [shared blocks]
A process that makes arrays for another has a `Lender`, the other a `Borrower`; messages between the
two are in order and carry references, and with a block's first reference its file descriptor. A
block is a mapping of a file without a name (`memfd_create`, or a temporary file that is unlinked at
once), and each side closes the descriptor when it has mapped it: so when both are gone, however
they ended, the kernel frees the memory, and nothing can be left behind.

Fetching fresh pages for a batch costs as much as filling them, so blocks are used again. The
borrower looks at the count of references of each mapping whenever it has something to say to the
lender, and tells which blocks nobody holds any more: nothing runs when an array dies. Since an
array may be sent twice, and a reference may be on its way while its block is being returned, both
count the references: a block is home when the lender has sent as many as the borrower had received
when it returned the block. It is used again when it is home and nobody in the lender's process
looks at it either.

How many there are is bounded, since a mapping takes a descriptor on either side: who keeps all
arrays gets copies from some number on, and a lender that has no block left sends bytes. A lender
keeps at most `KEEP` free blocks and tells the borrower which ones it drops; their references have
all arrived by then.

After a fork the child sees the same memory, not a copy. So blocks that are in use at a fork are
never returned: the child may hold their arrays.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pickle import PickleBuffer
from typing import Any, NamedTuple

import numpy as np

from . import memory
from .holders import COUNTED, getrefcount
from .strided import memory_order

LEAST = 16 << 10  # bytes from which on an array has a block; smaller ones travel in the message
MOST = 64  # blocks of a lender
KEEP = 8  # free blocks of a lender
COPIES = MOST // 2  # blocks in use from which on the borrower copies
PAGE = mmap.PAGESIZE

# Descriptors go through sockets of Unix; elsewhere everything travels in the message.
AVAILABLE = COUNTED and hasattr(mmap, "MAP_SHARED") and os.name == "posix"


class Reference(NamedTuple):
    """Bytes in a block."""

    block: int
    start: int
    size: int


class _Block:
    """A block as one side sees it."""

    __slots__ = ("address", "back", "descriptor", "memory", "pinned", "sent", "size")

    def __init__(self, memory: Any, size: int, descriptor: int = -1, address: int = 0) -> None:
        self.memory = memory
        self.size = size
        self.address = address
        self.descriptor = descriptor  # of a block that the borrower does not know yet
        self.sent = 0  # references: those that were sent, or those that arrived
        self.back = 0  # how many of them were returned
        self.pinned = False

    def unused(self) -> bool:
        """Whether nobody in this process looks at its memory."""
        return bool(getrefcount(self.memory) == 2)  # by the block and the question


def _bytes(memory: Any) -> Any:
    """Any buffer as an array of bytes."""
    return np.frombuffer(memory, np.uint8)


def _address(memory: Any) -> int:
    return int(_bytes(memory).__array_interface__["data"][0])


def _anonymous_file(size: int) -> int:
    """The descriptor of a new file without a name that has room for so many bytes."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("undertow", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _mapped(descriptor: int, size: int) -> Any:
    """The memory of a file; all pages at once, which is faster than one fault for each."""
    return mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))


class Lender:
    """The side that makes arrays; see Note [shared blocks].

    >>> lender, borrower = Lender(), Borrower()
    >>> made = lender.empty((2, 5000), np.dtype(np.float64))
    >>> reference = lender.lend(PickleBuffer(made))
    >>> for number, size, descriptor in lender.news([reference]):
    ...     borrower.attach(number, size, descriptor)
    >>> there = np.frombuffer(borrower.buffer(reference)).reshape(2, 5000)
    >>> made[1, 0] = 7.0
    >>> there[1, 0]
    np.float64(7.0)
    """

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}  # the least recently used first
        self._next = 0
        self._dropped: list[int] = []

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Memory for an array, in a block; None if it is not worth one, or if there is none."""
        size = math.prod(shape) * dtype.itemsize
        found = self._take(size) if size >= LEAST else None
        if found is None:
            return None
        # By way of an object that NumPy does not look through, as in memory.py.
        behind: Any = PickleBuffer(found[1].memory)
        return np.ndarray(shape, dtype, behind)

    def lend(self, buffer: PickleBuffer) -> Reference | None:
        """A reference to the bytes of a buffer, which are copied if they are in no block yet.

        None if they had better travel in the message. Every reference is to be sent, or taken back.
        """
        raw = buffer.raw()
        size = raw.nbytes
        if size < LEAST:
            return None
        at = _address(raw)
        for number, block in self._blocks.items():
            start = at - block.address
            if start >= 0 and start + size <= block.size:
                block.sent += 1
                return Reference(number, start, size)
        found = self._take(size)
        if found is None:
            return None
        number, block = found
        _bytes(block.memory)[:size] = _bytes(raw)
        block.sent += 1
        return Reference(number, 0, size)

    def take_back(self, references: Iterable[Reference]) -> None:
        """These were not sent."""
        for reference in references:
            self._blocks[reference.block].sent -= 1

    def news(self, references: Iterable[Reference]) -> list[tuple[int, int, int]]:
        """Number, size and descriptor of each block that the borrower meets here first.

        The descriptor is the caller's, to send and to close.
        """
        found = []
        for reference in references:
            block = self._blocks[reference.block]
            if block.descriptor >= 0:
                found.append((reference.block, block.size, block.descriptor))
                block.descriptor = -1
        return found

    def dropped(self) -> list[int]:
        """The blocks that were given up since this was asked last."""
        found, self._dropped = self._dropped, []
        return found

    def returned(self, counts: Iterable[tuple[int, int]]) -> None:
        """The borrower holds these blocks no longer: it has got so many references to each."""
        for number, count in counts:
            self._blocks[number].back = count
        free = [number for number, block in self._blocks.items() if self._free(block)]
        for number in free[: max(0, len(free) - KEEP)]:
            self._drop(number)

    def _free(self, block: _Block) -> bool:
        return block.sent == block.back and block.unused()

    def _drop(self, number: int) -> None:
        block = self._blocks.pop(number)
        if block.descriptor >= 0:
            os.close(block.descriptor)
        else:
            self._dropped.append(number)

    def _take(self, size: int) -> tuple[int, _Block] | None:
        """A free block, or a new one; None if there are too many or the system has none."""
        whole = -(-size // PAGE) * PAGE
        free = {number: b for number, b in self._blocks.items() if self._free(b)}
        fit = [number for number, b in free.items() if whole <= b.size <= 2 * whole]
        if fit:
            number = min(fit, key=lambda n: free[n].size)
            block = self._blocks[number] = self._blocks.pop(number)  # the most recently used now
            return number, block
        if len(self._blocks) >= MOST:
            if not free:
                return None
            self._drop(next(iter(free)))
        try:
            descriptor = _anonymous_file(whole)
        except OSError:
            return None
        try:
            memory = _mapped(descriptor, whole)
        except (OSError, ValueError):
            os.close(descriptor)
            return None
        number, self._next = self._next, self._next + 1
        block = self._blocks[number] = _Block(memory, whole, descriptor, _address(memory))
        return number, block


class Borrower:
    """The side that uses arrays; see Note [shared blocks]."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._used: set[int] = set()  # those that have not been returned
        _borrowers[:] = [ref for ref in _borrowers if ref() is not None] + [weakref.ref(self)]

    def attach(self, number: int, size: int, descriptor: int) -> None:
        """Map a block that arrived; the descriptor is closed."""
        try:
            self._blocks[number] = _Block(_mapped(descriptor, size), size)
        finally:
            os.close(descriptor)

    def buffer(self, reference: Reference) -> Any:
        """The bytes of a reference that arrived, in place; a copy where too many are in use."""
        block = self._arrived(reference)
        part = memoryview(block.memory)[reference.start : reference.start + reference.size]
        return part if len(self._used) <= COPIES else bytearray(part)

    def ignore(self, references: Iterable[Reference]) -> None:
        """These arrived, and nobody wants them."""
        for reference in references:
            self._arrived(reference)

    def _arrived(self, reference: Reference) -> _Block:
        block = self._blocks[reference.block]
        block.sent += 1
        self._used.add(reference.block)
        return block

    def returns(self) -> list[tuple[int, int]]:
        """The blocks that nobody holds any more, for `Lender.returned`."""
        found = []
        for number in tuple(self._used):
            block = self._blocks[number]
            if not block.pinned and block.unused():
                self._used.discard(number)
                found.append((number, block.sent))
        return found

    def drop(self, numbers: Iterable[int]) -> None:
        """The lender has dropped these blocks."""
        for number in numbers:
            del self._blocks[number]

    def pin(self) -> None:
        """Return none of the blocks that are in use now."""
        for number in tuple(self._used):
            block = self._blocks[number]
            block.pinned = block.pinned or not block.unused()


# Not a WeakSet, whose callbacks run when one dies: an interrupt that arrives there gets lost.
_borrowers: list[weakref.ref[Borrower]] = []
lender: Lender | None = None  # of this process, if it makes arrays for another


def _pin_all() -> None:
    for ref in tuple(_borrowers):
        borrower = ref()
        if borrower is not None:
            borrower.pin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pin_all)


def stacked(arrays: Sequence[Any]) -> Any:
    """Arrays along a new first dimension; in a block, if this process works for another one.

    None if they are not all host arrays of one shape and dtype.

    >>> stacked([np.zeros(2), np.ones(2)])
    array([[0., 0.],
           [1., 1.]])
    """
    if {a.__class__ for a in arrays} != {np.ndarray}:
        return None
    first = arrays[0]
    shape, dtype = first.shape, first.dtype
    if any(a.shape != shape or a.dtype != dtype for a in arrays):
        return None
    whole = (len(arrays), *shape)
    out = None if lender is None else lender.empty(whole, dtype)
    if out is None:
        out = memory.empty(whole, dtype)
    if shape:
        np.concatenate(arrays, out=out.reshape(-1, *shape[1:]))
    else:
        out[...] = arrays
    return out


def portable(array: Any) -> Any:
    """A host array with the same elements whose bytes a pickler hands out as one buffer."""
    if array.dtype.kind == "V":  # bfloat16, which NumPy pickles in the stream
        array = array.view(np.uint16)
    if memory_order(array.shape, array.strides, array.itemsize) is None:  # there are gaps
        return array.copy(order="C")
    return array


def restored(array: Any, dtype: Any) -> Any:
    """The array that `portable` was given, of a NumPy dtype."""
    return array if array.dtype == dtype else array.view(dtype)
