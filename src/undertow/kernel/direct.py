"""The form `conv` without a matrix product, for few channels: `slide` and `weigh`.

Note [long and short]
Along one dimension, x's element q · a + t · b - low meets the position q of a long array and the
tap t of a short one. `slide` computes the long one (an output; few taps), `weigh` the short one (a
kernel's gradient, from the cotangent of the output, which then plays the form's kernel). Lanes run
along the last long dimension; taps are unrolled. There are always three dimensions, of size one
where the convolution has fewer.

Note [tiles]
The long array is done in tiles: whole, or a few of the outermost of those of its dimensions that
fit. What a tile sees of x is copied to scratch memory that stays in the first cache: padded with
zeros, in the type of the computation, and where a > 1 sorted by the remainder of the index mod a
(a `phase`), so that neighbouring positions always meet neighbouring elements. A tile that is the
whole array leaves the zeros of the padding in place for the next one: its scratch is `framed`.

Note [order of weights]
A weight's sum runs over a fixed number of chunks of tiles, whose sums, kept in f64, are added in
order: it does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .ir import Function, State, Value
from .places import quotient

HELD = 24  # weights that are kept in registers


class Lines(NamedTuple):
    """How x's rows are copied and met by taps."""

    dtype: str
    step: int | None  # of x from position to position: 1, 2 or a parameter
    taps: int  # unrolled
    run: int  # of them neighbours
    ahead: int  # elements between the beginning of a line of the cache and the first of a run


class Slide(NamedTuple):
    """What distinguishes kernels that compute the long array."""

    lines: Lines
    out_step: int | None  # 1 or a parameter
    rounds: bool  # whether the unrolled taps are not all, in one channel
    outputs: int  # channels at once
    rest: bool  # whether there are others, then one at a time
    parts: int  # of a row, at once
    stream: bool


class Weigh(NamedTuple):
    """What distinguishes kernels that compute the short array."""

    lines: Lines
    long_step: int | None  # 1 or a parameter
    outputs: int  # channels at once
    rest: bool  # whether there are others, then one at a time
    tall: bool  # lanes walk down the rows of a tile, else along them


class _Tap(NamedTuple):
    place: Value  # in scratch
    ahead: int  # of it
    short: Value  # place of its run in the short array
    number: int  # in its run


