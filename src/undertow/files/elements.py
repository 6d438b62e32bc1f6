"""The elements of tensors as bytes, and tensors around bytes: where files meet memory.

The one file of this room that knows NumPy, because the bytes of a file are on the host.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from ..backends.registry import backend_of, backend_on
from ..core.tensor import Tensor, share, wrap, wrap_shared
from ..devices import Device, DeviceLike
from ..dtypes import DType

LITTLE = sys.byteorder == "little"


def elements_of(t: Tensor) -> memoryview:
    """The bytes of its elements in row-major order, least significant first.

    Memory is shared where it has that order already.
    """
    array: Any = np.ascontiguousarray(backend_of(t._array).to_host(t._array))
    if not LITTLE:
        array = array.byteswap()  # of complex numbers, each part
    return memoryview(array.reshape(-1).view(np.uint8))


def place(t: Tensor) -> tuple[int, int, int]:
    """The memory that it looks at, and its first and one past its last byte there."""
    k = backend_of(t._array)
    low = high = k.storage_offset(t._array) * t.itemsize
    for size, stride in zip(t._array.shape, t._array.strides, strict=True):
        low += min(0, (size - 1) * stride)
        high += max(0, (size - 1) * stride)
    return k.memory(t._array), low, high + t.itemsize


class Storage:
    """Bytes of a file, on some device, that tensors look at."""

    __slots__ = ("_base", "_start", "nbytes")

    def __init__(self, base: Tensor, start: int, nbytes: int) -> None:
        self._base = base  # of bytes
        self._start = start
        self.nbytes = nbytes

    @classmethod
    def around(
        cls,
        buffer: Any,
        device: DeviceLike | None = "cpu",
        *,
        shared: bool = True,
        align: int = 16,
        swap: int = 1,
    ) -> Storage:
        """The memory of `buffer` itself, or a copy: unless it is to be `shared`, or cannot be.

        That is when it is read-only, or does not begin where elements of `align` bytes do; or when
        numbers of `swap` bytes are in the other byte order.
        """
        flat: Any = np.frombuffer(buffer, np.uint8) if len(buffer) else np.zeros(0, np.uint8)
        if swap > 1:
            flat = np.ascontiguousarray(flat.reshape(-1, swap)[:, ::-1]).reshape(-1)
        elif not shared or not flat.flags.writeable or flat.ctypes.data % align:
            fresh = backend_on("cpu").empty(flat.shape, flat.dtype)
            fresh[...] = flat
            flat = fresh
        return cls(wrap(backend_on(device).from_host(flat)), 0, flat.size)

    @classmethod
    def blank(cls, nbytes: int, device: DeviceLike | None = "cpu") -> Storage:
        """Memory that is filled later."""
        return cls(wrap(backend_on(device).full((nbytes,), 0, np.dtype(np.uint8))), 0, nbytes)

    def fill(self, other: Storage) -> None:
        """Copy the bytes of another storage of that size."""
        backend_of(self._base._array).assign(
            self._base._array, backend_on(self._base.device).from_host(other._base._array)
        )

    @property
    def device(self) -> Device:
        """Where the bytes are."""
        return self._base.device

    def to(self, device: DeviceLike) -> Storage:
        """The same bytes on a device; itself if it is there."""
        there = backend_on(device)
        here = backend_of(self._base._array)
        if here is there:
            return self
        moved = there.from_host(here.to_host(self._base._array))
        return Storage(wrap(moved), self._start, self.nbytes)

    def cpu(self) -> Storage:
        """The same bytes on the CPU."""
        return self.to("cpu")

    def part(self, start: int, nbytes: int) -> Storage:
        """Some of its bytes, as a storage that shares them."""
        return Storage(self._base, self._start + start, nbytes)

    def tensor(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> Tensor:
        """A tensor of elements from `offset` on; strides and offset, in elements, must fit."""
        k = backend_of(self._base._array)
        if 0 in shape:
            return wrap(k.empty(shape, dtype.numpy))
        whole = self._base._array
        if whole.size % dtype.itemsize:  # a view of bytes has to divide
            whole = k.slice(whole, (slice(0, whole.size // dtype.itemsize * dtype.itemsize),))
        start = offset + self._start // dtype.itemsize
        steps = row_major(shape) if strides is None else strides
        return wrap_shared(
            k.as_strided(k.bits(whole, dtype.numpy), shape, steps, start), share(self._base)
        )


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of elements that lie in order.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def only_ones_and_zeros(buffer: Any) -> bool:
    """Whether these bytes are booleans."""
    return not len(buffer) or int(np.frombuffer(buffer, np.uint8).max()) <= 1


def read_all(file: Any) -> Any:
    """What is left of a file object, in memory that may be changed."""
    if hasattr(file, "readinto") and hasattr(file, "fileno"):
        try:
            size = os.fstat(file.fileno()).st_size - file.tell()
        except (OSError, ValueError):  # BytesIO has a fileno that raises
            size = 0
        if size > 0:
            fresh: Any = np.empty(size, np.uint8)
            memory = memoryview(fresh)
            read = 0
            while count := file.readinto(memory[read:]):
                read += count
            more = file.read()  # of a file that is unpacked while it is read
            return memoryview(bytearray(memory[:read]) + more) if more else memory[:read]
    return memoryview(bytearray(file.read()))


def width(dtype: DType) -> int:
    """Bytes of a number: of each part of a complex one."""
    return dtype.itemsize // (1 + dtype.is_complex)
