"""NumPy's dtypes and the loop IR's names of the same."""

from __future__ import annotations

from typing import Any

import numpy as np

TYPES: dict[Any, str] = {
    np.dtype(name): kind
    for name, kind in (
        ("bool", "bool"),
        ("int8", "i8"),
        ("int16", "i16"),
        ("int32", "i32"),
        ("int64", "i64"),
        ("uint8", "u8"),
        ("uint16", "u16"),
        ("uint32", "u32"),
        ("uint64", "u64"),
        ("float16", "f16"),
        ("float32", "f32"),
        ("float64", "f64"),
    )
}


def type_of(dtype: Any) -> str:
    """The loop IR's name of a NumPy dtype; "" for one that kernels do not know."""
    return TYPES.get(dtype) or ("bf16" if dtype.name == "bfloat16" else "")


def scalar_type(dtype: str) -> str:
    """The type that elements of a memory type are loaded as."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def numpy_name(dtype: str) -> str:
    """NumPy's name of a type of the loop IR."""
    return "?" if dtype == "bool" else f"{dtype[0]}{int(dtype[1:]) // 8}"


def is_half(dtype: Any) -> bool:
    """Whether it is a floating dtype of two bytes."""
    return bool(dtype.itemsize == 2 and dtype.kind not in "iu")
