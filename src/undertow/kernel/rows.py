"""The form `rows`: row programs as kernels, a row at a time.

The row comes from memory in the first loop over it and from the cache in the others. The last loop,
or the last but one if the last is busy writing, fetches the next row ahead. See Note [loops over a
row] in row_program. Where rows do not lie along the memory, `rows_across` makes the kernel.
A row may be in several segments of equal length, as a channel of a batch of images is.

Note [kept]
What a program keeps for later loops lies in a row of memory that every thread has, which stays in
its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .expr import Expr
from .ir import FLOATS, Buffer, Function, State, Value
from .lower import Lowering
from .maps import ZERO, Operand, converted
from .row_program import NEUTRAL, Output, Program, Stage

BLOCK = 16384  # elements that one block of rows has, about
PIECE = 4096  # elements that are summed in lanes before their sum is added to the row's
LINE = 16  # elements
GROUP = (16, 256)  # rows, at least and at most, that are added before their sum is stored
COLUMNS = 256  # that a block of the sum over all blocks has
COMBINE: dict[str, Callable[[Function, Value, Value], Value]] = {
    "sum": lambda f, a, b: a + b,
    "max": lambda f, a, b: f.call("maximum", a, b),
    "min": lambda f, a, b: f.call("minimum", a, b),
    "peak": lambda f, a, b: f.select(b > a, b, a),
}


def rows_function(name: str, *given: Any) -> Function:
    """The kernel of a program, whose operands' steps are along the row.

    Buffers: outputs, operands that are no numbers, for each output of columns its memory of
    (blocks, n) for partial sums, and for each position in `kept_again` one of (threads, n rounded
    up to a multiple of LINE). Parameters: n, how many rows make a block, the `rank` sizes of the
    kept dimensions, for each output but those of columns and each operand the steps along them and
    along the row (but for one that is known), then the numbers. `short` tells that n is at most
    PIECE. To `stream`, outputs of elements and their rows begin at multiples of STREAM bytes. Of
    rows that are `cut`, n is the length of a segment; after the steps along the row come those from
    segment to segment, and before the numbers how many segments there are. Such a program has no
    outputs of columns, and keeps nothing.
    """
    return _Rows(name, *given).function()


def kept_again(p: Program) -> list[int]:
    """The positions of values that are kept from one loop for another."""
    positions = [p.column + 1 + i for i, s in enumerate(p.stages) if s.kind == "keep"]
    return [i for i in positions if len(set(p.users(i))) > 1]


class Builder:
    """What the kernels of both kinds share: the arguments, and the order of the stages."""

    def __init__(
        self,
        name: str,
        program: Program,
        operands: Sequence[Operand],
        outputs: Sequence[Operand],
        dtype: str,
        rank: int,
    ) -> None:
        self.program = program
        self.dtype = dtype
        f = self.f = Function(name)
        self.outs = [f.buffer(f"out{i}", o.dtype, written=True) for i, o in enumerate(outputs)]
        self.ins = [f.buffer(f"in{i}", o.dtype) for i, o in enumerate(operands)]
        self.n = f.param("n")
        self.together = f.param("together")
        self.sizes = [f.param(f"size{d}") for d in range(rank)]
        # Every buffer's steps along the kept dimensions, and along the row.
        self.kept: dict[Buffer, list[Value | int]] = {}
        self.along: dict[Buffer, Value | int] = {}
        walked = [
            (b, o)
            for b, o, made in zip(self.outs, outputs, program.outputs, strict=True)
            if made.kind != "column"
        ]
        for b, o in [*walked, *zip(self.ins, operands, strict=True)]:
            self.steps(b, o, rank)
        self.segments = self.counted()
        self.numbers = [f.cast(f.param(f"number{i}", "f64"), dtype) for i in range(program.numbers)]
        self.bases: dict[Buffer, Value] = {}  # the places of the row's first elements
        self.held: dict[int, Buffer] = {}  # the memory of kept values
        self.stored: set[int] = set()  # of those, the ones that lie there by now

    # What the two kinds do in their own way -------------------------------------------------
    def steps(self, b: Buffer, o: Operand, rank: int) -> None:
        """Declare the steps of a buffer."""
        raise NotImplementedError

    def counted(self) -> Value:
        """The number of segments of a row."""
        return self.f.value(1, "i64")

    @contextmanager
    def of_the_row(self) -> Iterator[None]:
        """Where what is known of a row is computed and stored."""
        raise NotImplementedError

    def recall(self, position: int) -> Value:
        """A number, or what is known of the row."""
        raise NotImplementedError

    def remember(self, position: int, value: Value) -> None:
        """Note what has become known of the row."""
        raise NotImplementedError

    def over_the_row(
        self, loop: int, last: int, found: dict[int, Stage], written: list[tuple[int, Output]]
    ) -> None:
        """Reduce all of `found` and write all of `written` in one loop over the row."""
        raise NotImplementedError

    # The stages in order ----------------------------------------------------------------------
    def stages(self) -> None:
        """Everything that happens to a row; see Note [loops over a row] in row_program."""
        p = self.program
        last = max([o.loop for o in p.outputs if o.kind != "row"] + [s.level for s in p.stages])
        self.stored = set()
        for loop in range(1, last + 1):
            self._known_after(loop - 1, final=False)
            found = {
                p.column + 1 + i: s
                for i, s in enumerate(p.stages)
                if s.level == loop and s.kind in NEUTRAL
            }
            written = [
                (i, o) for i, o in enumerate(p.outputs) if o.loop == loop and o.kind != "row"
            ]
            if found or written:
                self.over_the_row(loop, last, found, written)
        self._known_after(last, final=True)

    def _known_after(self, level: int, final: bool) -> None:
        """The stages that are no loops and of which everything is known; in the end the outputs."""
        p, f = self.program, self.f
        chosen = [
            (p.column + 1 + i, s)
            for i, s in enumerate(p.stages)
            if s.level == level and s.kind in ("row", "first", "pick")
        ]
        outputs = [(b, o) for b, o in zip(self.outs, p.outputs, strict=True) if o.kind == "row"]
        if not chosen and not (final and outputs):
            return
        with self.of_the_row():
            for position, s in chosen:
                if s.kind == "first":
                    b = self.ins[s.used[0]]
                    self.remember(position, self.load(b, self.bases[b]))
                    continue
                value = self._of_known(s.expr, s.used)
                if s.kind == "pick":
                    b = self.ins[s.operand]
                    # The indices are in range, unless somebody changes them at this moment.
                    column = f.cast(f.cast(value, "i64"), "u64")
                    column = f.call("minimum", column, f.cast(self.n - 1, "u64"))
                    place = self.bases[b] + f.cast(column, "i64") * self.along[b]
                    value = self.load(b, place)
                self.remember(position, value)
            for b, o in outputs if final else ():
                value = self._of_known(o.expr, o.used)
                f.store(b, self.bases[b], converted(f, value, b.scalar))

    def _of_known(self, expr: Expr, used: Sequence[int]) -> Value:
        values = {i: self.recall(i) for i in used}
        return Lowering(self.f, self._listed(values), self.dtype).value(expr)

    def element(
        self, column: Value, found: dict[int, Stage], written: Sequence[tuple[int, Output]]
    ) -> Lowering:
        """What the expressions of one loop use, for the element in this column."""
        p, f = self.program, self.f
        values = self._listed({})
        lowering = Lowering(f, values, self.dtype)
        fresh: set[int] = set()

        def need(position: int) -> None:
            if values[position] is not None:
                return
            stage = position - p.column - 1
            if position < p.elements:
                b = self.ins[position]
                values[position] = self.load(b, self.at(b, column))
            elif position == p.column:
                values[position] = column
            elif stage < 0 or p.stages[stage].kind != "keep":
                values[position] = self.recall(position)
            elif position in self.stored:
                b = self.held[position]
                values[position] = f.load(b, self.at(b, column))
            else:
                for i in p.stages[stage].used:
                    need(i)
                values[position] = lowering.value(p.stages[stage].expr)
                if position in self.held:
                    b = self.held[position]
                    f.store(b, self.at(b, column), values[position])
                    fresh.add(position)

        for used in [*(s.used for s in found.values()), *(o.used for _, o in written)]:
            for i in used:
                need(i)
        self.stored |= fresh
        return lowering

    # Places -----------------------------------------------------------------------------------
    def places(self, row: Value, sizes: Sequence[Value]) -> dict[Buffer, Value]:
        """The offset of every buffer's first element of the row with this number."""
        zero = self.f.value(0, "i64")
        bases = dict.fromkeys(self.kept, zero)
        for d in reversed(range(len(sizes))):
            at = row if d == 0 else row % sizes[d]
            row = row if d == 0 else row // sizes[d]
            for b, steps in self.kept.items():
                if steps[d] is not ZERO:
                    base = bases[b]
                    bases[b] = at * steps[d] if base is zero else base + at * steps[d]
        return bases

    def at(self, b: Buffer, column: Value) -> Value:
        """The place of the row's element in this column."""
        base, step = self.bases[b], self.along[b]
        return base if step is ZERO else base + column * step

    def load(self, b: Buffer, place: Value) -> Value:
        """An operand's element; floating ones in the type that is computed in."""
        value = self.f.load(b, place)
        return self.f.cast(value, self.dtype) if value.dtype in FLOATS else value

    def ceil(self, a: Value, b: Value | int) -> Value:
        """a / b, rounded up."""
        return (a + (b - 1)) // b

    def product(self, sizes: Sequence[Value]) -> Value:
        """The product of some sizes."""
        total = self.f.value(1, "i64")
        for i, size in enumerate(sizes):
            total = size if i == 0 else total * size
        return total

    def _listed(self, known: dict[int, Value]) -> list[Any]:
        return [known.get(i) for i in range(self.program.column + 1 + len(self.program.stages))]


