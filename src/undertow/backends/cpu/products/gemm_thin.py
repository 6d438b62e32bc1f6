"""Products with few columns: sums along k in the lanes of vectors, for operands with k contiguous.

    void tile(k, a, a_row, b, b_column, c, c_row, c_column, mode, bias, bias_row, bias_column)

A tile is R rows by S columns of the result; each of its elements has a vector of partial sums.

Note [thin]
With n columns, fewer than a vector has lanes, the tiles of `gemm_micro` leave lanes empty and need
one load per multiply-add. Here a step takes R + S loads for R*S multiply-adds in full lanes.
Element p of k falls into lane p mod L, and the lanes are added by halves at the end, pairs of
sums together; so the order of additions depends on k alone, not on where in the result one is.
"""

from __future__ import annotations

from typing import NamedTuple

from ..codegen.irbuilder import Function, Value, Variable, module
from .gemm_driver import Tasks, driver_text
from .gemm_micro import FINISH, PLAIN, Epilogue, multiply_add, width
from .gemm_tiles import Target, Tile

TILE = [
    ("i64", "k"),
    ("ptr", "a"),
    ("i64", "a_row"),
    ("ptr", "b"),
    ("i64", "b_column"),
    ("ptr", "c"),
    ("i64", "c_row"),
    ("i64", "c_column"),
    ("i64", "mode"),
    ("ptr", "bias"),
    ("i64", "bias_row"),
    ("i64", "bias_column"),
]
MOST_COLUMNS = 5  # of a tile


class ThinShape(NamedTuple):
    """One variant of the tile."""

    type: str  # of LLVM: float or double
    tile: Tile  # rows and columns
    epilogue: Epilogue = PLAIN


def thin_tile(target: Target, columns: int) -> Tile:
    """The largest tile of so many columns: its sums, the columns of B and one vector of A fit.

    >>> thin_tile(Target(64, 32, True, True, True), 5)
    Tile(rows=5, vectors=5)
    """
    rows = (target.registers - (1 if target.fma else 2) - columns) // columns
    return Tile(min(rows, 8), columns)


def thin_tile_text(name: str, shape: ThinShape, target: Target) -> str:
    """The tile as LLVM IR."""
    f = Function(name, TILE, target.attributes)
    _ThinTile(f, shape, target).write()
    return module(f)


