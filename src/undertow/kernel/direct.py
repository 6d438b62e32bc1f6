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

Note [classes]
Where x is dilated by e, output positions of one remainder mod e meet only some taps, all at
neighbouring elements of x. They are a class: the long array's positions are then those of a class,
and a tile is computed for one class after the other, from the same scratch.

Note [order of weights]
A weight's sum runs over a fixed number of chunks of tiles, whose sums, kept in f64, are added in
order: it does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .ir import WIDTH, Function, State, Value
from .places import quotient

HELD = 24  # weights that are kept in registers
AHEAD = 4096  # bytes that are fetched ahead, of rows that are read once


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
    out_step: int | None  # 1, 2 or a parameter
    rounds: bool  # whether the unrolled taps are not all, in one channel
    outputs: int  # channels at once
    parts: int  # at once, of a row
    rows: int  # at once
    stream: bool
    classes: bool = False  # see Note [classes]


class Weigh(NamedTuple):
    """What distinguishes kernels that compute the short array."""

    lines: Lines
    long_step: int | None  # 1 or a parameter
    outputs: int  # channels at once
    tall: bool  # lanes walk down the rows of a tile, else along them


class _Windows:
    """Tiles of the long array, and the scratch memory with what they see of x.

    The table begins with the places in scratch of the runs of unrolled taps. It holds those of the
    rounds of taps too, the phases, and pairs for each row of a tile: a place in scratch, and one in
    the long array.
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
                    if step is not None:
                        f.prefetch(self.x, place + j * by + AHEAD // WIDTH[self.x.dtype])
                    f.store(self.scratch, to + j, f.load(self.x, place + j * by))
                with f.vector(f.select(inside, before, blank)) as j:
                    f.store(self.scratch, target + j, 0)
                with f.vector(f.select(inside, after, 0)) as j:
                    f.store(self.scratch, target + end + j, 0)
        return scratch

    def row(self, scratch: Value, long: Value, number: Value) -> tuple[Value, Value]:
        """Where a row of a tile begins, in scratch and in the long array."""
        f, entry = self.f, self.rows_at + number * 2
        return scratch + f.load(self.table, entry), long + f.load(self.table, entry + 1)

    def taps(self, first: Value) -> list[tuple[Value, int]]:
        """The places in scratch of unrolled taps, and how far ahead, from an entry on."""
        runs = [self.f.load(self.table, first + r) for r in range(self.runs)]
        return [(place, self.lines.ahead + i) for place in runs for i in range(self.lines.run)]


def _block(f: Function, number: Value, many: int, whole: Value) -> list[Value]:
    """A block of channels. The last one takes some of the others if there are too few."""
    first = f.call("minimum", number * many, whole - many)
    return [first + m if m else first for m in range(many)]


# The long array ---------------------------------------------------------------------------------
def slide_function(name: str, kind: Slide) -> Function:
    """The kernel of `conv` by sliding few taps along the output.

    Buffers: out, x, scratch, table, w and bias. The kernels lie in the order in which they are
    used: group, block of channels, round, tap, channel. Parameters: those of `_Windows`, then the
    sizes n, g, c, o, and steps of out, x and bias. With classes also their number, and where the
    table holds what is known of each: its place in out, three sizes of the long array, its first
    round in the table and among the kernels, and the number of rounds.
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
        self.bias_steps = [f.param("bias_g"), f.param("bias_o")]
        if kind.classes:
            self.classes, self.classes_at = f.param("classes"), f.param("classes_at")

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
            if self.kind.classes:
                with f.loop(self.classes) as number:
                    self._class(number, group, at, scratch, target)
            else:
                rounds = windows.rounds_at, windows.rounds
                self._tile(group, f.value(0, "i64"), rounds, scratch, target, counts)
        return f

    def _class(
        self, number: Value, group: Value, at: Sequence[Value], scratch: Value, target: Value
    ) -> None:
        """A tile of one class, which may have fewer positions than others."""
        f, windows = self.f, self.windows
        first = self.classes_at + number * 7
        entries = [f.load(windows.table, first + i) for i in range(7)]
        sizes = zip(at, entries[1:4], windows.tile, strict=True)
        counts = [f.call("maximum", f.call("minimum", whole - q, n), 0) for q, whole, n in sizes]
        rounds = entries[4], entries[6]
        self._tile(group, entries[5], rounds, scratch, target + entries[0], counts)

    def _tile(
        self, group: Value, kernel: Value, rounds: tuple[Value, Value], scratch: Value,
        target: Value, counts: Sequence[Value],
    ) -> None:  # fmt: skip
        """A tile of one class in all channels, by rounds from one of the table and kernels on."""
        f, many = self.f, self.kind.outputs
        each = many * self.kind.lines.taps
        blocks = quotient(self.outputs, f.value(many, "i64"))
        with f.loop(blocks) as b:
            place = ((group * blocks + b) * self.windows.rounds + kernel) * each
            channels = _block(f, b, many, self.outputs)
            self._channels(group, channels, place, rounds, scratch, target, counts)

    def _channels(
        self, group: Value, channels: list[Value], kernel: Value, rounds: tuple[Value, Value],
        scratch: Value, target: Value, counts: Sequence[Value],
    ) -> None:  # fmt: skip
        """The tile in some neighbouring channels of the output."""
        f, windows, kind = self.f, self.windows, self.kind
        at = [group * self.bias_steps[0] + o * self.bias_steps[1] for o in channels]
        starts = [f.load(self.bias, place) for place in at]
        taps = windows.taps(f.value(0, "i64"))
        held = []
        if not kind.rounds and len(channels) * len(taps) <= HELD:
            held = [self._weights(kernel, t) for t in range(len(taps))]
        width = quotient(counts[2], f.value(kind.parts, "i64"))
        begins = [f.call("minimum", width * p, counts[2] - width) for p in range(kind.parts)]
        step = self.out_steps[5] if kind.out_step is None else f.value(kind.out_step, "i64")
        rows = counts[0] * counts[1]
        with f.loop(quotient(rows, f.value(kind.rows, "i64"))) as number:
            numbers = [f.call("minimum", number * kind.rows + r, rows - 1)
                       for r in range(kind.rows)]  # fmt: skip
            lines = [windows.row(scratch, target, r) for r in numbers]
            lines = [(row + b, to + b * step) for row, to in lines for b in begins]
            with f.vector(width) as i:

                def add(totals: list[list[Value]], moved: Value, kernel: Value) -> Any:
                    for t, (place, ahead) in enumerate(taps):
                        weights = held[t] if held else self._weights(kernel, t)
                        for line, (row, _) in enumerate(lines):
                            element = f.load(windows.scratch, row + place + moved, ahead)
                            totals[line] = [
                                f.fma(element, weight, total)
                                for weight, total in zip(weights, totals[line], strict=True)
                            ]
                    return totals

                found = [starts for _ in lines]
                if kind.rounds:
                    states = [[f.state(v, combine=_sum) for v in line] for line in found]
                    with f.loop(rounds[1]) as turn:
                        moved = i + f.load(windows.table, rounds[0] + turn)
                        now = [[s.get()[0] for s in line] for line in states]
                        now = add(now, moved, kernel + turn * (len(channels) * len(taps)))
                        for line, values in zip(states, now, strict=True):
                            for s, value in zip(line, values, strict=True):
                                s.set(value)
                    found = [[s.get()[0] for s in line] for line in states]
                else:
                    found = add(found, i, kernel)
                for (_, to), totals in zip(lines, found, strict=True):
                    for o, total in zip(channels, totals, strict=True):
                        to_channel = to + o * self.out_steps[2]
                        place = to_channel + i * step
                        f.store(self.out, place, total, stream=kind.stream)

    def _weights(self, kernel: Value, tap: int) -> list[Value]:
        """The weights of a tap in each channel of a block."""
        many = self.kind.outputs
        return [self.f.load(self.w, kernel + (tap * many + m)) for m in range(many)]


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
        blocks = quotient(self.outputs, f.value(many, "i64"))
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
                with f.loop(blocks) as b:
                    channels = _block(f, b, many, self.outputs)
                    sums = (block * blocks + b) * (self.padded * many)
                    self._channels(channels, sums, scratch, place, rows, counts[2])
        with f.parallel(self.groups * self.variants) as pair:
            group, n = pair // self.variants, pair % self.variants
            target = group * self.out_steps[1] + n * self.out_steps[0]
            with f.loop(blocks) as b, f.loop(self.taps) as t:
                for m, o in enumerate(_block(f, b, many, self.outputs)):
                    total = f.state(f.const(0, "f64"), combine=_sum)
                    with f.loop(self.chunks) as chunk:
                        row = ((pair * self.chunks + chunk) * blocks + b) * many + m
                        total.add(f.load(self.parts, row * self.padded + t))
                    place = target + o * self.out_steps[2] + f.load(windows.table, self.outs_at + t)
                    f.store(self.out, place, f.cast(total.get()[0], self.out.scalar))
        return f

    def _channels(
        self, channels: list[Value], sums: Value, scratch: Value, place: Value, rows: Value,
        width: Value,
    ) -> None:  # fmt: skip
        """Add what a tile gives for some neighbouring channels of the output."""
        f, windows = self.f, self.windows
        lines = [o * self.long_steps[1] for o in channels]
        step = self.long_steps[5] if self.kind.long_step is None else None
        zero = f.const(0, windows.dtype)
        with f.loop(windows.rounds) as turn:
            taps = windows.taps(turn * windows.runs)
            totals = [[f.state(zero, combine=_sum) for _ in taps] for _ in channels]

            def add(states: list[list[State]], row: Value, long: Value, i: Value) -> None:
                at = long + (i if step is None else i * step)
                if step is None:
                    for far in lines:
                        f.prefetch(self.long, at + far + AHEAD // WIDTH[self.long.dtype])
                values = [f.load(self.long, at + far) for far in lines]
                for t, (tap, ahead) in enumerate(taps):
                    element = f.load(windows.scratch, row + tap + i, ahead)
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
            for m, found in enumerate(totals):
                at = sums + self.padded * m + turn * len(taps)
                for t, total in enumerate(found):
                    old = f.load(self.parts, at + t)
                    f.store(self.parts, at + t, old + f.cast(total.get()[0], "f64"))
