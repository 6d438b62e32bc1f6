"""Tiles of elements in vectors, and their transforms, as LLVM IR.

Note [lanes of tiles]
A vector holds the same element of several tiles, or of one tile in several channels: its lanes are
read from wherever a table says, a row of a tile at a time, and turned. So tiles of any shape and of
any image are neighbours in a vector, and every value is computed in the same way whichever lane it
falls into.

Note [gaps]
With dilation the elements of a tile are a gap apart, and the tiles of a block are the remainders:
as many neighbours as the gap has, so that their elements are neighbours too. A vector of tiles is
then read in pieces that need no turning; of channels, as many tiles as a piece has are turned
together.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....kernel.cook_toom import Matrix
from ..codegen.irbuilder import Function
from ..products.gemm_micro import multiply_add
from ..products.gemm_tiles import Target

SIZE = 4  # bytes of a float
PIECE = 8  # elements that are turned at once, at most
WIDEST = 16  # elements of a vector, at most


class Form(NamedTuple):
    """One variant of the code: by dimension the outputs of a tile and the taps."""

    outputs: tuple[int, ...]
    taps: tuple[int, ...]
    rows: int  # of a micro-kernel's tile
    vectors: int
    in_place: bool = False  # lines without padding around them, whose borders the code minds
    spread: bool = False  # neighbours of the result are not neighbours in memory
    relu: bool = False
    gap: int = 1  # between the elements of a tile along the last dimension
    apart: tuple[int, ...] = ()  # of elements in a phase, if there are any, or of windows
    phases: tuple[tuple[int, ...], ...] = ()  # their first elements
    weave: int = 1  # phases of results that are neighbours along the last dimension
    in_line: bool = False  # many panels have tiles that begin one after the other

    @property
    def windows(self) -> bool:
        """Whether a tile is the window of one output, and nothing is transformed."""
        return max(self.outputs) == 1

    @property
    def step(self) -> int:
        """How many elements of a line there are from a tile to the next, without gaps."""
        return self.outputs[-1] * (self.apart[-1] if self.apart else 1)

    @property
    def width(self) -> int:
        """How many elements of a line a tile has, in all phases."""
        return self.reach(self.points)[-1]

    def reach(self, counts: Sequence[int]) -> list[int]:
        """How many elements there are from the first to the last of so many in each phase."""
        if not self.phases:
            return list(counts)
        last = map(max, *self.phases) if len(self.phases) > 1 else self.phases[0]
        return [b + (n - 1) * s + 1 for b, n, s in zip(last, counts, self.apart, strict=True)]

    @property
    def one_piece(self) -> bool:
        """Whether rows of tiles may be neighbours in memory."""
        return not self.spread and self.gap == 1

    @property
    def points(self) -> tuple[int, ...]:
        """How many there are along each dimension."""
        return tuple(m + r - 1 for m, r in zip(self.outputs, self.taps, strict=True))


def reads(count: int) -> int:
    """How many elements are read for so many of a tile's row: whole vectors.

    >>> [reads(count) for count in (1, 2, 3, 5, 8, 15)]
    [1, 2, 4, 8, 8, 15]
    """
    return count if count <= 2 else 4 if count <= 4 else max(count, PIECE)


def piece_of(gap: int, most: int) -> int:
    """How many neighbouring tiles a vector of at most so many elements has; see Note [gaps]."""
    return math.gcd(gap, most)


def span_of(count: int, gap: int) -> int:
    """How many elements there are from the first to the last that is read for so many."""
    return reads(count) if gap == 1 else (count - 1) * gap + WIDEST


class Line(NamedTuple):
    """A line of elements, and where in it the lanes' tiles start, or the tile of all of them."""

    size: str
    starts: list[str]


