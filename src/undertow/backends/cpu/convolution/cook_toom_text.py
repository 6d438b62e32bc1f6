"""The code of convolutions by tiles, with fewer products than a sum has or as sums over windows.

    void products(pool, plan, x, w, y, bias, scratch)

Note [blocks of tiles]
`forward_text` takes a block of tiles at a time: their elements are transformed, all channels, into
a packed block for each point that stays in the second cache; then for a few rows of outputs all
points are multiplied into memory that stays in the first cache, and transformed back.
`weight_text` sums over tiles: both operands are transformed, some tiles at a time, and multiplied
into matrices that are as many as points.
A tile of one output is its window. Nothing is transformed: `forward_text` sums over channels and
taps at once, and to `weight_text` each tap of a channel is a channel of its own.

Note [what is not finite]
A transform spreads what is not finite, and adds numbers that may overflow. Any result that should
not be finite is not, so `forward_text` looks at all results, and sets the first number of its
scratch to NaN if one is not finite: then somebody must compute without transforms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....kernel.cook_toom import Matrix, transforms
from ..codegen.inline import apply
from ..codegen.irbuilder import Function, Value
from ..products.gemm_micro import ADD, FINISH, LINE, PARAMETERS, RELU
from ..products.gemm_tiles import MOST_ROWS, Target
from ..threads.jobs import job_text
from .cook_toom_tiles import PIECE, SIZE, Form, Line, Tiles, piece_of, span_of

FLAG = 64  # bytes before the scratch of the threads
APART = 5 * LINE  # more bytes from a point to the next: all at once they would collide in a cache
FEW = 4  # elements from a place to the next, up to which those between are read, too
INSIDE, IN_LINE = 1, 2  # no tile of a panel crosses a border; and they begin one after the other
WHOLE, ONE_PIECE = 1, 2  # all tiles of a panel are results; and these one piece of memory
CALL = ["x", "w", "y", "bias", "scratch", "plan"]


# The numbers of a plan. The last ones are addresses of tables, in the order in which they are made.
FORWARD = [
    "tasks",
    *("blocks", "block", "panels"),  # blocks of tiles in one group, panels of one, and of all tiles
    "channels",
    "terms",  # of a sum at one point: channels, or channels and taps
    "depth",  # of them that are summed at a time
    "outputs",
    "parts",  # phases of results, those that are neighbours along the last dimension as one
    *("row_panels", "panel_rows", "longer_panels"),
    *("x_group", "x_channel", "x_plane", "x_row"),
    "x_size",  # of a line in place
    *("w_group", "w_point", "w_row"),
    *("y_group", "y_output", "y_row", "y_step"),
    "tiles",  # micro-kernels by width and rows
    "thread_bytes",
    *("from", "starts"),  # by tile: where it begins in x, and in the line
    "inside",  # by panel: INSIDE or IN_LINE
    *("to", "first_row", "end_row"),  # by part and tile: where it begins in y, and its rows
    *("first_column", "end_column"),  # by tile: its columns in y
    "whole",  # by part and panel: WHOLE or ONE_PIECE
    *("first_terms", "end_terms"),  # by phase of results and point: those that have a weight there
]
WEIGHT = [
    "tasks",
    *("parts", "column_blocks", "column_block"),  # of the tiles in a group; panels of one
    *("row_panels", "column_panels"),  # rows are those of one phase
    "steps",  # tiles in all
    "depth",  # that are multiplied at a time
    *("x_group", "x_plane", "x_row"),
    *("w_group", "w_plane", "w_row"),
    *("x_size", "w_size"),  # of lines in place
    *("y_task", "y_point", "y_row"),  # steps in bytes, the first one from a part to the next
    *("tiles", "thread_bytes"),
    *("x_from", "w_from"),  # by tile: where it begins
    *("x_lanes", "w_lanes"),  # by lane: where its channel begins
    *("x_starts", "w_starts"),  # by tile: its first position in the line
    *("first_panels", "end_panels"),  # by point: those of all phases that are wanted there
    *("x_runs", "w_runs"),  # by tile: how many from it on are in a line
]


def forward_text(name: str, form: Form, target: Target) -> str:
    """Results by positions, from inputs and transformed weights."""
    return _text(name, _Forward, form, target)


def weight_text(name: str, form: Form, target: Target) -> str:
    """The sums of a weight's gradient at each point, from inputs and cotangents."""
    return _text(name, _Weight, form, target)


