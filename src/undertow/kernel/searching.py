"""The form searchsorted: for each value, how many sorted edges lie before it.

Note [halving]
All values are searched for in the same number of steps. A step goes on by a power of two, half of
the one before, if the last of the edges that it passes by lies before the value; one that would
leave the edges is not taken. No branch depends on the data, so each lane of a vector has a value,
and the steps of `TOGETHER` vectors overlap.
"""

from __future__ import annotations

from .ir import FLOATS, Function, Value

BLOCK = 1024  # values that a thread takes at a time
TOGETHER = 4


def search_function(name: str, dtype: str, right: bool) -> Function:
    """The kernel over rows of edges and of values, which are contiguous; see Note [halving].

    NaN is greater than all numbers. Buffers: out, edges, values. Parameters: the rows, the values
    of a row, its edges, and how many steps there are: as many as the number of edges has bits.
    """
    f = Function(name)
    out = f.buffer("out", "i64", written=True)
    edges, values = f.buffer("edges", dtype), f.buffer("values", dtype)
    rows, width, count, steps = (f.param(p) for p in ("rows", "width", "count", "steps"))

    def before(edge: Value, value: Value) -> Value:
        if edges.scalar not in FLOATS:
            return edge <= value if right else edge < value
        missing = value != value
        return (edge <= value) | missing if right else (edge < value) | (missing & (edge == edge))

    pieces = (width + (BLOCK - 1)) // BLOCK
    with f.parallel(rows * pieces) as block:
        row, start = block // pieces, (block % pieces) * BLOCK
        base, first = row * count - 1, row * width + start
        size = f.call("minimum", width - start, BLOCK)
        # The last part overlaps the one before it where they are too long: equal results.
        part = (size + (TOGETHER - 1)) // TOGETHER
        begins = [first + f.call("minimum", part * n, size - part) for n in range(TOGETHER)]
        with f.vector(part) as i:
            given = [f.load(values, begin + i) for begin in begins]
            passed = [f.state(f.const(0, "i64"), combine=lambda a, b: b) for _ in given]
            with f.loop(steps) as step:
                far = f.value(1, "i64") << (steps - 1 - step)
                for value, state in zip(given, passed, strict=True):
                    (now,) = state.get()
                    then = now + far
                    edge = f.load(edges, base + f.call("minimum", then, count))
                    state.set(f.select((then <= count) & before(edge, value), then, now))
            for begin, state in zip(begins, passed, strict=True):
                f.store(out, begin + i, state.get()[0])
    return f
