"""The dtypes, torch's promotion rules, and the default dtype.

Twelve are computed in everywhere (`ALL`). The wider unsigned integers and the floats of eight bits
(`RARE`) can be stored, converted and moved about; `NAMED` ones exist in name only.
"""

from __future__ import annotations

import builtins
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from .errors import ArgumentError, DTypeError, UnsupportedError

__all__ = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "half",
    "float",
    "double",
    "short",
    "int",
    "long",
    "cfloat",
    "cdouble",
    "chalf",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "bit",
    "bits16",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "complex32",
    "float4_e2m1fn_x2",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "qint32",
    "qint8",
    "quint2x4",
    "quint4x2",
    "quint8",
    "uint1",
    "uint2",
    "uint3",
    "uint4",
    "uint5",
    "uint6",
    "uint7",
    "get_default_dtype",
    "set_default_dtype",
    "promote_types",
    "can_cast",
    "finfo",
    "iinfo",
]


class DType:
    """An element type: `ut.float32` and its siblings; compared by identity.

    >>> float32.itemsize, float32.is_floating_point, float32.is_complex
    (4, True, False)
    """

    __slots__ = (
        "_numpy",
        "category",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "name",
        "rank",
    )

    def __init__(
        self, name: str, itemsize: builtins.int, category: builtins.int, rank: builtins.int
    ) -> None:
        self.name = name
        self.itemsize = itemsize
        self.category = category  # 0 bool, 1 integer, 2 floating, 3 complex
        self.rank = rank
        self.is_floating_point = category == 2
        self.is_complex = category == 3
        self.is_signed = name != "float8_e8m0fnu" and (category >= 2 or name.startswith("int"))
        self._numpy: np.dtype[Any] | None = None

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of a CPU tensor of this type."""
        if self._numpy is None:
            if self.rank < 0:
                raise UnsupportedError(
                    f"[dtype] {self.name} exists in name only, so that programs which mention it "
                    "run; there are no tensors of it"
                )
            other = self.name == "bfloat16" or self.name.startswith("float8")
            self._numpy = _of_ml_dtypes(self.name) if other else np.dtype(self.name)
            _BY_NUMPY[self._numpy] = self
        return self._numpy

    @property
    def abbr(self) -> str:
        """A short name: "f32", "bf16", "i64"; that of a dtype for storage is its name.

        >>> float32.abbr, bfloat16.abbr, bool.abbr
        ('f32', 'bf16', 'b8')
        """
        letters = self.name.rstrip("0123456789").split("_")[0].rstrip("0123456789")
        if self.name.startswith("bits"):
            return "b" + self.name[4:] + ("" if "x" in self.name else "x1")
        if letters == "bool":
            return "b8"
        if self.rank < 0 and self.category == 1:
            return self.name
        short = {"bfloat": "bf"}.get(letters, letters[0])
        return short + self.name[len(letters) :].replace("_", "")

    @property
    def is_differentiable(self) -> builtins.bool:
        """Whether tensors of this type can carry gradients."""
        return self.category >= 2

    def to_complex(self) -> DType:
        """The complex dtype whose parts are as wide as this dtype: of float16, complex32.

        >>> float64.to_complex(), float16.to_complex()
        (undertow.complex128, undertow.complex32)
        """
        if self.category < 2 or self.itemsize == 1:
            raise DTypeError(f"[to_complex] there are no complex numbers of {self}")
        return complex32 if self is float16 else complex_of(self)

    def to_real(self) -> DType:
        """The dtype of the real part of a complex dtype; others unchanged.

        >>> complex64.to_real(), int8.to_real()
        (undertow.float32, undertow.int8)
        """
        return float16 if self is complex32 else real_of(self)

    def __repr__(self) -> str:
        return f"undertow.{self.name}"

    def __reduce__(self) -> str:
        return self.name


def _of_ml_dtypes(name: str) -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(
            f"{name} on the CPU needs the package ml-dtypes: pip install ml-dtypes"
        ) from None
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


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

# Stored, converted and moved; computed in where NumPy can (integers) or by single precision.
uint16 = DType("uint16", 2, 1, 12)
uint32 = DType("uint32", 4, 1, 13)
uint64 = DType("uint64", 8, 1, 14)
float8_e4m3fn = DType("float8_e4m3fn", 1, 2, 15)
float8_e4m3fnuz = DType("float8_e4m3fnuz", 1, 2, 16)
float8_e5m2 = DType("float8_e5m2", 1, 2, 17)
float8_e5m2fnuz = DType("float8_e5m2fnuz", 1, 2, 18)
float8_e8m0fnu = DType("float8_e8m0fnu", 1, 2, 19)

# In name only.
bits8, bits16 = DType("bits8", 1, 1, -1), DType("bits16", 2, 1, -1)
bits1x8, bits2x4 = DType("bits1x8", 1, 1, -1), DType("bits2x4", 1, 1, -1)
bits4x2, complex32 = DType("bits4x2", 1, 1, -1), DType("complex32", 4, 3, -1)
float4_e2m1fn_x2 = DType("float4_e2m1fn_x2", 1, 2, -1)
qint8, quint8 = DType("qint8", 1, 1, -1), DType("quint8", 1, 1, -1)
qint32 = DType("qint32", 4, 1, -1)
quint4x2, quint2x4 = DType("quint4x2", 1, 1, -1), DType("quint2x4", 1, 1, -1)
int1, int2, int3, int4, int5, int6, int7 = (DType(f"int{i}", 1, 1, -1) for i in range(1, 8))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (DType(f"uint{i}", 1, 1, -1) for i in range(1, 8))
bit, chalf = uint1, complex32

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

ALL = (
    bool,
    uint8,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
UNSIGNED = (uint16, uint32, uint64)
FLOAT8 = (float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu)
RARE = (*UNSIGNED, *FLOAT8)
NAMED = tuple(
    dict.fromkeys(d for d in list(globals().values()) if isinstance(d, DType) and d.rank < 0)
)
_BY_NUMPY: dict[Any, DType] = {}
for _dtype in (*ALL, *UNSIGNED):
    if _dtype is not bfloat16:
        _ = _dtype.numpy
_BY_NAME = {d.name: d for d in (*ALL, *RARE)}
_BY_PYTHON: dict[type, DType] = {}

# What users may pass: for a dtype, and for a number beside tensors.
DTypeLike: TypeAlias = DType | np.dtype[Any] | type | str
Number: TypeAlias = (
    builtins.bool | builtins.int | builtins.float | builtins.complex | np.number[Any] | np.bool_
)


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
                f"[dtype] NumPy dtype {native.name} has no Undertow counterpart; "
                f"the dtypes are {', '.join(_BY_NAME)}"
            )
    return found


def as_dtype(value: DTypeLike) -> DType:
    """A dtype from a DType, a NumPy dtype, a name, or one of Python's bool, int, float, complex.

    Python's float means float64 and complex means complex128, as in torch and NumPy.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    if isinstance(value, str):
        found = _BY_NAME.get(value) or next((d for d in NAMED if d.name == value), None)
        if found is not None:
            return found
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


