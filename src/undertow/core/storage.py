"""A tensor's memory as torch's programs ask for it: where it is, how large, and what it holds.

Memory is no object of its own here: a storage is made when it is asked for, and two of them are of
one memory if their `data_ptr()` is the same.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

from ..backends.registry import backend_of
from ..devices import device as Device
from ..dtypes import DType, as_dtype, get_default_dtype, uint8
from ..errors import ArgumentError, FileError, UnsupportedError
from .legacy import TYPE_NAMES
from .register import FUNCTIONS, attach
from .tensor import Tensor

S = TypeVar("S", bound="UntypedStorage")


class UntypedStorage:
    """The bytes that a tensor and its views look at.

    >>> import undertow as ut
    >>> x = ut.ones(2, 3)
    >>> memory = x[1].untyped_storage()
    >>> memory.nbytes(), memory.data_ptr() == x.data_ptr()
    (24, True)
    """

    def __init__(self, seen: Any = 0, *, device: Any = None) -> None:
        self._tensor = _memory(seen, uint8, device)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file as memory; changes go to the file if it is `shared`.

        >>> import tempfile, undertow as ut
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"abc")
        ...     file.flush()
        ...     ut.UntypedStorage.from_file(file.name, nbytes=2).tolist()
        [97, 98]
        """
        return UntypedStorage(mapped(filename, shared, nbytes, uint8))

    @classmethod
    def from_buffer(cls, buffer: Any, *options: Any, **named: Any) -> UntypedStorage:
        """A copy of the bytes of a buffer."""
        return UntypedStorage(FUNCTIONS["frombuffer"](bytearray(buffer), dtype=uint8))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._whole().__array__(dtype, copy)

    def _row(self, dtype: DType) -> Tensor:
        """All of it, for a tensor of this dtype that shares it."""
        return seen_as(self, dtype)

    def _bytes(self) -> Tensor:
        return seen_as(self, uint8)

    def tolist(self) -> list[Any]:
        """The bytes, or elements, as numbers."""
        found: list[Any] = self._bytes().tolist()
        return found

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return UntypedStorage(self._bytes()[index].clone())
        return self._bytes()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bytes()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def fill_(self: S, value: Any) -> S:
        """Set every byte, or element."""
        self._whole().fill_(value)
        return self

    def copy_(self: S, source: UntypedStorage, non_blocking: bool = False) -> S:
        """Copy the elements of another storage of this size."""
        self._whole().copy_(source._whole())
        return self

    def clone(self: S) -> S:
        """A copy of the memory."""
        return type(self)(self._whole().clone())

    def _whole(self) -> Tensor:
        return self._bytes()

    def cpu(self: S) -> S:
        """The memory on the CPU."""
        return type(self)(self._whole().cpu())

    def to(self: S, device: Any, non_blocking: bool = False) -> S:
        """The memory on a device."""
        return type(self)(self._whole().to(device))

    def resizable(self) -> bool:
        """False: memory has the size that it was made with."""
        return False

    def resize_(self: S, size: int) -> S:
        """Nothing, if it has that size; memory cannot grow or shrink under its tensors."""
        if size != self.size():
            raise UnsupportedError(
                f"[resize_] memory of {self.size()} cannot become one of {size} under the tensors "
                "that look at it; make new ones, or use tensor.resize_"
            )
        return self

    def share_memory_(self: S) -> S:
        """An error: memory belongs to one process."""
        raise UnsupportedError(
            "[share_memory_] memory is not moved to where other processes see it; send the tensor "
            "itself, or map a file with from_file(..., shared=True)"
        )

    def get_device(self) -> int:
        """-1 on the CPU."""
        return -1 if self.device.index is None else self.device.index

    _read: Any = None  # what a file has of it
    is_cuda = is_hpu = is_sparse = is_sparse_csr = False
    filename: str | None = None

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no device to pin memory for."""
        return False

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

    _of: DType | None = None  # what the elements of a `FloatStorage` are

    def __init__(
        self,
        seen: Any = 0,
        *,
        dtype: Any = None,
        device: Any = None,
        wrap_storage: UntypedStorage | None = None,
        _internal: bool = False,
    ) -> None:
        wanted = self._of or (get_default_dtype() if dtype is None else as_dtype(dtype))
        if wrap_storage is not None:
            seen = seen_as(wrap_storage, wanted)
        self._tensor = _memory(seen, wanted, device)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The elements of a file as memory; changes go to the file if it is `shared`."""
        return cls(mapped(filename, shared, size, cls._of or get_default_dtype()))

    @classmethod
    def from_buffer(cls, buffer: Any, *options: Any, **named: Any) -> TypedStorage:
        """A copy of elements of a buffer: `byte_order` ("little" or "big"), `count`, `offset`.

        >>> import undertow as ut
        >>> ut.ShortStorage.from_buffer(bytes([1, 2, 3, 4]), "big").tolist()
        [258, 772]
        """
        dtype = as_dtype(named.pop("dtype", cls._of or get_default_dtype()))
        return cls(_read(dtype, buffer, *options, **named), dtype=dtype)

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

    def _row(self, dtype: DType) -> Tensor:
        return self._whole()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise UnsupportedError(
                "[storage] has no slices, as in torch; slice untyped_storage() or the tensor"
            )
        return self._whole()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._whole()[index] = value

    def tolist(self) -> list[Any]:
        found: list[Any] = self._whole().tolist()
        return found


