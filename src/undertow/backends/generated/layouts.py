"""Where the elements of operands lie: shapes, steps in elements, and what kernels know of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernel.groups.elements import MOST, Operand
from ...kernel.ir import FLOATS
from ...kernel.layout import Sizes
from ...kernel.lower import NotCompiled
from ..memory_types import scalar_type, type_of
from ..strided import StridedArray

WORDS = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}
_LONG = np.dtype(np.uint64)


def type_known(dtype: Any) -> str:
    """The loop IR's name of a dtype."""
    found = type_of(dtype)
    if not found:
        raise NotCompiled(f"generated kernels do not know {dtype.name}")
    return found


@functools.lru_cache(4096)
def broadcast(*shapes: Sizes) -> Sizes:
    """The shape to which shapes are broadcast."""
    return np.broadcast_shapes(*shapes)


def countable(shape: Sizes) -> int:
    """The number of elements, which a launch can count."""
    count = math.prod(shape)
    if count > MOST:
        raise NotCompiled(f"{count} elements at once, of {MOST}")
    return count


def steps_in(a: StridedArray, shape: Sizes) -> Sizes:
    """The steps of an array, in elements, when it is broadcast to `shape`; 0 where it has one."""
    size = a.dtype.itemsize
    own = [s if n > 1 else 0 for n, s in zip(a.shape, a.strides, strict=True)]
    if a.size and (a.offset % size or any(s % size for s in own)):
        raise NotCompiled("elements that are no whole number of them apart")
    return (0,) * (len(shape) - len(own)) + tuple([s // size for s in own])


def with_numbers(operands: Sequence[Any], types: Sequence[str], compute: str) -> list[Operand]:
    """What a kernel takes for each operand, an array or a number."""
    given = iter(types)
    return [
        Operand(next(given)) if o.__class__ is StridedArray else Operand(compute, True)
        for o in operands
    ]


def padded(sizes: Sizes, steps: Sequence[Sizes]) -> tuple[Sizes, list[Sizes]]:
    """Dimensions of size 1 in front, up to a power of two: fewer kernels are written.

    >>> padded((5, 6, 7), [(42, 7, 1)])
    ((1, 5, 6, 7), [(0, 42, 7, 1)])
    """
    front = (1 << (len(sizes) - 1).bit_length()) - len(sizes)
    return (1,) * front + sizes, [(0,) * front + s for s in steps]


def compute_type(operands: Sequence[Any], types: Sequence[str], result: str) -> str:
    """The type in which an expression is computed over operands, whose arrays have these types."""
    floats = [t for t in types if scalar_type(t) in FLOATS]
    found = next((t for t in (*floats, *types) if t != "bool"), "") or result
    if found != "bool" or len(types) == len(operands):
        return scalar_type(found)
    numbers = [o for o in operands if o.__class__ is not StridedArray]
    return "f32" if any(isinstance(n, float) for n in numbers) else "i64"


def as_words(x: StridedArray) -> StridedArray:
    """The same memory as unsigned integers, for what only moves elements."""
    size = x.dtype.itemsize
    if size in WORDS:
        return x.seen(x.shape, x.strides, 0, WORDS[size])
    if size == 8:
        return x.seen(x.shape, x.strides, 0, _LONG)
    return x.seen((*x.shape, size // 8), (*x.strides, 8), 0, _LONG)


def overlap(a: StridedArray, b: StridedArray) -> bool:
    """Whether two arrays of one buffer may share elements, being not the very same ones."""
    if a.buffer is not b.buffer or not a.size or not b.size:
        return False
    if a.offset == b.offset and a.strides == b.strides and a.shape == b.shape:
        return a.dtype.itemsize != b.dtype.itemsize
    (low, high), (least, most) = span(a), span(b)
    return low < most and least < high


def span(a: StridedArray) -> tuple[int, int]:
    """The bytes between which the elements lie."""
    moves = [s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)]
    low = a.offset + sum(m for m in moves if m < 0)
    return low, a.offset + sum(m for m in moves if m > 0) + a.dtype.itemsize
