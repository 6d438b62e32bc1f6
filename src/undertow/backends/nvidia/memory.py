"""Memory of a card that is kept and handed out again, in the order of a stream.

Note [stream order]
A block that is free goes to the next who asks on the stream that it was made for: launches on one
stream run one after the other, so its old user is done before the new one begins. It is therefore
never waited for. Who uses it on another stream waits by an event, as in torch.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections import defaultdict, deque

from ...errors import OutOfMemoryError
from .driver import Driver

STEP = 512  # bytes: small blocks are multiples of it


class Buffer:
    """A block of the card's memory."""

    __slots__ = ("address", "nbytes", "stream")

    def __init__(self, address: int, nbytes: int, stream: int) -> None:
        self.address = address
        self.nbytes = nbytes
        self.stream = stream


def size_class(nbytes: int) -> int:
    """The bytes of the block for an allocation: eight classes between two powers of two.

    >>> [size_class(n) for n in (1, 512, 513, 5000)]
    [512, 512, 1024, 5120]
    """
    step = max(STEP, 1 << max((nbytes - 1).bit_length() - 4, 0))
    return -(-nbytes // step) * step


class Allocator:
    """Hands out blocks and takes them back; `UNDERTOW_CUDA_ALLOCATOR=direct` keeps none."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._direct = os.environ.get("UNDERTOW_CUDA_ALLOCATOR") == "direct"
        self._free: dict[tuple[int, int], deque[Buffer]] = defaultdict(deque)
        self._returned: deque[Buffer] = deque()  # by finalizers, which must not wait
        self._lock = threading.RLock()
        self.allocated = self.reserved = self.peak = self.peak_reserved = 0

    def alloc(self, nbytes: int, stream: int) -> Buffer:
        """A block of at least so many bytes, for work on a stream."""
        with self._lock:
            self.sort()
            size = nbytes if self._direct else size_class(nbytes)
            free = self._free.get((stream, size))
            found = free.pop() if free else Buffer(self._new(size), size, stream)
            self.allocated += size
            self.peak = max(self.peak, self.allocated)
            return found

    def free(self, buffer: Buffer) -> None:
        """Take a block back; finalizers may call this at any moment, even in `alloc`."""
        self._returned.append(buffer)

    def sort(self) -> None:
        """Put blocks that came back where they can be found."""
        with self._lock:
            while self._returned:
                buffer = self._returned.popleft()
                self.allocated -= buffer.nbytes
                if self._direct:
                    self._release(buffer)
                else:
                    self._free[buffer.stream, buffer.nbytes].append(buffer)

    def empty(self) -> None:
        """Give the blocks that nobody uses back to the driver, which waits for their work."""
        with self._lock:
            self.sort()
            for free in self._free.values():
                while free:
                    self._release(free.pop())

    def _release(self, buffer: Buffer) -> None:
        self._driver.call("cuMemFree_v2", buffer.address)
        self.reserved -= buffer.nbytes

    def _new(self, size: int) -> int:
        try:
            address = self._ask(size)
        except OutOfMemoryError:
            gc.collect()  # tensors in cycles
            self.empty()
            try:
                address = self._ask(size)
            except OutOfMemoryError as error:
                raise OutOfMemoryError(
                    f"[cuda] no memory for {size} bytes more: {self.allocated} are in use; free "
                    "tensors, or use smaller batches"
                ) from error
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return address

    def _ask(self, size: int) -> int:
        return int(self._driver.made("cuMemAlloc_v2", ctypes.c_void_p, size))