class _Rows(Builder):
    """One row after the other, its elements in lanes."""

    def __init__(
        self,
        name: str,
        program: Program,
        operands: Sequence[Operand],
        outputs: Sequence[Operand],
        dtype: str,
        rank: int,
        short: bool,
        stream: bool,
        cut: bool,
    ) -> None:
        self.far: dict[Buffer, Value] | None = {} if cut else None  # steps between segments
        super().__init__(name, program, operands, outputs, dtype, rank)
        self.short = short
        self.stream = stream
        f = self.f
        self.parts = {
            i: f.buffer(f"part{i}", dtype, written=True)
            for i, o in enumerate(program.outputs)
            if o.kind == "column"
        }
        for position in kept_again(program):
            self.held[position] = f.buffer(f"kept{position}", dtype, written=True)
            self.along[self.held[position]] = 1
        self.writes = any(o.kind == "element" for o in program.outputs)
        self.known: dict[int, Value] = {}
        self.following: dict[Buffer, Value] = {}  # the bases of the next row
        self.block = f.value(0, "i64")

    def steps(self, b: Buffer, o: Operand, rank: int) -> None:
        self.kept[b] = [self.f.param(f"{b.name}_step{d}") for d in range(rank)]
        self.along[b] = self.f.param(f"{b.name}_along") if o.step is None else o.step
        if self.far is not None:
            self.far[b] = self.f.param(f"{b.name}_far")

    def counted(self) -> Value:
        return super().counted() if self.far is None else self.f.param("segments")

    def function(self) -> Function:
        """The kernel."""
        f = self.f
        count = self.product(self.sizes)
        with f.parallel(self.ceil(count, self.together)) as block:
            self.block = block
            first = block * self.together
            start = f.thread() * (self.ceil(self.n, LINE) * LINE)
            own = dict.fromkeys(self.held.values(), start)
            for part in self.parts.values():
                with f.vector(self.n) as i:
                    f.store(part, block * self.n + i, 0.0)
            with f.loop(f.call("minimum", count - first, self.together)) as r:
                row = first + r
                self.following = self.places(f.call("minimum", row + 1, count - 1), self.sizes)
                self.bases = {**self.places(row, self.sizes), **own}
                self._learn()
                self.stages()
        if self.parts:
            self._column_sums()
        return f

    def _learn(self) -> None:
        """What is known of the row before any loop."""
        p = self.program
        given = self.ins[p.elements :]
        loaded = [self.load(b, self.bases[b]) for b in given]
        self.known = dict(enumerate([*loaded, *self.numbers], p.elements))

    def _column_sums(self) -> None:
        """The sums of all blocks' sums, in order, computed in double precision."""
        f = self.f
        blocks = self.ceil(self.product(self.sizes), self.together)
        with f.parallel(self.ceil(self.n, COLUMNS)) as piece:
            start = piece * COLUMNS
            with f.vector(f.call("minimum", self.n - start, COLUMNS)) as i:
                totals = {
                    j: f.state(f.const(0.0, "f64"), combine=lambda a, b: a + b) for j in self.parts
                }
                with f.loop(blocks) as block:
                    for j, part in self.parts.items():
                        value = f.load(part, block * self.n + start + i)
                        totals[j].add(f.cast(value, "f64"))
                for j, total in totals.items():
                    out = self.outs[j]
                    f.store(out, start + i, f.cast(total.get()[0], out.scalar))

    @contextmanager
    def of_the_row(self) -> Iterator[None]:
        yield

    def recall(self, position: int) -> Value:
        return self.known[position]

    def remember(self, position: int, value: Value) -> None:
        self.known[position] = value

    def over_the_row(
        self, loop: int, last: int, found: dict[int, Stage], written: list[tuple[int, Output]]
    ) -> None:
        f = self.f
        ahead = loop == (max(last - 1, 1) if self.writes else last)
        totals = self._states(found)
        if self.short and self.far is None:
            self._piece(f.value(0, "i64"), self.n, totals, found, written, ahead)
        else:
            with self._parts() as (start, count):
                parts = self._states(found)
                self._piece(start, count, parts, found, written, ahead)
                for position in found:
                    totals[position].add(*parts[position].get())
        for position, state in totals.items():
            self.remember(position, state.get()[0])

    @contextmanager
    def _parts(self) -> Iterator[tuple[Value, Value]]:
        """Loops over the segments and the pieces of these: (first element, how many)."""
        f = self.f
        with self._segments():
            if self.short:
                yield f.value(0, "i64"), self.n
            else:
                with f.loop(self.ceil(self.n, PIECE)) as piece:
                    start = piece * PIECE
                    yield start, f.call("minimum", self.n - start, PIECE)

    @contextmanager
    def _segments(self) -> Iterator[None]:
        if self.far is None:
            yield
            return
        row, following = self.bases, self.following
        with self.f.loop(self.segments) as i:
            self.bases, self.following = (
                {b: base + i * self.far[b] for b, base in bases.items()}
                for bases in (row, following)
            )
            yield
        self.bases, self.following = row, following

    def _piece(
        self,
        start: Value,
        count: Value,
        states: dict[int, State],
        found: dict[int, Stage],
        written: list[tuple[int, Output]],
        ahead: bool,
    ) -> None:
        f = self.f
        exprs = [*(s.expr for s in found.values()), *(o.expr for _, o in written)]
        with f.vector(count, unroll(self.program, exprs)) as i:
            column = start + i
            lowering = self.element(column, found, written)
            if ahead:
                self._fetch_ahead(column)
            for position, s in found.items():
                states[position].add(lowering.value(s.expr))
            values = [lowering.value(o.expr) for _, o in written]
            for (j, o), value in zip(written, values, strict=True):
                if o.kind == "column":
                    place = self.block * self.n + column
                    f.store(self.parts[j], place, f.load(self.parts[j], place) + value)
                else:
                    out = self.outs[j]
                    given = converted(f, value, out.scalar)
                    f.store(out, self.at(out, column), given, self.stream)

    def _fetch_ahead(self, column: Value) -> None:
        for b in self.ins[: self.program.elements]:
            if isinstance(self.along[b], int) and self.along[b] is not ZERO:
                self.f.prefetch(b, self.following[b] + column)

    def _states(self, found: dict[int, Stage]) -> dict[int, State]:
        f = self.f

        def combine(kind: str) -> Callable[[Value, Value], Value]:
            return lambda a, b: COMBINE[kind](f, a, b)

        return {
            position: f.state(f.const(NEUTRAL[s.kind], self.dtype), combine=combine(s.kind))
            for position, s in found.items()
        }


_CHEAP = {"add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "where", "eq", "sqrt"}


def unroll(p: Program, exprs: Sequence[Expr]) -> int:
    """How many vectors at once hide the latency of a sum; longer work does so by itself.

    A kept value counts with its expression.
    """
    cost = 0
    seen: set[int] = set()

    def visit(node: Expr) -> None:
        nonlocal cost
        if node.head == "arg":
            stage = node.args[0] - p.column - 1
            if stage >= 0 and p.stages[stage].kind == "keep":
                visit(p.stages[stage].expr)
        elif node.head != "const" and id(node) not in seen:
            seen.add(id(node))
            cost += 1 if node.head in _CHEAP else 16
            for a in node.args:
                visit(a)

    for expr in exprs:
        visit(expr)
    return 4 if cost < 4 else 2 if cost < 16 else 1
