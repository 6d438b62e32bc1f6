"""Products of matrices for groups: tiles in the memory of a group and in registers.

Note [tiles of groups]
A group computes TILE rows and TILE columns of a product. DEPTH terms at a time, its threads bring
what they all need of both factors into the group's memory; then each thread adds to its PART * PART
sums, which are in registers. What the factors are is told by functions of a row, a term and a
column: elements of matrices, or those that a convolution's windows look at, which are never laid
out in memory. Where there are few tiles and many terms, terms are cut into pieces of a fixed
length, whose sums are added up by another launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..ir import FLOATS, Function, Value
from ..maps import converted
from ..offsets import Offset, at_row, plus, quotient
from .elements import each, steps_of

TILE, DEPTH, PART = 64, 16, 4
THREADS = (TILE // PART) ** 2


class Sizes(NamedTuple):
    """A product: of `batches`, each `rows` by `columns`, of `terms`, in pieces of a length."""

    batches: Value
    rows: Value
    columns: Value
    terms: Value
    piece: Value


def tiles(f: Function, sizes: Sizes, compute: str, factors: Callable[..., Factors]) -> None:
    """The kernel's loops; see Note [tiles of groups]."""
    f.exact = False
    left = f.shared("left", compute, DEPTH * TILE)
    right = f.shared("right", compute, DEPTH * TILE)
    down, across = (quotient(n, f.value(TILE, "i32")) for n in (sizes.rows, sizes.columns))
    pieces = quotient(sizes.terms, sizes.piece)
    zero = f.const(0, compute)
    with f.parallel(sizes.batches * pieces * down * across) as block:
        column0 = (block % across) * TILE
        rest = block // across
        row0 = (rest % down) * TILE
        rest = rest // down
        number = rest % pieces
        given = factors(rest // pieces, number)
        begin = number * sizes.piece
        terms = f.call("minimum", sizes.terms - begin, sizes.piece)
        with f.vector(THREADS) as t:
            top, side = (t // (TILE // PART)) * PART, (t % (TILE // PART)) * PART
            sums = f.state(*[zero] * PART * PART, combine=lambda *both: both)
            with f.loop(quotient(terms, f.value(DEPTH, "i32"))) as step:
                first = step * DEPTH
                for i in range(TILE * DEPTH // THREADS):
                    e = t + i * THREADS
                    for into, start, size, load, lies in (
                        (left, row0, sizes.rows, given.left, given.left_along),
                        (right, column0, sizes.columns, given.right, given.right_along),
                    ):
                        # Neighbouring threads read what lies together.
                        at, term = (e // DEPTH, e % DEPTH) if lies else (e % TILE, e // TILE)
                        inside = (start + at < size) & (first + term < terms)
                        place = f.select(inside, start + at, 0)
                        found = load(place, f.select(inside, begin + first + term, 0))
                        value = f.select(inside, f.cast(found, compute), zero)
                        f.store(into, term * TILE + at, value)
                f.barrier()
                with f.loop(DEPTH) as term:
                    line = term * TILE
                    a = [f.load(left, line + top + i) for i in range(PART)]
                    b = [f.load(right, line + side + i) for i in range(PART)]
                    sums.set(
                        *[added(f, a[i // PART], b[i % PART], s) for i, s in enumerate(sums.get())]
                    )
                f.barrier()
            for i, total in enumerate(sums.get()):
                row, column = row0 + top + i // PART, column0 + side + i % PART
                with f.branch((row < sizes.rows) & (column < sizes.columns)):
                    given.store(row, column, total)


class Factors(NamedTuple):
    """What a group multiplies: functions that load and store."""

    left: Callable[[Value, Value], Value]  # of a row and a term
    right: Callable[[Value, Value], Value]  # of a column and a term
    store: Callable[[Value, Value, Value], None]  # of a row, a column and a sum
    left_along: bool  # neighbouring terms lie together in memory, rather than rows
    right_along: bool


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
    tiled: bool


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
        into, at_a, at_b = at_row(number, batch, starts)
        if piece is not None:
            into = plus(into, piece * out_steps[p.batch])

        def store(row: Value, column: Value, total: Value) -> None:
            place = _at(into, row, column, out_steps)
            if bias is not None and bias_step is not None:
                total = total + f.cast(f.load(bias, column * bias_step), p.compute)
            if p.add:
                total = f.load(out, place) + f.cast(total, out.scalar)
            f.store(out, place, converted(f, total, out.scalar))

        return Factors(
            lambda row, term: f.load(a, _at(at_a, row, term, a_steps)),
            lambda column, term: f.load(b, _at(at_b, column, term, b_steps)),
            store,
            *p.along,
        )

    if p.tiled:
        tiles(f, sizes, p.compute, factors)
        return f
    f.exact = False
    with each(f, sizes.batches * sizes.rows * sizes.columns) as i:
        column, rest = i % sizes.columns, i // sizes.columns
        row = rest % sizes.rows
        given = factors(rest // sizes.rows, None)
        total = f.state(f.const(0, p.compute), combine=lambda x, y: x + y)
        with f.loop(sizes.terms) as term:
            left, right = given.left(row, term), given.right(column, term)
            left, right = f.cast(left, p.compute), f.cast(right, p.compute)
            total.set(added(f, left, right, total.get()[0]))
        given.store(row, column, total.get()[0])
    return f


def _at(base: Offset, first: Value, second: Value, steps: Sequence[Offset]) -> Value:
    """An offset along the last two dimensions."""
    return plus(first * steps[-2] + second * steps[-1], base)  # type: ignore[return-value]
