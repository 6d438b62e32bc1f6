"""Packing: blocks of an operand copied to where the micro-kernel wants them.

    void pack(map, from, k0, k, first, count, to, row)

writes steps k0 … k0+k-1 of `count` neighbouring columns (of B; of A, rows), beginning with number
`first`, to k rows of `row` bytes at `to`. `from` is the operand's first element and `map` says how
to find the others: here the two steps in bytes, (by k, by column). A convolution has a map and a
packing function of its own.

For A, whose rows are wanted with k running fastest, rows and steps of k change places.

Whole vectors are written, and in "transposed" packing a multiple of their lanes in steps: what
stands behind a block is written after it, and the last one needs room behind it. Lanes beyond
`count` are zero.
"""

from __future__ import annotations

from ..codegen.irbuilder import Function, Value, module
from .gemm_micro import suffix_of, width
from .gemm_tiles import Target

AHEAD = 8  # steps of k that are asked for in advance
PARAMETERS = [
    ("ptr", "map"),
    ("ptr", "from"),
    ("i64", "k0"),
    ("i64", "k"),
    ("i64", "first"),
    ("i64", "count"),
    ("ptr", "to"),
    ("i64", "row"),
]


def pack_text(name: str, kind: str, source: str, type: str, target: Target) -> str:
    """The packing function as LLVM IR.

    `kind` is "rows" where neighbouring columns are neighbours in memory, "transposed" where
    neighbouring steps of k are, "any" otherwise. `source` is the type in memory, `type` the type
    to compute in.
    """
    f = Function(name, PARAMETERS, target.attributes)
    packer = _Packer(f, source, type, target)
    {"rows": packer.rows, "transposed": packer.transposed, "any": packer.any}[kind]()
    return module(f)


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


class _Packer:
    """Writes one packing function."""

    def __init__(self, f: Function, source: str, type: str, target: Target) -> None:
        self.f, self.source, self.type = f, source, type
        self.size, self.bytes = width(source), target.vector
        self.lanes, self.masks = target.vector // width(type), target.masks
        self.vector = f"<{self.lanes} x {type}>"
        self.k_step, self.column_step = f.load("i64", "%map", 8), f.load("i64", f.at("%map", 8), 8)
        offset = f.add(f.mul("%k0", self.k_step), f.mul("%first", self.column_step))
        self.start = f.at("%from", offset)

    def rows(self) -> None:
        """A vector at a time."""
        f, step = self.f, self.lanes * self.size
        whole, rest = f.div("%count", self.lanes), f.rem("%count", self.lanes)
        mask, partial = f.first_lanes(self.lanes, rest), f.compare("ne", rest, 0)
        ahead = f.mul(self.k_step, AHEAD)
        with f.loop(0, "%k") as p:
            row, to = f.at(self.start, f.mul(p, self.k_step)), f.at("%to", f.mul(p, "%row"))
            with f.loop(0, whole) as v:
                place = f.at(row, f.mul(v, step))
                f.prefetch(f.at(place, ahead))
                self.store(self.load(place), f.at(to, f.mul(v, self.bytes)))
            with f.when(partial):
                place = f.at(row, f.mul(whole, step))
                f.prefetch(f.at(place, ahead))
                value = self.load(place, mask)
                self.store(value, f.at(to, f.mul(whole, self.bytes)))

    def transposed(self) -> None:
        """Squares of a vector of columns by a vector of steps, transposed in registers."""
        f, lanes = self.f, self.lanes
        rest = f.rem("%k", lanes)
        whole = f.sub("%k", rest)
        last = f.sub("%count", 1)
        with f.loop(0, f.div(f.add("%count", lanes - 1), lanes)) as v:
            columns = []
            for lane in range(lanes):
                number = f.add(f.mul(v, lanes), lane)
                inside = f.compare("sle", number, last)
                number = f.select(inside, number, last)  # there is something to read
                columns.append((f.at(self.start, f.mul(number, self.column_step)), inside))
            to = f.at("%to", f.mul(v, self.bytes))
            if self.masks:
                with f.loop(0, "%k", lanes) as p:
                    self.square(columns, p, to, f.first_lanes(lanes, f.sub("%k", p)))
            else:
                with f.loop(0, whole, lanes) as p:
                    self.square(columns, p, to, "")
                with f.when(f.compare("ne", rest, 0)):
                    self.square(columns, whole, to, f.first_lanes(lanes, rest))

    def square(self, columns: list[tuple[str, str]], p: Value, to: str, mask: str) -> None:
        """The steps that begin with p of a vector of columns, some of which may be missing."""
        f, following = self.f, self.f.mul(self.column_step, self.lanes)
        rows = []
        for column, inside in columns:
            place = f.at(column, f.mul(p, self.size))
            f.prefetch(f.at(place, following))
            value = self.load(place, mask)
            rows.append(f.select(inside, value, "zeroinitializer", self.vector))
        for step, value in enumerate(transposed(f, self.vector, rows)):
            self.store(value, f.at(to, f.mul(f.add(p, step), "%row")))

    def any(self) -> None:
        """One element at a time."""
        f, bytes = self.f, width(self.type)
        with f.loop(0, "%k") as p:
            row, to = f.at(self.start, f.mul(p, self.k_step)), f.at("%to", f.mul(p, "%row"))
            with f.loop(0, "%count") as i:
                value = f.load(self.source, f.at(row, f.mul(i, self.column_step)), 1)
                f.store(self.type, f.widen(value, self.source), f.at(to, f.mul(i, bytes)), bytes)
            with f.loop("%count", f.div("%row", bytes)) as i:
                f.store(self.type, "0.0", f.at(to, f.mul(i, bytes)), bytes)

    def load(self, place: str, mask: str = "") -> str:
        """A vector of the type to compute in."""
        f, vector = self.f, f"<{self.lanes} x {self.source}>"
        if not mask:
            return f.widen(f.load(vector, place, 1), self.source, self.lanes)
        suffix = f"v{self.lanes}{suffix_of(self.source)}"
        return f.widen(f.load_lanes(vector, suffix, place, mask, 1), self.source, self.lanes)

    def store(self, value: str, place: str) -> None:
        self.f.store(self.vector, value, place, width(self.type))
