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
from ..devices import DeviceLike
from ..dtypes import DType

LITTLE = sys.byteorder == "little"


def elements_of(t: Tensor) -> memoryview:
    """The bytes of its elements in row-major order, least significant first.

    Memory is shared where it has that order already.
    """
    array = np.ascontiguousarray(backend_of(t._array).to_host(t._array))
    if not LITTLE:
        array = array.byteswap()
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
    """Bytes of a file, on some device, that tensors look at.

    `buffer` may be read-only or foreign in its byte order, then it is copied.
    """

    __slots__ = ("_base", "nbytes")

    def __init__(
        self,
        buffer: Any,
        start: int = 0,
        nbytes: int | None = None,
        device: DeviceLike | None = "cpu",
        width: int = 1,
    ) -> None:
        count = -1 if nbytes is None else nbytes
        flat: Any = np.zeros(0, np.uint8)
        if count:
            flat = np.frombuffer(buffer, np.uint8, count, start)
        if width > 1:  # in the other byte order, of numbers of this many bytes
            flat = flat.reshape(-1, width)[:, ::-1].reshape(-1)
        elif not flat.flags.writeable:
            flat = flat.copy()
        self.nbytes = flat.size
        self._base = wrap(backend_on(device).from_host(flat))

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
        if strides is None:
            strides = row_major(shape)
        if self.nbytes % dtype.itemsize:  # of an alien size: a view of bytes has to divide
            whole = self.nbytes // dtype.itemsize * dtype.itemsize
            bytes_of = k.slice(self._base._array, (slice(0, whole),))
        else:
            bytes_of = self._base._array
        array = k.as_strided(k.bits(bytes_of, dtype.numpy), shape, strides, offset)
        if k.address(array) % dtype.itemsize:  # kernels expect elements in their places
            return wrap(k.copy(array))
        return wrap_shared(array, share(self._base))


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
    flat = np.frombuffer(buffer, np.uint8)
    return not flat.size or int(flat.max()) <= 1


def read_all(file: Any) -> Any:
    """What is left of a file object, in memory that may be changed."""
    if hasattr(file, "readinto") and hasattr(file, "fileno"):
        try:
            size = os.fstat(file.fileno()).st_size - file.tell()
        except (OSError, ValueError):  # BytesIO has a fileno that raises
            size = 0
        if size > 0:
            memory = memoryview(np.empty(size, np.uint8))
            read = 0
            while count := file.readinto(memory[read:]):
                read += count
            return memory[:read]
    return memoryview(bytearray(file.read()))
