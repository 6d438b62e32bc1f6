"""Kernels of the loop IR as functions that Python can call."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernel.ir import Function, check
from . import jit
from .llvm import Machine, emit

_C_TYPES = {"i64": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double}
CHECKED = os.environ.get("UNDERTOW_CHECK_IR") == "1"  # on in tests

TYPES: dict[Any, str] = {
    np.dtype(name): kind
    for name, kind in (
        ("bool", "bool"), ("int8", "i8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64"),
        ("uint8", "u8"), ("uint16", "u16"), ("uint32", "u32"), ("uint64", "u64"),
        ("float16", "f16"), ("float32", "f32"), ("float64", "f64"),
    )
}  # fmt: skip


def type_of(dtype: Any) -> str:
    """The loop IR's name of a NumPy dtype; "" for one that kernels do not know."""
    return TYPES.get(dtype) or ("bf16" if dtype.name == "bfloat16" else "")


@functools.cache
def machine() -> Machine:
    """What code for this machine may use."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if all(features.get(f) for f in ("avx512f", "avx512bw", "avx512dq", "avx512vl")):
        vector = 64
    else:
        vector = 32 if features.get("avx2") else 16
    arm = bool(features.get("neon"))
    return Machine(vector, bool(features.get("fma")) or arm, bool(features.get("f16c")) or arm)


def compiled(f: Function) -> Callable[..., None]:
    """`f` as a function of the pool, the buffers' addresses and the parameters."""
    if CHECKED:
        check(f)
    text = emit(f, machine())
    # One module may hold one kernel of a name, so the name tells its content.
    unique = f"{f.name}_{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
    address = jit.load(unique, text.replace(f"@{f.name}", f"@{unique}"))
    arguments: list[Any] = [ctypes.c_void_p] * (1 + len(f.buffers)) + [_C_TYPES[p.dtype] for p in f.params]
    return ctypes.CFUNCTYPE(None, *arguments)(address)


_DATA = object.__basicsize__  # where an ndarray keeps its address, behind Python's own fields
_at = ctypes.c_size_t.from_address


def address(array: Any) -> int:
    """The address of an array's first element."""
    return _at(id(array) + _DATA).value


if address(_sample := np.zeros(1)) != _sample.__array_interface__["data"][0]:
    # A Python that lays out its objects differently.
    def address(array: Any) -> int:
        """The address of an array's first element."""
        return int(array.__array_interface__["data"][0])
