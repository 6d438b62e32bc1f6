"""What is sorted: keys whose order is that of elements, with their indices, as LLVM IR.

Note [sort keys]
An element becomes a signed integer, its key, whose order is that of elements: of a negative float
all bits but the sign are turned; zeros of both signs have one key, and so have NaNs, the greatest.
Elements of fewer than 32 bits have keys of 32, none of them negative. Where the greatest come
first, keys are inverted. An item is an index and a key, two words. All stable sorts of items by
their keys have one result, so neither the way that is taken nor the number of threads shows.

Note [ways to sort]
Of up to `FEW` items each counts those that go before it, in lanes, and is put there; no branch
depends on the data. More items are dealt into 256 piles by each byte of their keys, the lowest one
first; the sizes of piles are counted before. A byte that all keys have in common is skipped. A row
is sorted by one thread: two that deal pieces of it, and read for each byte what the other has
written, took twice as long as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..codegen.irbuilder import Function, Value
from ..products.gemm_tiles import Target

FEW = 96  # items that are sorted by counting: 128 take as long by bytes
PILES = 256
TABLE = 8 * PILES  # bytes: of each pile its bytes, or where its next item goes


class Keys(NamedTuple):
    """How elements become keys; see Note [sort keys]."""

    bits: int  # of an element
    kind: str  # float, signed or unsigned
    infinity: int = 0  # of floats: its bits

    @property
    def word(self) -> int:
        """Bits of a key, and of an index."""
        return max(self.bits, 32)

    @property
    def item(self) -> int:
        """Bytes of an item."""
        return self.word // 4

    def made(self, f: Function, x: str, flip: Value, lanes: int = 0) -> str:
        """The key of an element, or those of a vector; `flip` is 0, or -1 to invert them."""
        of, to = integers(self.bits, lanes), integers(self.word, lanes)
        key = self._turned(f, x, lanes)
        if self.kind == "float":
            size = f.op(f"and {of} {x}, {self._all(self._most, lanes)}")
            for how, value, instead in (("eq", 0, 0), ("ugt", self.infinity, self._most)):
                special = f.op(f"icmp {how} {of} {size}, {self._all(value, lanes)}")
                choice = f"{integers(1, lanes)} {special}, {of} {self._all(instead, lanes)}"
                key = f.op(f"select {choice}, {of} {key}")
        if self.word > self.bits:
            key = f.op(f"xor {of} {key}, {self._all(~self._most, lanes)}")
            key = f.op(f"zext {of} {key} to {to}")
        return f.op(f"xor {to} {key}, {flip}")

    def element(self, f: Function, key: str, flip: Value, stored: Callable[[], str]) -> str:
        """The element of a key; what is `stored` if that does not tell, of zeros and NaNs."""
        word, of = f"i{self.word}", f"i{self.bits}"
        key = f.op(f"xor {word} {key}, {flip}")
        if self.word > self.bits:
            key = f.op(f"xor {of} {f.op(f'trunc {word} {key} to {of}')}, {~self._most}")
        found = f.variable(of, self._turned(f, key, 0))
        if self.kind == "float":
            zero = f.op(f"icmp eq {of} {key}, 0")
            with f.when(f.op(f"or i1 {zero}, {f.op(f'icmp eq {of} {key}, {self._most}')}")):
                found.set(stored())
        return found.get()

    @property
    def _most(self) -> int:
        return (1 << self.bits - 1) - 1

    def _turned(self, f: Function, x: str, lanes: int) -> str:
        """From the bits of an element to those of a signed integer in its place, or back."""
        of = integers(self.bits, lanes)
        if self.kind == "signed":
            return x
        if self.kind == "unsigned":
            return f.op(f"xor {of} {x}, {self._all(~self._most, lanes)}")
        sign = f.op(f"ashr {of} {x}, {self._all(self.bits - 1, lanes)}")
        return f.op(f"xor {of} {x}, {f.op(f'and {of} {sign}, {self._all(self._most, lanes)}')}")

    def _all(self, value: int, lanes: int) -> str:
        return f"splat (i{self.bits} {value})" if lanes else str(value)


def integers(bits: int, lanes: int = 0) -> str:
    """The type of an integer, or of a vector of them."""
    return f"<{lanes} x i{bits}>" if lanes else f"i{bits}"


class Items:
    """The parts of a function that has to do with items, which lie one after the other."""

    def __init__(self, f: Function, keys: Keys, target: Target) -> None:
        self.f, self.keys = f, keys
        self.lanes = target.vector * 8 // keys.word
        self.word, self.vector = integers(keys.word), integers(keys.word, self.lanes)
        self.bytes = keys.word // 8  # of a word

    # Words and items -------------------------------------------------------------------------
    def narrow(self, value: Value) -> Value:
        """An integer of 64 bits as a word."""
        return value if self.bytes == 8 else self.f.op(f"trunc i64 {value} to {self.word}")

    def widen(self, word: str) -> str:
        """A word that is not negative as an integer of 64 bits."""
        return word if self.bytes == 8 else self.f.op(f"zext {self.word} {word} to i64")

    def load(self, base: str, i: Value, bits: int = 0, lanes: int = 0) -> str:
        """The i-th of words, or of other integers, or some from there on."""
        bytes = (bits or self.keys.word) // 8
        return self.f.load(integers(8 * bytes, lanes), self.f.at(base, self.f.mul(i, bytes)), bytes)

    def at(self, items: str, i: Value) -> str:
        """The address of an item."""
        return self.f.at(items, self.f.mul(i, self.keys.item))

    def key(self, items: str, i: Value) -> str:
        """Its key."""
        return self.load(self.at(items, i), 1)

    def index(self, items: str, i: Value) -> str:
        """Its index, of 64 bits."""
        return self.widen(self.load(self.at(items, i), 0))

    def put(self, items: str, i: Value, index: Value, key: str) -> None:
        """Make an item."""
        to = self.at(items, i)
        self.f.store(self.word, self.narrow(index), to, self.bytes)
        self.f.store(self.word, key, self.f.at(to, self.bytes), self.bytes)

    def _move(self, item: str, to: str) -> None:
        whole = "i64" if self.bytes == 4 else "<2 x i64>"
        self.f.store(whole, self.f.load(whole, item, 8), to, 8)

    # Elements --------------------------------------------------------------------------------
    def made(self, x: str, i: Value, flip: str, lanes: int = 0) -> str:
        """The key of the i-th element, or some from there on; `flip` is an integer of 64 bits."""
        elements, flip = self.load(x, i, self.keys.bits, lanes), str(self.narrow(flip))
        if lanes:
            flip = self.f.splat(self.word, lanes, flip)
        return self.keys.made(self.f, elements, flip, lanes)

    def give(self, items: str, i: Value, x: str, last: Value, flip: str, to: Sequence[str]) -> None:
        """Write the element and the index of an item to two places."""
        f, index, bits = self.f, self.index(items, i), self.keys.bits

        def stored() -> str:
            # Never beyond the row, though somebody may have written to it meanwhile.
            inside = f.select(f.compare("ult", index, last), index, last)
            return self.load(x, inside, bits)

        key, flipped = self.key(items, i), self.narrow(flip)
        f.store(f"i{bits}", self.keys.element(f, key, flipped, stored), to[0], bits // 8)
        f.store("i64", index, to[1], 8)

    # Sorting; see Note [ways to sort] ---------------------------------------------------------
    def by_counting(self, items: str, spare: str, n: Value) -> None:
        """Put at most FEW items in order into `spare`."""
        f, lanes, vector = self.f, self.lanes, self.vector
        numbers = f.slot(f"[{FEW + lanes} x {self.word}]")
        with f.loop(0, n, lanes) as i:
            pairs = self.load(self.at(items, i), 0, lanes=2 * lanes)
            odd = range(1, 2 * lanes, 2)
            mine = f.shuffle(integers(self.keys.word, 2 * lanes), pairs, "poison", odd)
            before = f.variable(vector, "zeroinitializer")

            def count(true: str) -> None:
                ones = f.op(f"sext {integers(1, lanes)} {true} to {vector}")
                before.set(f.op(f"sub {vector} {before.get()}, {ones}"))

            for how, begin, end in (("sle", 0, i), ("slt", i, n)):
                with f.loop(begin, end) as j:
                    other = f.splat(self.word, lanes, self.key(items, j))
                    count(f.op(f"icmp {how} {vector} {other}, {mine}"))
            for lane in range(lanes - 1):  # of the same vector those that are equal, and earlier
                other = f.shuffle(vector, mine, "poison", [lane] * lanes)
                behind = ", ".join(f"i1 {int(later > lane)}" for later in range(lanes))
                equal = f.op(f"icmp eq {vector} {other}, {mine}")
                count(f.op(f"and {integers(1, lanes)} {equal}, <{behind}>"))
            f.store(vector, before.get(), f.at(numbers, f.mul(i, self.bytes)), self.bytes)
        with f.loop(0, n) as i:
            place = self.widen(self.load(numbers, i))
            self._move(self.at(items, i), self.at(spare, place))

    def by_bytes(self, items: str, spare: str, n: Value) -> str:
        """Put items in order, into one of the two places, whose address is returned."""
        f, bytes = self.f, self.keys.bits // 8
        tables = f.slot(f"[{bytes * PILES} x i64]")
        self.clear(tables, bytes)
        self.count(items, 0, n, {byte: f.at(tables, TABLE * byte) for byte in range(bytes)})
        of, to = f.variable("ptr", items), f.variable("ptr", spare)
        with f.loop(0, bytes) as byte:
            here, there = of.get(), to.get()
            table = f.at(tables, f.mul(byte, TABLE))
            common = f.load("i64", self._pile(table, here, byte), 8)
            with f.when(f.compare("ne", common, f.mul(n, self.keys.item))):
                place = f.variable("i64", 0)
                with f.loop(0, TABLE, 8) as d:
                    pile, begin = f.at(table, d), place.get()
                    place.set(f.add(begin, f.load("i64", pile, 8)))
                    f.store("i64", begin, pile, 8)
                self.deal(here, there, 0, n, table, byte)
                of.set(there)
                to.set(here)
        return of.get()

    def clear(self, tables: str, number: int) -> None:
        """Fill tables with zeros."""
        self.f.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        size = f"i64 {TABLE * number}"
        self.f.put(f"call void @llvm.memset.p0.i64(ptr {tables}, i8 0, {size}, i1 false)")

    def count(self, items: str, begin: Value, end: Value, tables: dict[Value, str]) -> None:
        """Add up the bytes of piles, by some bytes of keys, each in a table of its own."""
        f = self.f
        with f.loop(begin, end) as i:
            for byte, table in tables.items():
                pile = self._pile(table, self.at(items, i), byte)
                f.store("i64", f.add(f.load("i64", pile, 8), self.keys.item), pile, 8)

    def deal(self, items: str, to: str, begin: Value, end: Value, table: str, byte: Value) -> None:
        """Put each item behind the others of its pile."""
        f = self.f
        with f.loop(begin, end) as i:
            item = self.at(items, i)
            pile = self._pile(table, item, byte)
            place = f.load("i64", pile, 8)
            self._move(item, f.at(to, place))
            f.store("i64", f.add(place, self.keys.item), pile, 8)

    def _pile(self, table: str, item: str, byte: Value) -> str:
        """Where a table has the pile of an item."""
        f, last = self.f, self.keys.bits // 8 - 1
        digit = f.load("i8", f.at(item, f.add(byte, self.bytes)), 1)
        if self.keys.word == self.keys.bits:  # the highest byte has the sign
            highest = f.op(f"icmp eq i64 {byte}, {last}")
            digit = f.op(f"xor i8 {digit}, {f.select(highest, -128, 0, 'i8')}")
        return f.at(table, f.mul(f.op(f"zext i8 {digit} to i64"), 8))
