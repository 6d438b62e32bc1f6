"""Scans, sorts and indexing of arrays that no kernel sees as a whole; see Note [large arrays].

Each function is what becomes of a form whose kernel cannot see its arrays. It is given `whole`, the
form itself for arrays that can be seen, and calls it for pieces: of the dimensions in which lines
lie side by side, and where a line alone is too long, of the line, with what the pieces before came
to. Results are written into their places piece by piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...kernel.expr import call, trace, where
from .. import compositions
from ..memory_types import is_half
from ..strided import StridedArray, expanded
from .large import narrowed, visible
from .layouts import overlap
from .memory import LargeBlock

Range = tuple[int, int]
Whole = Callable[..., Any]
_SINGLE, _INT64, _BOOL = np.dtype(np.float32), np.dtype(np.int64), np.dtype(bool)
_SUM = trace(lambda a, b: a + b, 2)
_CHOICE = trace(lambda c, a, b: where(c, a, b), 3)
_INSIDE = trace(
    lambda i, low, high: call("logical_and", call("ge", i, low), call("lt", i, high)), 3
)
_OR_NEXT = trace(
    lambda i, low, high: where(
        call("logical_and", call("ge", i, low), call("lt", i, high)), i - low, high - low
    ),
    3,
)
_OR_CARRIED = trace(lambda i, before, shift: where(call("eq", i, 0), before, i + shift), 3)


def regions(shape: Sequence[int], dims: Sequence[int], most: int) -> Iterator[list[Range]]:
    """Ranges of all dimensions that cover a shape in row-major order, cut along some dimensions.

    Each has at most `most` positions along those, and at least one.

    >>> list(regions((2, 3), (0, 1), 2))
    [[(0, 1), (0, 2)], [(0, 1), (2, 3)], [(1, 2), (0, 2)], [(1, 2), (2, 3)]]
    """
    steps, left = list(shape), max(most, 1)
    for d in reversed(list(dims)):
        steps[d] = max(min(shape[d], left), 1)
        left = left // shape[d] if steps[d] == shape[d] else 1
    ranges: list[Range] = [(0, n) for n in shape]

    def cut(given: Sequence[int]) -> Iterator[list[Range]]:
        if not given:
            yield list(ranges)
            return
        d = given[0]
        for start in range(0, shape[d], steps[d]):
            ranges[d] = (start, min(start + steps[d], shape[d]))
            yield from cut(given[1:])

    return cut(list(dims))


def within(a: StridedArray, ranges: Sequence[Range]) -> StridedArray:
    """The elements in ranges of all dimensions."""
    for d, (start, stop) in enumerate(ranges):
        if (start, stop) != (0, a.shape[d]):
            a = narrowed(a, d, start, stop)
    return a


def shown(k: Any, a: StridedArray) -> StridedArray:
    """The array as a kernel sees it: few elements that lie far apart are copied."""
    if a.buffer.__class__ is not LargeBlock:
        return a
    found = visible(k, [a], 0)
    copied: StridedArray = k.copy(a) if found is None else found[0]
    return copied


def _others(shape: Sequence[int], dim: int) -> list[int]:
    return [d for d in range(len(shape)) if d != dim]


def _with(ranges: Sequence[Range], dim: int, own: Range) -> list[Range]:
    """Ranges with another one along a dimension."""
    return [own if d == dim else r for d, r in enumerate(ranges)]


# Lines ---------------------------------------------------------------------------------------
def scan(k: Any, whole: Whole, kind: str, x: StridedArray, dim: int) -> Any:
    """Of lines side by side, then of pieces of a line, which begin with the last result before."""

    def run(given: Sequence[StridedArray]) -> list[StridedArray]:
        found = whole(kind, given[0], dim)
        return list(found) if isinstance(found, tuple) else [found]

    outs = [
        k.empty(x.shape, t) for t in ([x.dtype, _INT64] if kind in ("max", "min") else [x.dtype])
    ]
    _scanned(k, run, [x], dim, outs)
    return outs[0] if len(outs) == 1 else tuple(outs)


def recurrence(
    k: Any, whole: Whole, a: StridedArray, b: StridedArray, dim: int, reverse: bool
) -> StridedArray:
    """The same; a step before the first one makes the last result of the piece before."""
    out: StridedArray = k.empty(b.shape, b.dtype)
    given = [expanded(a, b.shape), b, out]
    if reverse:
        given = [k.slice(x, (*(slice(None),) * dim, slice(None, None, -1))) for x in given]
    _scanned(k, lambda pair: [whole(*pair, dim, False)], given[:2], dim, given[2:])
    return out


def _scanned(
    k: Any,
    run: Callable[[Sequence[StridedArray]], list[StridedArray]],
    inputs: Sequence[StridedArray],
    dim: int,
    outs: Sequence[StridedArray],
) -> None:
    """A scan of pieces into `outs`: results, and perhaps where along the line they were found."""
    shape, dtype = outs[0].shape, outs[0].dtype
    wide = _SINGLE if is_half(dtype) else dtype
    length = shape[dim]
    most = k.limits.max_binding // max(wide.itemsize, *[o.dtype.itemsize for o in outs])
    for ranges in regions(shape, _others(shape, dim), most // length):
        step = length if length <= most else most - 1
        carried: list[StridedArray] = []
        for start in range(0, length, step):
            part = _with(ranges, dim, (start, min(start + step, length)))
            given = [shown(k, within(x, part)) for x in inputs]
            if step < length:  # what is carried is not rounded to half precision
                given = [x if x.dtype == wide else k.cast(x, wide) for x in given]
            if not carried:
                found = run(given)
            else:
                first = [k.full(carried[0].shape, 1, wide)] * (len(given) - 1) + carried[:1]
                found = run([k.concat(pair, dim) for pair in zip(first, given, strict=True)])
                found = [narrowed(f, dim, 1, f.shape[dim]) for f in found]
                if len(found) > 1:
                    found[1] = k.map(_OR_CARRIED, (found[1], carried[1], start - 1), _INT64)
            for out, result in zip(outs, found, strict=True):
                k.assign(within(out, part), result)
            last = found[0].shape[dim]
            carried = [narrowed(f, dim, last - 1, last) for f in found]


def sort(
    k: Any, whole: Whole, x: StridedArray, dim: int, descending: bool, count: int | None = None
) -> tuple[StridedArray, StridedArray]:
    """Of lines side by side; a line that is too long is sorted in pieces, which are merged."""
    length = x.shape[dim]
    first = length if count is None else min(count, length)
    shape = (*x.shape[:dim], first, *x.shape[dim + 1 :])
    outs = (k.empty(shape, x.dtype), k.empty(shape, _INT64))
    most = k.limits.max_binding // _INT64.itemsize
    for ranges in regions(x.shape, _others(x.shape, dim), most // length):
        part = within(x, ranges)
        if length <= most:
            found = whole(shown(k, part), dim, descending, count)
        else:
            found = _long_sort(k, whole, part, dim, descending, first, most // 2)
        for out, result in zip(outs, found, strict=True):
            k.assign(within(out, _with(ranges, dim, (0, first))), result)
    return outs


def _long_sort(
    k: Any, whole: Whole, x: StridedArray, dim: int, descending: bool, first: int, piece: int
) -> list[StridedArray]:
    """One line: the first so many of its elements in order, and where they were.

    A merge is a sort of two pieces one behind the other, which keeps equal elements in order.
    """

    def merged(a: Sequence[Any], b: Sequence[Any], count: int | None = None) -> list[StridedArray]:
        values, places = (k.concat(pair, dim) for pair in zip(a, b, strict=True))
        found, at = whole(values, dim, descending, count)
        return [found, k.gather(places, dim, at)]

    runs: list[list[StridedArray]] = []
    for start in range(0, x.shape[dim], piece):
        part = narrowed(x, dim, start, min(start + piece, x.shape[dim]))
        values, at = whole(shown(k, part), dim, descending, min(first, part.shape[dim]))
        run = [values, k.map(_SUM, (at, start), _INT64)]
        if runs and first <= piece:
            runs[0] = merged(runs[0], run, min(first, start + part.shape[dim]))
        else:
            runs.append(run)
    if first > piece:  # neighbours in turn: as many rounds as there are pieces bring all in order
        for i in range(len(runs)):
            for j in range(i % 2, len(runs) - 1, 2):
                both = merged(runs[j], runs[j + 1])
                size = runs[j][0].shape[dim]
                runs[j] = [narrowed(a, dim, 0, size) for a in both]
                runs[j + 1] = [narrowed(a, dim, size, a.shape[dim]) for a in both]
    joined = [k.concat(part, dim) for part in zip(*runs, strict=True)]
    return [narrowed(a, dim, 0, first) for a in joined]


# Indexing ------------------------------------------------------------------------------------
def gather(k: Any, whole: Whole, x: StridedArray, dim: int, index: StridedArray) -> StridedArray:
    """Of pieces of the index, from each range of what it picks from."""
    out: StridedArray = k.empty(index.shape, x.dtype)
    most = k.limits.max_binding // max(x.dtype.itemsize, index.dtype.itemsize)
    for ranges in regions(index.shape, range(len(index.shape)), most):
        at = shown(k, within(index, ranges))
        lines = within(x, _with(ranges, dim, (0, x.shape[dim])))
        length = lines.shape[dim]
        step = min(k.limits.max_binding // x.dtype.itemsize // (lines.size // length), length)
        found: Any = None
        for low in range(0, length, step):
            high = min(low + step, length)
            local = at if not low else k.map(_SUM, (at, -low), at.dtype)
            some = whole(shown(k, narrowed(lines, dim, low, high)), dim, local)
            if found is not None:
                inside = k.map(_INSIDE, (at, low, high), _BOOL)
                some = k.map(_CHOICE, (inside, some, found), x.dtype)
            found = some
        k.assign(within(out, ranges), found)
    return out


def scatter(
    k: Any,
    whole: Whole,
    kind: str,
    x: StridedArray,
    dim: int,
    index: StridedArray,
    source: StridedArray,
    inplace: bool = False,
) -> StridedArray:
    """Into each range of the target, pieces of the index one after the other.

    What belongs into another range goes into one place more, behind the range.
    """
    if inplace:
        source, index = (k.copy(a) if overlap(x, a) else a for a in (source, index))
    out: StridedArray = x if inplace else k.copy(x)
    if 0 in index.shape:
        return out
    if not source.shape:
        source = expanded(source, index.shape)
    wide = _SINGLE if kind != "set" and is_half(x.dtype) else x.dtype
    most = k.limits.max_binding // max(wide.itemsize, index.dtype.itemsize)
    size, length = x.shape[dim], index.shape[dim]
    for ranges in regions(index.shape, _others(index.shape, dim), most // (size + 1)):
        lines = within(index, _with(ranges, dim, (0, 1))).size
        step, walked = min(most // lines - 1, size), min(most // lines, length)
        for low in range(0, size, step):
            high = min(low + step, size)
            target = within(out, _with(ranges, dim, (low, high)))
            longer = _with([(0, n) for n in target.shape], dim, (0, high - low + 1))
            work = k.empty(tuple([n for _, n in longer]), wide)
            kept = narrowed(work, dim, 0, high - low)
            k.assign(kept, target)
            for start in range(0, length, walked):
                part = _with(ranges, dim, (start, min(start + walked, length)))
                at, values = (shown(k, within(a, part)) for a in (index, source))
                if high - low < size:
                    at = k.map(_OR_NEXT, (at, low, high), at.dtype)
                values = values if values.dtype == wide else k.cast(values, wide)
                whole(kind, work, dim, at, values, True)
            k.assign(target, kept)
    return out


def take(k: Any, whole: Whole, x: StridedArray, index: tuple[Any, ...]) -> StridedArray:
    """A gather of rows of a matrix."""
    found: StridedArray = compositions.take(k, x, index)
    return found


def put(
    k: Any,
    whole: Whole,
    kind: str,
    x: StridedArray,
    index: tuple[Any, ...],
    source: StridedArray,
    inplace: bool = False,
) -> StridedArray:
    """A scatter into rows of a matrix."""
    found: StridedArray = compositions.put(k, kind, x, index, source, inplace)
    return found


def searchsorted(
    k: Any, whole: Whole, edges: StridedArray, values: StridedArray, right: bool
) -> StridedArray:
    """Of pieces of the values: in each piece of the edges, added up."""
    out: StridedArray = k.empty(values.shape, _INT64)
    length = edges.shape[-1]
    for ranges in regions(
        values.shape, range(len(values.shape)), k.limits.max_binding // _INT64.itemsize
    ):
        part = shown(k, within(values, ranges))
        lines = edges
        if len(edges.shape) > 1:
            lines = within(edges, [*ranges[:-1], (0, length)])
        width = max(edges.dtype.itemsize, _SINGLE.itemsize)  # halves are searched in single
        step = max(1, k.limits.max_binding // width // max(1, math.prod(lines.shape[:-1])))
        total: Any = None
        for start in range(0, length, step):
            some = narrowed(lines, len(lines.shape) - 1, start, min(start + step, length))
            found = whole(shown(k, some), part, right)
            total = found if total is None else k.map(_SUM, (total, found), _INT64)
        k.assign(within(out, ranges), k.full(part.shape, 0, _INT64) if total is None else total)
    return out


def nonzero(k: Any, whole: Whole, x: StridedArray) -> StridedArray:
    """Of pieces in row-major order."""
    rank = len(x.shape)
    found: list[StridedArray] = []
    for ranges in regions(
        x.shape, range(rank), k.limits.max_binding // (max(rank, 1) * _INT64.itemsize)
    ):
        part = whole(shown(k, within(x, ranges)))
        for d, (start, _) in enumerate(ranges):
            if start and part.size:
                column = narrowed(part, 1, d, d + 1)
                k.map(_SUM, (column, start), _INT64, column)
        found.append(part)
    joined: StridedArray = k.concat(found, 0)
    return joined