def _text(name: str, body: type[_Tasks], form: Form, target: Target) -> str:
    def begin(f: Function) -> None:
        f.store("i64", 0, "%scratch", 8)

    def tasks(f: Function) -> None:
        body(f, form, target).write()

    return job_text(name, CALL, target.attributes, begin, tasks)


class _Tasks(Tiles):
    """Writes the body of a job: tasks `begin` to `end` on one thread."""

    fields: list[str]

    def __init__(self, f: Function, form: Form, target: Target) -> None:
        super().__init__(f, target)
        self.form = form
        self.width = form.vectors * self.lanes  # tiles or outputs of a panel
        shared = [f.load("ptr", f.at("%call", 8 * n), 8) for n in range(len(CALL))]
        self.x, self.w, self.y, self.bias, self.flag, self.plan = shared
        self.field = {
            name: f.load("i64", f.at(self.plan, 8 * n), 8) for n, name in enumerate(self.fields)
        }
        own = f.mul("%thread", self.field["thread_bytes"])
        self.scratch = f.at(f.at(self.flag, FLAG), own)

    def write(self) -> None:
        with self.f.loop("%begin", "%end") as task:
            self.task(task)

    def task(self, task: str) -> None:
        raise NotImplementedError

    def table(self, name: str) -> str:
        return self.f.op(f"inttoptr i64 {self.field[name]} to ptr")

    def entry(self, table: str, number: Value) -> str:
        f = self.f
        return f.load("i64", f.at(table, f.mul(number, 8)), 8)

    def steps(self, which: str) -> list[str]:
        """The steps of an operand along all dimensions but the last."""
        outer = len(self.form.taps) - 1
        return [self.field[f"{which}_{name}"] for name in ("plane", "row")[2 - outer :]]

    def tiles(
        self,
        matrices: Sequence[Matrix],
        places: Sequence[str],
        which: str,
        line: Line | None,
        step: int = 0,
    ) -> list[list[str]]:
        """Tiles at the lanes' places, at each point: of every phase, if the input has any."""
        given = matrices, places, self.steps(which), line
        if self.form.phases and which == "x":
            return self.tiles_of_phases(*given, self.form, step)
        return [self.tile(*given, self.form.gap, step)]

    def call_tile(self, rows: Value, given: dict[str, Value]) -> None:
        f = self.f
        entry = f.add((self.form.vectors - 1) * MOST_ROWS - 1, rows)
        function = f.load("ptr", f.at(self.table("tiles"), f.mul(entry, 8)), 8)
        text = ", ".join(f"{type} {given.get(name, 0)}" for type, name in PARAMETERS)
        f.put(f"call void {function}({text.replace('ptr 0', 'ptr null')})")


