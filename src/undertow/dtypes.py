"""The twelve dtypes, torch's promotion rules, and the default dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import DTypeError


class DType:
    """An element type: `ut.float32` and its eleven siblings; compared by identity.

    >>> float32.itemsize, float32.is_floating_point, float32.is_complex
    (4, True, False)
    """

    __slots__ = ("_numpy", "category", "is_complex", "is_floating_point", "is_signed", "itemsize",
                 "name", "rank")  # fmt: skip

    def __init__(self, name: str, itemsize: int, category: int, rank: int) -> None:
        self.name = name
        self.itemsize = itemsize
        self.category = category  # 0 bool, 1 integer, 2 floating, 3 complex
        self.rank = rank
        self.is_floating_point = category == 2
        self.is_complex = category == 3
        self.is_signed = category >= 2 or name.startswith("int")
        self._numpy: np.dtype[Any] | None = None

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of a CPU tensor of this type."""
        if self._numpy is None:
            self._numpy = _bfloat16_numpy() if self.name == "bfloat16" else np.dtype(self.name)
            _BY_NUMPY[self._numpy] = self
        return self._numpy

    @property
    def is_differentiable(self) -> bool:
        """Whether tensors of this type can carry gradients."""
        return self.category >= 2

    def __repr__(self) -> str:
        return f"undertow.{self.name}"

    def __reduce__(self) -> str:
        return self.name


def _bfloat16_numpy() -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(
            "bfloat16 on the CPU needs the package ml-dtypes: pip install 'undertow[bf16]'"
        ) from None
    return np.dtype(ml_dtypes.bfloat16)


bool = DType("bool", 1, 0, 0)
uint8 = DType("uint8", 1, 1, 1)
int8 = DType("int8", 1, 1, 2)
int16 = DType("int16", 2, 1, 3)
int32 = DType("int32", 4, 1, 4)
int64 = DType("int64", 8, 1, 5)
float16 = DType("float16", 2, 2, 6)
bfloat16 = DType("bfloat16", 2, 2, 7)
float32 = DType("float32", 4, 2, 8)
float64 = DType("float64", 8, 2, 9)
complex64 = DType("complex64", 8, 3, 10)
complex128 = DType("complex128", 16, 3, 11)

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

ALL = (bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64,
       complex128)  # fmt: skip
_BY_NUMPY: dict[Any, DType] = {}
for _dtype in ALL:
    if _dtype is not bfloat16:
        _ = _dtype.numpy
_BY_NAME = {d.name: d for d in ALL}
_BY_PYTHON: dict[type, DType] = {}


def of_array(dtype: np.dtype[Any]) -> DType:
    """The Undertow dtype of a NumPy dtype (an array's, or anything `np.dtype` accepts).

    >>> of_array(np.dtype("float64"))
    undertow.float64
    """
    found = _BY_NUMPY.get(dtype)
    if found is None:
        native = np.dtype(dtype).newbyteorder("=")
        found = _BY_NUMPY.get(native)
        if found is None and native.name in _BY_NAME:
            found = _BY_NAME[native.name]
            _ = found.numpy
        if found is None:
            raise DTypeError(
                f"[dtype] NumPy dtype {dtype!r} has no Undertow counterpart; "
                f"the dtypes are {', '.join(_BY_NAME)}"
            )
    return found


def as_dtype(value: Any) -> DType:
    """A dtype from a DType, a NumPy dtype, a name, or one of Python's bool, int, float, complex."""
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _BY_PYTHON:
        return get_default_dtype() if value.__name__ == "float" else _BY_PYTHON[value]
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    try:
        return of_array(np.dtype(value))
    except TypeError:
        raise DTypeError(f"[dtype] {value!r} is not a dtype; pass one such as ut.float32") from None


_default = float32


def get_default_dtype() -> DType:
    """The dtype of new floating tensors; `float32` unless changed.

    >>> get_default_dtype()
    undertow.float32
    """
    return _default


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype that Python floats become; it must be a floating dtype."""
    global _default
    wanted = as_dtype(dtype)
    if not wanted.is_floating_point:
        raise DTypeError(
            f"[set_default_dtype] only floating dtypes can be the default, got {wanted}"
        )
    _default = wanted


def promote_types(a: DType, b: DType) -> DType:
    """The smallest dtype that both convert to, by torch's table.

    >>> promote_types(int64, float16), promote_types(uint8, int8)
    (undertow.float16, undertow.int16)
    """
    if a is b:
        return a
    if a.rank > b.rank:
        a, b = b, a
    if a.category < b.category:
        return b
    if a is uint8:  # b is a signed integer
        return int16 if b is int8 else b
    if a is float16 and b is bfloat16:
        return float32
    return b


def complex_of(dtype: DType) -> DType:
    """The complex dtype whose parts have this floating dtype (float16 and bfloat16: complex64)."""
    return dtype if dtype.is_complex else complex128 if dtype is float64 else complex64


def real_of(dtype: DType) -> DType:
    """The dtype of the real part of a complex dtype; other dtypes unchanged."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def of_scalar(value: Any) -> DType:
    """The dtype that a Python number has on its own: bool, int64, the default, or its complex."""
    kind = type(value).__name__
    if kind == "bool":
        return bool
    if kind == "int":
        return int64
    if kind == "complex":
        return complex_of(get_default_dtype())
    return get_default_dtype()


def result_type(*operands: tuple[DType, Any]) -> DType:
    """torch's result dtype of operands given as (dtype, priority).

    Priority 2 is a tensor with dimensions, 1 a zero-dimensional tensor, 0 a Python number. A lower
    priority counts only when its category (bool < integer < floating < complex) is higher.
    """
    best: list[DType | None] = [None, None, None]
    for dtype, priority in operands:
        seen = best[priority]
        best[priority] = dtype if seen is None else promote_types(seen, dtype)
    result = best[2]
    for lower in (best[1], best[0]):
        if lower is None:
            continue
        if result is None:
            result = lower
        elif lower.category > result.category:
            if lower.category == 3 and result.is_floating_point and lower is best[0]:
                result = complex_of(result)
            elif lower.category == 3 and result.is_floating_point:
                result = promote_types(lower, result)
            else:
                result = lower
    if result is None:
        raise DTypeError("[result_type] needs at least one operand")
    return result


def finfo(dtype: Any) -> Any:
    """Machine limits of a floating dtype: `eps`, `max`, `min`, `tiny`, `bits` …

    >>> finfo(float32).bits
    32
    """
    wanted = as_dtype(dtype)
    if wanted is bfloat16:
        import ml_dtypes

        return ml_dtypes.finfo(wanted.numpy)
    return np.finfo(real_of(wanted).numpy)


def iinfo(dtype: Any) -> Any:
    """Machine limits of an integer dtype: `min`, `max`, `bits`."""
    return np.iinfo(as_dtype(dtype).numpy)


def can_cast(from_: Any, to: Any) -> Any:
    """Whether torch's casting rules allow `from_` to become `to` (category never goes down).

    >>> can_cast(float32, int32), can_cast(int64, float16)
    (False, True)
    """
    source, target = as_dtype(from_), as_dtype(to)
    if source is target:
        return True
    if source.category > target.category:
        return False
    return not (source is not bool and target is bool)


_BY_PYTHON.update({type(True): bool, type(1): int64, type(1.0): float32, type(1j): complex64})
