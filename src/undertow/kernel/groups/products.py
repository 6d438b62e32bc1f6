"""Products of matrices for groups: tiles in the memory of a group and in registers.

Note [tiles of groups]
A group computes a tile of a product. Some terms at a time, its threads bring what they all need of
both factors into the group's memory; then each thread adds to its own sums, a small tile again,
which are in registers. How large both are is told by a `Tile`, which the device's limits decide on.
What the factors are is told by functions of a row, a term and a column: elements of matrices, or
those that a convolution's windows look at, which are never laid out in memory. Where there are few
tiles and many terms, terms are cut into pieces of a fixed length, whose sums are added up by
another launch.

Note [places of terms]
Where an element lies is worked out in two parts, that of its row or column once, before all terms,
and that of its term. A term is a number and some digits (a channel and the taps of a window), and
a thread that brings terms one after the other counts them up, without a division.

Note [zeros beside infinity]
The right factor of a convolution is zero where a window looks beside the input, and a weight that
is infinite or NaN must not be multiplied with that. A thread that computes one result leaves such
terms out. One with a tile of sums does not look; only if one of them is NaN, which it then may be
rightly or not, it computes all of them again, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ..ir import FLOATS, Buffer, Function, State, Value
from ..maps import converted
from ..offsets import Offset, at_row, plus, quotient
from .elements import each, steps_of

Term = Sequence[Value]
Element = Callable[[Term], Value]
Seen = Callable[[Term], tuple[Value, Value]]


class Tile(NamedTuple):
    """What a group and its threads compute; see Note [tiles of groups].

    >>> Tile(8, 8).height, Tile(8, 8).threads
    (64, 64)
    """

    rows: int  # sums of a thread
    columns: int
    down: int = 8  # threads
    across: int = 8
    depth: int = 16  # terms in the group's memory at once

    @property
    def height(self) -> int:
        """Rows of the group's tile."""
        return self.rows * self.down

    @property
    def width(self) -> int:
        """Columns of it."""
        return self.columns * self.across

    @property
    def threads(self) -> int:
        """Of the group."""
        return self.down * self.across

    @property
    def shared(self) -> int:
        """Elements in the memory of the group."""
        return (self.height + self.width) * self.depth


class Sizes(NamedTuple):
    """A product: of `batches`, each `rows` by `columns`, of `terms`, in pieces of a length."""

    batches: Value
    rows: Value
    columns: Value
    terms: Value
    piece: Value


class Factors(NamedTuple):
    """What a group multiplies: functions that load and store; see Note [places of terms]."""

    left: Callable[[Value], Element]  # of a row: the element at a term
    right: Callable[[Value], Element]  # of a column
    into: Callable[[Value], Offset]  # of a column: where its results begin
    store: Callable[[Value, Offset, Value, Value], None]  # of a row, that, the column and a sum
    digits: Sequence[Value]  # the sizes of a term's digits after the first
    # Of a column: the element at a term, and whether there is one; Note [zeros beside infinity].
    seen: Callable[[Value], Seen] | None = None


