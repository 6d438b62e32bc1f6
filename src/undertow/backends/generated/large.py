"""Arrays that no kernel sees as a whole: the pieces over which a form is launched instead.

Note [large arrays]
A kernel sees at most `max_binding` bytes of a buffer, and a buffer may be larger. All operands of a
form are then cut in halves, along the dimension in which one of them reaches farthest, until what
is left of each lies within so many bytes, which are bound as a part of the buffer. One buffer is
bound once where it is written, so what is read of it too far from what is written is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...kernel.layout import Sizes
from ..strided import StridedArray, expanded
from .layouts import span
from .memory import LargeBlock, TooLarge
from .runtime import PART_STEP


class Part:
    """Bytes of a buffer that a kernel sees; stands for the buffer in arrays."""

    __slots__ = ("block", "memory", "nbytes")

    def __init__(self, block: LargeBlock, start: int, nbytes: int) -> None:
        self.block = block  # held, while the array is used
        self.memory = (block.whole, start, nbytes)
        self.nbytes = nbytes


def pieces(
    k: Any, arrays: Sequence[StridedArray], written: int, shape: Sizes
) -> Iterator[list[StridedArray]]:
    """Pieces of arrays broadcast to `shape`, all of the same elements, that kernels see.

    The first `written` of the arrays are written to.
    """
    whole = [a if a.shape == shape else expanded(a, shape) for a in arrays]
    if 0 not in shape:
        yield from _pieces(k, whole, written)


def _pieces(k: Any, arrays: list[StridedArray], written: int) -> Iterator[list[StridedArray]]:
    found = visible(k, arrays, written)
    if found is not None:
        yield found
        return
    for half in halves(arrays, farthest(arrays)):
        yield from _pieces(k, half, written)


def visible(k: Any, arrays: list[StridedArray], written: int) -> list[StridedArray] | None:
    """The arrays as a kernel can see them; None if they must be cut."""
    most = k.limits.max_binding
    places: dict[int, list[int]] = {}
    for i, a in enumerate(arrays):
        if a.buffer.__class__ is LargeBlock:
            places.setdefault(id(a.buffer), []).append(i)
    found = list(arrays)
    parts: dict[tuple[int, int, int], Part] = {}
    for numbers in places.values():
        together = [i for i in numbers if i < written]
        for i in numbers:
            if i < written or not together:
                continue
            low, high = _bytes([arrays[j] for j in (*together, i)])
            if high - low <= most:
                together.append(i)
            else:
                found[i] = None  # type: ignore[call-overload]
        for unit in [together, *([i] for i in numbers if i not in together)]:
            if not unit:
                continue
            low, high = _bytes([arrays[i] for i in unit])
            if high - low > most:
                return None
            for i in unit:
                a = arrays[i]
                if found[i] is None:
                    found[i] = k.copy(a)
                    continue
                key = (id(a.buffer), low, high)
                part = parts.setdefault(key, Part(a.buffer, low, high - low))
                found[i] = StridedArray(k, part, a.shape, a.dtype, a.strides, a.offset - low)
    return found


def farthest(arrays: Sequence[StridedArray], dims: Sequence[int] | None = None) -> int:
    """The dimension (of `dims`) in which one of the large arrays reaches farthest."""
    reach, found = 0, -1
    for a in arrays:
        for d in range(len(a.shape)) if dims is None else dims:
            bytes_ = abs(a.strides[d]) * (a.shape[d] - 1)
            if a.buffer.__class__ is LargeBlock and bytes_ > reach:
                reach, found = bytes_, d
    if found < 0:
        raise TooLarge(max(a.buffer.nbytes for a in arrays))
    return found


def halves(arrays: Sequence[StridedArray], dim: int) -> list[list[StridedArray]]:
    """Both halves of arrays of one shape, cut along a dimension."""
    size = arrays[0].shape[dim]
    return [
        [narrowed(a, dim, start, stop) for a in arrays]
        for start, stop in ((0, size // 2), (size // 2, size))
    ]


def narrowed(a: StridedArray, dim: int, start: int, stop: int) -> StridedArray:
    """The elements from `start` on, before `stop`, along a dimension."""
    shape = (*a.shape[:dim], stop - start, *a.shape[dim + 1 :])
    return a.seen(shape, a.strides, start * a.strides[dim])


def _bytes(arrays: Sequence[StridedArray]) -> tuple[int, int]:
    """From where to where in its buffer a part must reach to show all of the arrays."""
    spans = [span(a) for a in arrays]
    low = min(s[0] for s in spans) // PART_STEP * PART_STEP
    return low, -(-max(s[1] for s in spans) // 4) * 4