class _Windows:
    """Tiles of the long array, and the scratch memory with what they see of x.

    The table begins with pairs for each run of unrolled taps: a place in scratch, and one in the
    short array. It holds pairs for each round of taps too, the phases, and pairs for each row of a
    tile: a place in scratch, and one in the long array.
    """

    def __init__(self, f: Function, lines: Lines) -> None:
        self.f, self.lines = f, lines
        self.x = f.buffer("x", lines.dtype)
        self.dtype = self.x.scalar
        self.scratch = f.buffer("scratch", self.dtype, written=True)
        self.table = f.buffer("table", "i64")
        self.long = self._three("long")  # sizes of the long array
        self.tile = self._three("tile")  # of a tile of it
        self.grid = self._three("grid")  # tiles
        self.spread = self._three("spread")  # steps in x from position to position: a
        self.low = self._three("low")  # padding in front
        self.sizes = self._three("size")  # of x
        self.seen = [f.param("seen0"), f.param("seen1")]  # rows of x that a tile meets
        self.line = f.param("line")  # elements of one phase of such a row
        self.phases, self.rounds = f.param("phases"), f.param("rounds")
        self.image = f.param("image")  # elements of scratch for one image
        self.per_thread, self.framed = f.param("per_thread"), f.param("framed")
        self.steps = self._three("x_step")  # of x
        self.x_image = f.param("x_image")  # step from image to image
        self.runs = lines.taps // lines.run
        self.tiles = self.grid[0] * self.grid[1] * self.grid[2]
        self.rounds_at, self.phases_at, self.rows_at = (
            f.param(name) for name in ("rounds_at", "phases_at", "rows_at")
        )

    def _three(self, name: str) -> list[Value]:
        return [self.f.param(f"{name}{d}") for d in range(3)]

    def begin(self, tile: Value) -> tuple[list[Value], list[Value]]:
        """The first position of a tile in each dimension, and how many it has."""
        f = self.f
        places = [tile // (self.grid[1] * self.grid[2]),
                  (tile // self.grid[2]) % self.grid[1], tile % self.grid[2]]  # fmt: skip
        at = [p * n for p, n in zip(places, self.tile, strict=True)]
        counts = [f.call("minimum", whole - first, n)
                  for whole, first, n in zip(self.long, at, self.tile, strict=True)]  # fmt: skip
        return at, counts

    def fill(self, start: Value, at: Sequence[Value], images: Value) -> Value:
        """Copy what a tile sees of some images; where this thread's scratch begins."""
        f = self.f
        scratch = f.thread() * self.per_thread
        first = [q * a - low for q, a, low in zip(at, self.spread, self.low, strict=True)]
        a, step = self.spread[2], self.lines.step
        by = self.steps[2] * a if step is None else f.value(step, "i64")
        with f.loop(self.phases) as phase:
            head = first[2] + f.load(self.table, self.phases_at + phase)
            none = f.call("maximum", -head, 0)
            some = f.call("maximum", self.sizes[2] - head, 0)
            begin = f.call("minimum", quotient(none, a), self.line)
            end = f.call("maximum", f.call("minimum", quotient(some, a), self.line), begin)
            count, blank = end - begin, f.select(self.framed == 0, self.line, 0)
            before, after = (
                f.call("minimum", begin, blank),
                f.call("minimum", self.line - end, blank),
            )
            source = start + head * self.steps[2] + begin * by
            with f.loop(images) as i, f.loop(self.seen[0]) as d, f.loop(self.seen[1]) as h:
                z = first[0] + d, first[1] + h
                row = (d * self.seen[1] + h) * self.phases + phase
                target = scratch + i * self.image + row * self.line
                inside = (z[0] >= 0) & (z[0] < self.sizes[0])
                inside = inside & (z[1] >= 0) & (z[1] < self.sizes[1])
                place = source + i * self.x_image + z[0] * self.steps[0] + z[1] * self.steps[1]
                to = target + begin
                with f.vector(f.select(inside, count, 0)) as j:
                    f.store(self.scratch, to + j, f.load(self.x, place + j * by))
                with f.vector(f.select(inside, before, blank)) as j:
                    f.store(self.scratch, target + j, 0)
                with f.vector(f.select(inside, after, 0)) as j:
                    f.store(self.scratch, target + end + j, 0)
        return scratch

    def pair(self, at: Value) -> tuple[Value, Value]:
        """Two neighbouring entries of the table."""
        return self.f.load(self.table, at), self.f.load(self.table, at + 1)

    def row(self, scratch: Value, long: Value, number: Value) -> tuple[Value, Value]:
        """Where a row of a tile begins, in scratch and in the long array."""
        places = self.pair(self.rows_at + number * 2)
        return scratch + places[0], long + places[1]

    def taps(self, first: Value) -> list[_Tap]:
        """The unrolled taps from an entry of the table on."""
        found = []
        for r in range(self.runs):
            place, short = self.pair(first + 2 * r)
            found += [_Tap(place, self.lines.ahead + i, short, i) for i in range(self.lines.run)]
        return found

    def element(self, tap: _Tap, place: Value) -> Value:
        """What a tap meets at a place of scratch."""
        return self.f.load(self.scratch, place + tap.place, tap.ahead)


# The long array ---------------------------------------------------------------------------------
def slide_function(name: str, kind: Slide) -> Function:
    """The kernel of `conv` by sliding few taps along the output.

    Buffers: out, x, scratch, table, w and bias. Parameters: those of `_Windows`, then the sizes n,
    g, c, o, and steps of out, x, w and bias.
    """
    return _Slide(name, kind).build()


class _Slide:
    def __init__(self, name: str, kind: Slide) -> None:
        f = self.f = Function(name)
        self.kind = kind
        self.out = f.buffer("out", kind.lines.dtype, written=True)
        self.windows = _Windows(f, kind.lines)
        self.w = f.buffer("w", self.windows.dtype)
        self.bias = f.buffer("bias", self.windows.dtype)
        self.batch, self.groups, self.channels, self.outputs = map(f.param, ("n", "g", "c", "o"))
        self.out_steps = [f.param(f"out_{part}") for part in ("n", "g", "o", "0", "1", "2")]
        self.x_steps = [f.param("x_n"), f.param("x_g")]
        self.w_steps = [f.param(f"w_{part}") for part in ("g", "o", "tap")]
        self.bias_steps = [f.param("bias_g"), f.param("bias_o")]

    def build(self) -> Function:
        f, windows = self.f, self.windows
        with f.parallel(self.batch * self.groups * windows.tiles) as block:
            tile, pair = block % windows.tiles, block // windows.tiles
            n, group = pair // self.groups, pair % self.groups
            at, counts = windows.begin(tile)
            start = n * self.x_steps[0] + group * self.x_steps[1]
            scratch = windows.fill(start, at, self.channels)
            target = n * self.out_steps[0] + group * self.out_steps[1]
            for q, step in zip(at, self.out_steps[3:], strict=True):
                target = target + q * step
            many = self.kind.outputs
            blocks = self.outputs // many
            with f.loop(blocks) as b:
                self._channels(many, group, b * many, scratch, target, counts)
            if self.kind.rest:
                done = blocks * many
                with f.loop(self.outputs - done) as b:
                    self._channels(1, group, done + b, scratch, target, counts)
        return f

    def _channels(
        self, many: int, group: Value, first: Value, scratch: Value, target: Value,
        counts: Sequence[Value],
    ) -> None:  # fmt: skip
        """The tile in some neighbouring channels of the output."""
        f, windows, kind = self.f, self.windows, self.kind
        channels = [first + m if m else first for m in range(many)]
        kernels = [group * self.w_steps[0] + o * self.w_steps[1] for o in channels]
        at = [group * self.bias_steps[0] + o * self.bias_steps[1] for o in channels]
        starts = [f.load(self.bias, place) for place in at]
        taps = windows.taps(f.value(0, "i64"))
        shorts = [t.short + self.w_steps[2] * t.number if t.number else t.short for t in taps]
        held: list[list[Value]] = []  # by tap, then channel
        if not kind.rounds and many * len(taps) <= HELD:
            held = [[f.load(self.w, k + short) for k in kernels] for short in shorts]
        parts = kind.parts
        width = counts[2] if parts == 1 else quotient(counts[2], f.value(parts, "i64"))
        last = counts[2] - width
        begins = [f.call("minimum", width * p, last) if p else None for p in range(parts)]
        step = self.out_steps[5] if kind.out_step is None else None
        with f.loop(counts[0] * counts[1]) as number:
            row, to = windows.row(scratch, target, number)
            with f.vector(width) as i:
                places = [i if b is None else i + b for b in begins]

                def add(found: Any, source: Value, held: Any, kernels: list[Value]) -> Any:
                    for number, tap in enumerate(taps):
                        weights = held[number] if held else [
                            f.load(self.w, k + shorts[number]) for k in kernels
                        ]  # fmt: skip
                        for p, at in enumerate(places):
                            element = windows.element(tap, source + at)
                            found[p] = [
                                f.fma(element, weight, total)
                                for total, weight in zip(found[p], weights, strict=True)
                            ]
                    return found

                found = [starts for _ in places]
                if kind.rounds:
                    states = [[f.state(v, combine=_sum) for v in line] for line in found]
                    with f.loop(windows.rounds) as turn:
                        in_scratch, short = windows.pair(windows.rounds_at + turn * 2)
                        now = [[s.get()[0] for s in line] for line in states]
                        some = add(now, row + in_scratch, None, [k + short for k in kernels])
                        for line, values in zip(states, some, strict=True):
                            for s, value in zip(line, values, strict=True):
                                s.set(value)
                    found = [[s.get()[0] for s in line] for line in states]
                else:
                    found = add(found, row, held, kernels)
                for at, totals in zip(places, found, strict=True):
                    for o, total in zip(channels, totals, strict=True):
                        place = at if step is None else at * step
                        place = to + o * self.out_steps[2] + place
                        f.store(self.out, place, total, stream=kind.stream)


def _sum(a: Value, b: Value) -> Value:
    return a + b


# The short array --------------------------------------------------------------------------------
def weigh_function(name: str, kind: Weigh) -> Function:
    """The kernel of `conv` whose kernel is long and whose output is short.

    Buffers: out, x, scratch, table, long (the form's kernel) and parts (f64, zeros). Parameters:
    those of `_Windows`, where a round is a block of taps; then the sizes n, g, c, o and the number
    of taps, images at a time, how often, chunks; where the table holds taps' places in out; and
    steps of out, x and long.
    """
    return _Weigh(name, kind).build()


class _Weigh:
    def __init__(self, name: str, kind: Weigh) -> None:
        f = self.f = Function(name)
        self.kind = kind
        self.out = f.buffer("out", kind.lines.dtype, written=True)
        self.windows = _Windows(f, kind.lines)
        self.long, self.parts = f.buffer("w", kind.lines.dtype), f.buffer("parts", "f64", True)
        self.variants, self.groups, self.images, self.outputs, self.taps = map(
            f.param, ("n", "g", "c", "o", "taps")
        )
        self.together, self.times, self.chunks = map(f.param, ("together", "times", "chunks"))
        self.outs_at = f.param("outs_at")
        self.out_steps = [f.param(f"out_{part}") for part in ("n", "g", "o")]
        self.x_steps = [f.param("x_n"), f.param("x_g")]
        self.long_steps = [f.param(f"w_{part}") for part in ("g", "o", "c", "0", "1", "2")]
        self.padded = self.windows.rounds * kind.lines.taps  # taps, with those that fill a block

    def build(self) -> Function:
        f, windows, many = self.f, self.windows, self.kind.outputs
        whole = self.times * windows.tiles
        with f.parallel(self.groups * self.variants * self.chunks) as block:
            chunk, pair = block % self.chunks, block // self.chunks
            group, n = pair // self.variants, pair % self.variants
            first = chunk * whole // self.chunks
            with f.loop((chunk + 1) * whole // self.chunks - first) as i:
                time, tile = (first + i) // windows.tiles, (first + i) % windows.tiles
                image = time * self.together
                images = f.call("minimum", self.images - image, self.together)
                at, counts = windows.begin(tile)
                start = n * self.x_steps[0] + group * self.x_steps[1] + image * windows.x_image
                scratch = windows.fill(start, at, images)
                place = group * self.long_steps[0] + image * self.long_steps[2]
                for q, step in zip(at, self.long_steps[3:], strict=True):
                    place = place + q * step
                rows = images * counts[0] * counts[1]
                sums = block * self.outputs
                blocks = self.outputs // many
                with f.loop(blocks) as b:
                    self._channels(many, b * many, sums, scratch, place, rows, counts[2])
                if self.kind.rest:
                    done = blocks * many
                    with f.loop(self.outputs - done) as b:
                        self._channels(1, done + b, sums, scratch, place, rows, counts[2])
        with f.parallel(self.groups * self.variants) as pair:
            group, n = pair // self.variants, pair % self.variants
            target = group * self.out_steps[1] + n * self.out_steps[0]
            with f.loop(self.outputs) as o, f.loop(self.taps) as t:
                total = f.state(f.const(0, "f64"), combine=_sum)
                with f.loop(self.chunks) as chunk:
                    row = (pair * self.chunks + chunk) * self.outputs + o
                    total.add(f.load(self.parts, row * self.padded + t))
                place = target + o * self.out_steps[2] + f.load(windows.table, self.outs_at + t)
                f.store(self.out, place, f.cast(total.get()[0], self.out.scalar))
        return f

    def _channels(
        self, many: int, first: Value, sums: Value, scratch: Value, place: Value, rows: Value,
        width: Value,
    ) -> None:  # fmt: skip
        """Add what a tile gives for some neighbouring channels of the output."""
        f, windows = self.f, self.windows
        channels = [first + m if m else first for m in range(many)]
        lines = [o * self.long_steps[1] for o in channels]
        step = self.long_steps[5] if self.kind.long_step is None else None
        zero = f.const(0, windows.dtype)
        with f.loop(windows.rounds) as turn:
            taps = windows.taps(turn * (2 * windows.runs))
            totals = [[f.state(zero, combine=_sum) for _ in taps] for _ in channels]

            def add(states: list[list[State]], row: Value, long: Value, i: Value) -> None:
                at = long + (i if step is None else i * step)
                values = [f.load(self.long, at + line) for line in lines]
                for t, tap in enumerate(taps):
                    element = windows.element(tap, row + i)
                    for line, value in zip(states, values, strict=True):
                        line[t].set(f.fma(element, value, line[t].get()[0]))

            if self.kind.tall:
                with f.vector(width) as i:
                    own = [[f.state(zero, combine=_sum) for _ in taps] for _ in channels]
                    with f.loop(rows) as number:
                        add(own, *windows.row(scratch, place, number), i)
                    for line, states in zip(totals, own, strict=True):
                        for total, state in zip(line, states, strict=True):
                            total.add(*state.get())
            else:
                with f.loop(rows) as number:
                    row, long = windows.row(scratch, place, number)
                    with f.vector(width) as i:
                        add(totals, row, long, i)
            for o, line in zip(channels, totals, strict=True):
                at = (sums + o) * self.padded + turn * len(taps)
                for t, total in enumerate(line):
                    old = f.load(self.parts, at + t)
                    f.store(self.parts, at + t, old + f.cast(total.get()[0], "f64"))
