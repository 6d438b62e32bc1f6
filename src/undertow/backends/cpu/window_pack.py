"""Packing the windows of a convolution: what stands under each tap at each position.

    void pack(map, from, step0, steps, first, count, to, row)

writes a table whose rows are steps, one for each tap and channel, and whose columns are positions,
as `gemm_pack` does for matrices. Step number s is channel s % channels of tap s // channels. Tap
(t0, t1, t2) at position (q0, q1, q2) meets the element q·stride + t·dilation - padding of each
dimension, or zero if there is none. Nothing else knows about windows: a product takes the packed
blocks, and there is never more than a block of them.

Note [pieces]
A vector of neighbouring positions consists of pieces: it goes on in the next line where one ends.
Each piece is a load under a mask of the lanes that belong to it and meet an element. Addresses and
masks depend on the tap alone, so channels are the inner loop, which only loads and stores. Where
neighbours in memory are channels, vectors of them are read and transposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .gemm_micro import suffix_of, width
from .gemm_pack import PARAMETERS, transposed
from .gemm_tiles import Target
from .irbuilder import Function, Value, module

RANK = 3
# What the map holds: sizes of taps, positions and elements, and how they meet; steps in bytes.
MAP = [
    "channels", "channel_step",
    *(f"{name}{d}" for name in
      ("taps", "positions", "size", "stride", "dilation", "padding", "step") for d in range(RANK)),
]  # fmt: skip
MOST_STRIDE = 8
_MASKS = 6  # that are kept in registers


class Windows(NamedTuple):
    """One variant of the packing function."""

    stride: int = 1  # elements between neighbouring positions, along the last dimension
    pieces: int = 1  # that a vector may consist of
    turned: bool = False  # neighbours in memory are channels, not elements of the last dimension


def pieces(positions: int, lanes: int, lines: int) -> int:
    """Of how many pieces a vector of positions may consist, if a line has so many.

    >>> pieces(16, 16, 9), pieces(14, 16, 9), pieces(7, 16, 9), pieces(100, 16, 1)
    (2, 3, 4, 1)
    """
    return min(-(-(lanes - 1) // max(positions, 1)) + 1, lines)


def window_text(name: str, windows: Windows, source: str, type: str, target: Target) -> str:
    """The packing function as LLVM IR, from elements of type `source` to those of type `type`."""
    f = Function(name, PARAMETERS, target.attributes)
    packer = _TurnedPacker if windows.turned else _WindowPacker
    packer(f, windows, source, type, target).write()
    return module(f)


class _Piece(NamedTuple):
    """The lanes of a vector that lie in one line."""

    lanes: tuple[Value, Value]  # the first, and the one after the last
    places: list[Value]  # the elements that tap 0 meets: of the outer dimensions, and at lane 0


class _Load(NamedTuple):
    """How the lanes of a piece are read for one tap."""

    place: str
    masks: list[str]  # one for each vector of elements that positions may be spread over


class _WindowPacker:
    """Writes one packing function."""

    def __init__(
        self, f: Function, windows: Windows, source: str, type: str, target: Target
    ) -> None:
        self.f, self.source, self.type = f, source, type
        self.stride, self.pieces, _ = windows
        self.lanes, self.bytes = target.vector // width(type), target.vector
        self.vector = f"<{self.lanes} x {source}>"
        self.field = {name: f.load("i64", f.at("%map", 8 * n), 8) for n, name in enumerate(MAP)}

    def of(self, name: str) -> list[str]:
        """A field of every dimension."""
        return [self.field[f"{name}{d}"] for d in range(RANK)]

    def write(self) -> None:
        """All vectors of positions, several at a time."""
        f, together = self.f, max(1, min(4, _MASKS // (self.pieces * self.stride)))
        vectors = f.div(f.add("%count", self.lanes - 1), self.lanes)
        whole = f.sub(vectors, f.rem(vectors, together))
        with f.loop(0, whole, together) as v:
            self.positions([f.add(v, n) for n in range(together)])
        if together > 1:
            with f.loop(whole, vectors) as v:
                self.positions([v])

    def positions(self, vectors: list[Value]) -> None:
        """All steps of some vectors of positions."""
        f, channels = self.f, self.field["channels"]
        cut = [self.cut(v) for v in vectors]
        for begin, stop, tap in self.taps():
            first = f.sub(begin, f.mul(tap, channels))
            from_ = f.at("%from", f.mul(first, self.field["channel_step"]))
            loads = [[self.under(tap, piece, from_) for piece in one] for one in cut]
            to = f.at("%to", f.mul(f.sub(begin, "%k0"), "%row"))
            with f.loop(0, f.sub(stop, begin)) as channel:
                offset = f.mul(channel, self.field["channel_step"])
                row = f.at(to, f.mul(channel, "%row"))
                for v, one in zip(vectors, loads, strict=True):
                    self.store(self.read(one, offset), f.at(row, f.mul(v, self.bytes)))

    def taps(self) -> Iterator[tuple[str, str, str]]:
        """A loop over taps: the first step of each and the one after its last, and its number."""
        f, channels = self.f, self.field["channels"]
        end, step = f.add("%k0", "%k"), f.variable("i64", "%k0")
        taps = f.div(f.add(end, f.sub(channels, 1)), channels)
        with f.loop(f.div("%k0", channels), taps) as tap:
            stop = f.least(f.mul(f.add(tap, 1), channels), end)
            yield step.get(), stop, tap
            step.set(stop)

    def tap(self, number: str) -> tuple[str, str, str]:
        """Where a tap is in the kernel."""
        f, (_, across, along) = self.f, self.of("taps")
        line = f.div(number, along)
        return f.div(line, across), f.rem(line, across), f.rem(number, along)

    def store(self, value: str, place: str) -> None:
        """Write a vector of elements as they are computed with."""
        wide = self.f.widen(value, self.source, self.lanes)
        self.f.store(f"<{self.lanes} x {self.type}>", wide, place, width(self.type))

    def cut(self, vector: Value) -> list[_Piece]:
        """The pieces of a vector of positions; the last ones may be empty."""
        f = self.f
        before = f.mul(vector, self.lanes)
        number, left = f.add("%first", before), f.least(f.sub("%count", before), self.lanes)
        _, across, along = self.of("positions")
        line, q2 = f.div(number, along), f.rem(number, along)
        found: list[_Piece] = []
        begin: Value = 0
        for n in range(self.pieces):
            q0, q1 = f.div(line, across), f.rem(line, across)
            end = f.least(left, f.add(begin, f.sub(along, q2) if n == 0 else along))
            starts = (q0, q1, f.sub(q2 if n == 0 else 0, begin))
            places = [
                f.sub(f.mul(q, step), padding)
                for q, step, padding in
                zip(starts, self.of("stride"), self.of("padding"), strict=True)
            ]  # fmt: skip
            found.append(_Piece((begin, end), places))
            begin, line = end, f.op(f"add i64 {line}, 1")
        return found

    def under(self, tap: str, piece: _Piece, base: str) -> _Load:
        """Where a piece's lanes are read for a tap, and which of them."""
        f, sizes = self.f, self.of("size")
        elements = [
            f.add(place, f.mul(t, step))
            for place, t, step in
            zip(piece.places, self.tap(tap), self.of("dilation"), strict=True)
        ]  # fmt: skip
        place = base
        for element, step in zip(elements, self.of("step"), strict=True):
            place = f.at(place, f.mul(element, step))
        inside = [f.op(f"icmp ult i64 {element}, {size}")
                  for element, size in zip(elements[:2], sizes[:2], strict=True)]  # fmt: skip
        # Elements are counted from the one at lane 0.
        start, (first, end) = elements[2], piece.lanes
        all = self.lanes * self.stride
        low = f.least(f.most(f.mul(first, self.stride), f.sub(0, start)), all)
        high = f.most(f.least(f.mul(end, self.stride), f.sub(sizes[2], start)), 0)
        high = f.select(f.op(f"and i1 {inside[0]}, {inside[1]}"), high, 0)
        return _Load(place, [self.between(low, high, n) for n in range(self.stride)])

    def between(self, low: Value, high: Value, number: int) -> str:
        """The lanes of vector number n of elements that lie between two."""
        f, lanes = self.f, self.lanes
        before, there = (f.first_lanes(lanes, f.sub(x, number * lanes)) for x in (low, high))
        return f.op(f"select <{lanes} x i1> {before}, <{lanes} x i1> zeroinitializer, "
                    f"<{lanes} x i1> {there}")  # fmt: skip

    def read(self, loads: list[_Load], offset: Value) -> str:
        """The elements under one tap of one channel."""
        f, lanes = self.f, self.lanes
        suffix, align = f"v{lanes}{suffix_of(self.source)}", width(self.source)
        read = ["zeroinitializer"] * self.stride
        for load in loads:
            place = f.at(load.place, offset)
            for n, mask in enumerate(load.masks):
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


