"""The form `conv` for few channels and a long kernel: the gradient of a convolution's kernel.

Note [order of weights]
A weight's sum runs over a fixed number of chunks of tiles, whose sums, kept in f64, are added in
order: it does not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

from .direct import AHEAD, Lines, TileLoops, added, together
from .ir import WIDTH, Function, State, Value
from .offsets import quotient


class Weigh(NamedTuple):
    """What distinguishes kernels that compute the short array."""

    lines: Lines
    long_step: int | None  # 1 or a parameter
    outputs: int  # channels at once
    tall: bool  # lanes walk down the rows of a tile, else along them
    relu: bool  # whether what is negative becomes 0


def weigh_function(name: str, kind: Weigh) -> Function:
    """The kernel of `conv` whose kernel is long and whose output is short.

    Buffers: out, x, scratch, table, long (the form's kernel) and parts (f64). Parameters: those of
    `TileLoops`, where a round is a block of taps; then the sizes n, g, c, o and the number of taps,
    images at a time, how often, chunks; where the table holds taps' places in out; and steps of
    out, x and long.
    """
    return _Weigh(name, kind).build()


class _Weigh:
    def __init__(self, name: str, kind: Weigh) -> None:
        f = self.f = Function(name)
        self.kind = kind
        self.out = f.buffer("out", kind.lines.dtype, written=True)
        self.windows = TileLoops(f, kind.lines)
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
            every = blocks * (self.padded * many)
            with f.vector(every) as i:
                f.store(self.parts, block * every + i, 0)
            with f.loop((chunk + 1) * whole // self.chunks - first) as i:
                time, tile = (first + i) // windows.tiles, (first + i) % windows.tiles
                image = time * self.together
                images = f.call("minimum", self.images - image, self.together)
                at, counts = windows.begin(tile)
                start = n * self.x_steps[0] + group * self.x_steps[1] + image * windows.x_image
                scratch, _ = windows.fill(start, at, images, True)
                place = group * self.long_steps[0] + image * self.long_steps[2]
                for q, step in zip(at, self.long_steps[3:], strict=True):
                    place = place + q * step
                rows = images * counts[0] * counts[1]
                with f.loop(blocks) as b:
                    channels = together(f, b, many, self.outputs)
                    sums = (block * blocks + b) * (self.padded * many)
                    self._channels(channels, sums, scratch, place, rows, counts[2])
        with f.parallel(self.groups * self.variants) as pair:
            group, n = pair // self.variants, pair % self.variants
            target = group * self.out_steps[1] + n * self.out_steps[0]
            with f.loop(blocks) as b, f.loop(self.taps) as t:
                for m, o in enumerate(together(f, b, many, self.outputs)):
                    total = f.state(f.const(0, "f64"), combine=added)
                    with f.loop(self.chunks) as chunk:
                        row = ((pair * self.chunks + chunk) * blocks + b) * many + m
                        total.add(f.load(self.parts, row * self.padded + t))
                    place = target + o * self.out_steps[2] + f.load(windows.table, self.outs_at + t)
                    weight = f.cast(total.get()[0], self.out.scalar)
                    if self.kind.relu:
                        weight = f.call("maximum", weight, 0)
                    f.store(self.out, place, weight)
        return f

    def _channels(
        self,
        channels: list[Value],
        sums: Value,
        scratch: Value,
        place: Value,
        rows: Value,
        width: Value,
    ) -> None:
        """Add what a tile gives for some neighbouring channels of the output."""
        f, windows = self.f, self.windows
        lines = [o * self.long_steps[1] for o in channels]
        step = self.long_steps[5] if self.kind.long_step is None else None
        zero = f.const(0, windows.dtype)
        with f.loop(windows.rounds) as round_:
            taps = windows.taps(round_ * windows.runs)
            totals = [[f.state(zero, combine=added) for _ in taps] for _ in channels]

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
                    own = [[f.state(zero, combine=added) for _ in taps] for _ in channels]
                    with f.loop(rows) as number:
                        row, long = windows.row(number, scratch, place)
                        add(own, row, long, i)
                    for line, states in zip(totals, own, strict=True):
                        for total, state in zip(line, states, strict=True):
                            total.add(*state.get())
            else:
                with f.loop(rows) as number:
                    row, long = windows.row(number, scratch, place)
                    with f.vector(width) as i:
                        add(totals, row, long, i)
            for m, found in enumerate(totals):
                at = sums + self.padded * m + round_ * len(taps)
                for t, total in enumerate(found):
                    old = f.load(self.parts, at + t)
                    f.store(self.parts, at + t, old + f.cast(total.get()[0], "f64"))
