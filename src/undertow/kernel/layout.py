"""Strided operands of one iteration space, with as few dimensions as they allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

Sizes = tuple[int, ...]
SHORT = 8  # rows of fewer elements cost more to set up than to compute
LONG = 32  # elements of a row that is worth walking with larger steps


def coalesce(
    shape: Sizes, strides: Sequence[Sizes], ordered: bool = False
) -> tuple[Sizes, list[Sizes]]:
    """The same elements in fewer dimensions, the smallest steps last; at least one dimension.

    `strides` holds every operand's steps, in any unit, zero where it is broadcast; the first one
    (an output) decides the order. Dimensions of size one go, and two that every operand walks
    through as if they were one become one. `ordered` keeps the order as it is.

    >>> coalesce((2, 3, 4), [(12, 4, 1), (12, 4, 1)])
    ((24,), [(1,), (1,)])
    >>> coalesce((2, 3), [(3, 1), (0, 1)])
    ((2, 3), [(3, 1), (0, 1)])
    """
    dims = [d for d, size in enumerate(shape) if size != 1]
    first, others = strides[0], strides[1:]
    if not ordered:
        dims.sort(key=lambda d: (-abs(first[d]), *(-abs(s[d]) for s in others), d))
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d in dims:
        if sizes and all(
            mine[-1] == s[d] * shape[d] for mine, s in zip(steps, strides, strict=True)
        ):
            sizes[-1] *= shape[d]
            for mine, s in zip(steps, strides, strict=True):
                mine[-1] = s[d]
        else:
            sizes.append(shape[d])
            for mine, s in zip(steps, strides, strict=True):
                mine.append(s[d])
    if not sizes:
        return (1,), [(0,) for _ in strides]
    return tuple(sizes), [tuple(s) for s in steps]


def some(
    shape: Sizes, dims: Sequence[int], steps: Sequence[Sizes], ordered: bool = False
) -> tuple[Sizes, list[Sizes]]:
    """Some of the dimensions, as few as the operands allow; see `coalesce`."""
    sizes = tuple([shape[d] for d in dims])
    return coalesce(sizes, [tuple([s[d] for d in dims]) for s in steps], ordered)


def row_major(shape: Sizes) -> Sizes:
    """The steps of a fresh array, 0 along dimensions of one element.

    >>> row_major((2, 1, 3))
    (3, 0, 1)
    """
    return tuple([0 if n == 1 else math.prod(shape[d + 1 :]) for d, n in enumerate(shape)])


def long_rows(shape: Sizes, strides: Sequence[Sizes]) -> tuple[Sizes, list[Sizes]]:
    """Coalesced dimensions, with the innermost long one last where rows would be short ones.

    So boxes (N, 1, 4) beside (M, 4) are walked along M, and not in rows of four elements.

    >>> long_rows((50, 60, 4), [(240, 4, 1), (4, 0, 1), (0, 4, 1)])
    ((50, 4, 60), [(240, 1, 4), (4, 1, 0), (0, 1, 4)])
    """
    if shape[-1] < SHORT:
        for d in reversed(range(len(shape) - 1)):
            if shape[d] >= LONG:
                rest = [*(e for e in range(len(shape)) if e != d), d]
                moved = [tuple(s[e] for e in rest) for s in (shape, *strides)]
                return moved[0], moved[1:]
    return shape, list(strides)
