"""NumPy arrays in checkpoints, in NumPy's own words: what pickles say of them, made by hand.

A pickle of an array names three functions of NumPy and gives them a dtype, a shape and bytes.
Here those names mean the functions below, which check all of it before there is an array.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np

from ..errors import FileError
from .unpickling import Global, brief

# Booleans, integers, floating and complex numbers, and text of a fixed length.
_CODES = re.compile(r"b1|i[1248]|u[1248]|f[248]|c8|c16|[SU][1-9]\d{0,5}")
# The module that NumPy's pickles name.
HOME: str = np.ndarray(0).__reduce__()[0].__module__
_MOST_DIMS = 32


def describe(array: Any) -> tuple[Any, ...] | None:
    """Its dtype, the state of that, shape and bytes; None if it cannot be saved."""
    dtype = array.dtype.newbyteorder("<")
    code = dtype.str[1:]
    if type(array) is not np.ndarray or not _CODES.fullmatch(code):
        return None
    return code, dtype.__reduce__()[2], array.shape, array.astype(dtype, copy=False).tobytes()


def _dtype(code: Any, align: Any = False, copy: Any = True) -> Any:
    if not isinstance(code, str) or not _CODES.fullmatch(code):
        raise FileError(f"[load] the file has a NumPy array of the dtype {brief(code)}")
    return np.dtype(code, copy=True)  # a new one: its order is told later


def _order(dtype: Any, state: Any) -> None:
    """Take the state of a dtype: (version, byte order, and what only other dtypes have …)."""
    if type(state) is not tuple or len(state) < 5 or state[2:5] != (None, None, None):
        raise FileError(f"[load] the file has a NumPy dtype with the state {brief(state)}")
    if state[1] not in ("<", ">", "|", "="):
        raise FileError(f"[load] the file has a NumPy dtype in the order {brief(state[1])}")
    dtype.__setstate__((3, state[1], None, None, None, dtype.itemsize, dtype.alignment, 0))


def _empty(kind: Any, shape: Any = (0,), code: Any = b"b") -> Any:
    if not isinstance(kind, Global) or kind.name != "numpy.ndarray":
        raise FileError("[load] the file has a NumPy array of an unknown class")
    return np.ndarray(0, np.int8)


def _state(shape: Any, stored: Any, content: Any) -> bool:
    """Whether these make an array."""
    return (
        type(shape) is tuple
        and len(shape) <= _MOST_DIMS
        and all(type(n) is int and n >= 0 for n in shape)
        and math.prod([max(n, 1) for n in shape]) < 2**48  # beside a 0, too
        and isinstance(stored, np.dtype)
        and type(content) is bytes
        and len(content) == math.prod(shape) * stored.itemsize
        and (stored.kind != "U" or _is_text(content, stored.byteorder))
    )


def _is_text(content: bytes, order: str) -> bool:
    """Whether all code points are Unicode's."""
    points = np.frombuffer(content, f"{'>' if order == '>' else '<'}u4")
    return bool(points.max(initial=0) <= sys.maxunicode)


def fill(array: Any, state: Any) -> None:
    """Give an array that `_reconstruct` made its shape, dtype and elements."""
    if type(state) is not tuple or len(state) != 5 or not _state(state[1], state[2], state[4]):
        raise FileError(
            "[load] the file has a NumPy array whose shape, dtype and bytes do not fit together"
        )
    _, shape, stored, fortran, content = state
    array.__setstate__((1, shape, stored, fortran is True, content))


def _scalar(stored: Any, content: Any = b"") -> Any:
    if not _state((), stored, content):
        raise FileError("[load] the file has a NumPy number whose dtype and bytes do not fit")
    return np.frombuffer(content, stored)[0]


def _ndarray(*args: Any) -> Any:
    raise FileError("[load] the file makes a NumPy array in an unknown way")


CALLS: dict[str, Any] = {"numpy.ndarray": _ndarray, "numpy.dtype": _dtype}
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    CALLS |= {f"{_module}._reconstruct": _empty, f"{_module}.scalar": _scalar}
# What a pickle tells about an object after it was made, by the type of the object.
BUILDS: dict[type, Any] = {np.ndarray: fill}
BUILDS |= {type(np.dtype(code)): _order for code in ("?", *"bhilqBHILQefdFDSU")}
