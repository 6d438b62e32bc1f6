"""The forms scatter and put: elements combined into the positions that index arrays give.

Note [order of writes]
Elements that meet in one place combine in index order, so whatever may meet stays on one thread
and in order. There are two ways to share out the rest.

`lines_function`: along a dimension that the index arrays do not pick from (a free one), different
positions never meet. Lines of such positions are independent; each walks all its indices in order.
Long rows are several lines. If the target begins as one value everywhere, each line gets it first,
while it is in the cache.

`buckets_function`: where whole rows are picked and there are too few lines, the rows of the target
are divided into buckets. First each block of indices is sorted by bucket, stably, by counting. Then
each bucket is filled in order, with its part of every block. A bucket is a part of memory that
stays in the cache, so it is also where the target begins as a copy of x, or as zeros, which are
never read from memory.

Neither the number of threads nor that of the buckets shows in the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from .indexing import line_offsets, picked, reach_params, step_params, still
from .ir import Buffer, Function, Value
from .maps import BLOCK, Operand

KINDS = ("set", "add", "mul", "max", "min")
INDICES = 8192  # indices that are sorted at a time


def put(f: Function, kind: str, target: Buffer, place: Value, new: Value) -> None:
    """Combine `new` into an element of the target."""
    if kind != "set":
        old = f.load(target, place)
        if old.dtype == "bool":
            new = f.call("or" if kind in ("add", "max") else "and", old, new)
        else:
            new = f.call({"max": "maximum", "min": "minimum"}.get(kind, kind), old, new)
    f.store(target, place, new)


def lines_function(
    name: str,
    kind: str,
    out: Operand,
    source: Operand,
    indices: Sequence[Operand],
    free: int,
    indexed: int,
    row: bool,
    filled: bool,
) -> Function:
    """Write along lines; see Note [order of writes].

    The dimensions are `free` ones, then `indexed` ones, which are walked in order, then, with
    `row`, one more free one, whose elements are written together. Buffers: out, source and the
    index arrays. Parameters: the sizes, each buffer's steps (but for an innermost one that is
    known), the reach and the last index allowed of each index array, and, with `row`, how many of
    its elements a thread takes. `filled`, with one index array of reach 1 and without `row`, adds a
    buffer: the value with which all lines begin.
    """
    f = Function(name)
    target, values = f.buffer("out", out.dtype, written=True), f.buffer("source", source.dtype)
    listed = [f.buffer(f"index{i}", o.dtype) for i, o in enumerate(indices)]
    start_value = f.buffer("x", out.dtype) if filled else None
    rank = free + indexed + row
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = step_params(f, [out, source, *indices], rank)
    reaches = reach_params(f, len(indices))
    walked = sizes[free : free + indexed]

    width = sizes[-1] if row else f.value(1, "i64")
    piece = f.param("piece") if row else width
    pieces = (width + (piece - 1)) // piece if row else width
    work = piece
    for size in walked:
        work = work * size if work.op != "const" else size
    together = f.call("maximum", f.value(BLOCK, "i64") // f.call("maximum", work, 1), 1)
    lines = f.value(1, "i64")
    for size in sizes[:free]:
        lines = lines * size if lines.op != "const" else size
    groups = f.call("add", lines, together - 1) // together

    def write(bases: list[Value], start: Value, count: Value) -> None:
        """What one position of the index arrays brings."""
        into, at, *places = bases
        moving = []
        inner = [s[-1] for s in steps[2:]]
        for place, step, index, reach in zip(places, inner, listed, reaches, strict=True):
            if row and not still(step):
                moving.append((place, step, index, reach))
            else:
                into = into + picked(f, index, place, reach)
        if not row:
            put(f, kind, target, into, f.load(values, at))
            return
        with f.loop(count) if moving else f.vector(count) as i:
            j = start + i
            place = into + j * steps[0][-1]
            for begin, step, index, reach in moving:
                place = place + picked(f, index, begin + j * step, reach)
            put(f, kind, target, place, f.load(values, at + j * steps[1][-1]))

    def walk(bases: list[Value], d: int, start: Value, count: Value) -> None:
        if d == free + indexed:
            write(bases, start, count)
            return
        with f.loop(sizes[d]) as i:
            walk([b + i * s[d] for b, s in zip(bases, steps, strict=True)], d + 1, start, count)

    with f.parallel(groups * pieces) as block:
        start = (block % pieces) * piece
        first = (block // pieces) * together
        count = f.call("minimum", f.call("sub", width, start), piece)
        with f.loop(f.call("minimum", f.call("sub", lines, first), together)) as r:
            bases = line_offsets(f, first + r, sizes[:free], steps)
            if start_value is not None:
                with f.vector(reaches[0][1] + 1) as i:
                    f.store(target, bases[0] + i, f.load(start_value, 0))
            walk(bases, free, start, count)
    return f


def buckets_function(
    name: str,
    kind: str,
    dtype: str,
    base: int | None,
    source: Operand,
    indices: Sequence[str],
    row: bool,
) -> Function:
    """Write rows into buckets; see Note [order of writes].

    Buffers: out, whose rows are contiguous; x, if `base` is not None, with which all of out begins
    (its elements lie one after the other, or, if `base` is 0, it is only one); source; the index
    arrays, each a vector; marks, for each block of indices two more than buckets; and for each
    index a pair of words, or, without `row`, a key and a value.
    Parameters: the numbers of indices, of rows and of elements in a row; the steps from row to row
    of out and of source (and within its rows, if that is not known); the steps of the index arrays;
    the reach, in rows, and the last index allowed of each; the logarithm of the rows in a bucket,
    and the number of buckets.
    """
    f = Function(name)
    target = f.buffer("out", dtype, written=True)
    before = None if base is None else f.buffer("x", dtype)
    values = f.buffer("source", source.dtype)
    listed = [f.buffer(f"index{i}", t) for i, t in enumerate(indices)]
    marks = f.buffer("marks", "i64", True)
    pairs = f.buffer("pairs", "u64" if row else "u32", True)
    carried = None if row else f.buffer("carried", source.dtype, True)
    number, height, width = f.param("number"), f.param("height"), f.param("width")
    row_step, from_step = f.param("row_step"), f.param("from_step")
    within: Value | int = f.param("within") if source.step is None else source.step
    index_steps = [f.param(f"step{i}") for i in range(len(indices))]
    reaches = reach_params(f, len(indices))
    shift, buckets = f.param("shift"), f.param("buckets")
    blocks = (number + (INDICES - 1)) // INDICES

    def key(n: Value) -> Value:
        """The row that an index names."""
        parts = [
            picked(f, index, n * step, reach)
            for index, step, reach in zip(listed, index_steps, reaches, strict=True)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    # Of each block, the place after bucket b's indices, and before that of the next, is
    # marks[b + 1]; until all are in place, it is where the next one of bucket b goes.
    with f.parallel(blocks) as block:
        first = block * INDICES
        count = f.call("minimum", number - first, INDICES)
        mine = block * (buckets + 2)
        with f.vector(buckets + 2) as i:
            f.store(marks, mine + i, 0)
        with f.loop(count) as i:
            mark = mine + (key(first + i) >> shift) + 2
            f.store(marks, mark, f.load(marks, mark) + 1)
        with f.loop(buckets) as bucket:
            mark = mine + bucket + 2
            f.store(marks, mark, f.load(marks, mark) + f.load(marks, mark - 1))
        with f.loop(count) as i:
            n = first + i
            found = key(n)
            mark = mine + (found >> shift) + 1
            slot = f.call("minimum", f.load(marks, mark), count - 1)  # should an index have changed
            f.store(marks, mark, slot + 1)
            if carried is None:
                pair = (f.cast(found, "u64") << 32) | f.cast(n, "u64")
                f.store(pairs, first + slot, pair)
            else:
                f.store(pairs, first + slot, f.cast(found, "u32"))
                f.store(carried, first + slot, f.load(values, n * from_step))

    with f.parallel(buckets) as bucket:
        if before is not None:
            low, high = bucket << shift, f.call("minimum", (bucket + 1) << shift, height)
            begin = low * width
            with f.vector((high - low) * width) as i:
                f.store(target, begin + i, f.load(before, (begin + i) * base))
        with f.loop(blocks) as block:
            mark = block * (buckets + 2) + bucket
            begin = f.load(marks, mark)
            with f.loop(f.load(marks, mark + 1) - begin) as i:
                slot = block * INDICES + begin + i
                pair = f.load(pairs, slot)
                if carried is not None:
                    place = f.cast(pair, "i64") * row_step
                    put(f, kind, target, place, f.load(carried, slot))
                else:
                    into = f.cast(pair >> 32, "i64") * row_step
                    at = f.cast(pair & 0xFFFFFFFF, "i64") * from_step
                    with f.vector(width) as j:
                        put(f, kind, target, into + j, f.load(values, at + j * within))
    return f