class _TurnedPacker(_WindowPacker):
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
        f, channels, lanes = self.f, self.field["channels"], self.lanes
        for begin, stop, tap in self.taps():
            first = f.sub(begin, f.mul(tap, channels))
            self.look(tap, f.at("%from", f.mul(first, self.field["channel_step"])))
            to = f.at("%to", f.add(f.mul(f.sub(begin, "%k0"), "%row"), f.mul(vector, self.bytes)))
            count = f.sub(stop, begin)
            with f.loop(0, count, lanes) as channel:
                rows = [self.row(lane, channel, count) for lane in range(lanes)]
                for n, value in enumerate(transposed(f, self.vector, rows)):
                    self.store(value, f.at(to, f.mul(f.add(channel, n), "%row")))

    def look(self, tap: str, base: str) -> None:
        """Note where each lane is read for a tap, and whether anything is there."""
        f, taps = self.f, self.tap(tap)
        with f.loop(0, self.lanes) as lane:
            place, there = base, "true"
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
        mask = f.first_lanes(self.lanes, f.op(f"and i64 {f.sub(count, channel)}, {there}"))
        at, suffix = f.at(place, f.mul(channel, size)), f"v{self.lanes}{suffix_of(self.source)}"
        return f.load_lanes(self.vector, suffix, at, mask, size)
