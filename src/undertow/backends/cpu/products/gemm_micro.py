"""The micro-kernel of matrix products: one tile of the result, held in registers while k runs.

    void tile(k, a, a_row, a_k, b, b_k, c, c_row, c_column, columns, mode, next, bias)

Element (row, p) of A stands at `a + row*a_row + p*a_k`, step p of B is V vectors at `b + p*b_k`,
all in bytes, so the same code reads packed blocks and operands in place. So many `columns` of the V
vectors are stored; `next` is the panel of A after this one. What is packed, and from where, is the
caller's business: convolution uses the same tiles.

Note [order of sums]
An element of the result is the sum of products of one block of k, in order, each fused into the
sum; blocks are added in order. So it depends neither on the tile it fell into nor on the threads.

Note [prefetching]
Once per line of A's rows, the same line of the next panel is asked for and a part of the result's
rows, long before they are needed. All at once at the start they would queue before the loads of B.
Steps are not unrolled: LLVM's scheduler would mix the loads of several and run out of registers.

Note [passing]
Few rows by a B that is read once, from beyond the second cache: memory is all that counts. It comes
fastest if a few rows of B are read side by side to their ends, by loops with little around the
loads, and nothing is asked for in advance: the processor sees where such streams go, and looks
further. Measured, one row by 768 x 3072 floats: 24 GB/s, tile by tile with prefetching 16.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from ....kernel.expr import RELU as RELU
from ....kernel.expr import Expr
from ....kernel.thin import ADD as ADD
from ....kernel.thin import FINISH as FINISH
from ..codegen.inline import apply
from ..codegen.irbuilder import Function, Value, Variable, module
from .gemm_tiles import Target, Tile

LINE = 64  # bytes
AHEAD = 8  # steps of B that are asked for in advance when it is read in place
PARAMETERS = [
    ("i64", "k"),
    ("ptr", "a"),
    ("i64", "a_row"),
    ("i64", "a_k"),
    ("ptr", "b"),
    ("i64", "b_k"),
    ("ptr", "c"),
    ("i64", "c_row"),
    ("i64", "c_column"),
    ("i64", "columns"),
    ("i64", "mode"),
    ("ptr", "next"),
    ("ptr", "bias"),
]


class Epilogue(NamedTuple):
    """What happens to a finished sum: a bias per "columns" or per "rows", then an expression."""

    bias: str = ""
    activation: Expr | None = None

    @property
    def plain(self) -> bool:
        """Whether nothing does."""
        return not self.bias and self.activation is None

    def activated(self, f: Function, values: list[str], vector: str, target: Target) -> list[str]:
        """Vectors after the activation."""
        if self.activation is None:
            return values
        lanes, type = vector[1:-1].split(" x ")
        return apply(f, self.activation, values, type, int(lanes), target.machine)


PLAIN = Epilogue()


class Shape(NamedTuple):
    """One variant of the micro-kernel."""

    type: str  # of LLVM, to compute with: float or double
    memory: str  # the type of the result's elements, which may be half or i16, a bfloat16
    tile: Tile
    partial: bool  # the last vector may be a part of one
    padded: bool  # the last vector of B may be read as a whole all the same
    far: bool  # B is read once, from memory: ask for it in advance
    spread: bool  # columns of the result are not neighbours in memory
    epilogue: Epilogue = PLAIN


def width(type: str) -> int:
    """Bytes of an LLVM type."""
    return {"double": 8, "float": 4, "half": 2, "i16": 2}[type]


def suffix_of(type: str) -> str:
    """How names of intrinsics call an LLVM type: f32, i16 …"""
    return f"{'i' if type == 'i16' else 'f'}{8 * width(type)}"


def tile_text(name: str, shape: Shape, target: Target) -> str:
    """The micro-kernel as LLVM IR."""
    f = Function(name, PARAMETERS, target.attributes)
    _Tile(f, shape, target).write()
    return module(f)


def passing_text(name: str, shape: Shape, target: Target) -> str:
    """The micro-kernel that goes on, tile by tile, through all `columns`; see Note [passing]."""
    f = Function(name, PARAMETERS, target.attributes)
    tile = _Tile(f, shape, target)
    end = _Tile(f, shape._replace(tile=Tile(shape.tile.rows, 1)), target)
    wide = tile.vectors * tile.lanes
    whole = f.sub("%columns", f.rem("%columns", wide))
    with f.loop(0, whole, wide) as column:
        tile.pass_by(f.mul(column, tile.size))
    with f.loop(whole, "%columns", end.lanes) as column:
        end.mask = f.first_lanes(end.lanes, f.least(f.sub("%columns", column), end.lanes))
        end.pass_by(f.mul(column, end.size))
    return module(f)


class _Tile:
    """Writes one micro-kernel."""

    def __init__(self, f: Function, shape: Shape, target: Target) -> None:
        self.f, self.shape, self.target = f, shape, target
        self.size = width(shape.type)
        self.lanes = target.vector // self.size
        self.vector = f"<{self.lanes} x {shape.type}>"
        self.suffix = f"v{self.lanes}{suffix_of(shape.type)}"
        self.rows, self.vectors = shape.tile
        self.c, self.bias = "%c", "%bias"
        self.mask = ""
        if shape.partial:
            first = (self.vectors - 1) * self.lanes
            self.mask = f.first_lanes(self.lanes, f.sub("%columns", first))

    def begin(self, b: str) -> list[list[Variable]]:
        """The sums of a tile, and pointers to the first step."""
        f = self.f
        self.a, self.b = f.variable("ptr", "%a"), f.variable("ptr", b)
        return [
            [f.variable(self.vector, "zeroinitializer") for _ in range(self.vectors)]
            for _ in range(self.rows)
        ]

    def pass_by(self, offset: Value) -> None:
        """The tile so many bytes further in the rows."""
        f = self.f
        sums = self.begin(f.at("%b", offset))
        self.c = f.at("%c", offset)
        if self.shape.epilogue.bias == "columns":
            self.bias = f.at("%bias", offset)
        with f.loop(0, "%k"):
            self.step(sums)
        self.finish(sums)

    def write(self) -> None:
        f = self.f
        sums = self.begin("%b")
        steps, wide = LINE // self.size, self.vectors * self.lanes * width(self.shape.memory)
        coming, result = f.variable("ptr", "%next"), f.variable("i64", 0)
        with f.loop(0, "%k", steps) as begin:  # see Note [prefetching]
            line = coming.get()
            coming.set(f.at(line, f.mul("%a_k", steps)))
            for r in range(self.rows):
                line = f.at(line, "%a_row") if r else line
                f.prefetch(line, cache=2)  # in the first, rows a power of two apart would collide
            if not self.shape.spread:
                for _ in range(steps // 8):
                    row = result.get()
                    place = f.at("%c", f.mul(row, "%c_row"))
                    for offset in range(0, wide, LINE):
                        f.prefetch(f.at(place, offset), write=True)
                    result.set(f.least(f.add(row, 1), self.rows - 1))
            with f.loop(begin, f.least(f.add(begin, steps), "%k")):
                self.step(sums)
        self.finish(sums)

    def step(self, sums: list[list[Variable]]) -> None:
        """One step of k."""
        f, size, bytes = self.f, self.size, self.target.vector
        a, b = self.a.get(), self.b.get()
        right = [self.load(f.at(b, v * bytes), v, self.shape.padded) for v in range(self.vectors)]
        if self.shape.far:
            ahead = f.at(b, f.mul("%b_k", AHEAD))
            for offset in range(0, self.vectors * bytes, LINE):
                f.prefetch(f.at(ahead, offset))
        place = a
        for r in range(self.rows):
            place = f.at(place, "%a_row") if r else a
            left = f.splat(self.shape.type, self.lanes, f.load(self.shape.type, place, size))
            for v in range(self.vectors):
                sum = sums[r][v]
                sum.set(multiply_add(f, self.target, self.vector, left, right[v], sum.get()))
        self.a.set(f.at(a, "%a_k"))
        self.b.set(f.at(b, "%b_k"))

    def finish(self, sums: list[list[Variable]]) -> None:
        """Add what is there, apply the epilogue, store."""
        f, bytes = self.f, self.lanes * width(self.shape.memory)
        places, row = [], self.c
        for r in range(self.rows):
            row = f.at(row, "%c_row") if r else row
            if self.shape.spread:
                places.append(
                    [f.at(row, f.mul("%c_column", v * self.lanes)) for v in range(self.vectors)]
                )
            else:
                places.append([f.at(row, v * bytes) for v in range(self.vectors)])
        tile = [(r, v) for r in range(self.rows) for v in range(self.vectors)]
        with f.when(f.op("trunc i64 %mode to i1")):
            for r, v in tile:
                there = self.result(places[r][v], v)
                sums[r][v].set(f.op(f"fadd {self.vector} {sums[r][v].get()}, {there}"))
        if not self.shape.epilogue.plain:
            with f.when(f.compare("uge", "%mode", FINISH)):
                self.epilogue(sums)
        for r, v in tile:
            self.store(sums[r][v].get(), places[r][v], v)

    def epilogue(self, sums: list[list[Variable]]) -> None:
        f, bias = self.f, self.shape.epilogue.bias
        if bias == "columns":
            places = [f.at(self.bias, v * self.target.vector) for v in range(self.vectors)]
            shared = [self.load(p, v) for v, p in enumerate(places)]
        values = []
        for r in range(self.rows):
            if bias == "rows":
                scalar = f.load(self.shape.type, f.at(self.bias, r * self.size), self.size)
                shared = [f.splat(self.shape.type, self.lanes, scalar)] * self.vectors
            for v in range(self.vectors):
                value = sums[r][v].get()
                if bias:
                    value = f.op(f"fadd {self.vector} {value}, {shared[v]}")
                values.append(value)
        values = self.shape.epilogue.activated(f, values, self.vector, self.target)
        for variable, value in zip(itertools.chain(*sums), values, strict=True):
            variable.set(value)

    def load(self, place: str, v: int, whole: bool = False) -> str:
        """Vector number v of a row; of the last one only what is there."""
        if self.mask and not whole and v == self.vectors - 1:
            return self.f.load_lanes(self.vector, self.suffix, place, self.mask, self.size)
        return self.f.load(self.vector, place, self.size)

    def result(self, place: str, v: int) -> str:
        """A vector of the result that is there."""
        f, memory, lanes = self.f, self.shape.memory, self.lanes
        vector, suffix, bytes = self.in_memory()
        if self.shape.spread:
            value = f.gather(vector, suffix, *self.lanes_at(place, v), bytes)
        elif self.mask and v == self.vectors - 1:
            value = f.load_lanes(vector, suffix, place, self.mask, bytes)
        else:
            value = f.load(vector, place, bytes)
        return f.widen(value, memory, lanes)

    def store(self, value: str, place: str, v: int) -> None:
        """Write a vector of the result."""
        f, memory, lanes = self.f, self.shape.memory, self.lanes
        vector, suffix, bytes = self.in_memory()
        value = f.narrow(value, memory, lanes)
        if self.shape.spread:
            f.scatter(vector, suffix, value, *self.lanes_at(place, v), bytes)
        elif self.mask and v == self.vectors - 1:
            f.store_lanes(vector, suffix, value, place, self.mask, bytes)
        else:
            f.store(vector, value, place, bytes)

    def in_memory(self) -> tuple[str, str, int]:
        """The type of the result's vectors, its name in intrinsics, and bytes of an element."""
        memory = self.shape.memory
        return f"<{self.lanes} x {memory}>", f"v{self.lanes}{suffix_of(memory)}", width(memory)

    def lanes_at(self, place: str, v: int) -> tuple[str, str]:
        """The addresses of a vector's lanes, and which of them are there."""
        f, lanes = self.f, self.lanes
        ramp = ", ".join(f"i64 {lane}" for lane in range(lanes))
        steps = f.op(f"mul <{lanes} x i64> <{ramp}>, {f.splat('i64', lanes, '%c_column')}")
        places = f.op(f"getelementptr i8, ptr {place}, <{lanes} x i64> {steps}")
        last = self.mask and v == self.vectors - 1
        return places, self.mask if last else "splat (i1 true)"


def multiply_add(f: Function, target: Target, vector: str, x: str, y: str, sum: str) -> str:
    """x*y + sum, fused if the machine can."""
    if not target.fma:  # the intrinsic would be a call for every lane
        return f.op(f"fadd {vector} {sum}, {f.op(f'fmul {vector} {x}, {y}')}")
    lanes, type = vector[1:-1].split(" x ")
    name = f"@llvm.fma.v{lanes}f{8 * width(type)}"
    f.declare(f"{vector} {name}({vector}, {vector}, {vector})")
    return f.op(f"call {vector} {name}({vector} {x}, {vector} {y}, {vector} {sum})")
