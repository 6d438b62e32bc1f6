"""The forms gather, take, scatter, put, searchsorted and nonzero for groups of threads.

Offsets are those of Note [indirect offsets], and indices are clamped by Note [clamped indices], of
kernel/indexing. An index is read as its lower 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ..ir import FLOATS, Buffer, Function, Value
from ..offsets import Offset, at_row, moved, plus
from ..scatter import put
from .elements import each, steps_of


def _reached(
    f: Function,
    start: Offset,
    indices: Sequence[Buffer],
    places: Sequence[Offset],
    reaches: Sequence[tuple[Value, Value]],
) -> Offset:
    """The offset to which index arrays, read at their places, lead from `start`."""
    for b, place, (reach, last) in zip(indices, places, reaches, strict=True):
        index = f.bitcast(f.cast(f.load(b, place), "i32"), "u32")
        near = f.call("minimum", index, f.bitcast(last, "u32"))
        start = plus(start, f.bitcast(near, "i32") * reach)
    return start


def _reaches(f: Function, count: int) -> list[tuple[Value, Value]]:
    return [(f.param(f"reach{i}"), f.param(f"last{i}")) for i in range(count)]


def gather_function(
    name: str, double: bool, word: str, indices: Sequence[str], rank: int
) -> Function:
    """Elements of type `word`, read at index arrays of these types.

    Buffers: out, x and the index arrays. Parameters: the number of elements, the sizes, each
    buffer's steps, the reach and the last index allowed of each index array.
    """
    f = Function(name, "i32", double)
    out, x = f.buffer("out", word, written=True), f.buffer("x", word)
    listed = [f.buffer(f"index{i}", t) for i, t in enumerate(indices)]
    count = f.param("count")
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = [steps_of(f, f"step{i}", rank) for i in range(2 + len(listed))]
    reaches = _reaches(f, len(listed))
    with each(f, count) as i:
        target, source, *places = at_row(i, sizes, steps)
        f.store(out, target, f.load(x, _reached(f, source, listed, places, reaches)))
    return f


def scatter_function(
    name: str, double: bool, kind: str, dtype: str, indices: Sequence[str], free: int, walked: int
) -> Function:
    """A thread for each position of the `free` dimensions, which walks the others in order.

    Elements that meet in one place are on one thread, so they combine in the order of the indices.
    Buffers: out, the source and the index arrays. Parameters: the number of threads, the sizes,
    each buffer's steps, the reach and the last index allowed of each index array.
    """
    f = Function(name, "i32", double)
    out, source = f.buffer("out", dtype, written=True), f.buffer("source", dtype)
    listed = [f.buffer(f"index{i}", t) for i, t in enumerate(indices)]
    count = f.param("count")
    sizes = [f.param(f"n{d}") for d in range(free + walked)]
    steps = [steps_of(f, f"step{i}", free + walked) for i in range(2 + len(listed))]
    reaches = _reaches(f, len(listed))
    with each(f, count) as i:
        places = at_row(i, sizes[:free], [s[:free] for s in steps])
        with ExitStack() as loops:
            for d in range(free, free + walked):
                at = loops.enter_context(f.loop(sizes[d]))
                places = moved(places, at, [s[d] for s in steps])
            place = _reached(f, places[0], listed, places[2:], reaches)
            put(f, kind, out, f.value(place, "i32"), f.load(source, places[1]))
    return f


def search_function(name: str, double: bool, dtype: str, right: bool, rank: int) -> Function:
    """The insertion point of each value into its row of edges, by halving.

    Buffers: out, edges, values. Parameters: the number of values, that of the edges of a row, the
    halvings, the sizes of the values' shape, the steps of out, of the edges' rows and of the values
    there, and the step along a row.
    """
    f = Function(name, "i32", double)
    out = f.buffer("out", "i64", written=True)
    edges, values = f.buffer("edges", dtype), f.buffer("values", dtype)
    count, length, halvings = map(f.param, ("count", "length", "halvings"))
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = [steps_of(f, f"step{i}", rank) for i in range(3)]
    along = f.param("along")
    with each(f, count) as i:
        target, row, place = at_row(i, sizes, steps)
        value = f.load(values, place)
        span = f.state(f.value(0, "i32"), length, combine=lambda *both: both[2:])
        with f.loop(halvings) as _:
            low, high = span.get()
            middle = (low + high) // 2
            # Beyond the last edge there is nothing to read, and nothing to decide.
            edge = f.load(edges, plus(f.call("minimum", middle, length - 1) * along, row))
            below = _below(f, edge, value, right) & (low < high)
            more = f.select(below, middle + 1, low)
            span.set(more, f.select(below | (low >= high), high, middle))
        f.store(out, target, f.cast(span.get()[0], "i64"))
    return f


def _below(f: Function, edge: Value, value: Value, right: bool) -> Value:
    """Whether a value's place is behind an edge; NaN counts as largest."""
    if edge.dtype == "bool":
        edge, value = f.cast(edge, "i32"), f.cast(value, "i32")
    before = edge <= value if right else edge < value
    if edge.dtype in FLOATS:
        nan = value != value
        before = before | (nan if right else nan & (edge == edge))
    return before


def nonzero_function(name: str, double: bool, dtype: str, rank: int) -> Function:
    """The coordinates of the elements that are not zero.

    Buffers: out (rows of `rank` numbers), x, and at each element how many up to it are not zero.
    Parameters: the number of elements, the sizes of x, its steps.
    """
    f = Function(name, "i32", double)
    out = f.buffer("out", "i64", written=True)
    x, before = f.buffer("x", dtype), f.buffer("before", "i32")
    count = f.param("count")
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = steps_of(f, "step", rank)
    with each(f, count) as i:
        coordinates: list[Value] = []
        rest = i
        for d in reversed(range(rank)):
            coordinates.insert(0, rest % sizes[d] if d else rest)
            rest = rest // sizes[d] if d else rest
        (place,) = at_row(i, sizes, [steps])
        found = f.cast(f.load(x, place), "bool")
        with f.branch(found):
            row = (f.load(before, i) - 1) * rank
            for d, at in enumerate(coordinates):
                f.store(out, row + d, f.cast(at, "i64"))
    return f
