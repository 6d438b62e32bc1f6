"""torch's old constructors: `ut.Tensor(2, 3)`, `ut.FloatTensor([1, 2])`, `ut.LongTensor` …"""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..devices import Device
from ..dtypes import DType
from ..errors import ArgumentError, DTypeError
from ..shapes import Size
from .foreign import INTEGERS
from .tensor import Tensor, share, wrap_shared

TYPE_NAMES = {
    dtypes.bool: "Bool",
    dtypes.uint8: "Byte",
    dtypes.int8: "Char",
    dtypes.int16: "Short",
    dtypes.int32: "Int",
    dtypes.int64: "Long",
    dtypes.float16: "Half",
    dtypes.bfloat16: "BFloat16",
    dtypes.float32: "Float",
    dtypes.float64: "Double",
    dtypes.complex64: "ComplexFloat",
    dtypes.complex128: "ComplexDouble",
    dtypes.uint16: "UInt16",
    dtypes.uint32: "UInt32",
    dtypes.uint64: "UInt64",
    dtypes.float8_e4m3fn: "Float8_e4m3fn",
    dtypes.float8_e4m3fnuz: "Float8_e4m3fnuz",
    dtypes.float8_e5m2: "Float8_e5m2",
    dtypes.float8_e5m2fnuz: "Float8_e5m2fnuz",
    dtypes.float8_e8m0fnu: "Float8_e8m0fnu",
}


def construct(name: str, args: tuple[Any, ...], dtype: DType, device: Any = None) -> Tensor:
    """What `ut.Tensor(*args)` means: sizes give memory without values, anything else is data."""
    from .register import FUNCTIONS
    from .storage import UntypedStorage

    if device is not None and Device(device).type != "cpu":
        raise ArgumentError(
            f"[{name}] makes tensors of the CPU, got device {str(device)!r}; "
            "use ut.tensor(data, device=…)"
        )
    options = {"dtype": dtype, "device": device}
    if not args or isinstance(args[0], INTEGERS):
        return FUNCTIONS["empty"](*(args or (0,)), **options)
    (data,) = args if len(args) == 1 else (args,)
    if isinstance(data, Size):
        return FUNCTIONS["empty"](data, **options)
    if isinstance(data, UntypedStorage):
        data = data._row(dtype)
    if isinstance(data, Tensor):
        if data.dtype is not dtype and name != "Tensor":
            raise DTypeError(
                f"[{name}] shares the memory of a tensor of {dtype}, got {data.dtype}; "
                f"use .to({dtype})"
            )
        return wrap_shared(data._array, share(data))
    if isinstance(data, (bool, float, complex, str)) or len(args) > 1:
        raise DTypeError(
            f"[{name}] takes sizes or one sequence of numbers, got {args!r:.60}; "
            "use ut.tensor(number)"
        )
    return FUNCTIONS["tensor"](data, **options)


class TypedTensor(type):
    """The class of `ut.FloatTensor` and its kin: they have instances, yet all are Tensors."""

    dtype: DType

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype and value.device.type == "cpu"

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return construct(cls.__name__, args, cls.dtype, device)


def _typed(dtype: DType, word: str) -> TypedTensor:
    doc = f"""A CPU tensor of {dtype.name}, for `isinstance`; called, it makes one.

    >>> import undertow as ut
    >>> x = ut.{word}Tensor([0, 1, 1])
    >>> x.dtype, isinstance(x, ut.{word}Tensor), isinstance(ut.zeros(3).cfloat(), ut.{word}Tensor)
    (undertow.{dtype.name}, True, False)
    """
    made = TypedTensor(f"{word}Tensor", (), {"__doc__": doc, "__module__": "undertow"})
    made.dtype = dtype
    return made


TYPED = {f"{word}Tensor": _typed(dtype, word) for dtype, word in TYPE_NAMES.items()}
BoolTensor, ByteTensor, CharTensor = TYPED["BoolTensor"], TYPED["ByteTensor"], TYPED["CharTensor"]
ShortTensor, IntTensor, LongTensor = TYPED["ShortTensor"], TYPED["IntTensor"], TYPED["LongTensor"]
HalfTensor, BFloat16Tensor = TYPED["HalfTensor"], TYPED["BFloat16Tensor"]
FloatTensor, DoubleTensor = TYPED["FloatTensor"], TYPED["DoubleTensor"]


def typed_dtype(value: Any) -> DType | None:
    """The dtype of `ut.FloatTensor` or of a name such as "torch.FloatTensor"; None for others."""
    if isinstance(value, TypedTensor):
        return value.dtype
    if isinstance(value, str):
        found = TYPED.get(value.rpartition(".")[2])
        return None if found is None or ".cuda." in value else found.dtype
    return None


def set_default_tensor_type(t: Any) -> None:
    """`set_default_dtype` in its old form: `ut.DoubleTensor` or "torch.DoubleTensor".

    >>> import undertow as ut
    >>> ut.set_default_tensor_type(ut.FloatTensor)
    """
    dtype = typed_dtype(t)
    if dtype is None:
        raise DTypeError(
            f"[set_default_tensor_type] expects a type such as ut.FloatTensor, got {t!r}"
        )
    dtypes.set_default_dtype(dtype)
