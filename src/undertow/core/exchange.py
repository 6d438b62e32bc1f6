"""DLPack's capsules of dtypes for which NumPy has no name.

NumPy makes and reads the capsules. Of bfloat16 and the float8 dtypes it sees unsigned integers of
that size, and the word of the capsule that tells the dtype is written here.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .. import dtypes
from ..dtypes import DType

_UNSIGNED = 1
# DLPack's numbers for them.
_CODES = {
    dtypes.bfloat16: 4,
    dtypes.float8_e4m3fn: 10,
    dtypes.float8_e4m3fnuz: 11,
    dtypes.float8_e5m2: 12,
    dtypes.float8_e5m2fnuz: 13,
    dtypes.float8_e8m0fnu: 14,
}
_DTYPES = {(code, 8 * dtype.itemsize): dtype for dtype, code in _CODES.items()}

# Where the dtype is: behind the address, the device and the number of dimensions, and in newer
# capsules behind a version, two pointers and flags.
_PLACES = {b"dltensor": 20, b"dltensor_versioned": 52}

_name, _address = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_address.restype, _address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def is_capsule(obj: Any) -> bool:
    """Whether this is a capsule, which anything in C may have put into Python's hands."""
    return type(obj).__name__ == "PyCapsule"


def capsule_of(host: Any, dtype: DType, **options: Any) -> Any:
    """A capsule of a host array of this dtype."""
    code = _CODES.get(dtype)
    if code is None:
        return host.__dlpack__(**options)
    capsule = host.view(f"u{dtype.itemsize}").__dlpack__(**options)
    word = _dtype_of(capsule)
    assert word is not None
    word[0] = code
    return capsule


class Offered:
    """What another library offers, or a capsule, as an object that NumPy can ask for it.

    `dtype` is what NumPy does not know the elements by, once it has asked.
    """

    def __init__(self, source: Any) -> None:
        self.source = source
        self.dtype: DType | None = None

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.source if is_capsule(self.source) else self.source.__dlpack__(**options)
        word = _dtype_of(capsule)
        if word is not None:
            self.dtype = _DTYPES.get((word[0], word[1]))
            if self.dtype is not None:
                word[0] = _UNSIGNED
        return capsule

    def __dlpack_device__(self) -> Any:
        if is_capsule(self.source):
            return 1, 0  # a capsule does not tell; what is not on the CPU cannot be read anyway
        return self.source.__dlpack_device__()


def _dtype_of(capsule: Any) -> Any:
    """The bytes that tell a capsule's dtype: its kind and its bits; None if it was read already."""
    name = _name(capsule)
    place = _PLACES.get(name)
    if place is None:
        return None
    return (ctypes.c_uint8 * 2).from_address(_address(capsule, name) + place)
