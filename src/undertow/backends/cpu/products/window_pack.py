"""Packing the windows of a convolution: what stands under each tap at each position.

    void pack(pool, map, from, to, step0, steps, first, count, row)

writes a table whose rows are steps, one for each channel and tap, and whose columns are positions,
as `kernel/packing` does for matrices. Step number s is tap s % taps of channel s // taps. Tap
(t0, t1, t2) at position (q0, q1, q2) meets the element q·stride + t·dilation - padding of each
dimension, or zero if there is none. Nothing else knows about windows: a product takes the packed
blocks, and there is never more than a block of them.

Note [pieces]
A vector of neighbouring positions consists of pieces: it goes on in the next line where one ends.
Each piece is a load under a mask of the lanes that belong to it and meet an element. Places and
masks depend on the tap alone, so they are noted in a table for some taps, and then all channels are
read with it, one after the other, so that what one tap has brought to the cache serves the next.
Where neighbours in memory are channels, vectors of them are read and transposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ....kernel import packing
from ..codegen.irbuilder import Function, Value, module
from .gemm_micro import suffix_of, width
from .gemm_tiles import Target

PARAMETERS = [
    *(("ptr", name) for name in ("pool", "map", "from", "to")),
    *(("i64", name) for name in packing.PARAMETERS),
]
RANK = 3
# What the map holds: sizes of taps, positions and elements, and how they meet; steps in bytes.
MAP = [
    "channel_step",
    *(
        f"{name}{d}"
        for name in ("taps", "positions", "size", "stride", "dilation", "padding", "step")
        for d in range(RANK)
    ),
]
MOST_STRIDE = 8
_TAPS = 32  # in the table of places and masks
_TOGETHER = 4  # vectors
_CUT = 2 + RANK  # numbers that are noted of a piece


class WindowPacking(NamedTuple):
    """One variant of the packing function."""

    stride: int = 1  # elements between neighbouring positions, along the last dimension
    pieces: int = 1  # that a vector may consist of
    channels_last: bool = False  # neighbours in memory are channels, not positions


def pieces(positions: int, lanes: int, lines: int) -> int:
    """Of how many pieces a vector of positions may consist, if a line has so many.

    >>> pieces(16, 16, 9), pieces(14, 16, 9), pieces(7, 16, 9), pieces(100, 16, 1)
    (2, 3, 4, 1)
    """
    return min(-(-(lanes - 1) // max(positions, 1)) + 1, lines)


def window_text(name: str, windows: WindowPacking, source: str, type: str, target: Target) -> str:
    """The packing function as LLVM IR, from elements of type `source` to those of type `type`."""
    f = Function(name, PARAMETERS, target.attributes)
    packer = _ChannelsLastPacker if windows.channels_last else _WindowPacker
    packer(f, windows, source, type, target).write()
    return module(f)


class _WindowPacker:
    """Writes one packing function."""

    def __init__(
        self, f: Function, windows: WindowPacking, source: str, type: str, target: Target
    ) -> None:
        self.f, self.source, self.type = f, source, type
        self.stride, self.pieces, _ = windows
        self.lanes, self.bytes = target.vector // width(type), target.vector
        self.vector = f"<{self.lanes} x {source}>"
        self.field = {name: f.load("i64", f.at("%map", 8 * n), 8) for n, name in enumerate(MAP)}
        self.end = f.add("%k0", "%k")
        across, along = self.of("taps")[1:]
        self.taps = f.mul(self.field["taps0"], f.mul(across, along))

    def of(self, name: str) -> list[str]:
        """A field of every dimension."""
        return [self.field[f"{name}{d}"] for d in range(RANK)]

    def write(self) -> None:
        """All vectors of positions, several at a time."""
        f, pieces = self.f, _TOGETHER * self.pieces
        self.entry = 8 + 2 * self.stride  # bytes of the table for one piece: its place, and masks
        self.table = f.slot(f"[{_TAPS * pieces * self.entry} x i8]")
        self.cuts = f.slot(f"[{pieces * _CUT} x i64]")
        vectors = f.div(f.add("%count", self.lanes - 1), self.lanes)
        with f.loop(0, vectors, _TOGETHER) as v:
            self.positions(v, f.least(f.sub(vectors, v), _TOGETHER))

    def positions(self, first: str, count: str) -> None:
        """All steps of some vectors of positions."""
        f = self.f
        with f.loop(0, count) as v:
            self.cut(f.add(first, v), f.at(self.cuts, f.mul(v, self.pieces * _CUT * 8)))
        pieces = f.mul(count, self.pieces)
        row = f.mul(pieces, self.entry)  # bytes of the table for a tap
        with f.loop(0, self.taps, _TAPS) as begin:
            stop = f.least(f.add(begin, _TAPS), self.taps)
            with f.loop(begin, stop) as tap:
                place, at = f.at(self.table, f.mul(f.sub(tap, begin), row)), self.tap(tap)
                with f.loop(0, pieces) as n:
                    cut = f.at(self.cuts, f.mul(n, _CUT * 8))
                    self.note(at, cut, f.at(place, f.mul(n, self.entry)))
            with self.channels() as (channel, first_tap, end_tap):
                base = f.at("%from", f.mul(channel, self.field["channel_step"]))
                to = f.mul(f.sub(f.mul(channel, self.taps), "%k0"), "%row")
                to = f.add(to, f.mul(first, self.bytes))
                with f.loop(f.most(first_tap, begin), f.least(end_tap, stop)) as tap:
                    noted = f.at(self.table, f.mul(f.sub(tap, begin), row))
                    there = f.at("%to", f.add(to, f.mul(tap, "%row")))
                    with f.loop(0, count) as v:
                        value = self.read(f.at(noted, f.mul(v, self.pieces * self.entry)), base)
                        self.store(value, f.at(there, f.mul(v, self.bytes)))

    @contextmanager
    def channels(self) -> Iterator[tuple[str, str, Value]]:
        """A loop over channels: each with its first tap among the steps, and the one after them."""
        f = self.f
        last = f.div(f.add(self.end, f.sub(self.taps, 1)), self.taps)
        with f.loop(f.div("%k0", self.taps), last) as channel:
            before = f.mul(channel, self.taps)
            yield channel, f.most(f.sub("%k0", before), 0), f.sub(self.end, before)

    def cut(self, vector: Value, to: str) -> None:
        """Note the pieces of a vector of positions; the last ones may be empty.

        Of each, the first lane and the one after the last, then the elements that tap 0 meets: of
        the outer dimensions, and at lane 0.
        """
        f = self.f
        before = f.mul(vector, self.lanes)
        number, left = f.add("%first", before), f.least(f.sub("%count", before), self.lanes)
        _, across, along = self.of("positions")
        line, first = f.div(number, along), f.rem(number, along)
        lane = f.variable("i64", 0)
        with f.loop(0, self.pieces) as n:
            here, begin = f.add(line, n), lane.get()
            start = f.select(f.compare("eq", n, 0), first, 0)
            end = f.least(left, f.add(begin, f.sub(along, start)))
            starts = f.div(here, across), f.rem(here, across), f.sub(start, begin)
            places = [
                f.sub(f.mul(q, step), padding)
                for q, step, padding in zip(
                    starts, self.of("stride"), self.of("padding"), strict=True
                )
            ]
            entry = f.at(to, f.mul(n, _CUT * 8))
            for field, number in enumerate((begin, end, *places)):
                f.store("i64", number, f.at(entry, 8 * field), 8)
            lane.set(end)

    def tap(self, number: str) -> tuple[str, str, str]:
        """Where a tap is in the kernel."""
        f, (_, across, along) = self.f, self.of("taps")
        line = f.div(number, along)
        return f.div(line, across), f.rem(line, across), f.rem(number, along)

    def note(self, tap: tuple[str, ...], cut: str, entry: str) -> None:
        """Note where a piece's lanes are read for a tap, and which of them."""
        f, sizes = self.f, self.of("size")
        first, end, *places = (f.load("i64", f.at(cut, 8 * n), 8) for n in range(_CUT))
        elements = [
            f.add(place, f.mul(t, step))
            for place, t, step in zip(places, tap, self.of("dilation"), strict=True)
        ]
        place: Value = 0
        for element, step in zip(elements, self.of("step"), strict=True):
            place = f.add(place, f.mul(element, step))
        inside = [
            f.op(f"icmp ult i64 {element}, {size}")
            for element, size in zip(elements[:2], sizes[:2], strict=True)
        ]
        # Elements are counted from the one at lane 0.
        start, all = elements[2], self.lanes * self.stride
        low = f.least(f.most(f.mul(first, self.stride), f.sub(0, start)), all)
        high = f.most(f.least(f.mul(end, self.stride), f.sub(sizes[2], start)), 0)
        high = f.select(f.op(f"and i1 {inside[0]}, {inside[1]}"), high, 0)
        f.store("i64", place, entry, 2)
        for n in range(self.stride):
            f.store("i16", self.between(low, high, n), f.at(entry, 8 + 2 * n), 2)

    def between(self, low: Value, high: Value, number: int) -> str:
        """The bits of the lanes of vector number n of elements that lie between two."""
        f, lanes = self.f, self.lanes
        low, high = (f.sub(x, number * lanes) for x in (low, high))
        low, high = (f.most(f.least(x, lanes), 0) for x in (low, high))
        below, upto = (f.op(f"shl i64 1, {x}") for x in (low, f.most(low, high)))
        return f.op(f"trunc i64 {f.sub(upto, below)} to i16")

    def read(self, noted: str, base: str) -> str:
        """The elements under one tap of one channel."""
        f, lanes = self.f, self.lanes
        suffix, align = f"v{lanes}{suffix_of(self.source)}", width(self.source)
        read = ["zeroinitializer"] * self.stride
        for piece in range(self.pieces):
            entry = f.at(noted, piece * self.entry)
            place = f.at(base, f.load("i64", entry, 2))
            for n in range(self.stride):
                bits = f.load("i16", f.at(entry, 8 + 2 * n), 2)
                if lanes < 16:
                    bits = f.op(f"trunc i16 {bits} to i{lanes}")
                mask = f.op(f"bitcast i{lanes} {bits} to <{lanes} x i1>")
                # Lanes of other pieces keep what they have.
                at = f.at(place, n * lanes * align)
                read[n] = f.load_lanes(self.vector, suffix, at, mask, align, read[n])
        if self.stride == 1:
            return read[0]
        value = "poison"
        for n, elements in enumerate(read):
            chosen = []
            for lane in range(lanes):
                number, element = divmod(lane * self.stride, lanes)
                chosen.append(lane if number != n else lanes + element)
            value = f.shuffle(self.vector, value, elements, chosen)
        return value

    def store(self, value: str, place: str) -> None:
        """Write a vector of elements as they are computed with."""
        wide = self.f.widen(value, self.source, self.lanes)
        self.f.store(f"<{self.lanes} x {self.type}>", wide, place, width(self.type))


