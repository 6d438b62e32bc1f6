"""A tensor's memory as torch's programs ask for it: where it is, how large, and what it holds.

Memory is no object of its own here: a storage is made when it is asked for, and two of them are of
one memory if their `data_ptr()` is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..backends.registry import backend_of
from ..devices import device as Device
from ..dtypes import DType
from ..errors import UnsupportedError
from .register import attach
from .tensor import Tensor


class UntypedStorage:
    """The bytes that a tensor and its views look at.

    >>> import undertow as ut
    >>> x = ut.ones(2, 3)
    >>> memory = x[1].untyped_storage()
    >>> memory.nbytes(), memory.data_ptr() == x.data_ptr()
    (24, True)
    """

    def __init__(self, seen: Tensor) -> None:
        self._tensor = seen.detach()

    def _elements(self) -> int:
        return backend_of(self._tensor._array).storage_size(self._tensor._array)

    def data_ptr(self) -> int:
        """The address of the first byte."""
        x = self._tensor
        return x.data_ptr() - x.storage_offset() * x.itemsize

    _cdata = property(data_ptr)

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._elements() * self._tensor.itemsize

    def size(self) -> int:
        """How many elements there are: of an untyped storage, bytes."""
        return self.nbytes()

    def __len__(self) -> int:
        return self.size()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> int:
        """How many bytes an element has."""
        return 1

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self._tensor.device

    def is_shared(self) -> bool:
        """False: memory belongs to one process."""
        return False

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return UntypedStorage(self._tensor)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.nbytes()} bytes on {self.device}>"


class TypedStorage(UntypedStorage):
    """The memory that a tensor and its views look at, as elements of its dtype.

    >>> import undertow as ut
    >>> x = ut.arange(4)
    >>> memory = x[2:].storage()
    >>> len(memory), memory[1], memory.tolist()
    (4, 1, [0, 1, 2, 3])
    """

    @property
    def dtype(self) -> DType:
        """What an element is."""
        return self._tensor.dtype

    def size(self) -> int:
        return self._elements()

    def element_size(self) -> int:
        return self._tensor.itemsize

    def _whole(self) -> Tensor:
        return self._tensor.as_strided((self._elements(),), (1,), 0)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise UnsupportedError(
                "[storage] has no slices, as in torch; slice untyped_storage() or the tensor"
            )
        return self._whole()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._whole()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        found: list[Any] = self._whole().tolist()
        return found


def seen_as(memory: UntypedStorage, dtype: DType) -> Tensor:
    """All of a memory as one row of elements."""
    x = memory._tensor
    return x.as_strided((memory._elements(),), (1,), 0).view(dtype)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes that this tensor and its views look at."""
    return UntypedStorage(self)


def storage(self: Tensor) -> TypedStorage:
    """The memory that this tensor and its views look at, as elements of its dtype."""
    return TypedStorage(self)


attach("untyped_storage", untyped_storage)
attach("storage", storage)