def set_default_dtype(dtype: DTypeLike) -> None:
    """Set the dtype that Python floats become; it must be a floating dtype.

    >>> import undertow as ut
    >>> ut.set_default_dtype(ut.float64)
    >>> ut.tensor(1.0).dtype
    undertow.float64
    >>> ut.set_default_dtype(ut.float32)
    """
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
    if b.rank > 11 or a.rank < 0:
        return _promote_rare(a, b)
    if a.category < b.category:
        return complex128 if a is float64 else b
    if a is uint8:  # b is a signed integer
        return int16 if b is int8 else b
    if a is float16 and b is bfloat16:
        return float32
    return b


def _promote_rare(a: DType, b: DType) -> DType:
    """Of two dtypes, at least one of which is beyond the twelve: where values are kept, or never.

    torch promotes these only to floating dtypes; integers that hold the values of both are exact.
    """
    if a.category == 1 == b.category and min(a.rank, b.rank) > 0:
        low, high = (a, b) if a.itemsize <= b.itemsize else (b, a)
        if a.is_signed is b.is_signed or (high.is_signed and high.itemsize > low.itemsize):
            return high
        unsigned = b if a.is_signed else a
        if unsigned.itemsize < 8:
            return int32 if unsigned.itemsize == 2 else int64
    elif 1 in (a.category, b.category) and min(a.rank, b.rank) >= 0:
        first, second = (a, b) if a.category < b.category else (b, a)
        if second.category > 1 and second.itemsize > 1:
            return second
        if first is bool:
            return second
    raise DTypeError(
        f"[promote_types] there is no dtype for {a} and {b} together; convert one of them with .to"
    )


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
    result = _combine(best[2], _combine(best[1], best[0]))
    if result is None:
        raise DTypeError("[result_type] needs at least one operand")
    return result


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    """The dtype of two priorities together; the higher one keeps its precision."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if lower.category <= higher.category:
        return higher
    return complex_of(higher) if higher.is_floating_point else lower


class finfo:
    """Machine limits of a floating dtype (of its parts, for a complex one), as Python numbers.

    >>> import undertow as ut
    >>> ut.finfo(ut.float32).bits, ut.finfo(ut.float64).eps
    (32, 2.220446049250313e-16)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    bits: builtins.int
    dtype: str
    eps: builtins.float  # between 1 and the next larger number
    max: builtins.float
    min: builtins.float
    resolution: builtins.float  # of decimal digits
    smallest_normal: builtins.float
    tiny: builtins.float  # smallest_normal under its old name

    def __init__(self, dtype: Any = None) -> None:
        wanted = (_default if dtype is None else as_dtype(dtype)).to_real()
        if not wanted.is_floating_point:
            raise DTypeError(f"[finfo] is for floating dtypes, got {wanted}; use iinfo there")
        limits: Any
        if wanted is bfloat16 or wanted in FLOAT8:
            import ml_dtypes

            limits = ml_dtypes.finfo(wanted.numpy)  # type: ignore[no-untyped-call]
        else:
            limits = np.finfo(wanted.numpy)
        self.dtype = wanted.name
        self.bits = 8 * wanted.itemsize
        for name in ("eps", "max", "min", "smallest_normal", "tiny"):
            setattr(self, name, builtins.float(getattr(limits, name)))
        self.resolution = 1.0 if wanted in FLOAT8 else 10.0**-limits.precision

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Machine limits of an integer dtype.

    >>> import undertow as ut
    >>> ut.iinfo(ut.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: Any) -> None:
        wanted = as_dtype(dtype)
        if wanted.category != 1:
            raise DTypeError(f"[iinfo] is for integer dtypes, got {wanted}; use finfo there")
        limits = np.iinfo(wanted.numpy)
        self.dtype = wanted.name
        self.bits, self.min, self.max = limits.bits, limits.min, limits.max

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


