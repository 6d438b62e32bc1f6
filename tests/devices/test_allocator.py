"""The allocator of devices that keep memory in the order of a stream."""

from __future__ import annotations

import pytest

from undertow.backends.generated.allocator import Allocator, size_class
from undertow.errors import OutOfMemoryError


class Driver:
    """So many bytes of memory; what is given back must have been had."""

    def __init__(self, total: int) -> None:
        self.left = total
        self.held: dict[int, int] = {}
        self.count = 0

    def create(self, size: int) -> int:
        if size > self.left:
            raise OutOfMemoryError("no more")
        self.count += 1
        self.left -= size
        self.held[self.count] = size
        return self.count

    def release(self, handle: int) -> None:
        self.left += self.held.pop(handle)

    def allocator(self, **how: bool) -> Allocator:
        return Allocator("toy", self.create, self.release, 1 << 20, **how)


def test_a_block_goes_to_the_next_of_its_size_and_stream() -> None:
    driver = Driver(1 << 20)
    memory = driver.allocator()
    one = memory.alloc(5000)
    memory.free(one)
    assert memory.alloc(4700) is one
    memory.free(one)
    assert memory.alloc(5000, stream=7) is not one
    assert memory.alloc(9000) is not one
    assert driver.count == 3


def test_counts() -> None:
    driver = Driver(1 << 20)
    memory = driver.allocator()
    blocks = [memory.alloc(600) for _ in range(3)]
    assert (memory.allocated, memory.reserved, memory.peak) == (3072, 3072, 3072)
    memory.free(blocks.pop())
    assert (memory.allocated, memory.reserved) == (2048, 3072)
    memory.empty()
    assert (memory.reserved, len(driver.held)) == (2048, 2)
    memory.reset_peak()
    assert (memory.peak, memory.peak_reserved) == (2048, 2048)


def test_unused_memory_is_given_back_before_an_error() -> None:
    driver = Driver(10_240)
    memory = driver.allocator()
    memory.free(memory.alloc(8000))
    assert memory.alloc(9000).nbytes == 9216
    with pytest.raises(OutOfMemoryError, match=r"\[toy\] no memory for 2048 bytes more: 9216 are"):
        memory.alloc(2000)


def test_no_block_is_larger_than_the_driver_gives() -> None:
    driver = Driver(1 << 30)
    assert driver.allocator().alloc((1 << 20) - 8).nbytes == 1 << 20
    assert size_class((1 << 20) + 8) > 1 << 20


def test_direct_keeps_nothing() -> None:
    driver = Driver(1 << 20)
    memory = driver.allocator(direct=True)
    memory.free(memory.alloc(1000))
    assert (memory.allocated, memory.reserved, driver.held) == (0, 0, {})