class Tiles:
    """Writes instructions on tiles into a function."""

    def __init__(self, f: Function, target: Target) -> None:
        self.f, self.target = f, target
        self.lanes = target.vector // SIZE
        self.vector = f"<{self.lanes} x float>"

    def read(
        self, places: Sequence[str], count: int, there: Line | None, begin: int = 0
    ) -> list[str]:
        """`count` elements from `begin` on at each of a vector's places: a vector for each."""
        f, lanes = self.f, self.lanes
        size = min(reads(count), PIECE, lanes)
        found: list[str] = []
        last = max(begin + count - size, begin)  # the last piece ends where the elements do
        for first in range(begin, begin + count, size):
            again, first = max(first - last, 0), min(first, last)
            piece, pieces = f"<{size} x float>", []
            for lane, place in enumerate(places):
                place = f.at(place, first * SIZE)
                if there is None:
                    pieces.append(f.load(piece, place, SIZE))
                else:
                    mask = self.inside(there, lane, first, size)
                    pieces.append(f.load_lanes(piece, f"v{size}f32", place, mask, SIZE))
            # Register i holds the places i, size + i, ... one after the other.
            rows = [self.joined(pieces[i::size], size) for i in range(size)]
            found += self.turned(rows, size)[again:]
        return found[:count]

    def read_in_line(self, place: str, count: int, step: int) -> list[str]:
        """`count` elements of each of a vector's tiles: one begins at a place, each `step` later.

        What tiles share is read once.
        """
        f, lanes = self.f, self.lanes

        def load(size: int, first: int) -> str:
            return f.load(f"<{size} x float>", f.at(place, first * SIZE), SIZE)

        if step == 1:
            return [load(lanes, first) for first in range(count)]
        found: list[str] = []
        if step == 2:
            for first in range(0, count, 2):
                pair = first + 1 < count  # else nothing behind the last one is read
                both = load(lanes, first), load(lanes, first + lanes - (not pair))
                for odd in range(1 + pair):
                    every = range(odd, 2 * lanes, 2)
                    chosen = [n + (n >= lanes and not pair) for n in every]
                    found.append(f.shuffle(self.vector, *both, chosen))
            return found
        if step != 4 or count < 4:
            places = [f.at(place, lane * step * SIZE) for lane in range(lanes)]
            return self.read(places, count, None)
        pieces: dict[int, str] = {}
        for first in range(0, count, 4):
            begin = min(first, count - 4)
            for at in range(begin, begin + 4 * lanes, 4):
                if at not in pieces:
                    pieces[at] = load(4, at)
            rows = [[pieces[begin + 4 * n] for n in range(i, lanes, 4)] for i in range(4)]
            turned = self.turned([self.joined(row, 4) for row in rows], 4)
            found += turned[first - begin :]
        return found

    def read_apart(
        self, places: Sequence[str], count: int, gap: int, there: Line | None
    ) -> list[str]:
        """`count` elements a gap apart at each of a vector's places: a vector for each."""
        f, size = self.f, piece_of(gap, self.lanes)
        found = []
        for first in range(0, count * gap, gap):
            pieces = []
            for lane in range(0, self.lanes, size):
                place = f.at(places[lane], first * SIZE)
                if there is None:
                    pieces.append(f.load(f"<{size} x float>", place, SIZE))
                else:
                    mask = self.inside(there, lane, first, size)
                    piece = f"<{size} x float>", f"v{size}f32"
                    pieces.append(f.load_lanes(*piece, place, mask, SIZE))
            found.append(self.joined(pieces, size))
        return found

    def inside(self, line: Line, lane: int, first: int, size: int) -> str:
        """Which elements of a lane's tile, from the `first` on, are in the line."""
        f, vector = self.f, f"<{size} x i32>"
        start = f.op(f"trunc i64 {line.starts[lane % len(line.starts)]} to i32")
        ramp = ", ".join(f"i32 {first + n}" for n in range(size))
        at = f.op(f"add {vector} {f.splat('i32', size, start)}, <{ramp}>")
        end = f.splat("i32", size, f.op(f"trunc i64 {line.size} to i32"))
        return f.op(f"icmp ult {vector} {at}, {end}")

    def joined(self, pieces: list[str], size: int) -> str:
        """Vectors one after the other as one."""
        f = self.f
        while len(pieces) > 1:
            type, all = f"<{size} x float>", range(2 * size)
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [f.shuffle(type, a, b, all) for a, b in pairs]
            size *= 2
        return pieces[0]

    def turned(self, rows: list[str], size: int) -> list[str]:
        """Square blocks of `size`, one after the other in each row, transposed."""
        f, lanes, vector = self.f, self.lanes, self.vector
        every = range(lanes)

        def mixed(a: str, b: str, block: int, high: bool) -> str:
            """In each 4 lanes, pieces of `block` of the low or high half, by turns from both."""
            chosen = []
            for lane in every:
                base, at = lane - lane % 4, lane % 4
                number, inside = divmod(at, block)
                source, piece = number % 2, number // 2 + (4 // block // 2) * high
                chosen.append(base + piece * block + inside + source * lanes)
            return f.shuffle(vector, a, b, chosen)

        if size == 1:
            return rows
        if size == 2:
            a, b = rows
            low = [lane // 2 * 2 + lane % 2 * lanes for lane in every]
            high = [lane // 2 * 2 + 1 + lane % 2 * lanes for lane in every]
            return [f.shuffle(vector, a, b, low), f.shuffle(vector, a, b, high)]
        found = [""] * size
        for first in range(0, size, 4):
            a, b, c, d = rows[first : first + 4]
            ab, cd = (
                (mixed(a, b, 1, False), mixed(a, b, 1, True)),
                (mixed(c, d, 1, False), mixed(c, d, 1, True)),
            )
            for half in range(2):
                found[first + 2 * half] = mixed(ab[half], cd[half], 2, False)
                found[first + 2 * half + 1] = mixed(ab[half], cd[half], 2, True)
        if size == 4:
            return found
        assert size == 8
        low = [lane % 4 + lane // 8 * 8 + (lane // 4 % 2) * lanes for lane in every]
        high = [n + 4 for n in low]
        return [
            f.shuffle(vector, found[i % 4], found[4 + i % 4], high if i >= 4 else low)
            for i in range(8)
        ]

    def combined(self, matrix: Matrix, values: Sequence[str]) -> list[str]:
        """Each row of a matrix times the values."""
        return [self.sum(row, values) for row in matrix]

    def sum(self, weights: Sequence[float], values: Sequence[str]) -> str:
        f, vector = self.f, self.vector
        terms = [(w, v) for w, v in zip(weights, values, strict=True) if w]
        terms.sort(key=lambda term: term[0] != 1)  # one that needs no product comes first
        weight, total = terms[0]
        if weight != 1:
            total = f.op(f"fmul {vector} {total}, {self.constant(weight)}")
        for weight, value in terms[1:]:
            if weight == 1:
                total = f.op(f"fadd {vector} {total}, {value}")
            elif weight == -1:
                total = f.op(f"fsub {vector} {total}, {value}")
            else:
                given = (self.constant(weight), value, total)
                total = multiply_add(f, self.target, vector, *given)
        return total

    def constant(self, value: float) -> str:
        rounded = struct.unpack("f", struct.pack("f", value))[0]
        bits = struct.pack(">d", rounded).hex().upper()
        return f"splat (float 0x{bits})"

    def transformed(self, matrices: Sequence[Matrix], values: list[str]) -> list[str]:
        """Values, the last dimension fastest, transformed along all dimensions."""
        shape = [len(matrix[0]) for matrix in matrices]
        for d, matrix in reversed(list(enumerate(matrices))):
            inner, found = math.prod(shape[d + 1 :]), []
            for first in range(0, len(values), shape[d] * inner):
                block = values[first : first + shape[d] * inner]
                lines = [self.combined(matrix, block[i::inner]) for i in range(inner)]
                found += [line[j] for j in range(len(matrix)) for line in lines]
            shape[d], values = len(matrix), found
        return values

    def rows(
        self, counts: Sequence[int], places: Sequence[str], steps: Sequence[str]
    ) -> Iterator[list[str]]:
        """Where so many rows of tiles begin, by dimension, that begin at the lanes' places."""
        f = self.f
        for index in itertools.product(*map(range, counts)):
            row = list(places)
            for step, number in zip(steps, index, strict=True):
                row = [f.at(place, f.mul(step, number)) for place in row]
            yield row

    def tile(
        self,
        matrices: Sequence[Matrix],
        places: Sequence[str],
        steps: Sequence[str],
        line: Line | None,
        gap: int,
        step: int = 0,
    ) -> list[str]:
        """Tiles that begin at the lanes' places, transformed: a vector for each point.

        `steps` are those of all dimensions but the last. If the places are in a line whose ends
        tiles may cross, beyond them are zeros. With a `step`, only the first place is given, and
        the others are so many elements apart.
        """
        *outer, count = [len(matrix[0]) for matrix in matrices]
        values = []
        for row in self.rows(outer, places, steps):
            if step:
                values += self.read_in_line(row[0], count, step)
            elif gap == 1:
                values += self.read(row, count, line)
            else:
                values += self.read_apart(row, count, gap, line)
        return self.transformed(matrices, values)

    def tiles_of_phases(
        self,
        matrices: Sequence[Matrix],
        places: Sequence[str],
        steps: Sequence[str],
        line: Line | None,
        form: Form,
        step: int = 0,
    ) -> list[list[str]]:
        """The same of every phase: they share elements or have them by turns, read together."""
        counts = [len(matrix[0]) for matrix in matrices]
        *outer, count = form.reach(counts)
        read = [
            self.read_in_line(row[0], count, step) if step else self.read(row, count, line)
            for row in self.rows(outer, places, steps)
        ]
        rows = dict(zip(itertools.product(*map(range, outer)), read, strict=True))
        found = []
        for *above, first in form.phases:
            values = []
            for index in itertools.product(*map(range, counts[:-1])):
                row = [b + i * s for b, i, s in zip(above, index, form.apart[:-1], strict=True)]
                values += rows[tuple(row)][first :: form.apart[-1]][: counts[-1]]
            found.append(self.transformed(matrices, values))
        return found

    def neighbours(
        self,
        matrices: Sequence[Matrix],
        places: Sequence[str],
        steps: Sequence[str],
        line: Line | None,
        gap: int,
    ) -> list[list[str]]:
        """The same of as many tiles as a piece has, of which the first begin at the places."""
        several = piece_of(gap, min(self.lanes, PIECE))
        *outer, count = [len(matrix[0]) for matrix in matrices]
        values: list[list[str]] = []
        for row in self.rows(outer, places, steps):
            values += [self.read(row, several, line, n * gap) for n in range(count)]
        return [self.transformed(matrices, [v[n] for v in values]) for n in range(several)]