class _Forward(_Tasks):
    fields = FORWARD

    def __init__(self, f: Function, form: Form, target: Target) -> None:
        super().__init__(f, form, target)
        given = [transforms(m, r) for m, r in zip(form.outputs, form.taps, strict=True)]
        self.inputs = [t.inputs for t in given]
        self.results = [t.outputs for t in given]
        self.points = 1 if form.windows else math.prod(form.points)

    def task(self, task: str) -> None:
        f, field = self.f, self.field
        group, block = f.div(task, field["blocks"]), f.rem(task, field["blocks"])
        self.first = f.mul(block, field["block"])
        self.count = f.least(f.sub(field["panels"], self.first), field["block"])
        wide = self.width * SIZE
        self.panel_bytes = f.mul(field["terms"], wide)
        self.point_bytes = f.add(f.mul(self.panel_bytes, field["block"]), APART)
        self.sums = f.at(self.scratch, f.mul(self.point_bytes, self.points))
        self.sum_row = f.mul(field["block"], wide)
        self.sum_point = f.mul(self.sum_row, self.form.rows)
        x = f.at(self.x, f.mul(group, field["x_group"]))
        w = f.at(self.w, f.mul(group, field["w_group"]))
        self.result = f.at(self.y, f.mul(group, field["y_group"]))
        self.group_bias = f.at(self.bias, f.mul(f.mul(group, field["outputs"]), SIZE))
        with f.loop(0, self.count) as panel:
            self.lay_out(x, panel)
        self.check = f.variable(self.vector, "zeroinitializer")
        with f.loop(0, field["parts"]) as part, f.loop(0, field["row_panels"]) as number:
            rows = f.add(
                field["panel_rows"],
                f.select(f.compare("slt", number, field["longer_panels"]), 1, 0),
            )
            top = f.add(f.mul(number, field["panel_rows"]), f.least(number, field["longer_panels"]))
            for thread in range(self.form.weave):
                phase = f.add(f.mul(part, self.form.weave), thread)
                above = f.add(f.mul(phase, field["outputs"]), top)
                weights = f.at(w, f.mul(above, field["w_row"]))
                self.multiply(weights, top, rows, part, phase, thread)
            with f.loop(0, rows) as row, f.loop(0, self.count) as panel:
                place = f.add(f.mul(part, field["panels"]), f.add(self.first, panel))
                kind = self.entry(self.table("whole"), place)
                todo = f.compare("ne", kind, ONE_PIECE) if self.at_once else "true"
                with f.when(todo):
                    self.give(part, f.add(top, row), row, panel, kind)
        odd = f.op(f"fcmp uno {self.vector} {self.check.get()}, zeroinitializer")
        bits = f.op(f"bitcast <{self.lanes} x i1> {odd} to i{self.lanes}")
        with f.when(f.op(f"icmp ne i{self.lanes} {bits}, 0")):
            f.store("i64", -1, self.flag, 8)

    def lay_out(self, x: str, panel: str) -> None:
        """The elements of a panel's tiles, at each point: channels by tiles."""
        f, form = self.f, self.form
        number = f.add(self.first, panel)
        to = f.at(self.scratch, f.mul(panel, self.panel_bytes))
        kind = self.entry(self.table("inside"), number)
        if form.in_line:
            with f.when(f.compare("eq", kind, IN_LINE)):
                self.channels(x, number, to, False, in_line=True)
        with f.when(f.compare("eq", kind, INSIDE)):
            self.channels(x, number, to, False)
        if form.in_place:
            with f.when(f.compare("eq", kind, 0)):
                self.channels(x, number, to, True)

    def channels(self, x: str, panel: Value, to: str, border: bool, in_line: bool = False) -> None:
        """All channels of a panel, whose tiles may cross a border, or begin one after the other."""
        f, field = self.f, self.field
        begins, starts = self.table("from"), self.table("starts")
        first = f.mul(panel, self.width)
        last = f.sub(field["panels"], 1)
        coming = f.mul(f.least(f.add(panel, 1), last), self.width)
        ahead = [self.entry(begins, f.add(coming, lane)) for lane in self.lines()]
        with f.loop(0, field["channels"]) as channel:
            base = f.at(x, f.mul(channel, field["x_channel"]))
            for row in self.rows(self.heights(), [f.at(base, a) for a in ahead], self.steps("x")):
                for place in row:
                    f.prefetch(place)
            wide: Value = self.width * SIZE
            if self.form.windows:  # one point, with the taps as channels
                rows = f.mul(channel, math.prod(self.form.taps))
                place, apart = f.at(to, f.mul(rows, wide)), wide
            else:
                place, apart = f.at(to, f.mul(channel, wide)), self.point_bytes
            for v in range(self.form.vectors):
                count, step = (1, self.form.step) if in_line else (self.lanes, 0)
                lanes = [f.add(first, v * self.lanes + lane) for lane in range(count)]
                places = [f.at(base, self.entry(begins, lane)) for lane in lanes]
                line = None
                if border:
                    line = Line(field["x_size"], [self.entry(starts, lane) for lane in lanes])
                found = self.tiles(self.inputs, places, "x", line, step)
                for number, values in enumerate(found):
                    phase = f.mul(f.mul(field["channels"], number), wide)
                    for point, value in enumerate(values):
                        there = f.at(f.at(place, phase), f.mul(apart, point))
                        f.store(self.vector, value, f.at(there, v * self.target.vector), SIZE)

    def lines(self) -> range:
        """Which tiles of a panel begin in lines of their own, if they are neighbours."""
        return range(0, self.width, max(1, LINE // (self.form.step * SIZE)))

    def heights(self) -> list[int]:
        """How many rows a tile has, in all phases, along each dimension but the last."""
        return self.form.reach(self.form.points)[:-1]

    @property
    def at_once(self) -> bool:
        """Whether products may be written to where they belong: they are results, in order."""
        return self.form.windows and self.form.weave == 1 and not self.form.spread

    def multiply(
        self, w: str, top: Value, rows: Value, part: Value, phase: Value, thread: int
    ) -> None:
        """Some rows of outputs for all tiles of the block, at each point."""
        f, field, wide = self.f, self.field, self.width * SIZE
        firsts, ends = self.table("first_terms"), self.table("end_terms")
        sums = f.at(self.sums, f.mul(self.sum_point, thread * self.points))
        over = f.sub(f.mul(rows, field["w_row"]), f.mul(field["w_point"], self.points - 1))
        with f.loop(0, self.points) as point, f.loop(0, self.count) as panel:
            number = f.add(f.mul(phase, self.points), point)
            first, end = self.entry(firsts, number), self.entry(ends, number)
            # The weights of the next point, or of the next rows.
            last = f.compare("eq", point, self.points - 1)
            coming = f.select(last, over, field["w_point"])
            into = f.at(f.at(sums, f.mul(point, self.sum_point)), f.mul(panel, wide))
            row_bytes = self.sum_row
            if self.at_once:
                place = f.add(f.mul(part, field["panels"]), f.add(self.first, panel))
                straight = f.compare("eq", self.entry(self.table("whole"), place), ONE_PIECE)
                begin = self.entry(self.table("to"), f.mul(place, self.width))
                there = f.at(f.at(self.result, f.mul(top, field["y_output"])), begin)
                into = f.select(straight, there, into, "ptr")
                row_bytes = f.select(straight, field["y_output"], row_bytes)
            # If there are none, the sum of nothing is written.
            with f.loop(first, f.most(end, f.add(first, 1)), field["depth"]) as term:
                a = f.at(f.at(w, f.mul(point, field["w_point"])), f.mul(term, SIZE))
                b = f.at(self.scratch, f.mul(point, self.point_bytes))
                b = f.at(f.at(b, f.mul(panel, self.panel_bytes)), f.mul(term, wide))
                given: dict[str, Value] = {
                    "k": f.least(f.sub(end, term), field["depth"]),
                    "a": a,
                    "a_row": field["w_row"],
                    "a_k": SIZE,
                    "b": b,
                    "b_k": wide,
                    "c": into,
                    "c_row": row_bytes,
                    "columns": self.width,
                    "mode": f.add(
                        f.select(f.compare("ne", term, first), ADD, 0),
                        f.select(f.compare("sge", f.add(term, field["depth"]), end), FINISH, 0),
                    ),
                    "next": f.at(a, coming),
                    "bias": f.at(self.group_bias, f.mul(top, SIZE)),
                }
                self.call_tile(rows, given)

    def give(self, part: str, output: Value, row: str, panel: str, kind: str) -> None:
        """One output of a panel's tiles: back from points, and to where they belong."""
        f, field, form = self.f, self.field, self.form
        number = f.add(self.first, panel)
        first = f.mul(number, self.width)
        self.of_part = f.mul(f.mul(part, field["panels"]), self.width)
        sums = f.at(f.at(self.sums, f.mul(row, self.sum_row)), f.mul(panel, self.width * SIZE))
        result = f.at(self.result, f.mul(output, field["y_output"]))
        for v in range(form.vectors):
            threads = []
            for thread in range(form.weave):
                every = range(thread * self.points, (thread + 1) * self.points)
                places = [f.at(sums, f.mul(self.sum_point, point)) for point in every]
                values = [
                    f.load(self.vector, f.at(place, v * self.target.vector), SIZE)
                    for place in places
                ]
                if not form.windows:
                    values = self.transformed(self.results, values)
                    self.look_at(values)
                    values = [self.finished(value, output) for value in values]
                threads.append(values)
            woven = [value for values in zip(*threads, strict=True) for value in values]
            wide = form.outputs[-1] * form.weave
            grid = [woven[n : n + wide] for n in range(0, len(woven), wide)]
            at = f.add(first, v * self.lanes)
            with f.when(f.compare("eq", kind, WHOLE)):
                for number, row_values in enumerate(grid):
                    self.write_row(f.at(result, f.mul(field["y_row"], number)), at, row_values)
            if form.one_piece and not self.at_once:
                with f.when(f.compare("eq", kind, ONE_PIECE)):
                    self.write_piece(result, f.add(self.of_part, at), grid)
            with f.when(f.compare("eq", kind, 0)):
                self.write_parts(result, at, grid)

    def look_at(self, values: list[str]) -> None:
        """Make the check NaN if one of the values is not finite; see Note [what is not finite]."""
        f, total = self.f, values[0]
        for value in values[1:]:
            total = f.op(f"fadd {self.vector} {total}, {value}")
        zero = f.op(f"fmul {self.vector} {total}, zeroinitializer")
        self.check.set(f.op(f"fadd {self.vector} {self.check.get()}, {zero}"))

    def finished(self, value: str, output: Value) -> str:
        """With the bias, and relu."""
        f = self.f
        scalar = f.load("float", f.at(self.group_bias, f.mul(output, SIZE)), SIZE)
        value = f.op(f"fadd {self.vector} {value}, {f.splat('float', self.lanes, scalar)}")
        if self.form.relu:
            (value,) = apply(f, RELU, [value], "float", self.lanes, self.target.machine)
        return value

    def pieces(self, values: Sequence[str]) -> list[list[tuple[int, int, str]]]:
        """For each lane, its elements of all the values, as vectors: the first, how many, which."""
        f, first = self.f, 0
        found: list[list[tuple[int, int, str]]] = [[] for _ in range(self.lanes)]
        while first < len(values):
            count = min(PIECE, self.lanes, 1 << (len(values) - first).bit_length() - 1)
            rows = list(values[first : first + count])
            rows = self.turned(rows, count) if count > 1 else rows
            for lane, pieces in enumerate(found):
                block = lane // count * count
                lanes = range(block, block + count)
                piece = f.shuffle(self.vector, rows[lane % count], "poison", lanes)
                pieces.append((first, count, piece))
            first += count
        return found

    def write_piece(self, result: str, first: Value, grid: list[list[str]]) -> None:
        """Tiles whose rows are neighbours, one after the other."""
        f, wide = self.f, len(grid[0])
        place = f.at(result, self.entry(self.table("to"), first))
        for number, values in enumerate(grid):
            there = f.at(place, f.mul(self.field["y_row"], number))
            if wide <= min(2, self.lanes):
                whole = self.joined([piece for [(_, _, piece)] in self.pieces(values)], wide)
                f.store(f"<{wide * self.lanes} x float>", whole, there, SIZE)
                continue
            for lane, pieces in enumerate(self.pieces(values)):
                for begin, count, piece in pieces:
                    at = f.at(there, (lane * wide + begin) * SIZE)
                    f.store(f"<{count} x float>", piece, at, SIZE)

    def write_row(self, result: str, first: Value, values: Sequence[str]) -> None:
        f, ends = self.f, self.table("to")
        tiles = [f.add(f.add(self.of_part, first), lane) for lane in range(self.lanes)]
        places = [f.at(result, self.entry(ends, tile)) for tile in tiles]
        if self.form.spread:
            for number, value in enumerate(values):
                for place, [(_, _, piece)] in zip(places, self.pieces([value]), strict=True):
                    there = f.at(place, f.mul(self.field["y_step"], number))
                    f.store("<1 x float>", piece, there, SIZE)
            return
        if self.form.gap > 1:
            size = piece_of(self.form.gap, self.lanes)
            for number, value in enumerate(values):
                for lane in range(0, self.lanes, size):
                    piece = f.shuffle(self.vector, value, "poison", range(lane, lane + size))
                    there = f.at(places[lane], number * self.form.gap * SIZE)
                    f.store(f"<{size} x float>", piece, there, SIZE)
            return
        for place, pieces in zip(places, self.pieces(values), strict=True):
            for begin, count, piece in pieces:
                f.store(f"<{count} x float>", piece, f.at(place, begin * SIZE), SIZE)

    def write_parts(self, result: str, first: Value, grid: list[list[str]]) -> None:
        """Tiles of which only some rows and columns are results."""
        f, field = self.f, self.field
        wide = len(grid[0])
        slot = f.slot(f"[{len(grid) * wide * self.lanes} x float]")
        for number, values in enumerate(grid):
            for place, pieces in enumerate(self.pieces(values)):
                into = f.at(slot, (place * len(grid) + number) * wide * SIZE)
                for begin, count, piece in pieces:
                    f.store(f"<{count} x float>", piece, f.at(into, begin * SIZE), SIZE)
        names = "to", "first_row", "end_row", "first_column", "end_column"
        to, first_row, end_row, first_column, end_column = map(self.table, names)
        with f.loop(0, self.lanes) as lane:
            tile = f.add(first, lane)
            at = f.add(self.of_part, tile)
            there = f.at(result, self.entry(to, at))
            of = f.at(slot, f.mul(lane, len(grid) * wide * SIZE))
            columns = self.entry(first_column, tile), self.entry(end_column, tile)
            with (
                f.loop(self.entry(first_row, at), self.entry(end_row, at)) as row,
                f.loop(*columns) as column,
            ):
                value = f.load("float", f.at(of, f.mul(f.add(f.mul(row, wide), column), SIZE)))
                step = f.add(f.mul(row, field["y_row"]), f.mul(column, field["y_step"]))
                f.store("float", value, f.at(there, step))


class _Weight(_Tasks):
    fields = WEIGHT

    def __init__(self, f: Function, form: Form, target: Target) -> None:
        super().__init__(f, form, target)
        given = [transforms(r, m) for m, r in zip(form.outputs, form.taps, strict=True)]
        self.inputs = [t.inputs for t in given]
        self.taps = [t.taps for t in given]
        self.points = math.prod(form.points)

    def task(self, task: str) -> None:
        f, field, form = self.f, self.field, self.form
        number, block = f.div(task, field["column_blocks"]), f.rem(task, field["column_blocks"])
        group, part = f.div(number, field["parts"]), f.rem(number, field["parts"])
        first = f.mul(block, field["column_block"])
        panels = f.least(f.sub(field["column_panels"], first), field["column_block"])
        several = piece_of(form.gap, min(self.lanes, PIECE))
        pieces = f.div(field["steps"], several)
        begin = f.mul(f.div(f.mul(part, pieces), field["parts"]), several)
        end = f.mul(f.div(f.mul(f.add(part, 1), pieces), field["parts"]), several)
        narrow, wide = form.rows * SIZE, self.width * SIZE
        # Rows are written as whole vectors, the last of which reaches beyond its panel.
        a_panel = f.add(f.mul(field["depth"], narrow), self.target.vector)
        b_panel = f.mul(field["depth"], wide)
        a_phase = f.mul(a_panel, field["row_panels"])
        a_point = f.mul(a_phase, max(len(form.phases), 1))
        b_point = f.add(f.mul(b_panel, field["column_block"]), APART)
        b = f.at(self.scratch, f.mul(a_point, self.points))
        x = f.at(self.x, f.mul(group, field["x_group"]))
        w = f.at(self.w, f.mul(group, field["w_group"]))
        y = f.at(f.at(self.y, f.mul(number, field["y_task"])), f.mul(first, wide))
        with f.loop(begin, end, field["depth"]) as step:
            depth = f.least(f.sub(end, step), field["depth"])
            with f.loop(0, field["row_panels"]) as panel:
                to = f.at(self.scratch, f.mul(panel, a_panel))
                lanes = f.mul(panel, form.rows)
                bytes = narrow, a_point, a_phase
                self.lay_out(x, "x", self.inputs, lanes, step, depth, to, bytes, 1)
            with f.loop(0, panels) as panel:
                to = f.at(b, f.mul(panel, b_panel))
                lanes = f.mul(f.add(first, panel), self.width)
                bytes = wide, b_point, 0
                self.lay_out(w, "w", self.taps, lanes, step, depth, to, bytes, form.vectors)
            mode = f.select(f.compare("ne", step, begin), ADD, 0)
            firsts, ends = self.table("first_panels"), self.table("end_panels")
            with (
                f.loop(0, self.points) as point,
                f.loop(0, panels) as column,
                f.loop(self.entry(firsts, point), self.entry(ends, point)) as row,
            ):
                left = f.at(f.at(self.scratch, f.mul(point, a_point)), f.mul(row, a_panel))
                right = f.at(f.at(b, f.mul(point, b_point)), f.mul(column, b_panel))
                c = f.at(f.at(y, f.mul(point, field["y_point"])), f.mul(column, wide))
                given: dict[str, Value] = {
                    "k": depth,
                    "a": left,
                    "a_row": SIZE,
                    "a_k": narrow,
                    "b": right,
                    "b_k": wide,
                    "c": f.at(c, f.mul(f.mul(row, form.rows), field["y_row"])),
                    "c_row": field["y_row"],
                    "columns": self.width,
                    "mode": mode,
                    "next": left,
                }
                self.call_tile(form.rows, given)

    def lay_out(
        self,
        base: str,
        which: str,
        matrices: Sequence[Matrix],
        first: Value,
        step: str,
        depth: str,
        to: str,
        bytes: tuple[int, Value, Value],
        vectors: int,
    ) -> None:
        """Some tiles of a panel's channels, at each point: tiles by channels.

        `bytes` are those from one tile to the next, from a point, and from a phase.
        """
        f, (row, point, phase) = self.f, bytes
        begins, lanes = self.table(f"{which}_from"), self.table(f"{which}_lanes")
        if self.form.windows:
            self.turn(base, which, first, step, depth, to, row, vectors)
            return
        gap = self.form.gap
        several = piece_of(gap, min(self.lanes, PIECE))
        read = span_of(self.form.width if which == "x" else len(matrices[-1][0]), gap)

        def put(place: str, there: str, line: Line | None) -> None:
            for v in range(vectors):
                numbers = [f.add(first, v * self.lanes + lane) for lane in range(self.lanes)]
                places = [f.at(place, self.entry(lanes, n)) for n in numbers]
                if gap == 1:
                    tiles, apart = self.tiles(matrices, places, which, line), phase
                else:
                    tiles = self.neighbours(matrices, places, self.steps(which), line, gap)
                    apart = row
                for k, values in enumerate(tiles):
                    for number, value in enumerate(values):
                        at = f.at(f.at(there, f.mul(point, number)), f.mul(apart, k))
                        f.store(self.vector, value, f.at(at, v * self.target.vector), SIZE)

        with f.loop(0, depth, several) as k:
            place = f.at(base, self.entry(begins, f.add(step, k)))
            there = f.at(to, f.mul(k, row))
            if self.form.in_place:
                start = self.entry(self.table(f"{which}_starts"), f.add(step, k))
                size = self.field[f"{which}_size"]
                inside = f.compare("ult", start, f.most(f.add(f.sub(size, read), 1), 0))
                with f.when(inside):
                    put(place, there, None)
                with f.when(f.op(f"xor i1 {inside}, true")):
                    put(place, there, Line(size, [start]))
            else:
                put(place, there, None)

    def turn(
        self,
        base: str,
        which: str,
        first: Value,
        step: str,
        depth: str,
        to: str,
        row: int,
        vectors: int,
    ) -> None:
        """Elements of a panel's channels, of several places at once where these are in a line."""
        f, several = self.f, min(self.lanes, PIECE)
        begins, lanes = self.table(f"{which}_from"), self.table(f"{which}_lanes")
        apart, runs = self.form.apart[-1] if which == "x" else 1, self.table(f"{which}_runs")

        def put(k: Value, count: int) -> None:
            place = f.at(base, self.entry(begins, f.add(step, k)))
            for v in range(vectors):
                numbers = [f.add(first, v * self.lanes + lane) for lane in range(self.lanes)]
                places = [f.at(place, self.entry(lanes, n)) for n in numbers]
                values = self.read(places, (count - 1) * apart + 1, None)[::apart]
                for n, value in enumerate(values):
                    there = f.at(to, f.mul(f.add(k, n), row))
                    f.store(self.vector, value, f.at(there, v * self.target.vector), SIZE)

        with f.loop(0, depth, several) as k:
            end, in_line = f.add(k, several), "false"
            if apart <= FEW:
                run = self.entry(runs, f.add(step, k))
                in_line = f.compare("sge", f.least(run, f.sub(depth, k)), several)
                with f.when(in_line):
                    put(k, several)
            with f.when(f.op(f"xor i1 {in_line}, true")), f.loop(k, f.least(end, depth)) as one:
                put(one, 1)
