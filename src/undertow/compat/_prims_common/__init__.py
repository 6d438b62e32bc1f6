"""Questions about shapes and dtypes that torch's decompositions share, under their names."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from ...core.tensor import Tensor
from ...dtypes import DType, complex_of, real_of
from ...shapes import contiguous_strides, wrap_dim

__all__ = [
    "canonicalize_dim",
    "canonicalize_dims",
    "corresponding_complex_dtype",
    "corresponding_real_dtype",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_contiguous",
    "is_float_dtype",
    "is_integer_dtype",
    "is_same_shape",
    "make_contiguous_strides_for",
]
DimsType = ShapeType = StrideType = Sequence[int]
DeviceLikeType = TensorLike = TensorLikeType = Tensor
Number = (bool, int, float, complex)
NumberType = bool | int | float | complex
IntLike, FloatLike, BoolLike = (int,), (float,), (bool,)


def is_float_dtype(dtype: DType) -> bool:
    """Whether a dtype has real floating-point numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: DType) -> bool:
    """Whether a dtype has complex numbers."""
    return dtype.is_complex


def is_boolean_dtype(dtype: DType) -> bool:
    """Whether a dtype has truth values."""
    return dtype.name == "bool"


def is_integer_dtype(dtype: DType) -> bool:
    """Whether a dtype has whole numbers."""
    return not (dtype.is_floating_point or dtype.is_complex or is_boolean_dtype(dtype))


corresponding_complex_dtype, corresponding_real_dtype = complex_of, real_of


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front.

    >>> canonicalize_dim(3, -1)
    2
    """
    return wrap_dim("canonicalize_dim", idx, rank)


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """One or several dimensions, counted from the front."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices)
    return tuple(canonicalize_dim(rank, i) for i in indices)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of elements that stand one after the other.

    >>> make_contiguous_strides_for((2, 3, 4))
    (12, 4, 1)
    """
    return contiguous_strides(tuple(shape))


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are equal."""
    return tuple(a) == tuple(b)


def is_contiguous(a: Tensor) -> bool:
    """Whether elements stand one after the other."""
    return a.is_contiguous()


is_contiguous_or_false = definitely_contiguous = is_contiguous


def prod(xs: Sequence[int]) -> int:
    """The product of numbers."""
    return reduce(operator.mul, xs, 1)


def alert_not_deterministic(caller: str) -> None:
    """Say that an operation may give other bits each time: none does here."""
