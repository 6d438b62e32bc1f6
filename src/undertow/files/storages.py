"""The storages of a checkpoint: the memories that its tensors look at, each saved once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import dtypes
from ..backends.registry import backend_of
from ..core.tensor import Tensor, wrap
from ..dtypes import DType
from ..errors import FileError
from .elements import elements_of

# torch's word for memory of a dtype.
STORAGE_NAMES: dict[DType, str] = {
    dtypes.bool: "BoolStorage",
    dtypes.uint8: "ByteStorage",
    dtypes.int8: "CharStorage",
    dtypes.int16: "ShortStorage",
    dtypes.int32: "IntStorage",
    dtypes.int64: "LongStorage",
    dtypes.float16: "HalfStorage",
    dtypes.bfloat16: "BFloat16Storage",
    dtypes.float32: "FloatStorage",
    dtypes.float64: "DoubleStorage",
    dtypes.complex64: "ComplexFloatStorage",
    dtypes.complex128: "ComplexDoubleStorage",
}


class Storages:
    """The memories that tensors look at, numbered as they are found."""

    def __init__(self) -> None:
        self._found: dict[Any, int] = {}
        self._memories: list[Tensor] = []
        self._kept: list[Tensor] = []
        self.counts: dict[int, int] = {}  # elements of each, or bytes, as it was first mentioned

    def find(self, t: Tensor, where: str) -> tuple[int, int, Tensor]:
        """The number and the size in elements of a tensor's memory, and the tensor as saved."""
        k = backend_of(t._array)
        if min(t._array.strides, default=0) < 0:  # which torch does not have
            t = wrap(k.copy(t._array))
        self._kept.append(t)  # the memory must not be used for another tensor meanwhile
        try:
            size = k.storage_size(t._array)
        except ValueError:  # memory that was not made of such elements
            t = wrap(k.copy(t._array))
            self._kept.append(t)
            size = k.storage_size(t._array)
        key = (k, k.memory(t._array))
        number = self._found.get(key)
        if number is None:
            number = self._found[key] = len(self._memories)
            start = -k.storage_offset(t._array)
            self._memories.append(wrap(k.as_strided(t._array, (size,), (1,), start)))
        elif self._memories[number].dtype is not t.dtype:
            raise FileError(
                f"[save] {where} is {t.dtype}, and shares its memory with a tensor of "
                f"{self._memories[number].dtype}; a checkpoint cannot tell: clone() one of them"
            )
        return number, size, t

    def records(self) -> Iterator[tuple[str, memoryview]]:
        """The number and the bytes of each memory."""
        for number, memory in enumerate(self._memories):
            yield str(number), elements_of(memory)
