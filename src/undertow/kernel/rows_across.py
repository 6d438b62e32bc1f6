"""The form `rows` where the elements of a row lie apart, and those of neighbouring rows together.

A stripe of neighbouring rows is processed at a time, as wide as a few vectors, and column by column
over their lanes: so memory is read in pieces that caches and their prefetching are made for. What
is known of each row, its sums so far among it, lies in memory that every thread has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .ir import Buffer, Function, Value
from .maps import ZERO, Operand, converted
from .row_program import NEUTRAL, Output, Program, Stage
from .rows import COMBINE, Builder, kept_again, unroll

STRIPE = 64  # rows that a stripe has, or a multiple
PIECE = 128  # elements that are summed before their sum is added to the row's


def rows_across_function(name: str, *given: Any) -> Function:
    """The kernel of a program without outputs of columns.

    The operands' steps are along the innermost of the `rank` kept dimensions. Buffers: outputs,
    operands that are no numbers, and memory of (threads, `slots`, together). Parameters: n, how
    many rows make a stripe, the sizes of the kept dimensions, for each output and operand the steps
    along them (but for an innermost one that is known) and along the row, then the numbers.
    """
    return _Across(name, *given).function()


def slots(p: Program) -> int:
    """How many values for each row of a stripe a thread needs memory for."""
    return 2 * sum(s.kind in NEUTRAL for s in p.stages) + sum(
        s.kind in ("row", "first", "pick") for s in p.stages
    )


class _Across(Builder):
    def __init__(
        self,
        name: str,
        program: Program,
        operands: Sequence[Operand],
        outputs: Sequence[Operand],
        dtype: str,
        rank: int,
    ) -> None:
        super().__init__(name, program, operands, outputs, dtype, rank)
        self.memory = self.f.buffer("memory", dtype, written=True)
        # Reductions have two slots: what they found in all pieces, and in this one.
        self.slots: dict[int, int] = {}
        count = 0
        for i, s in enumerate(program.stages):
            if s.kind != "keep":
                self.slots[program.column + 1 + i] = count
                count += 1 + (s.kind in NEUTRAL)
        self._hold()
        zero = self.f.value(0, "i64")
        self.own = self.first = self.width = self.lane = zero
        self.starts: dict[Buffer, Value] = {}
        self.learned: dict[int, Value] = {}  # in this loop over the lanes

    def _hold(self) -> None:
        """Find outputs in whose memory kept values can lie; others are computed again."""
        p = self.program
        for position in kept_again(p):
            for o, b in zip(p.outputs, self.outs, strict=True):
                free = b not in self.held.values() and b.dtype == self.dtype
                if free and o.kind == "element" and o.loop >= max(p.users(position)):
                    self.held[position] = b
                    break

    def steps(self, b: Buffer, o: Operand, rank: int) -> None:
        known: list[Value | int] = [] if o.step is None else [o.step]
        outer = [self.f.param(f"{b.name}_step{d}") for d in range(rank - len(known))]
        self.kept[b] = [*outer, *known]
        self.along[b] = self.f.param(f"{b.name}_along")

    def function(self) -> Function:
        """The kernel."""
        f = self.f
        *outer, last = self.sizes
        stripes = self.ceil(last, self.together)
        with f.parallel(self.product([*outer, stripes])) as block:
            self.first = (block % stripes) * self.together
            self.width = f.call("minimum", last - self.first, self.together)
            self.own = f.thread() * (self.together * slots(self.program))
            self.starts = self.places(block // stripes, outer)
            self.stages()
        return f

    @contextmanager
    def of_the_row(self) -> Iterator[None]:
        with self.f.vector(self.width) as lane:
            self.lane = lane
            self.learned = {}
            self.bases = {
                b: start
                if self.kept[b][-1] is ZERO
                else start + (self.first + lane) * self.kept[b][-1]
                for b, start in self.starts.items()
            }
            yield

    def recall(self, position: int) -> Value:
        p = self.program
        if position not in self.learned:
            if position < p.elements + p.per_row:
                b = self.ins[position]
                self.learned[position] = self.load(b, self.bases[b])
            elif position < p.column:
                return self.numbers[position - p.elements - p.per_row]
            else:
                self.learned[position] = self.f.load(self.memory, self._slot(position))
        return self.learned[position]

    def remember(self, position: int, value: Value) -> None:
        self.learned[position] = value
        self.f.store(self.memory, self._slot(position), value)

    def _slot(self, position: int, more: int = 0) -> Value:
        return self.own + (self.slots[position] + more) * self.together + self.lane

    def over_the_row(
        self, loop: int, last: int, found: dict[int, Stage], written: list[tuple[int, Output]]
    ) -> None:
        f = self.f
        exprs = [*(s.expr for s in found.values()), *(o.expr for _, o in written)]
        self._begin(found, 0)
        with f.loop(self.ceil(self.n, PIECE)) as piece:
            start = piece * PIECE
            self._begin(found, 1)
            count = f.call("minimum", self.n - start, PIECE)
            several = unroll(self.program, exprs)
            with f.loop(count // several) as i:
                self._columns(start + i * several, several, found, written)
            if several > 1:
                with f.loop(count % several) as i:
                    self._columns(start + (count - count % several) + i, 1, found, written)
            if found:
                with self.of_the_row():
                    for position, s in found.items():
                        part = f.load(self.memory, self._slot(position, 1))
                        self._combine(s, self._slot(position), part)

    def _columns(
        self, first: Value, several: int, found: dict[int, Stage], written: list[tuple[int, Output]]
    ) -> None:
        """Neighbouring columns of the stripe; what is known of rows is loaded and stored once."""
        f, stored = self.f, self.stored
        totals: dict[int, Value] = {}
        with self.of_the_row():
            for i in range(several):
                self.stored = set(stored)  # what lies in memory is of other columns
                column = first + i if i else first
                lowering = self.element(column, found, written)
                values = [lowering.value(o.expr) for _, o in written]
                for position, s in found.items():
                    before = totals.get(position)
                    if before is None:
                        before = f.load(self.memory, self._slot(position, 1))
                    totals[position] = COMBINE[s.kind](f, before, lowering.value(s.expr))
                for (j, _), value in zip(written, values, strict=True):
                    out = self.outs[j]
                    f.store(out, self.at(out, column), converted(f, value, out.scalar))
            for position, total in totals.items():
                f.store(self.memory, self._slot(position, 1), total)

    def _begin(self, found: dict[int, Stage], more: int) -> None:
        if found:
            with self.of_the_row():
                for position, s in found.items():
                    neutral = self.f.const(NEUTRAL[s.kind], self.dtype)
                    self.f.store(self.memory, self._slot(position, more), neutral)

    def _combine(self, s: Stage, place: Value, value: Value) -> None:
        before = self.f.load(self.memory, place)
        self.f.store(self.memory, place, COMBINE[s.kind](self.f, before, value))
