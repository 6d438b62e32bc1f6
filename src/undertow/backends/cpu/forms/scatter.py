"""Kernels that write at index arrays: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....kernel.layout import some
from ....kernel.lower import NotCompiled
from ....kernel.maps import Operand
from ....kernel.scatter import INDICES, buckets_function, lines_function
from ... import memory
from ...indirect import Space, gather_space, take_space
from ...threads import current_limit
from ..calls.launch import Launch, Room, launch_once, plan_of, planned, run, unwritten
from ..calls.layouts import aligned, known, steps_of, typed
from ..codegen.kernels import kernel, type_of
from .copies import copied, run_assign, run_cast
from .indexing import WORDS

# Bytes of a bucket: with the rows that go there it shall stay in a core's second cache.
BUCKET = 512 << 10
FEWEST, MOST = 16, 512  # buckets; enough for the threads, and few enough to write to all at once
PIECE = 1024  # elements of a long row that one thread takes at most
# Sorting into buckets costs a few nanoseconds for each index. That pays on several threads, where
# rows are too short to be shared, and the target is larger than a cache: so many bytes for one
# thread, fewer for more.
SORTED = 4096  # indices
TOGETHER = 2 * INDICES  # that are sorted at a time by each thread: the scratch memory is bounded
SPREAD = 16 << 20
_BUCKETS = object()  # in the place of a plan


def run_scatter(kind: str, x: Any, dim: int, index: Any, source: Any, inplace: bool) -> Any:
    """`Backend.scatter`; None if there is no kernel."""
    return _run(kind, x, dim, [index], source, inplace)


def run_put(kind: str, x: Any, index: tuple[Any, ...], source: Any, inplace: bool) -> Any:
    """`Backend.put`; None if there is no kernel."""
    dims = tuple([d for d, i in enumerate(index) if i.__class__ is np.ndarray])
    return _run(kind, x, dims, [index[d] for d in dims], source, inplace)


def _space(dims: int | tuple[int, ...], out: Any, indices: Sequence[Any]) -> Space:
    """The loop of scatter along a dim, or of put at some of them."""
    if isinstance(dims, int):
        return gather_space(out, dims, indices[0])
    return take_space(out, dims, indices)


def _run(
    kind: str, x: Any, dims: int | tuple[int, ...], indices: list[Any], source: Any, inplace: bool
) -> Any:
    word = WORDS.get(x.itemsize) if kind == "set" else type_of(x.dtype)
    if not word or source.dtype != x.dtype:
        return None
    if word in ("f16", "bf16"):  # combined in single precision, rounded at the end
        single = np.dtype(np.float32)
        wide = _cast(x, single)
        if _run(kind, wide, dims, indices, _cast(source, single), True) is None:
            return None
        if not inplace:
            return _cast(wide, x.dtype)
        _assign(x, wide)
        return x
    if inplace:
        if np.may_share_memory(x, source):
            source = copied(source)
        indices = [copied(i) if np.may_share_memory(x, i) else i for i in indices]
    out = x if inplace else memory.empty(x.shape, x.dtype)
    same = not inplace and not any(x.strides)
    given = (out, source, *indices)
    plan = plan_of(_make, given, kind, word, dims, same, current_limit())
    if not plan:
        return None
    if plan is _BUCKETS:
        space = _space(dims, out, indices)
        _into_buckets(kind, word, out, None if inplace else x, space, indices, source)
        return out
    filled = plan.more
    if not (filled or inplace):
        _assign(out, x)
    run(plan, [source, *indices, *([x] if filled else [])], outs=(out,))
    return out


# Along lines -----------------------------------------------------------------------------------
def _make(
    operands: Sequence[Any],
    kind: str,
    word: str,
    dims: int | tuple[int, ...],
    same: bool,
    threads: int,
) -> Any:
    """The plan for operands like these; `same` tells that the target begins as one value.

    It remembers whether it writes all of these, which are not there before.
    """
    out, source, *indices = operands
    space = _space(dims, out, indices)
    if 0 in space.shape or not aligned(source):
        raise NotCompiled("no elements, or not a whole number of them apart")
    steps = [space.x, steps_of(source, space.shape), *space.indices]
    walked = [d for d in range(len(space.shape)) if d not in space.free]
    sizes, free = some(space.shape, space.free, steps)
    length, along = some(space.shape, walked, steps, ordered=True)
    row = free[0][-1] == 1
    lines = sizes[:-1] if row else sizes
    if lines == (1,):
        lines = ()
    count, piece = math.prod(lines), 0
    if row:
        moving = any(s[-1] for s in free[2:])
        piece = _piece(sizes[-1], count, moving, source.itemsize, threads)
    number = math.prod(length)
    if count < FEWEST and _sort_pays(space, piece, source.itemsize, number, threads):
        return _BUCKETS
    inner = known([s[-1] for s in free]) if row else [None] * len(free)
    to, given, *others = typed([word, word, *(type_of(i.dtype) for i in indices)], inner)
    # Then the lines are all of the target, and each knows its own elements.
    filled = not row and same and space.reaches == [1]
    filled = filled and out.size == count * (space.lasts[0] + 1)
    how = (len(lines), len(length), row, filled)
    call = kernel("scatter", lines_function, kind, to, given, tuple(others), *how)
    ints = [*lines, *length, *(sizes[-1:] if row else ())]
    for mine, other, last in zip(free, along, inner, strict=True):
        ints += mine[: len(lines)] + other
        if row and last is None:
            ints.append(mine[-1])
    for pair in zip(space.reaches, space.lasts, strict=True):
        ints += pair
    if row:
        ints.append(piece)
    launch = Launch(call, len(operands) + filled, ints)
    return planned(launch, [Room(out.shape, out.dtype)], more=filled)


def _piece(width: int, lines: int, moving: bool, itemsize: int, threads: int) -> int:
    """How many elements of a row one thread takes.

    Where there are fewer lines than threads, they share a row, but not a cache line of it; unless
    its elements go to different addresses, where two threads hardly ever meet.
    """
    if lines >= FEWEST:
        return min(width, PIECE)
    parts = -(-threads // lines)
    least = 4 if moving else max(1, memory.LINE // itemsize)
    return min(PIECE, -(-width // parts // least) * least)


# Into buckets ----------------------------------------------------------------------------------
def _sort_pays(space: Space, piece: int, itemsize: int, number: int, threads: int) -> bool:
    """Whether buckets are possible, and faster than lines of such pieces."""
    if threads == 1 or number < SORTED or not _rows_fit(space):
        return False
    width = math.prod([space.shape[d] for d in space.free])
    height = math.prod([last + 1 for last in space.lasts])
    pieces = -(-width // piece) if piece else 1
    return pieces < threads and itemsize * width * height * threads >= SPREAD


def _rows_fit(space: Space) -> bool:
    """Whether the index arrays number rows of the target, each of which is contiguous."""
    if any(i[d] and space.shape[d] > 1 for i in space.indices for d in space.free):
        return False
    sizes, steps = some(space.shape, space.free, [space.x])
    if len(sizes) > 1 or (sizes != (1,) and steps[0] != (1,)):
        return False
    heights = [last + 1 for last in space.lasts]
    for reach, following, height in zip(
        space.reaches, space.reaches[1:], heights[1:], strict=False
    ):
        if reach != following * height:
            return False
    return space.reaches[-1] > 0 and math.prod(heights) < 1 << 31


def _into_buckets(
    kind: str, word: str, out: Any, x: Any, space: Space, indices: Sequence[Any], source: Any
) -> None:
    """`x` (None: what is there) and what the indices bring, in `out`."""
    walked = [d for d in range(len(space.shape)) if d not in space.free]
    number = math.prod([space.shape[d] for d in walked])
    width = math.prod([space.shape[d] for d in space.free])
    height = math.prod([last + 1 for last in space.lasts])
    order = [*walked, *sorted(space.free, key=lambda d: -space.x[d])]
    values = np.broadcast_to(source, space.shape).transpose(order).reshape(number, width)
    common = tuple([space.shape[d] for d in walked])
    flat = [
        as_strided(i, common, [steps[d] * i.itemsize for d in walked]).reshape(-1)
        for i, steps in zip(indices, space.indices, strict=True)
    ]
    row_step = space.reaches[-1]
    base: int | None = None
    if x is not None:
        if row_step == width and out.size == height * width:
            base = 1 if x.flags.c_contiguous else None if any(x.strides) else 0
        if base is None:
            _assign(out, x)
    row = width > 1
    wanted = max(FEWEST, min(MOST, height * width * out.itemsize // BUCKET))
    shift = max(0, ((height - 1) // wanted).bit_length())
    buckets = ((height - 1) >> shift) + 1
    together = max(1, min(number, TOGETHER * current_limit()))
    scratch = [np.empty(-(-together // INDICES) * (buckets + 2), np.int64)]
    if row:
        scratch.append(np.empty(together, np.uint64))
    else:
        scratch += [np.empty(together, np.uint32), np.empty(together, source.dtype)]
    from_step, within = (s // source.itemsize for s in values.strides)
    step = within if within in (0, 1) else None
    types = tuple([type_of(i.dtype) for i in indices])
    for first in range(0, max(number, 1), together):
        part = slice(first, first + together)
        if first:
            base = None  # it has been written
        call = kernel("put", buckets_function, kind, word, base, Operand(word, step), types, row)
        given = [i[part] for i in flat]
        ints = [len(given[0]), height, width, row_step, from_step]
        if step is None:
            ints.append(within)
        ints += [i.strides[0] // i.itemsize for i in flat]
        for reach, last in zip(space.reaches, space.lasts, strict=True):
            ints += (reach // row_step, last)
        arrays = [out, *([] if base is None else [x]), values[part], *given, *scratch]
        launch_once(call, arrays, *ints, shift, buckets)


def _cast(x: Any, dtype: Any) -> Any:
    found = run_cast(x, dtype)
    if found is None:
        unwritten()
        found = x.astype(dtype)
    return found


def _assign(target: Any, source: Any) -> None:
    if not run_assign(target, source):
        unwritten()
        np.copyto(target, source, casting="unsafe")
