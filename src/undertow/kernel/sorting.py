"""The forms `sort` and `ranked`: rows in order, or what comes first in them, or has a rank.

Note [sort keys]
An element becomes a signed integer, its key, whose order is that of elements: of a negative float
all bits but the sign are turned; zeros of both signs have one key, and so have NaNs, the greatest.
Elements of fewer than 32 bits have keys of 32, none of them negative. Where the greatest come
first, keys are inverted. An item is an index and a key: halves of one word, or two words. All
stable sorts of items by their keys have one result, so neither the way that is taken nor the number
of threads shows.

Note [ways to sort]
Of up to `FEW` items each counts those that go before it, in lanes, and is put there; no branch
depends on the data. More items are dealt into 256 piles by each byte of their keys, the lowest one
first; the sizes of piles are counted before. A byte that all keys have in common is skipped. A row
is sorted by one thread: two that deal pieces of it, and read for each byte what the other has
written, took twice as long as one.

Note [first of a row]
The `count` items that come first in a row are found without sorting it. Of each of at least twice
as many groups of elements the smallest key is taken. As many groups as are wanted have a key up to
the `count`-th smallest of these, so no key above that limit is wanted. Of random elements 1.4 times
as many remain as are wanted, and are sorted. Once there are enough, later ones that equal the limit
are too late.

Note [one of a row]
The item of a rank is found without sorting the row, too. Two of a sorted sample lie on either side
of it, most likely: three standard deviations of their ranks away from where it should be. Items
between them are sorted, those before are counted. If it is not among them, the row is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .ir import Function, State, Value

TOGETHER = 4  # vectors of elements whose keys are looked at
WIDEST = 16  # lanes
FEW = 96  # items that are sorted by counting: 128 take as long by bytes
PILES = 256
HALF = 32  # bits of an index, and of its key, in an item of one word


class Keys(NamedTuple):
    """How elements become keys; see Note [sort keys]."""

    bits: int  # of an element
    kind: str  # float, signed or unsigned
    infinity: int = 0  # of floats: its bits

    @property
    def word(self) -> int:
        """Bits of a key."""
        return max(self.bits, HALF)

    @property
    def words(self) -> int:
        """Words of 64 bits of an item."""
        return self.word // HALF

    def made(self, f: Function, x: Value, flip: Value) -> Value:
        """The key of an element; `flip` is 0, or -1 to invert it."""
        key = self._turned(x)
        if self.kind == "float":
            size = x & self._most
            key = f.select(size == 0, 0, key)
            key = f.select(size > self.infinity, self._most, key)
        if self.word > self.bits:
            key = f.cast(f.bitcast(key ^ ~self._most, f"u{self.bits}"), f"i{self.word}")
        return key ^ flip

    def element(self, f: Function, key: Value, flip: Value, stored: Callable[[], Value]) -> Value:
        """The element of a key; what is `stored` if that does not tell, of zeros and NaNs."""
        key = key ^ flip
        if self.word > self.bits:
            key = f.cast(key, f"i{self.bits}") ^ ~self._most
        found = self._turned(key)
        if self.kind == "float":
            found = f.rare((key == 0) | (key == self._most), found, stored)
        return found

    @property
    def _most(self) -> int:
        return (1 << self.bits - 1) - 1

    def _turned(self, x: Value) -> Value:
        """From the bits of an element to those of a signed integer in its place, or back."""
        if self.kind == "signed":
            return x
        if self.kind == "unsigned":
            return x ^ ~self._most
        return x ^ ((x >> self.bits - 1) & self._most)


class _Rows:
    """A kernel in the making: its arguments, the row that is sorted, and its items.

    Buffers: values, indices, x, items: n of them twice for each thread. Parameters: the rows, their
    elements, how many of them are wanted, -1 if the greatest come first else 0, the words of items
    of a thread, and more.
    """

    def __init__(self, name: str, keys: Keys) -> None:
        f = self.f = Function(name)
        f.element = keys.word // 8
        self.keys, self.type = keys, f"i{keys.word}"
        self.values = f.buffer("values", f"i{keys.bits}", written=True)
        self.indices = f.buffer("indices", "i64", written=True)
        self.x = f.buffer("x", f"i{keys.bits}")
        self.items = f.buffer("items", "i64", written=True)
        self.rows, self.n, self.count = f.param("rows"), f.param("n"), f.param("count")
        flip, self.room = f.param("flip"), f.param("room")
        self.flip = f.cast(flip, self.type)
        self.bytes = keys.bits // 8
        self.places = f.shared("places", self.type, FEW + WIDEST)
        self.piles = f.shared("piles", "i64", self.bytes * PILES)

    def begin(self, row: Value) -> None:
        """What follows is about a row."""
        self.first = row * self.n  # of its elements
        self.here = self.f.thread() * self.room
        self.spare = self.here + self.room // 2

    def variable(self, value: int | Value, dtype: str = "i64") -> State:
        return self.f.state(self.f.value(value, dtype))

    # Items ---------------------------------------------------------------------------------------
    def made(self, i: Value) -> Value:
        """The key of an element of the row."""
        return self.keys.made(self.f, self.f.load(self.x, self.first + i), self.flip)

    def key(self, at: Value) -> Value:
        """That of an item, which begins at a word."""
        f = self.f
        if self.keys.words == 2:
            return f.load(self.items, at + 1)
        return f.cast(f.load(self.items, at) >> HALF, self.type)

    def put(self, at: Value, index: Value, key: Value) -> None:
        """Make an item."""
        f = self.f
        if self.keys.words == 2:
            self.write(at, [index, key])
        else:
            self.write(at, [(f.cast(key, "i64") << HALF) | index])

    def read(self, at: Value) -> list[Value]:
        """The words of an item, side by side; see Note [pairs] of LLVM's generator."""
        places = [at + word for word in range(self.keys.words)]
        return [self.f.load(self.items, place) for place in places]

    def write(self, at: Value, words: Sequence[Value]) -> None:
        places = [at + word for word in range(len(words))]
        for place, word in zip(places, words, strict=True):
            self.f.store(self.items, place, word)

    def append(self, number: State, index: Value) -> None:
        """One more item, of an element of the row."""
        (before,) = number.get()
        self.put(self.here + before * self.keys.words, index, self.made(index))
        number.set(before + 1)

    def all(self) -> None:
        """The items of all elements."""

        def put(i: Value) -> None:
            self.put(self.here + i * self.keys.words, i, self.made(i))

        self.along(self.n, put)

    def along(self, count: Value, run: Callable[[Value], None]) -> None:
        """For so many elements, in lanes; few take longer there."""
        f = self.f
        with f.branch(count < WIDEST), f.loop(count) as i:
            run(i)
        with f.branch(count >= WIDEST), f.vector(count) as i:
            run(i)

    def give(self, begin: Value, count: Value, to: Value) -> None:
        """Write so many elements and their indices to a place of the results."""
        f = self.f

        def one(i: Value) -> None:
            index, *rest = self.read(begin + i * self.keys.words)
            key = rest[0] if rest else f.cast(index >> HALF, self.type)
            index = index if rest else index & (1 << HALF) - 1

            def stored() -> Value:
                # Never beyond the row, though somebody may have written to it meanwhile.
                inside = f.call("maximum", f.call("minimum", index, self.n - 1), 0)
                return f.load(self.x, self.first + inside)

            f.store(self.values, to + i, self.keys.element(f, key, self.flip, stored))
            f.store(self.indices, to + i, index)

        self.along(count, one)

    # Sorting; see Note [ways to sort] ------------------------------------------------------------
    def sorted(self, n: Value) -> Value:
        """Put the first items in order; the word where they begin then."""
        f, found = self.f, self.variable(self.spare)
        with f.branch(n <= FEW):
            self.by_counting(n)
        with f.branch(n > FEW):
            found.set(self.by_bytes(n))
        return found.get()[0]

    def by_counting(self, n: Value) -> None:
        """Put at most FEW items in order into `spare`."""
        f, words, lanes = self.f, self.keys.words, self.f.lanes()
        with f.loop((n + lanes - 1) // lanes) as block:
            first = block * lanes
            with f.vector(lanes) as lane:  # all of them, of which the last ones may be nothing
                mine = self.key(self.here + (first + lane) * words)
                before = self.variable(0, self.type)

                def count(flag: Value, before: State = before) -> None:
                    before.set(before.get()[0] + f.cast(flag, self.type))

                with f.loop(first) as j:
                    count(self.key(self.here + j * words) <= mine)
                with f.loop(n - first) as j:
                    count(self.key(self.here + (first + j) * words) < mine)
                with f.loop(lanes - 1) as j:  # those that are equal, and earlier
                    equal = self.key(self.here + (first + j) * words) == mine
                    count(equal & (f.cast(j, "i32") < f.cast(lane, "i32")))
                f.store(self.places, first + lane, before.get()[0])
        with f.loop(n) as i:
            place = f.cast(f.load(self.places, i), "i64")
            self.write(self.spare + place * words, self.read(self.here + i * words))

    def by_bytes(self, n: Value) -> Value:
        """Put items in order, into one of the two places, whose first word is returned."""
        f, words = self.f, self.keys.words
        with f.vector(self.bytes * PILES) as i:
            f.store(self.piles, i, 0)
        with f.loop(n) as i:
            key = self.key(self.here + i * words)
            for byte in range(self.bytes):
                pile = self.pile(key, f.const(byte, "i64"))
                f.store(self.piles, pile, f.load(self.piles, pile) + words)
        places = f.state(self.here, self.spare)
        with f.loop(self.bytes) as byte:
            of, to = places.get()
            common = f.load(self.piles, self.pile(self.key(of), byte))
            with f.branch(common != n * words):
                self.deal(of, to, n, byte)
                places.set(to, of)
        return places.get()[0]

    def deal(self, of: Value, to: Value, n: Value, byte: Value) -> None:
        """Put each item behind the others of its pile, by a byte of their keys."""
        f, words, place = self.f, self.keys.words, self.variable(to)
        with f.loop(PILES) as digit:
            pile, (begin,) = byte * PILES + digit, place.get()
            place.set(begin + f.load(self.piles, pile))
            f.store(self.piles, pile, begin)
        with f.loop(n) as i:
            at = of + i * words
            pile = self.pile(self.key(at), byte)
            there = f.load(self.piles, pile)
            self.write(there, self.read(at))
            f.store(self.piles, pile, there + words)

    def pile(self, key: Value, byte: Value) -> Value:
        """That of a key, by a byte."""
        f = self.f
        digit = f.cast(key >> f.cast(byte * 8, self.type), "i64") & PILES - 1
        if self.keys.word == self.keys.bits:  # the highest byte has the sign
            digit = digit ^ f.select(byte == self.bytes - 1, f.const(PILES // 2, "i64"), 0)
        return byte * PILES + digit


def sort_function(name: str, keys: Keys) -> Function:
    """Rows in order, and their indices."""
    r = _Rows(name, keys)
    with r.f.parallel(r.rows) as row:
        r.begin(row)
        r.all()
        r.give(r.sorted(r.n), r.count, row * r.count)
    return r.f


def first_function(name: str, keys: Keys) -> Function:
    """As `sort_function`, but of each row just what comes first; see Note [first of a row].

    One more parameter: the number of groups.
    """
    r = _Rows(name, keys)
    f = r.f
    least = f.view(r.items, r.type)
    count, groups = r.count, f.param("groups")
    with f.parallel(r.rows) as row:
        r.begin(row)
        own = r.spare * (64 // keys.word)
        with f.vector(groups) as g:
            f.store(least, own + g, r.made(g))
        with f.loop(r.n // groups - 1) as more, f.vector(groups) as g:
            found = f.call("minimum", f.load(least, own + g), r.made((more + 1) * groups + g))
            f.store(least, own + g, found)
        with f.vector(groups) as g:
            r.put(r.here + g * keys.words, g, f.load(least, own + g))
        number, most, begin = r.variable(groups), r.variable(0, r.type), r.variable(0)
        with f.loop(2) as again:  # sort the groups' keys, then what remains
            with f.branch(again == 1):
                limit = r.key(begin.get()[0] + (count - 1) * keys.words)
                most.set(limit)
                number.set(0)
                with f.vector(r.n, TOGETHER) as i, f.each(r.made(i) <= most.get()[0]) as near:
                    r.append(number, near)
                    enough = (number.get()[0] >= count) & (limit != -1 << keys.word - 1)
                    most.set(f.select(enough, limit - 1, limit))
            begin.set(r.sorted(number.get()[0]))
        r.give(begin.get()[0], count, row * count)
    return f


def rank_function(name: str, keys: Keys) -> Function:
    """Of each row the element of a rank; see Note [one of a row].

    More parameters: the rank, the size of the sample, and which of it lie on either side.
    """
    r = _Rows(name, keys)
    f, words, most = r.f, keys.words, (1 << keys.word - 1) - 1
    rank, samples, *ends = (f.param(p) for p in ("rank", "samples", "low", "high"))
    with f.parallel(r.rows) as row:
        r.begin(row)
        with f.loop(samples) as s:
            r.put(r.here + s * words, s, r.made(s * r.n // samples))
        number, place, begin = r.variable(samples), r.variable(0), r.variable(0)
        with f.loop(2) as again:  # sort the sample, then what lies between two of it
            with f.branch(again == 1):
                bounds = []
                for end, beyond in zip(ends, (~most, most), strict=True):
                    inside = (end >= 0) & (end < samples)  # one outside the sample is no bound
                    key = r.key(begin.get()[0] + f.select(inside, end, 0) * words)
                    bounds.append(f.select(inside, key, beyond))
                number.set(0)
                before = f.state(f.const(0, r.type), combine=lambda a, b: a + b)
                with f.vector(r.n, TOGETHER) as i:
                    key = r.made(i)
                    below = key < bounds[0]
                    before.add(f.cast(below, r.type))
                    with f.each(~(below | (key > bounds[1]))) as near:
                        r.append(number, near)
                at = rank - f.cast(before.get()[0], "i64")
                place.set(at)
                with f.branch((at < 0) | (at >= number.get()[0])):
                    r.all()
                    number.set(r.n)
                    place.set(rank)
            begin.set(r.sorted(number.get()[0]))
        r.give(begin.get()[0] + place.get()[0] * words, r.count, row)
    return f
