"""Memory of a WebGPU device: buffers in size classes, reused, within a budget.

Note [buffers]
WebGPU allows no buffer to be read and written by one dispatch through two bindings, even in parts
that lie apart, so an allocation is a buffer of its own and nothing is cut out of larger ones. A
buffer that is given back can be handed out at once: work that still uses it was recorded before,
and a device does what it is told in order. Of those that fit the oldest is taken, so that which
buffers a step of a training gets depends on which are free and not on the order in which they came
back: soon every step has those of the step before, and bind groups are found again.

The allocator itself holds every buffer that it has made. Where the last tensor of a buffer goes in
a cycle of references, the collector ends all objects that only the cycle holds, in any order: a
buffer held by nobody else would be given back by its tensor after wgpu had released its memory.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from ...errors import OutOfMemoryError

SMALLEST = 256  # bytes of a buffer


class Buffer:
    """Memory of the device."""

    __slots__ = ("batch", "gpu", "nbytes", "number")

    def __init__(self, gpu: Any, nbytes: int, number: int) -> None:
        self.gpu = gpu
        self.nbytes = nbytes
        self.number = number
        self.batch = -1  # the last one whose work uses it, see Note [batches] in runtime.py


def size_class(nbytes: int) -> int:
    """The bytes of the buffer for an allocation: four classes between two powers of two.

    >>> [size_class(n) for n in (1, 256, 257, 1025, 5000)]
    [256, 256, 320, 1280, 5120]
    """
    if nbytes <= SMALLEST:
        return SMALLEST
    step = 1 << ((nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


class Allocator:
    """Hands out buffers and takes them back; see Note [buffers]."""

    def __init__(
        self, create: Callable[[int], Any], release: Callable[[list[Buffer]], None], largest: int
    ) -> None:
        self._create = create  # memory of so many bytes
        self._release = release  # told which buffers are about to go
        # Heaps by the numbers of buffers, which are compared in C: pushing and popping is atomic.
        self._free: dict[int, list[tuple[int, Buffer]]] = defaultdict(list)
        self._made: dict[int, Buffer] = {}  # all there are, by their numbers
        self.largest = largest
        self.budget = _host_memory() // 2
        self.reserved = 0
        self.created = 0  # buffers, ever
        self._lock = threading.RLock()

    @property
    def allocated(self) -> int:
        """Bytes of the buffers that are in use."""
        return self.reserved - sum(size * len(free) for size, free in list(self._free.items()))

    def alloc(self, nbytes: int) -> Buffer:
        """A buffer of at least so many bytes."""
        size = size_class(nbytes)
        try:
            return heappop(self._free[size])[1]
        except IndexError:
            with self._lock:
                return self._new(nbytes, min(size, self.largest))

    def free(self, buffer: Buffer) -> None:
        """Take a buffer back; finalizers may call this at any moment."""
        heappush(self._free[size_class(buffer.nbytes)], (buffer.number, buffer))

    def empty(self) -> None:
        """Give the buffers that nobody uses back to the device."""
        with self._lock:
            gone: list[Buffer] = []
            for free in list(self._free.values()):
                with contextlib.suppress(IndexError):  # empty, perhaps by another thread
                    while True:
                        gone.append(heappop(free)[1])
            self._release(gone)
            for buffer in gone:
                self.reserved -= buffer.nbytes
                del self._made[buffer.number]

    def _new(self, nbytes: int, size: int) -> Buffer:
        if nbytes > self.largest:
            raise OutOfMemoryError(
                f"[webgpu] a tensor of {nbytes} bytes is beyond the {self.largest} bytes that one "
                "buffer of this device may have; use smaller pieces, or ask for the adapter's own "
                "limits with UNDERTOW_WEBGPU_LIMITS=adapter"
            )
        if self.reserved + size > self.budget:
            gc.collect()  # tensors in cycles
            self.empty()
        if self.reserved + size > self.budget:
            raise OutOfMemoryError(
                f"[webgpu] {nbytes} bytes more do not fit: {self.allocated} are in use of a budget "
                f"of {self.budget}; free tensors, use smaller batches, or raise the budget with "
                "ut.webgpu.set_memory_budget"
            )
        gpu = self._create(size)
        self.reserved += size
        self.created += 1
        made = self._made[self.created] = Buffer(gpu, size, self.created)
        return made


def _host_memory() -> int:
    """Bytes of memory of the machine: WebGPU does not tell how much a device has."""
    import os

    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on this system
        return 16 << 30
