"""The loops of a matrix product around its micro-kernel, for any element type and packing.

    void product(pool, a, b, c, bias, scratch, plan)

The plan is a table of 64-bit numbers that depends on shapes and strides only, so that it is made
once for many products. A product may be the sum of several, called images, as in the gradient of a
convolution's weight, which sums over the images of a batch. A task is a part of the result: some
row panels by some column strips of one matrix of the batch, over all of k. Tasks share nothing but
the operands.

Note [tasks]
How many tasks there are may depend on the number of threads, because no element's value depends on
it; see Note [order of sums]. How k is cut must not.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.irbuilder import Function, Value, module
from ..threads.jobs import TASKS, run_tasks
from .gemm_micro import ADD, FINISH, PARAMETERS
from .gemm_tiles import MOST_ROWS

# After a plan's fields come the batch's sizes, then its steps in a, b, c and the bias.
COMMON = [
    "batch_rank",
    "tasks",
    "row_parts",
    "column_parts",  # the parts of one matrix
    "columns",
    "k",
    "images",
    "a_image",
    "b_image",  # the product is a sum of so many, with steps in bytes
    "panels",
    "panel_rows",
    "longer_panels",  # the first so many have one row more
    "strips",
    "strip_width",
    "wider_strips",  # the first so many have one vector or column more
    "depths",
    "depth",  # blocks of k: how many, and their size
    "a_row",
    "a_k",
    "b_k",
    "b_column",
    "c_row",
    "c_column",
    "bias_row",
    "bias_column",  # in bytes
    "size",  # bytes of an element to compute with
    "accumulate",
    "pack_a",
    "map_a",
    "pack_b",
    "map_b",  # functions and their maps; without one, read in place
    "packed_row",  # bytes of a packed row in which k runs fastest
    "tiles",  # micro-kernels by width and rows
    "thread_bytes",  # of scratch
]
WIDE = [
    *COMMON,
    "last_tiles",  # the same for the last strip
    "lanes",  # of a vector; of a tile if it goes on
    "passing",  # vectors of a tile that goes on to the end of its strip, else 0
    "group",
    "staying",  # row panels, and strips, that are packed together
    "b_bytes",  # of scratch, before what is for A
]
CALL = ["a", "b", "c", "bias", "scratch", "plan"]  # what the tasks of one product share
_NESTED = ["plan", "a", "b", "c", "bias", "scratch"]  # what other kernels give it


def wide_text(name: str, packed: bool) -> str:
    """The product by tiles of vectors, `gemm_micro`, as LLVM IR."""
    return driver_text(name, _WideTasks, packed)


def driver_text(name: str, tasks: type[Tasks], packed: bool) -> str:
    """A product whose tasks are written by a class: by Note [packed arguments], or for kernels."""
    given = [("ptr", "packed")]
    if not packed:
        given = [("ptr", "pool"), *(("ptr", called) for called in _NESTED)]
    f = Function(name, given)
    if packed:
        pool, call = f.load("ptr", "%packed", 8), f.at("%packed", 8)
    else:
        pool, call = "%pool", f.slot(f"[{len(CALL)} x ptr]")
        for number, called in enumerate(CALL):
            f.store("ptr", f"%{called}", f.at(call, 8 * number), 8)
    plan = f.load("ptr", f.at(call, 8 * CALL.index("plan")), 8)
    run_tasks(f, name, pool, call, f.load("i64", f.at(plan, 8 * COMMON.index("tasks")), 8))
    job = Function(f"{name}_tasks", TASKS)
    tasks(job).write()
    return module(f, job)


class Tasks:
    """Writes the body of a job: tasks `begin` to `end` on one thread."""

    fields = COMMON

    def __init__(self, f: Function) -> None:
        self.f = f
        shared = [f.load("ptr", f.at("%call", 8 * n), 8) for n in range(len(CALL))]
        *self.operands, scratch, self.plan = shared
        self.field = {
            name: f.load("i64", f.at(self.plan, 8 * n), 8) for n, name in enumerate(self.fields)
        }
        self.scratch = f.at(scratch, f.mul("%thread", self.field["thread_bytes"]))
        self.packs_a = f.compare("ne", self.field["pack_a"], 0)
        self.packs_b = f.compare("ne", self.field["pack_b"], 0)
        self.tiles = f.op(f"inttoptr i64 {self.field['tiles']} to ptr")

    def write(self) -> None:
        """Every task, image by image and block of k by block of k."""
        f, field = self.f, self.field
        with f.loop("%begin", "%end") as task:
            rest, part = f.div(task, field["column_parts"]), f.rem(task, field["column_parts"])
            self.first_strip, self.end_strip = self.part(part, "strips", "column_parts")
            matrix, part = f.div(rest, field["row_parts"]), f.rem(rest, field["row_parts"])
            self.first_panel, self.end_panel = self.part(part, "panels", "row_parts")
            a, b, c, self.bias = self.matrix(matrix)
            blocks = f.mul(field["images"], field["depths"])
            with f.loop(0, blocks) as block:
                image = f.div(block, field["depths"])
                a_image = f.at(a, f.mul(image, field["a_image"]))
                self.bases = a_image, f.at(b, f.mul(image, field["b_image"])), c
                self.k0 = f.mul(f.rem(block, field["depths"]), field["depth"])
                self.k = f.least(f.sub(field["k"], self.k0), field["depth"])
                again = f.op(f"or i64 {block}, {field['accumulate']}")
                add = f.select(f.compare("ne", again, 0), ADD, 0)
                last = f.compare("eq", f.add(block, 1), blocks)
                self.mode = f.add(add, f.select(last, FINISH, 0))
                self.block()

    def block(self) -> None:
        """All of a task for one block of k."""
        raise NotImplementedError

    def part(self, number: str, what: str, parts: str) -> tuple[str, str]:
        """The range of panels or strips in a part; all parts are as equal as can be."""
        f, count, of = self.f, self.field[what], self.field[parts]
        begin = f.div(f.mul(number, count), of)
        return begin, f.div(f.mul(f.add(number, 1), count), of)

    def matrix(self, number: str) -> list[str]:
        """The first elements of one matrix of the batch: of a, b, c and the bias."""
        f, rank = self.f, self.field["batch_rank"]
        sizes = f.at(self.plan, 8 * len(self.fields))
        rest = f.variable("i64", number)
        bases = [f.variable("ptr", base) for base in self.operands]
        with f.loop(0, rank) as i:
            dim = f.sub(f.sub(rank, i), 1)  # the last one varies fastest
            size = f.load("i64", f.at(sizes, f.mul(dim, 8)), 8)
            index = f.rem(rest.get(), size)
            rest.set(f.div(rest.get(), size))
            for place, base in enumerate(bases):
                at = f.mul(f.add(f.mul(rank, place + 1), dim), 8)
                base.set(f.at(base.get(), f.mul(index, f.load("i64", f.at(sizes, at), 8))))
        return [base.get() for base in bases]

    def panel(self, number: Value) -> tuple[Value, Value]:
        """The first row and the rows of a panel."""
        return self.piece(number, "panel_rows", "longer_panels")

    def piece(self, number: Value, size: str, longer: str) -> tuple[Value, Value]:
        """Where a panel or strip begins, and its size."""
        f, size, longer = self.f, self.field[size], self.field[longer]
        more = f.select(f.compare("slt", number, longer), 1, 0)
        return f.add(f.mul(number, size), f.least(number, longer)), f.add(size, more)

    def pack(self, operand: str, numbers: Sequence[Value], to: str, row: Value) -> None:
        """Call a packing function with (k0, k, first, count); see `kernel/packing`."""
        f, base = self.f, self.bases["ab".index(operand)]
        function = f.op(f"inttoptr i64 {self.field[f'pack_{operand}']} to ptr")
        map = f.op(f"inttoptr i64 {self.field[f'map_{operand}']} to ptr")
        given = ", ".join(f"i64 {number}" for number in numbers)
        f.put(
            f"call void {function}(ptr null, ptr {map}, ptr {base}, ptr {to}, {given}, i64 {row})"
        )

    def call_tile(
        self,
        table: str,
        width: Value,
        rows: Value,
        types: list[tuple[str, str]],
        given: list[Value],
    ) -> None:
        """Call the micro-kernel for tiles of a size."""
        f = self.f
        entry = f.add(f.mul(f.sub(width, 1), MOST_ROWS), f.sub(rows, 1))
        function = f.load("ptr", f.at(table, f.mul(entry, 8)), 8)
        text = ", ".join(f"{type} {value}" for (type, _), value in zip(types, given, strict=True))
        f.put(f"call void {function}({text})")


class _WideTasks(Tasks):
    """Tiles of vectors: B in strips of whole vectors."""

    fields = WIDE

    def __init__(self, f: Function) -> None:
        super().__init__(f)
        self.vector = f.mul(self.field["lanes"], self.field["size"])
        self.last_tiles = f.op(f"inttoptr i64 {self.field['last_tiles']} to ptr")
        self.to_a = f.at(self.scratch, self.field["b_bytes"])

    def block(self) -> None:
        f, field = self.f, self.field
        with f.loop(self.first_panel, self.end_panel, field["group"]) as panel:
            end = f.least(f.add(panel, field["group"]), self.end_panel)
            self.top = self.panel(panel)[0]
            with f.when(self.packs_a):  # rows take the part of steps
                rows = f.sub(self.panel(end)[0], self.top)
                self.pack("a", (self.top, rows, self.k0, self.k), self.to_a, field["packed_row"])
            with f.loop(self.first_strip, self.end_strip, field["staying"]) as strip:
                self.strips(
                    strip, f.least(f.add(strip, field["staying"]), self.end_strip), panel, end
                )

    def strips(self, begin: str, end: str, panel: str, end_panel: str) -> None:
        """All tiles of some strips and panels; what is packed of B stays in the cache for them."""
        f = self.f
        self.left = self.piece(begin, "strip_width", "wider_strips")[0]
        with f.when(self.packs_b), f.loop(begin, end) as strip:
            column, vectors, columns, to = self.strip(strip)
            self.pack("b", (self.k0, self.k, column, columns), to, f.mul(vectors, self.vector))
        with f.loop(panel, end_panel) as row, f.loop(begin, end) as strip:
            self.tile(row, strip)

    def strip(self, number: Value) -> tuple[Value, Value, str, str]:
        """A strip's first column, vectors, columns, and place in the packed block."""
        f, lanes = self.f, self.field["lanes"]
        first, vectors = self.piece(number, "strip_width", "wider_strips")
        column = f.mul(first, lanes)
        columns = f.least(f.sub(self.field["columns"], column), f.mul(vectors, lanes))
        before = f.mul(f.mul(f.sub(first, self.left), self.vector), self.k)
        return column, vectors, columns, f.at(self.scratch, before)

    def tile(self, panel: str, strip: str) -> None:
        """Compute one tile."""
        f, field, size = self.f, self.field, self.field["size"]
        row, rows = self.panel(panel)
        a_row = f.select(self.packs_a, field["packed_row"], field["a_row"])
        a_k = f.select(self.packs_a, size, field["a_k"])
        packed = f.at(self.to_a, f.mul(f.sub(row, self.top), a_row))
        placed = f.add(f.mul(self.k0, field["a_k"]), f.mul(row, field["a_row"]))
        a = f.select(self.packs_a, packed, f.at(self.bases[0], placed), "ptr")
        column, vectors, columns, packed = self.strip(strip)
        placed = f.add(f.mul(self.k0, field["b_k"]), f.mul(column, field["b_column"]))
        b = f.select(self.packs_b, packed, f.at(self.bases[1], placed), "ptr")
        b_k = f.select(self.packs_b, f.mul(vectors, self.vector), field["b_k"])
        c = f.add(f.mul(row, field["c_row"]), f.mul(column, field["c_column"]))
        bias = f.add(f.mul(row, field["bias_row"]), f.mul(column, field["bias_column"]))
        coming = f.at(a, f.mul(rows, a_row))
        given = [
            self.k,
            a,
            a_row,
            a_k,
            b,
            b_k,
            f.at(self.bases[2], c),
            field["c_row"],
            field["c_column"],
            columns,
            self.mode,
            coming,
            f.at(self.bias, bias),
        ]
        last = f.compare("eq", f.add(strip, 1), field["strips"])
        table = f.select(last, self.last_tiles, self.tiles, "ptr")
        passes = f.compare("ne", field["passing"], 0)
        width = f.select(passes, field["passing"], vectors)
        self.call_tile(table, width, rows, PARAMETERS, given)
