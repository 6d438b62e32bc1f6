"""The form `rows`: row programs as kernels.

The row comes from memory in the first loop over it and from the cache in the others, so rows are
processed one at a time. The last loop but one, as the last is busy writing, fetches the next row
ahead. See Note [loops over a row] in row_program.

Note [kept]
What a program keeps for later loops lies in a row of memory that every thread has, which stays in
its cache. Lanes that take a row each would need as many such rows: they use the memory of an
output, or compute it again.

Note [across]
Where the elements of a row lie apart and those of neighbouring rows together, the lanes of a vector
take a row each, and the loops over the row are serial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .expr import Expr
from .ir import FLOATS, Buffer, Function, State, Value
from .lower import Lowering
from .maps import ZERO, Operand, converted
from .row_program import NEUTRAL, Output, Program, Stage

BLOCK = 16384  # elements that one block of rows has, about
PIECE = 4096  # elements that are summed in lanes before their sum is added to the row's
PIECE_ACROSS = 128
LINE = 16  # elements
GROUP = (16, 256)  # rows, at least and at most, that are added before their sum is stored
COLUMNS = 256  # that a block of the sum over all blocks has
_COMBINE: dict[str, Callable[[Function, Value, Value], Value]] = {
    "sum": lambda f, a, b: a + b,
    "max": lambda f, a, b: f.call("maximum", a, b),
    "min": lambda f, a, b: f.call("minimum", a, b),
    "peak": lambda f, a, b: f.select(b > a, b, a),
}


def rows_function(
    name: str, program: Program, operands: Sequence[Operand], outputs: Sequence[Operand],
    dtype: str, rank: int, across: bool, stream: bool = False,
) -> Function:  # fmt: skip
    """The kernel of a program.

    The operand's step is along the row, or, `across`, along the innermost of the `rank` kept
    dimensions. Buffers: outputs, operands that are no numbers, for each output of columns its
    memory of (blocks, n) for partial sums, and unless across, for each position in `kept_again`,
    one of (threads, n rounded up to a multiple of LINE). Parameters: n, how many rows (or lanes)
    make a block, the sizes of the kept dimensions, for each output but those of columns and each
    operand the steps along them and along the row (but for one that is known), then the numbers.
    To `stream`, outputs of elements and their rows begin at multiples of STREAM bytes.
    """
    return _Builder(name, program, operands, outputs, dtype, rank, across, stream).function()


class _Builder:
    def __init__(
        self, name: str, program: Program, operands: Sequence[Operand],
        outputs: Sequence[Operand], dtype: str, rank: int, across: bool, stream: bool,
    ) -> None:  # fmt: skip
        self.program = program
        self.dtype = dtype
        self.across = across
        self.stream = stream
        f = self.f = Function(name)
        self.outs = [f.buffer(f"out{i}", o.dtype, written=True) for i, o in enumerate(outputs)]
        self.ins = [f.buffer(f"in{i}", o.dtype) for i, o in enumerate(operands)]
        self.parts = {
            i: f.buffer(f"part{i}", dtype, written=True)
            for i, o in enumerate(program.outputs)
            if o.kind == "column"
        }
        self.n = f.param("n")
        self.together = f.param("together")
        self.sizes = [f.param(f"size{d}") for d in range(rank)]
        # Every buffer's steps along the kept dimensions, and along the row.
        self.kept: dict[Buffer, list[Value | int]] = {}
        self.along: dict[Buffer, Value | int] = {}
        walked = [(b, o) for i, (b, o) in enumerate(zip(self.outs, outputs, strict=True))
                  if i not in self.parts]  # fmt: skip
        for b, o in [*walked, *zip(self.ins, operands, strict=True)]:
            known: list[Value | int] = [] if o.step is None else [o.step]
            outer: list[Value | int]
            if across:
                outer = [f.param(f"{b.name}_step{d}") for d in range(rank - len(known))]
                self.kept[b] = [*outer, *known]
                self.along[b] = f.param(f"{b.name}_along")
            else:
                self.kept[b] = [f.param(f"{b.name}_step{d}") for d in range(rank)]
                self.along[b] = known[0] if known else f.param(f"{b.name}_along")
        self.numbers = [f.cast(f.param(f"number{i}", "f64"), dtype) for i in range(program.numbers)]
        self.block: Value | None = None
        self.bases: dict[Buffer, Value] = {}
        self.following: dict[Buffer, Value] = {}  # the same of the next row
        self.held = self._held()

    def _held(self) -> dict[int, Buffer]:
        """The memory of each kept value that a later loop wants again; see Note [kept]."""
        p, f = self.program, self.f
        held: dict[int, Buffer] = {}
        for position in kept_again(p):
            if not self.across:
                held[position] = f.buffer(f"kept{position}", self.dtype, written=True)
                self.along[held[position]] = 1
                continue
            for o, b in zip(p.outputs, self.outs, strict=True):
                free = b not in held.values() and b.dtype == self.dtype
                if free and o.kind == "element" and o.loop >= max(p.users(position)):
                    held[position] = b
                    break
        return held

    # The loops around a row ---------------------------------------------------------------
    def function(self) -> Function:
        f = self.f
        if self.across:
            self._blocks_of_lanes()
        else:
            self._blocks_of_rows()
        for i, part in self.parts.items():
            self._column_sums(self.outs[i], part)
        return f

    def _blocks_of_rows(self) -> None:
        f = self.f
        count = _product(f, self.sizes)
        with f.parallel(self._ceil(count, self.together)) as block:
            self.block = block
            first = block * self.together
            start = f.thread() * ((self.n + (LINE - 1)) // LINE * LINE)
            own = dict.fromkeys(self.held.values(), start)
            for part in self.parts.values():
                with f.vector(self.n) as i:
                    f.store(part, block * self.n + i, 0.0)
            with f.loop(f.call("minimum", count - first, self.together)) as r:
                row = first + r
                self.following = self._places(f.call("minimum", row + 1, count - 1), self.sizes)
                self.bases = {**self._places(row, self.sizes), **own}
                self._row()

    def _blocks_of_lanes(self) -> None:
        f = self.f
        *outer, last = self.sizes
        pieces = self._ceil(last, self.together)
        with f.parallel(_product(f, [*outer, pieces])) as block:
            start = (block % pieces) * self.together
            bases = self._places(block // pieces, outer)
            with f.vector(f.call("minimum", last - start, self.together)) as i:
                self.bases = {
                    b: base if self.kept[b][-1] is ZERO else base + (start + i) * self.kept[b][-1]
                    for b, base in bases.items()
                }
                self._row()

    def _ceil(self, a: Value, b: Value) -> Value:
        return (a + (b - 1)) // b

    def _places(self, row: Value, sizes: Sequence[Value]) -> dict[Buffer, Value]:
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

    def _column_sums(self, out: Buffer, part: Buffer) -> None:
        """The sum of all blocks' sums, in order, computed in double precision."""
        f = self.f
        blocks = self._ceil(_product(f, self.sizes), self.together)
        with f.parallel(self._ceil(self.n, f.value(COLUMNS, "i64"))) as piece:
            start = piece * COLUMNS
            with f.vector(f.call("minimum", self.n - start, COLUMNS)) as i:
                total = f.state(f.const(0.0, "f64"), combine=lambda a, b: a + b)
                with f.loop(blocks) as block:
                    total.add(f.cast(f.load(part, block * self.n + start + i), "f64"))
                f.store(out, start + i, f.cast(total.get()[0], out.scalar))

    # One row ------------------------------------------------------------------------------
    def _row(self) -> None:
        p, f = self.program, self.f
        known: dict[int, Value] = {}
        for i in range(p.elements, p.elements + p.per_row):
            known[i] = self._load(self.ins[i], self.bases[self.ins[i]])
        for i, number in enumerate(self.numbers):
            known[p.elements + p.per_row + i] = number
        stored: set[int] = set()  # kept values that lie in memory by now
        last = max([o.loop for o in p.outputs if o.kind != "row"]
                   + [s.level for s in p.stages])  # fmt: skip
        for loop in range(1, last + 1):
            self._of_the_row(known, loop - 1)
            self._over_the_row(known, loop, last, stored)
        self._of_the_row(known, last)
        for o, out in zip(p.outputs, self.outs, strict=True):
            if o.kind == "row":
                value = Lowering(f, self._listed(known), self.dtype).value(o.expr)
                f.store(out, self.bases[out], converted(f, value, out.scalar))

    def _of_the_row(self, known: dict[int, Value], level: int) -> None:
        """The stages that are no loops and of which everything is known after this loop."""
        p, f = self.program, self.f
        for i, s in enumerate(p.stages):
            if s.level != level or s.kind not in ("row", "pick"):
                continue
            value = Lowering(f, self._listed(known), self.dtype).value(s.expr)
            if s.kind == "pick":
                b = self.ins[s.operand]
                place = self.bases[b] + f.cast(value, "i64") * self.along[b]
                value = self._load(b, place)
            known[p.column + 1 + i] = value

    def _over_the_row(
        self, known: dict[int, Value], loop: int, last: int, stored: set[int]
    ) -> None:
        """All reductions that this loop can compute, and the outputs that it can write."""
        p, f = self.program, self.f
        first = p.column + 1
        found = {first + i: s for i, s in enumerate(p.stages)
                 if s.level == loop and s.kind in NEUTRAL}  # fmt: skip
        written = [(i, o) for i, o in enumerate(p.outputs) if o.loop == loop and o.kind != "row"]
        if not found and not written:
            return
        totals = self._states(found)
        size = PIECE_ACROSS if self.across else PIECE
        exprs = [*(s.expr for s in found.values()), *(o.expr for _, o in written)]
        with f.loop(self._ceil(self.n, f.value(size, "i64"))) as piece:
            start = piece * size
            count = f.call("minimum", self.n - start, size)
            parts = self._states(found)
            with f.loop(count) if self.across else f.vector(count, _unroll(p, exprs)) as i:
                lowering = self._element(known, start + i, stored, found, written)
                if loop == max(last - 1, 1) and not self.across:
                    for b in self.ins[: p.elements]:
                        if isinstance(self.along[b], int) and self.along[b] is not ZERO:
                            f.prefetch(b, self.following[b] + start + i)
                for position, s in found.items():
                    parts[position].add(lowering.value(s.expr))
                values = [lowering.value(o.expr) for _, o in written]
                for (j, o), value in zip(written, values, strict=True):
                    if o.kind == "column":
                        place = self.block * self.n + start + i  # type: ignore[operator]
                        f.store(self.parts[j], place, f.load(self.parts[j], place) + value)
                    else:
                        out = self.outs[j]
                        place = self._at(out, start + i)
                        f.store(out, place, converted(f, value, out.scalar), self.stream)
            for position in found:
                totals[position].add(*parts[position].get())
        for position, state in totals.items():
            known[position] = state.get()[0]

    def _states(self, found: dict[int, Stage]) -> dict[int, State]:
        f = self.f

        def combine(kind: str) -> Callable[[Value, Value], Value]:
            return lambda a, b: _COMBINE[kind](f, a, b)

        return {
            position: f.state(f.const(NEUTRAL[s.kind], self.dtype), combine=combine(s.kind))
            for position, s in found.items()
        }

    def _element(
        self, known: dict[int, Value], column: Value, stored: set[int],
        found: dict[int, Stage], written: Sequence[tuple[int, Output]],
    ) -> Lowering:  # fmt: skip
        """What the expressions of one loop use, for the element in this column."""
        p, f = self.program, self.f
        values = self._listed(known)
        lowering = Lowering(f, values, self.dtype)

        def need(position: int) -> None:
            if values[position] is not None:
                return
            if position == p.column:
                values[position] = column
            elif position < p.elements:
                b = self.ins[position]
                values[position] = self._load(b, self._at(b, column))
            elif position in stored:
                b = self.held[position]
                values[position] = f.load(b, self._at(b, column))
            else:
                stage = p.stages[position - p.column - 1]
                for i in stage.used:
                    need(i)
                values[position] = lowering.value(stage.expr)
                if position in self.held:
                    b = self.held[position]
                    f.store(b, self._at(b, column), values[position])
                    fresh.add(position)

        fresh: set[int] = set()
        for used in [*(s.used for s in found.values()), *(o.used for _, o in written)]:
            for i in used:
                need(i)
        stored |= fresh
        return lowering

    def _listed(self, known: dict[int, Value]) -> list[Any]:
        return [known.get(i) for i in range(self.program.column + 1 + len(self.program.stages))]

    def _at(self, b: Buffer, column: Value) -> Value | int:
        base, step = self.bases[b], self.along[b]
        return base if step is ZERO else base + column * step

    def _load(self, b: Buffer, place: Value | int) -> Value:
        value = self.f.load(b, place)
        return self.f.cast(value, self.dtype) if value.dtype in FLOATS else value


def kept_again(p: Program) -> list[int]:
    """The positions of values that are kept from one loop for another."""
    positions = [p.column + 1 + i for i, s in enumerate(p.stages) if s.kind == "keep"]
    return [i for i in positions if len(set(p.users(i))) > 1]


def _product(f: Function, sizes: Sequence[Value]) -> Value:
    total = f.value(1, "i64")
    for i, size in enumerate(sizes):
        total = size if i == 0 else total * size
    return total


_CHEAP = {"add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "where", "eq", "sqrt"}


def _unroll(p: Program, exprs: Sequence[Expr]) -> int:
    """Several vectors at once hide the latency of a sum, which that of longer work does by itself.

    A kept value counts with its expression.
    """
    heads: set[str] = set()
    seen: set[int] = set()

    def visit(node: Expr) -> None:
        if node.head == "arg":
            stage = node.args[0] - p.column - 1
            if stage >= 0 and p.stages[stage].kind == "keep":
                visit(p.stages[stage].expr)
        elif node.head != "const" and id(node) not in seen:
            seen.add(id(node))
            heads.add(node.head)
            for a in node.args:
                visit(a)

    for expr in exprs:
        visit(expr)
    return 4 if heads <= _CHEAP else 1