@cache
def _largest(dtype: DType) -> builtins.float:
    return finfo(dtype).max


def fit(op: str, value: Any, dtype: DType) -> Any:
    """A Python number as one that `dtype` can hold, or an error that names both.

    A float becomes an integer by truncation, a negative one wraps where there is no sign; NaN,
    infinities and numbers out of range are errors, not garbage.

    >>> fit("full", 2.7, int64), fit("full", -1, uint8), fit("full", 2, float32)
    (2, 255, 2)
    """
    kind = type(value).__name__
    if kind not in ("bool", "int", "float", "complex"):
        raise DTypeError(f"[{op}] expects a number, got {kind} {value!r}")
    if dtype.category == 0 or kind == "bool" or dtype.category == 3:
        return value
    if kind == "complex":
        if value.imag:
            raise DTypeError(
                f"[{op}] the complex number {value} does not fit into {dtype}; take its .real"
            )
        value = value.real
    if dtype.category == 2:
        if dtype.itemsize < 8 and _INFINITY != abs(value) > _largest(dtype):
            raise ArgumentError(f"[{op}] {value} is out of range for {dtype}")
        return value
    if value != value or abs(value) == _INFINITY:
        raise ArgumentError(f"[{op}] {value} has no value in {dtype}; use a floating dtype")
    whole = value.__trunc__()
    limits = iinfo(dtype)
    low = limits.min if dtype.is_signed else -limits.max
    if not low <= whole <= limits.max:
        raise ArgumentError(
            f"[{op}] {value} is out of range for {dtype}, which holds {limits.min} to {limits.max}"
        )
    return whole if dtype.is_signed else whole % (limits.max + 1)


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Whether torch's casting rules allow `from_` to become `to` (category never goes down).

    >>> can_cast(float32, int32), can_cast(int64, float16)
    (False, True)
    """
    source, target = as_dtype(from_), as_dtype(to)
    return source.category <= target.category


_INFINITY = np.inf
OBJECT = np.dtype(object)  # of what is no array
UINT64 = np.dtype(np.uint64)  # of random words
_BY_PYTHON.update({type(True): bool, type(1): int64, type(1.0): float64, type(1j): complex128})
