"""The form `sort` for groups: short runs by counting, then runs merged two by two.

Note [merging by rank]
Every element finds by itself where it goes. In a run of RUN elements that is the number of those
that come before it. In two sorted runs side by side it is its place in its own, and, by halving,
the number of those of the other that come before it. All of that is stable, needs no memory of a
group, and one kernel does all merges.
"""

from __future__ import annotations

from ..ir import FLOATS, Buffer, Function, Value
from ..offsets import Offset, at_row, plus
from .elements import each, steps_of

RUN = 32


class _Lines:
    """The elements that are sorted: lines of x, which lie anywhere."""

    def __init__(self, f: Function, dtype: str, kept: int, descending: bool) -> None:
        self.f = f
        self.descending = descending
        self.x = f.buffer("x", dtype)
        self.count, self.length = f.param("count"), f.param("length")
        self.sizes = [f.param(f"kept{d}") for d in range(kept)]
        self.steps = steps_of(f, "step", kept + 1)

    def base(self, line: Value) -> Offset:
        """Where in x a line begins."""
        return at_row(line, self.sizes, [self.steps[:-1]])[0]

    def key(self, base: Offset, at: Value) -> Value:
        """An element, as what is compared."""
        found = self.f.load(self.x, plus(at * self.steps[-1], base))
        return self.f.cast(found, "i32") if found.dtype == "bool" else found

    def before(self, a: Value, b: Value) -> Value:
        """Whether `a` comes before `b`, being not equal; NaN counts as largest."""
        found = a > b if self.descending else a < b
        if a.dtype in FLOATS:
            first, last = (a, b) if self.descending else (b, a)
            found = found | ((first != first) & (last == last))
        return found


def runs_function(name: str, double: bool, dtype: str, kept: int, descending: bool) -> Function:
    """Sorted runs: the positions along its line of each run's elements, in order.

    Buffers: order (i32, line after line), x. Parameters: the number of elements, the length of a
    line, the kept sizes, the steps of x along those and along the line.
    """
    f = Function(name, "i32", double)
    order = f.buffer("order", "i32", written=True)
    lines = _Lines(f, dtype, kept, descending)
    with each(f, lines.count) as i:
        line, at = i // lines.length, i % lines.length
        base = lines.base(line)
        start = (at // RUN) * RUN
        mine = lines.key(base, at)
        rank = f.state(f.value(0, "i32"), combine=lambda a, b: a + b)
        with f.loop(f.call("minimum", lines.length - start, RUN)) as j:
            other = lines.key(base, start + j)
            earlier = lines.before(other, mine)
            tie = ~lines.before(mine, other) & (start + j < at)
            rank.set(rank.get()[0] + f.cast(earlier | tie, "i32"))
        f.store(order, line * lines.length + start + rank.get()[0], at)
    return f


def merge_function(name: str, double: bool, dtype: str, kept: int, descending: bool) -> Function:
    """Neighbouring runs of `width` merged.

    Buffers: the new order, the old one, x. Parameters as for the runs, then the width of a run and
    the number of halvings.
    """
    f = Function(name, "i32", double)
    merged = f.buffer("merged", "i32", written=True)
    order = f.buffer("order", "i32")
    lines = _Lines(f, dtype, kept, descending)
    width, halvings = f.param("width"), f.param("halvings")
    with each(f, lines.count) as i:
        line, at = i // lines.length, i % lines.length
        base, first = lines.base(line), line * lines.length
        left = (at // (width * 2)) * (width * 2)
        middle = f.call("minimum", left + width, lines.length)
        end = f.call("minimum", left + width * 2, lines.length)
        is_left = at < middle
        mine = f.load(order, i)
        key = lines.key(base, mine)
        begin, stop = f.select(is_left, middle, left), f.select(is_left, end, middle)
        span = f.state(begin, stop, combine=lambda *both: both[2:])
        with f.loop(halvings) as _:
            low, high = span.get()
            half = (low + high) // 2
            at_half = f.call("minimum", half, lines.length - 1)
            other = lines.key(base, f.load(order, first + at_half))
            # Of equal elements those of the left run come first.
            earlier = f.select(is_left, lines.before(other, key), ~lines.before(key, other))
            open_ = low < high
            span.set(
                f.select(open_ & earlier, half + 1, low), f.select(open_ & ~earlier, half, high)
            )
        own = at - f.select(is_left, left, middle)
        f.store(merged, first + left + own + (span.get()[0] - begin), mine)
    return f


def sorted_function(name: str, double: bool, word: str, kept: int) -> Function:
    """The first elements of each line in order, and their positions.

    Buffers: values, indices, x, the order. Parameters: how many elements in all, how many of each
    line, the line's length, the kept sizes; the kept steps and the step along the line of values
    and indices (alike) and of x.
    """
    f = Function(name, "i32", double)
    values = f.buffer("values", word, written=True)
    indices = f.buffer("indices", "i64", written=True)
    x: Buffer = f.buffer("x", word)
    order = f.buffer("order", "i32")
    count, first, length = map(f.param, ("count", "first", "length"))
    sizes = [f.param(f"kept{d}") for d in range(kept)]
    out_steps, steps = steps_of(f, "out_step", kept + 1), steps_of(f, "step", kept + 1)
    with each(f, count) as i:
        line, at = i // first, i % first
        target, base = at_row(line, sizes, [out_steps[:-1], steps[:-1]])
        place = f.load(order, line * length + at)
        target = plus(at * out_steps[-1], target)
        f.store(values, target, f.load(x, plus(place * steps[-1], base)))
        f.store(indices, target, f.cast(place, "i64"))
    return f
