"""Kernels that sort rows, or find what comes first in them, as LLVM IR; `sorting` calls them.

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

from collections.abc import Callable

from ..codegen.irbuilder import Function, Value, Variable, module
from ..products.gemm_tiles import Target
from ..threads.jobs import packed_job
from .sorting_items import FEW, Items, Keys, integers

GROUPS = 16  # groups of elements are a multiple of these, whole vectors on any machine
ARRAYS = ("values", "indices", "x", "scratch")
NUMBERS = ("rows", "n", "count", "flip", "groups", "room")
RANK_NUMBERS = ("rows", "n", "rank", "flip", "samples", "low", "high", "room")
Field = dict[str, str]
Filled = Callable[[Items, Field, str, str, str], Value]


def sort_text(name: str, keys: Keys, target: Target) -> str:
    """A kernel of ARRAYS and NUMBERS: rows in order, and their indices."""

    def fill(c: Items, field: Field, x: str, items: str, spare: str) -> Value:
        _make(c, field, x, items, 0, field["n"])
        return field["n"]

    return _rows_text(name, keys, target, fill)


def first_text(name: str, keys: Keys, target: Target) -> str:
    """As `sort_text`, but of each row just what comes first; see Note [first of a row]."""

    def fill(c: Items, field: Field, x: str, items: str, spare: str) -> Value:
        return _remaining(c, field, x, items, _limit(c, field, name, x, items, spare))

    return _rows_text(name, keys, target, fill)


def _rows_text(name: str, keys: Keys, target: Target, fill: Filled) -> str:
    def tasks(f: Function, field: Field) -> None:
        c = Items(f, keys, target)
        items = f.at(field["scratch"], f.mul("%thread", field["room"]))
        spare = f.at(items, f.div(field["room"], 2))
        with f.loop("%begin", "%end") as row:
            x = f.at(field["x"], f.mul(row, f.mul(field["n"], keys.bits // 8)))
            found = _sorted(f, name, items, spare, fill(c, field, x, items, spare))
            _give(c, field, x, found, 0, field["count"], f.mul(row, field["count"]))

    both = packed_job(name, ARRAYS, NUMBERS, target.attributes, tasks)
    return module(*both, _order(name, keys, target))


def _make(c: Items, field: Field, x: str, items: str, begin: Value, end: Value) -> None:
    with c.f.loop(begin, end) as i:
        c.put(items, i, i, c.made(x, i, field["flip"]))


def _give(
    c: Items, field: Field, x: str, items: str, begin: Value, end: Value, first: Value
) -> None:
    f, last = c.f, c.f.sub(field["n"], 1)
    with f.loop(begin, end) as i:
        sizes = {"values": c.keys.bits // 8, "indices": 8}
        to = [f.at(field[name], f.mul(f.add(first, i), size)) for name, size in sizes.items()]
        c.give(items, i, x, last, field["flip"], to)


def _order(name: str, keys: Keys, target: Target) -> Function:
    """A function that sorts items; `found` is where they are then."""
    told = [("ptr", "items"), ("ptr", "spare"), ("i64", "n"), ("ptr", "found")]
    f = Function(f"{name}_order", told, target.attributes)
    c, few = Items(f, keys, target), f.compare("sle", "%n", FEW)
    with f.when(few):
        c.by_counting("%items", "%spare", "%n")
        f.store("ptr", "%spare", "%found", 8)
    with f.when(f.op(f"xor i1 {few}, true")):
        f.store("ptr", c.by_bytes("%items", "%spare", "%n"), "%found", 8)
    return f


def _sorted(f: Function, name: str, items: str, spare: str, number: Value) -> str:
    found = f.slot("ptr")
    f.put(f"call void @{name}_order(ptr {items}, ptr {spare}, i64 {number}, ptr {found})")
    return f.load("ptr", found, 8)


# The first of a row; see Note [first of a row] --------------------------------------------------
def _limit(c: Items, field: Field, name: str, x: str, items: str, spare: str) -> str:
    """A key that no item that is wanted exceeds."""
    f, lanes, vector, groups = c.f, c.lanes, c.vector, field["groups"]
    smaller = f"@llvm.smin.v{lanes}{c.word}"
    f.declare(f"{vector} {smaller}({vector}, {vector})")

    def keep(g: str, found: str) -> None:
        f.store(vector, found, f.at(spare, f.mul(g, c.bytes)), c.bytes)

    with f.loop(0, groups, lanes) as g:
        keep(g, c.made(x, g, field["flip"], lanes))
    end = f.mul(f.div(field["n"], groups), groups)
    with f.loop(groups, end, groups) as begin, f.loop(0, groups, lanes) as g:
        old = c.load(spare, g, lanes=lanes)
        new = c.made(x, f.add(begin, g), field["flip"], lanes)
        keep(g, f.op(f"call {vector} {smaller}({vector} {old}, {vector} {new})"))
    with f.loop(0, groups) as g:
        c.put(items, g, g, c.load(spare, g))
    return c.key(_sorted(f, name, items, spare, groups), f.sub(field["count"], 1))


def _remaining(c: Items, field: Field, x: str, items: str, limit: str) -> Value:
    """Make the items up to a limit, in order, and say how many there are.

    They are at least as many as are wanted, unless somebody writes to the row meanwhile.
    """
    f, lanes, flip = c.f, c.lanes, field["flip"]
    most, number = f.variable(c.word, limit), f.variable("i64", 0)
    step = 4 * lanes
    whole = f.mul(f.div(field["n"], step), step)
    with f.loop(0, whole, step) as i:
        limits, found = f.splat(c.word, lanes, most.get()), "0"  # a bit for each element
        for at in range(0, step, lanes):
            some = c.made(x, f.add(i, at), flip, lanes)
            found = _marked(c, found, f.op(f"icmp sle {c.vector} {some}, {limits}"), at)
        with f.when(f.compare("ne", found, 0)):
            _collect(c, field, x, items, number, i, found)
            enough = f.compare("sge", number.get(), field["count"])
            lowest = -1 << c.keys.word - 1
            with f.when(f.op(f"and i1 {enough}, {f.op(f'icmp ne {c.word} {limit}, {lowest}')}")):
                most.set(f.op(f"sub {c.word} {limit}, 1"))
    with f.loop(whole, field["n"]) as i:
        key, to = c.made(x, i, flip), number.get()
        c.put(items, to, i, key)
        low = f.op(f"icmp sle {c.word} {key}, {most.get()}")
        number.set(f.add(to, f.op(f"zext i1 {low} to i64")))
    return number.get()


def _marked(c: Items, found: str, mask: str, at: int) -> str:
    """A mask's lanes as bits, from `at` on, beside those that were found."""
    f, lanes = c.f, c.lanes
    bits = f.op(f"bitcast {integers(1, lanes)} {mask} to i{lanes}")
    bits = f.op(f"shl i64 {f.op(f'zext i{lanes} {bits} to i64')}, {at}")
    return f.op(f"or i64 {found}, {bits}")