class _ThinTile:
    """Writes one tile."""

    def __init__(self, f: Function, shape: ThinShape, target: Target) -> None:
        self.f, self.target, (self.type, tile, self.epilogue) = f, target, shape
        self.size = width(shape.type)
        self.lanes = target.vector // self.size
        self.vector = f"<{self.lanes} x {shape.type}>"
        self.suffix = f"v{self.lanes}f{8 * self.size}"
        self.rows, self.columns = tile

    def write(self) -> None:
        f, lanes = self.f, self.lanes
        sums = [
            [f.variable(self.vector, "zeroinitializer") for _ in range(self.columns)]
            for _ in range(self.rows)
        ]
        rest = f.rem("%k", lanes)
        whole = f.sub("%k", rest)
        with f.loop(0, whole, lanes) as p:
            self.step(sums, p, "")
        with f.when(f.compare("ne", rest, 0)):
            self.step(sums, whole, f.first_lanes(lanes, rest))
        self.finish([sums[r][s].get() for r in range(self.rows) for s in range(self.columns)])

    def step(self, sums: list[list[Variable]], p: Value, mask: str) -> None:
        """One vector of steps of k."""
        f, offset = self.f, self.f.mul(p, self.size)
        b = self.lines(f.at("%b", offset), "%b_column", self.columns)
        right = [self.load(place, mask) for place in b]
        for r, place in enumerate(self.lines(f.at("%a", offset), "%a_row", self.rows)):
            left = self.load(place, mask)
            for s in range(self.columns):
                sum = sums[r][s]
                sum.set(multiply_add(f, self.target, self.vector, left, right[s], sum.get()))

    def lines(self, pointer: str, step: str, count: int) -> list[str]:
        """Addresses a step apart."""
        found = [pointer]
        for _ in range(count - 1):
            found.append(self.f.at(found[-1], step))
        return found

    def load(self, place: str, mask: str) -> str:
        if mask:
            return self.f.load_lanes(self.vector, self.suffix, place, mask, self.size)
        return self.f.load(self.vector, place, self.size)

    def finish(self, sums: list[str]) -> None:
        """Add the lanes, and what is there; apply the epilogue; store."""
        f, type = self.f, self.type
        places = [(r, s) for r in range(self.rows) for s in range(self.columns)]
        c = [
            f.at(row, f.mul("%c_column", s))
            for row in self.lines("%c", "%c_row", self.rows)
            for s in range(self.columns)
        ]
        for begin in range(0, len(places), self.lanes):
            group = range(begin, min(begin + self.lanes, len(places)))
            total = f.variable(self.vector, self.added([sums[i] for i in group]))
            with f.when(f.op("trunc i64 %mode to i1")):
                there = self.gathered([c[i] for i in group])
                total.set(f.op(f"fadd {self.vector} {total.get()}, {there}"))
            if self.epilogue != PLAIN:
                with f.when(f.compare("uge", "%mode", FINISH)):
                    total.set(self.finished(total.get(), [places[i] for i in group]))
            value = total.get()
            for lane, i in enumerate(group):
                element = f.op(f"extractelement {self.vector} {value}, i64 {lane}")
                f.store(type, element, c[i], self.size)

    def finished(self, value: str, places: list[tuple[int, int]]) -> str:
        f, (bias, activation) = self.f, self.epilogue
        if bias:
            where = [
                f.at("%bias", f.add(f.mul("%bias_row", r), f.mul("%bias_column", s)))
                for r, s in places
            ]
            value = f.op(f"fadd {self.vector} {value}, {self.gathered(where)}")
        return activation.emit(f, value, self.vector) if activation else value

    def gathered(self, places: list[str]) -> str:
        """A vector of what stands at some addresses."""
        f, value = self.f, "zeroinitializer"
        for lane, place in enumerate(places):
            element = f.load(self.type, place, self.size)
            value = f.op(f"insertelement {self.vector} {value}, {self.type} {element}, i64 {lane}")
        return value

    def added(self, sums: list[str]) -> str:
        """The sums of the lanes of each vector, as one vector; see Note [thin]."""
        f, lanes = self.f, self.lanes
        half = lanes // 2
        while half:
            pairs = [
                (sums[i], sums[i + 1] if i + 1 < len(sums) else "poison")
                for i in range(0, len(sums), 2)
            ]
            # Segments of 2*half lanes, of x then of y, shrink to half their length.
            low = [2 * half * (i // half) + i % half for i in range(lanes)]
            sums = []
            for x, y in pairs:
                parts = []
                for shift in (0, half):
                    chosen = ", ".join(f"i32 {n + shift}" for n in low)
                    operands = f"{self.vector} {x}, {self.vector} {y}"
                    parts.append(f.op(f"shufflevector {operands}, <{lanes} x i32> <{chosen}>"))
                sums.append(f.op(f"fadd {self.vector} {parts[0]}, {parts[1]}"))
            half //= 2
        return sums[0]


class _ThinTasks(Tasks):
    """Tiles of few columns; B is packed, or has k contiguous."""

    def block(self) -> None:
        f, field = self.f, self.field
        with f.when(self.packs_b):  # columns take the part of steps
            where = (0, field["columns"], self.k0, self.k)
            self.pack("b", where, self.scratch, field["packed_row"])
        placed = f.at(self.bases[1], f.mul(self.k0, field["b_k"]))
        b = f.select(self.packs_b, self.scratch, placed, "ptr")
        b_column = f.select(self.packs_b, field["packed_row"], field["b_column"])
        with f.loop(self.first_panel, self.end_panel) as panel:
            row, rows = self.panel(panel)
            a = f.add(f.mul(row, field["a_row"]), f.mul(self.k0, field["a_k"]))
            with f.loop(self.first_strip, self.end_strip) as strip:
                column, columns = self.piece(strip, "strip_width", "wider_strips")
                c = f.add(f.mul(row, field["c_row"]), f.mul(column, field["c_column"]))
                bias = f.add(f.mul(row, field["bias_row"]), f.mul(column, field["bias_column"]))
                given = [
                    self.k,
                    f.at(self.bases[0], a),
                    field["a_row"],
                    f.at(b, f.mul(column, b_column)),
                    b_column,
                    f.at(self.bases[2], c),
                    field["c_row"],
                    field["c_column"],
                    self.mode,
                    f.at(self.bias, bias),
                    field["bias_row"],
                    field["bias_column"],
                ]
                self.call_tile(self.tiles, columns, rows, TILE, given)


def thin_text(name: str, packed: bool) -> str:
    """The product by tiles of few columns as LLVM IR."""
    return driver_text(name, _ThinTasks, packed)
