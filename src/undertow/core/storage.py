"""The memory that tensors look at, for those who ask how large it is or whether it is shared."""

from __future__ import annotations

from typing import Any

from ..backends.registry import backend_of
from .tensor import Tensor


class UntypedStorage:
    """The whole memory behind a tensor, in bytes: its size, its address and its device.

    The elements are reached through tensors only.

    >>> import undertow as ut
    >>> x = ut.zeros(3, 4)
    >>> x[1].untyped_storage().nbytes()
    48
    >>> x[1].untyped_storage().data_ptr() == x.data_ptr()
    True
    """

    def __init__(self, tensor: Tensor) -> None:
        k, array = backend_of(tensor._array), tensor._array
        self._held = array  # the address is its own as long as somebody holds it
        self._nbytes = k.storage_size(array) * array.dtype.itemsize
        self._start = k.address(array) - k.storage_offset(array) * array.dtype.itemsize
        self.device = tensor.device

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._nbytes

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._start

    size = __len__ = nbytes

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._nbytes

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, UntypedStorage) and self._start == other._start

    def __hash__(self) -> int:
        return hash(self._start)

    def __repr__(self) -> str:
        return f"UntypedStorage of {self._nbytes} bytes on {self.device}"