_LISTED = ("[False, True, True]", "[0, 1, 1]", "[0.0, 1.0, 1.0]", "[0j, (1+0j), (1+0j)]")


def _typed(word: str, dtype: DType) -> type[TypedStorage]:
    doc = f"""Memory of {dtype.name}: `ut.{word}Storage(4)`, or of a list of numbers.

    >>> import undertow as ut
    >>> memory = ut.{word}Storage([0, 1, 1])
    >>> memory.tolist(), memory.nbytes()
    ({_LISTED[dtype.category]}, {3 * dtype.itemsize})
    """
    return type(f"{word}Storage", (TypedStorage,), {"__doc__": doc, "_of": dtype})


TYPED = {f"{word}Storage": _typed(word, dtype) for dtype, word in TYPE_NAMES.items()}


def __getattr__(name: str) -> Any:
    if name not in TYPED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return TYPED[name]


def _memory(seen: Any, dtype: DType, device: Any) -> Tensor:
    """What a storage is made of: a tensor's memory, so many elements, or numbers."""
    if isinstance(seen, Tensor):
        return seen.detach()
    if hasattr(seen, "__index__"):  # NumPy's integers, too
        return FUNCTIONS["zeros"](int(seen), dtype=dtype, device=device)
    return FUNCTIONS["tensor"](list(seen), dtype=dtype, device=device)


def _read(
    dtype: DType, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0
) -> Tensor:
    """`count` elements of a buffer, or all (-1) from byte `offset` on."""
    if byte_order not in ("native", "little", "big"):
        raise ArgumentError(
            f"[from_buffer] byte_order is 'native', 'little' or 'big', got {byte_order!r}"
        )
    end = None if count < 0 else offset + count * dtype.itemsize
    held = bytearray(memoryview(buffer).cast("B")[offset:end])
    if len(held) % dtype.itemsize or (end is not None and len(held) < end - offset):
        raise ArgumentError(
            f"[from_buffer] {len(held)} bytes from {offset} on are not "
            f"{'whole elements' if count < 0 else f'{count} elements'} of {dtype}"
        )
    if not held:
        return FUNCTIONS["empty"](0, dtype=dtype)
    rows = FUNCTIONS["frombuffer"](held, dtype=uint8)
    if byte_order not in ("native", sys.byteorder):
        rows = rows.reshape(-1, dtype.itemsize).flip(1).reshape(-1)
    return rows.view(dtype)


def mapped(filename: Any, shared: bool, count: int, dtype: DType) -> Tensor:
    """A file's elements as a tensor; changes go to the file if it is `shared`."""
    size = count * dtype.itemsize
    if shared and (not os.path.exists(filename) or os.path.getsize(filename) < size):
        with open(filename, "ab") as file:
            file.truncate(size)
    there = os.path.getsize(filename)
    if there < size:
        raise FileError(
            f"[from_file] {os.fspath(filename)!r} has {there} bytes, and {count} elements of "
            f"{dtype} are {size}"
        )
    if not size:
        return FUNCTIONS["empty"](0, dtype=dtype)
    with open(filename, "r+b" if shared else "rb") as file:
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        memory = mmap.mmap(file.fileno(), size, access=access)
    return FUNCTIONS["frombuffer"](memory, dtype=dtype)


def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of the first `size` elements of a file, which is mapped into memory.

    Changes go to the file if it is `shared`, which then may be made, or made longer.

    >>> import tempfile, undertow as ut
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     x = ut.from_file(f"{folder}/numbers", shared=True, size=3)
    ...     x.fill_(2)
    ...     y = ut.from_file(f"{folder}/numbers", size=2)
    tensor([2., 2., 2.])
    >>> y
    tensor([2., 2.])
    """
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    found = mapped(filename, bool(shared), size, wanted)
    return found if device is None else found.to(device)


def seen_as(memory: UntypedStorage, dtype: DType) -> Tensor:
    """All of a memory as one row of elements."""
    x = memory._tensor
    return x.as_strided((memory._elements(),), (1,), 0).view(dtype)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes that this tensor and its views look at.

    >>> import undertow as ut
    >>> ut.tensor([1, 2], dtype=ut.int16).untyped_storage().nbytes()
    4
    >>> x = ut.zeros(3)
    >>> x.untyped_storage().data_ptr() == x[1:].untyped_storage().data_ptr()
    True
    """
    return UntypedStorage(self)


def storage(self: Tensor) -> TypedStorage:
    """The memory that this tensor and its views look at, as elements of its dtype.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 2.0], [3.0, 4.0]])[1].storage().tolist()  # of the whole, not of the row
    [1.0, 2.0, 3.0, 4.0]
    """
    return TypedStorage(self)


attach("untyped_storage", untyped_storage)
attach("storage", storage)
