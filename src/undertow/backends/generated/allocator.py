"""Memory of a device that is kept and handed out again, in the order of a stream.

Note [stream order]
A block that is free goes to the next who asks on the stream that it was made for: launches on one
stream run one after the other, so its old user is done before the new one begins. It is therefore
never waited for. Who uses it on another stream waits by an event, as in torch. A device that has
one queue calls it stream 0.
"""

from __future__ import annotations

import gc
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from ...errors import OutOfMemoryError

STEP = 512  # bytes: small blocks are multiples of it


class Buffer:
    """A block of a device's memory."""

    __slots__ = ("handle", "nbytes", "stream")

    def __init__(self, handle: Any, nbytes: int, stream: int) -> None:
        self.handle = handle  # an address, or what else the driver knows the memory by
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
    """Hands out blocks and takes them back.

    `create` asks the driver for so many bytes, `largest` at most, and raises OutOfMemoryError;
    `release` gives a block back, after the work that uses it. With `direct` none is kept.
    """

    def __init__(
        self,
        name: str,
        create: Callable[[int], Any],
        release: Callable[[Any], None],
        largest: int,
        direct: bool = False,
    ) -> None:
        self._name = name
        self._create = create
        self._release = release
        self._largest = largest
        self._direct = direct
        self._free: dict[tuple[int, int], deque[Buffer]] = defaultdict(deque)
        self._returned: deque[Buffer] = deque()  # by finalizers, which must not wait
        self._lock = threading.RLock()
        self._used = 0
        self.reserved = self.peak = self.peak_reserved = 0

    @property
    def allocated(self) -> int:
        """Bytes that are in use."""
        self._sort()
        return self._used

    def alloc(self, nbytes: int, stream: int = 0) -> Buffer:
        """A block of at least so many bytes, for work on a stream."""
        with self._lock:
            self._sort()
            size = nbytes if self._direct else min(size_class(nbytes), self._largest)
            free = self._free.get((stream, size))
            found = free.pop() if free else Buffer(self._new(size), size, stream)
            self._used += size
            self.peak = max(self.peak, self._used)
            return found

    def free(self, buffer: Buffer) -> None:
        """Take a block back; finalizers may call this at any moment, even in `alloc`."""
        self._returned.append(buffer)

    def empty(self) -> None:
        """Give the blocks that nobody uses back to the driver, which waits for their work."""
        with self._lock:
            self._sort()
            for free in self._free.values():
                while free:
                    self._let_go(free.pop())

    def reset_peak(self) -> None:
        """Count the peaks from what is in use now."""
        with self._lock:
            self.peak, self.peak_reserved = self.allocated, self.reserved

    def _sort(self) -> None:
        """Put blocks that came back where they can be found."""
        with self._lock:
            while self._returned:
                buffer = self._returned.popleft()
                self._used -= buffer.nbytes
                if self._direct:
                    self._let_go(buffer)
                else:
                    self._free[buffer.stream, buffer.nbytes].append(buffer)

    def _let_go(self, buffer: Buffer) -> None:
        self._release(buffer.handle)
        self.reserved -= buffer.nbytes

    def _new(self, size: int) -> Any:
        try:
            handle = self._create(size)
        except OutOfMemoryError:
            gc.collect()  # tensors in cycles
            self.empty()
            try:
                handle = self._create(size)
            except OutOfMemoryError as error:
                raise OutOfMemoryError(
                    f"[{self._name}] no memory for {size} bytes more: {self._used} are in use; "
                    "free tensors, or use smaller batches"
                ) from error
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return handle
