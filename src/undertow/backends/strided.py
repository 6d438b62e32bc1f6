"""Views as arithmetic: an array is a buffer, a shape, strides and an offset; see `StridedArray`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

Shape = tuple[int, ...]


class StridedArray:
    """An array of a device: where in a buffer its elements lie.

    `buffer` is whatever the device allocates; nobody but the device looks inside. `strides` and
    `offset` are in bytes. All views of one buffer share it, so that whether two arrays look at the
    same memory, and whether anybody else does, can be told without the device.
    """

    __slots__ = ("__weakref__", "backend", "buffer", "dtype", "offset", "shape", "size", "strides")

    def __init__(
        self,
        backend: Any,
        buffer: Any,
        shape: Shape,
        dtype: Any,
        strides: Shape | None = None,
        offset: int = 0,
    ) -> None:
        self.backend = backend
        self.buffer = buffer
        self.shape = shape
        self.dtype = dtype
        self.strides = row_major(shape, dtype.itemsize) if strides is None else strides
        self.offset = offset
        self.size = math.prod(shape)

    def seen(
        self, shape: Shape, strides: Shape, offset: int = 0, dtype: Any = None
    ) -> StridedArray:
        """The same buffer seen otherwise; the offset counts from this array's first element."""
        dtype = self.dtype if dtype is None else dtype
        return StridedArray(self.backend, self.buffer, shape, dtype, strides, self.offset + offset)

    def __repr__(self) -> str:
        return f"<{self.dtype.name} array of shape {self.shape} on {self.backend.device}>"


def row_major(shape: Shape, itemsize: int) -> Shape:
    """The strides in bytes of row-major memory.

    >>> row_major((2, 3, 4), 8)
    (96, 32, 8)
    """
    strides = []
    step = itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def contiguous(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Whether elements lie in row-major order without gaps; strides of size 1 do not count.

    >>> contiguous((2, 1, 3), (24, 0, 8), 8)
    True
    """
    step = itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size > 1:
            if stride != step:
                break
            step *= size
    else:
        return True
    return 0 in shape


def memory_order(shape: Shape, strides: Shape, itemsize: int) -> list[int] | None:
    """The dimensions in the order of dense memory that is not row-major; None for any other.

    >>> memory_order((2, 3), (8, 16), 8), memory_order((2, 3), (24, 8), 8)
    ([1, 0], None)
    """
    if contiguous(shape, strides, itemsize):
        return None
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    inner = tuple([shape[d] for d in order]), tuple([strides[d] for d in order])
    return order if contiguous(*inner, itemsize) else None


def overlaps(shape: Shape, strides: Shape) -> bool:
    """Whether two elements share memory.

    >>> overlaps((3, 3), (8, 8)), overlaps((3, 3), (24, 8))
    (True, False)
    """
    if 0 in shape:
        return False
    dims = sorted((abs(stride), size) for stride, size in zip(strides, shape, strict=True))
    span = 0
    ambiguous = False
    for stride, size in dims:
        if size > 1:
            if stride == 0:
                return True
            ambiguous = ambiguous or stride <= span
            span += stride * (size - 1)
    if not ambiguous:
        return False
    places = {0}
    for stride, size in dims:
        wider = {place + i * stride for place in places for i in range(size)}
        if len(wider) < len(places) * size:
            return True
        places = wider
    return False


def reshaped(shape: Shape, strides: Shape, new: Shape) -> Shape | None:
    """The strides of a view in another shape with as many elements; None if there is none.

    Dimensions that lie together like row-major memory form a chunk, and each chunk is cut anew.

    >>> reshaped((2, 3, 4), (96, 32, 8), (6, 4)), reshaped((3, 2), (8, 24), (6,))
    ((32, 8), None)
    """
    if 0 in shape:
        return row_major(new, 1)
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    found: list[int] = []
    at = 0  # of the old dimensions
    step = 0
    sizes = list(new)
    i = 0
    while i < len(sizes):
        if sizes[i] == 1:
            found.append(0)
            i += 1
            continue
        # Take new and old dimensions until their products agree.
        last, have, want = at, old[at][0], sizes[i]
        end = i + 1
        while have != want:
            if have < want:
                last += 1
                have *= old[last][0]
            else:
                while sizes[end] == 1:
                    end += 1
                want *= sizes[end]
                end += 1
        for d in range(at, last):
            if old[d][1] != old[d + 1][1] * old[d + 1][0]:
                return None
        step = old[last][1]
        cut: list[int] = []
        for size in reversed(sizes[i:end]):
            cut.append(step if size != 1 else 0)
            step *= size
        found += reversed(cut)
        at, i = last + 1, end
    return tuple(found)


def permuted(x: StridedArray, dims: Sequence[int]) -> StridedArray:
    """The dimensions in another order."""
    dims = [d % len(x.shape) for d in dims]
    return x.seen(tuple([x.shape[d] for d in dims]), tuple([x.strides[d] for d in dims]))


def expanded(x: StridedArray, shape: Shape) -> StridedArray:
    """Broadcast to `shape`: steps of zero along what is repeated."""
    return x.seen(shape, expanded_strides(x.shape, x.strides, shape))


@lru_cache(512)
def expanded_strides(shape: Shape, strides: Shape, new: Shape) -> Shape:
    """The strides of a view broadcast to another shape.

    >>> expanded_strides((3, 1), (8, 8), (2, 3, 4))
    (0, 8, 0)
    """
    lead = len(new) - len(shape)
    return (0,) * lead + tuple(
        0 if old == 1 and size != 1 else stride
        for old, size, stride in zip(shape, new[lead:], strides, strict=True)
    )


def sliced(x: StridedArray, slices: tuple[Any, ...]) -> StridedArray:
    """By Python slices, integers, None and Ellipsis, as NumPy does it."""
    given = sum(s is not None and s is not Ellipsis for s in slices)
    whole = (slice(None),) * (len(x.shape) - given)
    items: list[Any] = []
    for s in slices:
        items += whole if s is Ellipsis else (s,)
    if Ellipsis not in slices:
        items += whole
    shape: list[int] = []
    strides: list[int] = []
    offset = d = 0
    for item in items:
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            count = len(range(start, stop, step))
            shape.append(count)
            strides.append(stride * step)
            offset += start * stride if count else 0
        else:
            place = int(item)
            if not -size <= place < size:
                raise IndexError(f"index {place} is out of range for a dimension of size {size}")
            offset += place % size * stride
    return x.seen(tuple(shape), tuple(strides), offset)
