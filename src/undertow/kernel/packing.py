"""Packing: blocks of a product's operand copied to where its micro-kernel wants them.

    void pack(pool, map, from, to, k0, k, first, count, row)

writes steps k0 … k0+k-1 of `count` neighbouring columns (of B; of A, rows), beginning with number
`first`, to k rows of `row` bytes at `to`. `from` is the operand's first element and `map` says how
to find the others: here the two steps in bytes, (by k, by column). A convolution has a map and a
packing function of its own.

For A, whose rows are wanted with k running fastest, rows and steps of k change places.

Rows are written one after the other by whole vectors, and the last one needs room behind it. What
stands beyond `count` is not looked at, but no garbage, which may be slow to compute with.
"""

from __future__ import annotations

from .ir import WIDTH, Function

AHEAD = 8  # steps of k that are asked for in advance
PARAMETERS = ("k0", "k", "first", "count", "row")


def pack_function(name: str, kind: str, source: str, dtype: str, lanes: int) -> Function:
    """The packing function of elements of type `source` to those of type `dtype`.

    `kind` is "rows" where neighbouring columns are neighbours in memory, "transposed" where
    neighbouring steps of k are, "any" otherwise. `lanes` are those of a vector of type `dtype`.
    """
    f = Function(name)
    steps, x = f.buffer("map", "i64"), f.buffer("from", source)
    to = f.buffer("to", dtype, written=True)
    k0, k, first, count, row = (f.param(p) for p in PARAMETERS)
    by_k, by_column = f.load(steps, 0), f.load(steps, 1)
    start = f.moved(x, k0 * by_k + first * by_column)
    if kind == "transposed":
        apart = by_column // WIDTH[source]
        with f.vector(count) as i:
            with f.branch(k >= lanes), f.loop((k + (lanes - 1)) // lanes) as square:
                p = f.call("minimum", square * lanes, k - lanes)  # the last one overlaps
                place = i * apart + p
                places = [place + j for j in range(lanes)]
                values = [f.load(start, place) for place in places]
                line = f.moved(to, p * row)
                for value in values:
                    f.store(line, i, value, whole=True)
                    line = f.moved(line, row)
            with f.branch(k < lanes), f.loop(k) as p:
                f.store(f.moved(to, p * row), i, f.load(start, i * apart + p), whole=True)
        return f
    with f.loop(k) as p:
        of, line = f.moved(start, p * by_k), f.moved(to, p * row)
        if kind == "rows":
            ahead = f.moved(of, by_k * AHEAD)
            with f.vector(count) as i:
                f.prefetch(ahead, i)
                f.store(line, i, f.load(of, i), whole=True)
        else:
            with f.loop(count) as i:
                f.store(line, i, f.load(f.moved(of, i * by_column), 0))
            with f.vector((0 - count) & (lanes - 1)) as i:
                f.store(line, count + i, 0, whole=True)
    return f
