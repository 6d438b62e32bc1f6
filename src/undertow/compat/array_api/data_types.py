"""Dtypes of the standard: promotion, kinds, limits and casts.

The standard promotes by dtypes alone: a tensor without dimensions counts as much as any other,
where torch's operators let it give way.
"""

from __future__ import annotations

from typing import Any

import undertow as ut

from ... import dtypes
from ...core.tensor import Tensor
from ...devices import DeviceLike
from ...dtypes import DType, DTypeLike
from ...errors import ArgumentError, DTypeError

__all__ = ["astype", "broadcast_arrays", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_INTEGERS = {
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
}
_FLOATS = {"real floating": "float32 float64", "complex floating": "complex64 complex128"}
# The dtypes of the standard, of those that there are, by kind.
KINDS: dict[str, tuple[DType, ...]] = {
    kind: tuple(dtypes.as_dtype(name) for name in names.split())
    for kind, names in {
        "bool": "bool",
        **_INTEGERS,
        "integral": " ".join(_INTEGERS.values()),
        **_FLOATS,
        "numeric": " ".join([*_INTEGERS.values(), *_FLOATS.values()]),
    }.items()
}


def _dtype_of(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else dtypes.as_dtype(value)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that these arrays, dtypes and numbers have in common.

    >>> import undertow.array_api as xp
    >>> xp.result_type(xp.ones(3, dtype=xp.float32), xp.asarray(1.0, dtype=xp.float64), 2)
    undertow.float64
    """
    return dtypes.result_type(
        *(
            (dtypes.of_scalar(a), 0)
            if isinstance(a, (bool, int, float, complex))
            else (_dtype_of(a), 2)
            for a in arrays_and_dtypes
        )
    )


def together(*operands: Any) -> Any:
    """Operands with every tensor in the dtype that all have in common; numbers stay numbers."""
    found = {o.dtype for o in operands if isinstance(o, Tensor)}
    if len(found) < 2:
        return operands
    common = result_type(*operands)
    return [o.to(common) if isinstance(o, Tensor) else o for o in operands]


def astype(
    x: Tensor, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None
) -> Tensor:
    """`x` in another dtype; a copy, unless `copy=False` and it has that dtype already.

    >>> import undertow.array_api as xp
    >>> xp.astype(xp.asarray([1, 0, 2]), xp.bool)
    tensor([ True, False,  True])
    """
    wanted = dtypes.as_dtype(dtype)
    if x.dtype.is_complex and not wanted.is_complex and wanted is not dtypes.bool:
        raise DTypeError(f"[astype] {x.dtype} does not become {wanted}; take xp.real(x) first")
    return x.to(x.device if device is None else device, wanted, copy=copy)


def can_cast(from_: Any, to: DTypeLike, /) -> bool:
    """Whether promotion leads from one dtype (or that of an array) to the other.

    >>> import undertow.array_api as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    target = dtypes.as_dtype(to)
    return dtypes.promote_types(_dtype_of(from_), target) is target


def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> bool:
    """Whether a dtype is of a kind: another dtype, "bool", "integral", "numeric" …, or a tuple.

    >>> import undertow.array_api as xp
    >>> xp.isdtype(xp.float32, ("integral", "real floating")), xp.isdtype(xp.int8, xp.int16)
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    wanted = dtypes.as_dtype(dtype)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ArgumentError(f"[isdtype] {kind!r} is no kind; the kinds are {', '.join(KINDS)}")
        half = wanted.is_floating_point and kind in ("real floating", "numeric")
        return half or wanted in KINDS[kind]
    return wanted is dtypes.as_dtype(kind)


class finfo(dtypes.finfo):
    """Machine limits of a floating dtype, or of an array's; `dtype` is a dtype here.

    >>> import undertow.array_api as xp
    >>> xp.finfo(xp.complex64).dtype, xp.finfo(xp.ones(2, dtype=xp.float64)).eps
    (undertow.float32, 2.220446049250313e-16)
    """

    __slots__ = ()

    def __init__(self, type: Any, /) -> None:
        found = _dtype_of(type)
        super().__init__(found)
        self.dtype = dtypes.real_of(found)  # type: ignore[assignment]


class iinfo(dtypes.iinfo):
    """Machine limits of an integer dtype, or of an array's; `dtype` is a dtype here.

    >>> import undertow.array_api as xp
    >>> xp.iinfo(xp.int16).max, xp.iinfo(xp.asarray([1])).dtype
    (32767, undertow.int64)
    """

    __slots__ = ()

    def __init__(self, type: Any, /) -> None:
        found = _dtype_of(type)
        super().__init__(found)
        self.dtype = found  # type: ignore[assignment]


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Each array, expanded to the shape that all have in common.

    >>> import undertow.array_api as xp
    >>> [a.shape for a in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    return list(ut.broadcast_tensors(*arrays))