def tiles(
    f: Function,
    sizes: Sizes,
    compute: str,
    tile: Tile,
    along: tuple[bool, bool],
    factors: Callable[..., Factors],
) -> None:
    """The kernel's loops; see Note [tiles of groups].

    `along` tells of both factors whether neighbouring terms lie together in memory, rather than
    rows or columns.
    """
    f.exact = False
    extents = (tile.height, tile.width)
    shared = [
        f.shared(name, compute, tile.depth * n)
        for name, n in zip(("left", "right"), extents, strict=True)
    ]
    down, across = (
        quotient(n, f.value(extent, "i32"))
        for n, extent in zip((sizes.rows, sizes.columns), extents, strict=True)
    )
    pieces = quotient(sizes.terms, sizes.piece)
    zero = f.const(0, compute)
    with f.parallel(sizes.batches * pieces * down * across) as block:
        column0 = (block % across) * tile.width
        rest = block // across
        row0 = (rest % down) * tile.height
        rest = rest // down
        number = rest % pieces
        given = factors(rest // pieces, number)
        begin = number * sizes.piece
        terms = f.call("minimum", sizes.terms - begin, sizes.piece)
        with f.vector(tile.threads) as t:
            top, side = (t // tile.across) * tile.rows, (t % tile.across) * tile.columns
            brought = [
                Brought(f, held, t, tile, extent, lies, start, size, element, zero)
                for held, extent, lies, start, size, element in (
                    (shared[0], tile.height, along[0], row0, sizes.rows, given.left),
                    (shared[1], tile.width, along[1], column0, sizes.columns, given.right),
                )
            ]
            left = Side(shared[0], tile.height, top, tile.rows, brought[0])
            right = Side(shared[1], tile.width, side, tile.columns, brought[1])
            sums = f.state(*[zero] * tile.rows * tile.columns, combine=lambda *both: both)
            accumulate(f, sums, left, right, tile.depth, begin, terms, given.digits)
            found = sums.get()
            for j in range(tile.columns):
                column = column0 + side + j
                with f.branch(column < sizes.columns):
                    into = given.into(column)
                    for i in range(tile.rows):
                        row = row0 + top + i
                        with f.branch(row < sizes.rows):
                            given.store(row, into, column, found[i * tile.columns + j])
            if given.seen is not None:
                some = sum(found[1:], start=found[0])
                with f.branch(some != some), f.loop(tile.rows) as i, f.loop(tile.columns) as j:
                    row, column = row0 + top + i, column0 + side + j
                    with f.branch((row < sizes.rows) & (column < sizes.columns)):
                        total = f.state(zero, combine=lambda x, y: x + y)
                        a, b = given.left(row), given.seen(column)
                        with f.loop(terms) as number:
                            term = apart(begin + number, given.digits)
                            add_seen(f, total, a(term), *b(term))
                        given.store(row, given.into(column), column, total.get()[0])


class Side(NamedTuple):
    """A factor in the memory of a group, laid out as terms of lines, as a thread sees it."""

    held: Buffer
    extent: int  # lines
    at: Value  # the first one of this thread
    own: int  # how many are its
    brought: Brought | None  # what brings some terms at a time; None: all terms are there


def accumulate(
    f: Function,
    sums: State,
    left: Side,
    right: Side,
    depth: int,
    begin: Value,
    terms: Value,
    digits: Sequence[Value] = (),
) -> None:
    """Add the products of both sides over `terms` terms from number `begin` on to a thread's sums.

    All threads of the group come here. How sums of products are rounded does not matter.
    """
    exact, f.exact = f.exact, False
    with f.loop(quotient(terms, f.value(depth, "i32"))) as step:
        first = step * depth
        for side in (left, right):
            if side.brought is not None:
                side.brought.bring(begin, first, terms, digits)
        f.barrier()
        with f.loop(depth) as term:
            a, b = (
                [
                    f.load(s.held, (term if s.brought else first + term) * s.extent + s.at + i)
                    for i in range(s.own)
                ]
                for s in (left, right)
            )
            n = right.own
            sums.set(*[added(f, a[i // n], b[i % n], s) for i, s in enumerate(sums.get())])
        f.barrier()
    f.exact = exact


class Brought:
    """What a thread brings of one factor into the memory of its group: several elements at a step.

    Neighbouring threads read what lies together: several lines at one term, or one line at terms
    that follow each other.
    """

    def __init__(
        self,
        f: Function,
        into: Buffer,
        t: Value,
        tile: Tile,
        extent: int,
        lies: bool,
        start: Value,
        size: Value,
        element: Callable[[Value], Element],
        zero: Value,
    ) -> None:
        self.f, self.into, self.extent, self.zero = f, into, extent, zero
        threads, depth = tile.threads, tile.depth
        if lies:
            self.term, self.terms = t % depth, 1
            together = threads // depth
            places = [t // depth + i * together for i in range(extent // together)]
        else:
            together = min(extent, threads)
            self.terms = depth * together // threads
            self.term = (t // together) * self.terms
            places = [t % together + i * together for i in range(extent // together)]
        self.lines: list[tuple[Value, Value, Element]] = []
        for place in places:
            inside = start + place < size
            self.lines.append((place, inside, element(f.select(inside, start + place, 0))))

    def bring(self, begin: Value, first: Value, terms: Value, digits: Sequence[Value]) -> None:
        """The terms from number `first` of a piece on, of which there are `terms`."""
        f = self.f
        number = first + self.term
        term: Term = apart(begin + number, digits)
        for i in range(self.terms):
            there = number + i < terms
            safe = [f.select(there, term[0], 0), *term[1:]]
            for place, inside, element in self.lines:
                value = f.select(inside & there, f.cast(element(safe), self.zero.dtype), self.zero)
                f.store(self.into, (self.term + i) * self.extent + place, value)
            term = following(f, term, digits)


def apart(number: Value, sizes: Sequence[Value]) -> list[Value]:
    """A row-major number as an index before some dimensions, and those along them."""
    found: list[Value] = []
    for size in reversed(sizes):
        before = number // size
        found.insert(0, number - before * size)
        number = before
    return [number, *found]


def following(f: Function, index: Term, sizes: Sequence[Value]) -> list[Value]:
    """The next of such indices."""
    found = list(index)
    found[-1] = found[-1] + 1
    for d in range(len(found) - 1, 0, -1):
        full = found[d] == sizes[d - 1]
        found[d] = f.select(full, 0, found[d])
        found[d - 1] = found[d - 1] + f.select(full, f.value(1, "i32"), 0)
    return found


def added(f: Function, a: Value, b: Value, total: Value) -> Value:
    """`a * b + total`."""
    if a.dtype in FLOATS:
        return f.fma(a, b, total)
    return (a & b) | total if a.dtype == "bool" else a * b + total


class Product(NamedTuple):
    """A kernel of matrices: types, what lies together, and what becomes of the sums."""

    out: str
    dtype: str
    compute: str
    batch: int  # dimensions
    bias: bool
    add: bool  # to what is there
    along: tuple[bool, bool]
    tile: Tile | None  # None: a thread for each element


def product_function(name: str, double: bool, p: Product) -> Function:
    """The product of matrices, by tiles or a thread for each element.

    Buffers: out, a, b, and the bias. Parameters: the number of batches, rows, columns, terms, the
    length of a piece of terms, the batch sizes; the steps of out (along batches, pieces, rows and
    columns), of a (batches, rows, terms) and b (batches, columns, terms), and of the bias.
    """
    f = Function(name, "i32", double)
    out = f.buffer("out", p.out, written=True)
    a, b = f.buffer("a", p.dtype), f.buffer("b", p.dtype)
    bias = f.buffer("bias", p.dtype) if p.bias else None
    sizes = Sizes(*map(f.param, ("batches", "rows", "columns", "terms", "piece")))
    batch = [f.param(f"n{d}") for d in range(p.batch)]
    out_steps = steps_of(f, "out_step", p.batch + 3)
    a_steps, b_steps = steps_of(f, "a_step", p.batch + 2), steps_of(f, "b_step", p.batch + 2)
    bias_step = f.param("bias_step") if p.bias else None
    starts = [s[: p.batch] for s in (out_steps, a_steps, b_steps)]

    def factors(number: Value, piece: Value | None) -> Factors:
        start, at_a, at_b = at_row(number, batch, starts)
        if piece is not None:
            start = plus(start, piece * out_steps[p.batch])

        def into(column: Value) -> Offset:
            return plus(column * out_steps[-1], start)

        def store(row: Value, first: Offset, column: Value, total: Value) -> None:
            place = plus(row * out_steps[-2], first)
            if bias is not None and bias_step is not None:
                total = total + f.cast(f.load(bias, column * bias_step), p.compute)
            if p.add:
                total = f.load(out, place) + f.cast(total, out.scalar)
            f.store(out, place, converted(f, total, out.scalar))

        def elements(of: Buffer, base: Offset, steps: Sequence[Offset]) -> Callable[..., Element]:
            def at(line: Value) -> Element:
                start = plus(line * steps[-2], base)
                return lambda term: f.load(of, plus(term[0] * steps[-1], start))

            return at

        factor = elements(a, at_a, a_steps), elements(b, at_b, b_steps)
        return Factors(*factor, into, store, ())

    if p.tile:
        tiles(f, sizes, p.compute, p.tile, p.along, factors)
        return f
    one_by_one(f, sizes, p.compute, [sizes.terms], factors)
    return f


def one_by_one(
    f: Function, sizes: Sizes, compute: str, terms: Term, factors: Callable[..., Factors]
) -> None:
    """A thread for each element; `terms` are the sizes of all digits of a term."""
    f.exact = False
    with each(f, sizes.batches * sizes.rows * sizes.columns) as i:
        column, rest = i % sizes.columns, i // sizes.columns
        row = rest % sizes.rows
        given = factors(rest // sizes.rows, None)
        total = _summed(f, given, row, column, terms, compute)
        given.store(row, given.into(column), column, total)


def _summed(
    f: Function, given: Factors, row: Value, column: Value, terms: Term, compute: str
) -> Value:
    """One element of a product."""
    total = f.state(f.const(0, compute), combine=lambda x, y: x + y)
    left, right = given.left(row), given.right(column)
    seen = given.seen(column) if given.seen is not None else None
    with ExitStack() as loops:
        term = [loops.enter_context(f.loop(size)) for size in terms]
        if seen is not None:
            add_seen(f, total, left(term), *seen(term))
        else:
            a, b = f.cast(left(term), compute), f.cast(right(term), compute)
            total.set(added(f, a, b, total.get()[0]))
    return total.get()[0]


def add_seen(f: Function, total: State, a: Value, b: Value, sees: Value) -> None:
    """Add `a * b` to a sum, if there is a b; see Note [zeros beside infinity]."""
    before = total.get()[0]
    a, b = f.cast(a, before.dtype), f.cast(b, before.dtype)
    total.set(f.select(sees, added(f, a, b, before), before))