class _ChannelsLastPacker(_WindowPacker):
    """The same for neighbouring channels: squares of a vector of channels for each position."""

    def write(self) -> None:
        """All vectors of positions, one at a time."""
        f, lanes = self.f, self.lanes
        self.elements = [f.slot(f"[{lanes} x i64]") for _ in range(RANK)]
        self.places, self.there = f.slot(f"[{lanes} x ptr]"), f.slot(f"[{lanes} x i64]")
        with f.loop(0, f.div(f.add("%count", lanes - 1), lanes)) as vector:
            self.meet(vector)
            self.steps(vector)

    def meet(self, vector: Value) -> None:
        """Note the elements that tap 0 meets at each lane's position."""
        f = self.f
        number = f.add("%first", f.mul(vector, self.lanes))
        _, across, along = self.of("positions")
        line = f.div(number, along)
        starts = f.div(line, across), f.rem(line, across), f.rem(number, along)
        q0, q1, q2 = position = [f.variable("i64", start) for start in starts]
        left = f.sub("%count", f.mul(vector, self.lanes))
        with f.loop(0, self.lanes) as lane:
            missing = f.compare("sge", lane, left)
            rows = zip(position, self.of("stride"), self.of("padding"), strict=True)
            for d, (q, stride, padding) in enumerate(rows):
                element = f.sub(f.mul(q.get(), stride), padding)
                element = f.select(missing, -(1 << 62), element)  # meets nothing
                f.store("i64", element, f.at(self.elements[d], f.mul(lane, 8)), 8)
            for q, outer, size in ((q2, q1, along), (q1, q0, across)):
                more = f.add(q.get(), 0 if q is q1 else 1)
                over = f.compare("eq", more, size)
                q.set(f.select(over, 0, more))
                outer.set(f.add(outer.get(), f.op(f"zext i1 {over} to i64")))

    def steps(self, vector: Value) -> None:
        """All steps of one vector of positions."""
        f, lanes = self.f, self.lanes
        to = f.at("%to", f.mul(vector, self.bytes))
        with f.loop(0, self.taps) as tap:
            # The channels whose step for this tap is among those asked for.
            begin, end = (
                f.div(f.most(f.add(f.sub(step, tap), f.sub(self.taps, 1)), 0), self.taps)
                for step in ("%k0", self.end)
            )
            self.look(tap)
            with f.loop(begin, end, lanes) as channel:
                count = f.sub(end, channel)
                rows = [self.row(lane, channel, count) for lane in range(lanes)]
                for n, value in enumerate(transposed(f, self.vector, rows)):
                    step = f.add(f.mul(f.add(channel, n), self.taps), tap)
                    with f.when(f.compare("slt", n, count)):
                        self.store(value, f.at(to, f.mul(f.sub(step, "%k0"), "%row")))

    def look(self, tap: str) -> None:
        """Note where each lane is read for a tap, and whether anything is there."""
        f, taps = self.f, self.tap(tap)
        with f.loop(0, self.lanes) as lane:
            place, there = "%from", "true"
            rows = zip(taps, *map(self.of, ("dilation", "size", "step")), strict=True)
            for d, (t, dilation, size, step) in enumerate(rows):
                element = f.load("i64", f.at(self.elements[d], f.mul(lane, 8)), 8)
                element = f.op(f"add i64 {element}, {f.mul(t, dilation)}")
                place = f.at(place, f.mul(element, step))
                inside = f.op(f"icmp ult i64 {element}, {size}")
                there = f.op(f"and i1 {there}, {inside}")
            f.store("ptr", place, f.at(self.places, f.mul(lane, 8)), 8)
            all = f.op(f"sext i1 {there} to i64")
            f.store("i64", all, f.at(self.there, f.mul(lane, 8)), 8)

    def row(self, lane: int, channel: Value, count: Value) -> str:
        """A vector of channels at one position."""
        f, size = self.f, width(self.source)
        place = f.load("ptr", f.at(self.places, 8 * lane), 8)
        there = f.load("i64", f.at(self.there, 8 * lane), 8)
        mask = f.first_lanes(self.lanes, f.op(f"and i64 {count}, {there}"))
        at, suffix = f.at(place, f.mul(channel, size)), f"v{self.lanes}{suffix_of(self.source)}"
        return f.load_lanes(self.vector, suffix, at, mask, size)


def transposed(f: Function, vector: str, rows: list[str]) -> list[str]:
    """A square of vectors, transposed by exchanging ever smaller blocks off the diagonal."""
    lanes = len(rows)
    block = lanes // 2
    while block:
        low = [n if not n & block else n - block + lanes for n in range(lanes)]
        high = [n + block if not n & block else n + lanes for n in range(lanes)]
        for i in range(lanes):
            if not i & block:
                x, y = rows[i], rows[i + block]
                rows[i], rows[i + block] = (f.shuffle(vector, x, y, n) for n in (low, high))
        block //= 2
    return rows