def _collect(
    c: Items, field: Field, x: str, items: str, number: Variable, first: Value, found: str
) -> None:
    """Make the items of those elements from `first` on whose bits are set."""
    f = c.f
    f.declare("i64 @llvm.ctpop.i64(i64)")
    f.declare("i64 @llvm.cttz.i64(i64, i1)")
    left, begin = f.variable("i64", found), number.get()
    with f.loop(begin, f.add(begin, f.op(f"call i64 @llvm.ctpop.i64(i64 {found})"))) as to:
        bits = left.get()
        index = f.add(first, f.op(f"call i64 @llvm.cttz.i64(i64 {bits}, i1 true)"))
        c.put(items, to, index, c.made(x, index, field["flip"]))
        left.set(f.op(f"and i64 {bits}, {f.sub(bits, 1)}"))
        number.set(f.add(to, 1))


# One of a row; see Note [one of a row] ----------------------------------------------------------
def rank_text(name: str, keys: Keys, target: Target) -> str:
    """A kernel of ARRAYS and RANK_NUMBERS: of each row the element of a rank."""

    def tasks(f: Function, field: Field) -> None:
        c, n, rank = Items(f, keys, target), field["n"], field["rank"]
        items = f.at(field["scratch"], f.mul("%thread", field["room"]))
        spare = f.at(items, f.div(field["room"], 2))
        with f.loop("%begin", "%end") as row:
            x = f.at(field["x"], f.mul(row, f.mul(n, keys.bits // 8)))
            number, before = _between(c, field, name, x, items, spare)
            place = f.variable("i64", f.sub(rank, before.get()))
            outside = f.op(f"icmp uge i64 {place.get()}, {number.get()}")
            with f.when(outside):
                _make(c, field, x, items, 0, n)
                number.set(n)
                place.set(rank)
            found, at = _sorted(f, name, items, spare, number.get()), place.get()
            _give(c, field, x, found, at, f.add(at, 1), f.sub(row, at))

    both = packed_job(name, ARRAYS, RANK_NUMBERS, target.attributes, tasks)
    return module(*both, _order(name, keys, target))


def _between(
    c: Items, field: Field, name: str, x: str, items: str, spare: str
) -> tuple[Variable, Variable]:
    """Make the items between two of a sample; how many these are, and how many lie before them."""
    f, lanes, n, samples = c.f, c.lanes, field["n"], field["samples"]
    with f.loop(0, samples) as s:
        c.put(items, s, s, c.made(x, f.div(f.mul(s, n), samples), field["flip"]))
    ordered, most = _sorted(f, name, items, spare, samples), (1 << c.keys.word - 1) - 1
    bounds = []
    for end, beyond in (("low", ~most), ("high", most)):  # one outside the sample is no bound
        inside = f.op(f"icmp ult i64 {field[end]}, {samples}")
        key = c.key(ordered, f.select(inside, field[end], 0))
        bounds.append(f.select(inside, key, beyond, c.word))
    low, high = (f.splat(c.word, lanes, bound) for bound in bounds)
    number, before = f.variable("i64", 0), f.variable("i64", 0)
    f.declare("i64 @llvm.ctpop.i64(i64)")
    step = 4 * lanes
    whole = f.mul(f.div(n, step), step)

    with f.loop(0, whole, step) as i:
        found = under = "0"
        for at in range(0, step, lanes):
            some = c.made(x, f.add(i, at), field["flip"], lanes)
            below = f.op(f"icmp slt {c.vector} {some}, {low}")
            above = f.op(f"icmp sgt {c.vector} {some}, {high}")
            under = _marked(c, under, below, at)
            found = _marked(c, found, f.op(f"or {integers(1, lanes)} {below}, {above}"), at)
        before.set(f.add(before.get(), f.op(f"call i64 @llvm.ctpop.i64(i64 {under})")))
        found = f.op(f"xor i64 {found}, {-1 if step == 64 else (1 << step) - 1}")
        with f.when(f.compare("ne", found, 0)):
            _collect(c, field, x, items, number, i, found)
    with f.loop(whole, n) as i:
        key, to = c.made(x, i, field["flip"]), number.get()
        c.put(items, to, i, key)
        below = f.op(f"icmp slt {c.word} {key}, {bounds[0]}")
        above = f.op(f"icmp sgt {c.word} {key}, {bounds[1]}")
        inside = f.op(f"xor i1 {f.op(f'or i1 {below}, {above}')}, true")
        before.set(f.add(before.get(), f.op(f"zext i1 {below} to i64")))
        number.set(f.add(to, f.op(f"zext i1 {inside} to i64")))
    return number, before
