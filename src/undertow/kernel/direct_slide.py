"""The form `conv` for few channels and taps: the taps slide along the output.

Note [classes]
Where x is dilated by e, output positions of one remainder mod e meet only some taps, all at
neighbouring elements of x. They are a class: the long array's positions are then those of a class,
and a tile is computed for one class after the other, from the same scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .direct import AHEAD, Lines, TileLoops, added, together
from .ir import WIDTH, Function, Value
from .offsets import quotient

HELD = 24  # weights that are kept in registers


class Slide(NamedTuple):
    """What distinguishes kernels that compute the long array."""

    lines: Lines
    out_step: int | None  # 1, 2 or a parameter
    rounds: bool  # whether the unrolled taps are not all, in one channel
    outputs: int  # channels at once
    parts: int  # at once, of a row
    rows: int  # at once
    stream: bool
    classes: bool  # see Note [classes]
    fetch: bool  # ahead while it computes, where each round is a channel; else while it copies
    relu: bool  # whether what is negative becomes 0


def slide_function(name: str, kind: Slide) -> Function:
    """The kernel of `conv` by sliding few taps along the output.

    Buffers: out, x, scratch, table, w and bias. The kernels are copied to scratch first, in the
    order in which they are used: group, block of channels, round, tap, channel. Parameters: those
    of `TileLoops`, then the sizes n, g, c, o, and steps of out, x and bias; where w begins, its
    steps from group to group, from output to output and from one run of `each` taps to the next,
    and where the table holds the places of these in a run. With classes also their number, and
    where the table holds what is known of each: its place in out, three sizes of the long array,
    its first round in the table and among the kernels, and the number of rounds.
    """
    return _Slide(name, kind).build()


class _Slide:
    def __init__(self, name: str, kind: Slide) -> None:
        f = self.f = Function(name)
        self.kind = kind
        self.out = f.buffer("out", kind.lines.dtype, written=True)
        self.windows = TileLoops(f, kind.lines)
        self.w = f.buffer("w", kind.lines.dtype)
        self.bias = f.buffer("bias", kind.lines.dtype)
        self.batch, self.groups, self.channels, self.outputs = map(f.param, ("n", "g", "c", "o"))
        self.out_steps = [f.param(f"out_{part}") for part in ("n", "g", "o", "0", "1", "2")]
        self.x_steps = [f.param("x_n"), f.param("x_g")]
        self.bias_steps = [f.param("bias_g"), f.param("bias_o")]
        self.w_steps = [f.param("w_g"), f.param("w_o")]
        self.w_run, self.each, self.weights_at = map(f.param, ("w_run", "each", "weights_at"))
        if kind.classes:
            self.classes, self.classes_at = f.param("classes"), f.param("classes_at")

    def build(self) -> Function:
        f, windows = self.f, self.windows
        self.blocks = quotient(self.outputs, f.value(self.kind.outputs, "i64"))
        self._pack()
        with f.parallel(self.batch * self.groups * windows.tiles) as block:
            tile, pair = block % windows.tiles, block // windows.tiles
            n, group = pair // self.groups, pair % self.groups
            at, counts = windows.begin(tile)
            start = n * self.x_steps[0] + group * self.x_steps[1]
            scratch, self.source = windows.fill(start, at, self.channels, not self.kind.fetch)
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

    def _pack(self) -> None:
        """Copy the kernels to the beginning of scratch, in the order in which they are used."""
        f, windows, many = self.f, self.windows, self.kind.outputs
        whole = windows.rounds * self.kind.lines.taps
        with f.parallel(self.groups * self.blocks) as pair:
            group, block = pair // self.blocks, pair % self.blocks
            start = group * self.w_steps[0]
            outputs = together(f, block, many, self.outputs)
            starts = [start + o * self.w_steps[1] for o in outputs]
            with f.loop(whole // self.each) as run, f.loop(self.each) as tap:
                place = run * self.w_run + f.load(windows.table, self.weights_at + tap)
                to = (pair * whole + run * self.each + tap) * many
                for m, first in enumerate(starts):
                    f.store(windows.scratch, to + m, f.load(self.w, first + place))

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
        self,
        group: Value,
        kernel: Value,
        rounds: tuple[Value, Value],
        scratch: Value,
        target: Value,
        counts: Sequence[Value],
    ) -> None:
        """A tile of one class in all channels, by rounds from one of the table and kernels on."""
        f, many = self.f, self.kind.outputs
        each = many * self.kind.lines.taps
        with f.loop(self.blocks) as b:
            place = ((group * self.blocks + b) * self.windows.rounds + kernel) * each
            channels = together(f, b, many, self.outputs)
            self._channels(group, channels, place, rounds, scratch, target, counts)

    def _channels(
        self,
        group: Value,
        channels: list[Value],
        kernel: Value,
        rounds: tuple[Value, Value],
        scratch: Value,
        target: Value,
        counts: Sequence[Value],
    ) -> None:
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
        by = f.value(kind.lines.step or 0, "i64")
        ahead = AHEAD // WIDTH[windows.x.dtype]
        with f.loop(quotient(rows, f.value(kind.rows, "i64"))) as number:
            numbers = [
                f.call("minimum", number * kind.rows + r, rows - 1) for r in range(kind.rows)
            ]
            places = [windows.row(r, scratch, target, self.source) for r in numbers]
            lines = [(row + b, to + b * step) for row, to, _ in places for b in begins]
            sources = [x + b * by for _, _, x in places for b in begins]
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
                    states = [[f.state(v, combine=added) for v in line] for line in found]
                    with f.loop(rounds[1]) as round_:
                        if kind.fetch:
                            for x in sources:
                                channel = x + round_ * windows.x_image
                                f.prefetch(windows.x, channel + i * by + ahead)
                        moved = i + f.load(windows.table, rounds[0] + round_)
                        now = [[s.get()[0] for s in line] for line in states]
                        now = add(now, moved, kernel + round_ * (len(channels) * len(taps)))
                        for line, values in zip(states, now, strict=True):
                            for s, value in zip(line, values, strict=True):
                                s.set(value)
                    found = [[s.get()[0] for s in line] for line in states]
                else:
                    found = add(found, i, kernel)
                for (_, to), totals in zip(lines, found, strict=True):
                    for o, total in zip(channels, totals, strict=True):
                        if kind.relu:
                            total = f.call("maximum", total, 0)
                        to_channel = to + o * self.out_steps[2]
                        place = to_channel + i * step
                        f.store(self.out, place, total, stream=kind.stream)

    def _weights(self, kernel: Value, tap: int) -> list[Value]:
        """The weights of a tap in each channel of a block."""
        many = self.kind.outputs
        scratch = self.windows.scratch
        return [self.f.load(scratch, kernel + (tap * many + m)) for m in range(many)]
