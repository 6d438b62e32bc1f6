"""The form `conv` without a matrix product, for few channels: what its two kernels share.

Note [long and short]
Along one dimension, x's element q · a + t · b - low meets the position q of a long array and the
tap t of a short one. `slide` (direct_slide) computes the long one: an output, by few taps. `weigh`
(direct_weigh) computes the short one: a kernel's gradient, from the cotangent of the output, which
then plays the form's kernel. Lanes run along the last long dimension; taps are unrolled. There are
always three dimensions, of size one where the convolution has fewer.

Note [tiles]
The long array is done in tiles: whole, or a few of the outermost of those of its dimensions that
fit. What a tile sees of x is copied to scratch memory that stays in the first cache: padded with
zeros, in the type of the computation, and where a > 1 sorted by the remainder of the index mod a
(a `phase`), so that neighbouring positions always meet neighbouring elements. A tile that is the
whole array leaves the zeros of the padding in place for the next one: its scratch is `framed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .ir import WIDTH, Function, Value
from .offsets import quotient

AHEAD = 4096  # bytes that are fetched ahead, of rows that are read once


class Lines(NamedTuple):
    """How x's rows are copied and met by taps."""

    dtype: str
    step: int | None  # of x from position to position: 1, 2 or a parameter
    taps: int  # unrolled
    run: int  # of them neighbours
    ahead: int  # elements between the beginning of a line of the cache and the first of a run


class TileLoops:
    """Tiles of the long array, and the scratch memory with what they see of x.

    The table begins with the places in scratch of the runs of unrolled taps. It holds those of the
    rounds of taps too, the phases, and for each row of a tile three places: in scratch, in the long
    array, and in x.
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
        self.first = f.param("first")  # of them before those of the first thread
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
        places = [
            tile // (self.grid[1] * self.grid[2]),
            (tile // self.grid[2]) % self.grid[1],
            tile % self.grid[2],
        ]
        at = [p * n for p, n in zip(places, self.tile, strict=True)]
        counts = [
            f.call("minimum", whole - first, n)
            for whole, first, n in zip(self.long, at, self.tile, strict=True)
        ]
        return at, counts

    def fill(
        self, start: Value, at: Sequence[Value], images: Value, fetch: bool
    ) -> tuple[Value, Value]:
        """Copy what a tile sees of some images, and fetch ahead if asked to.

        Where this thread's scratch begins, and where in x the tile does.
        """
        f = self.f
        scratch = self.first + f.thread() * self.per_thread
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
                    if fetch and step is not None:
                        f.prefetch(self.x, place + j * by + AHEAD // WIDTH[self.x.dtype])
                    f.store(self.scratch, to + j, f.load(self.x, place + j * by))
                with f.vector(f.select(inside, before, blank)) as j:
                    f.store(self.scratch, target + j, 0)
                with f.vector(f.select(inside, after, 0)) as j:
                    f.store(self.scratch, target + end + j, 0)
        begins = zip(first, self.steps, strict=True)
        return scratch, sum((z * step for z, step in begins), start)

    def row(self, number: Value, *starts: Value) -> list[Value]:
        """Where a row of a tile begins in scratch, in the long array and in x."""
        entry = self.rows_at + number * 3
        return [start + self.f.load(self.table, entry + i) for i, start in enumerate(starts)]

    def taps(self, first: Value) -> list[tuple[Value, int]]:
        """The places in scratch of unrolled taps, and how far ahead, from an entry on."""
        runs = [self.f.load(self.table, first + r) for r in range(self.runs)]
        return [(place, self.lines.ahead + i) for place in runs for i in range(self.lines.run)]


def together(f: Function, number: Value, many: int, whole: Value) -> list[Value]:
    """A block of channels. The last one takes some of the others if there are too few."""
    first = f.call("minimum", number * many, whole - many)
    return [first + m if m else first for m in range(many)]


def added(a: Value, b: Value) -> Value:
    """How two parts of a sum combine."""
    return a + b
