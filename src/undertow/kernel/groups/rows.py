"""Row programs for groups: a group of threads, or one thread, for each row; one launch.

The stages fall into loops by Note [loops over a row] in kernel/row_program. What a stage keeps for
each element is computed again where it is used: that costs less than memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..accumulators import wide
from ..ir import FLOATS, Function, State, Value
from ..lower import Lowering
from ..maps import converted
from ..offsets import Offset, at_row, plus
from ..row_program import NEUTRAL, Output, Program, Stage
from .elements import each, number_of, steps_of


def row_function(name: str, *given: Any) -> Function:
    """The kernel of a program over arrays of these types, a thread for each row if `alone`.

    Buffers: the outputs, and the arrays (of elements, then of rows). Parameters: the number of
    rows, the length of each, the kept sizes, the sizes along a row; for each buffer its kept steps,
    then its steps along a row; the numbers.
    """
    return _Builder(name, *given).build()


class _Builder:
    def __init__(
        self,
        name: str,
        double: bool,
        program: Program,
        arrays: Sequence[str],
        compute: str,
        outs: Sequence[str],
        ranks: tuple[int, int],
        alone: bool,
    ) -> None:
        f = self.f = Function(name, "i32", double)
        self.program, self.compute, self.alone = program, compute, alone
        self.outs = [f.buffer(f"out{i}", t, written=True) for i, t in enumerate(outs)]
        self.ins = [f.buffer(f"in{i}", t) for i, t in enumerate(arrays)]
        self.rows, self.length = f.param("rows"), f.param("length")
        self.kept = [f.param(f"kept{d}") for d in range(ranks[0])]
        self.sizes = [f.param(f"size{d}") for d in range(ranks[1])]
        count = len(outs) + len(arrays)
        self.kept_steps = [steps_of(f, f"kept_step{i}", ranks[0]) for i in range(count)]
        self.steps = [steps_of(f, f"step{i}", ranks[1]) for i in range(count)]
        self.numbers = [number_of(f, f"number{i}", compute) for i in range(program.numbers)]
        self.bases: list[Offset] = []
        self.known: dict[int, Value] = {}  # positions that are the same for the whole row

    def build(self) -> Function:
        f = self.f
        if self.alone:
            with each(f, self.rows) as row:
                self._row(row)
        else:
            with f.parallel(self.rows) as row:
                self._row(row)
        return f

    def _row(self, row: Value) -> None:
        p, f = self.program, self.f
        self.bases = at_row(row, self.kept, self.kept_steps)
        for i in range(p.per_row):
            number = p.elements + i
            self.known[number] = self._widened(self._loaded(number, self.bases))
        for i, value in enumerate(self.numbers):
            self.known[p.elements + p.per_row + i] = value
        first = p.column + 1
        elements = [(i, o) for i, o in enumerate(p.outputs) if o.kind != "row"]
        last = max([0, *(s.level for s in p.stages), *(o.loop for _, o in elements)])
        for loop in range(last + 1):
            if loop:
                found = [
                    (first + i, s)
                    for i, s in enumerate(p.stages)
                    if s.kind in NEUTRAL and s.level == loop
                ]
                self._loop(found, [(i, o) for i, o in elements if o.loop == loop])
            for i, s in enumerate(p.stages):
                if s.level == loop and s.kind in ("row", "first", "pick"):
                    self.known[first + i] = self._of_row(s)
        for i, o in enumerate(p.outputs):
            if o.kind == "row":
                value = converted(f, self._value(o, dict(self.known)), self.outs[i].scalar)
                f.store(self.outs[i], self.bases[i], value)

    def _loop(self, stages: list[tuple[int, Stage]], outputs: list[tuple[int, Output]]) -> None:
        """One pass over the row."""
        f = self.f
        if not stages and not outputs:
            return
        states = [self._state(s.kind) for _, s in stages]
        with self._along() as at:
            places = [
                plus(b, p)
                for b, p in zip(self.bases, at_row(at, self.sizes, self.steps), strict=True)
            ]
            values = dict(self.known)
            values[self.program.column] = f.cast(at, "i64")
            for i in range(self.program.elements):
                if any(i in used for used in self._uses(stages, outputs)):
                    values[i] = self._widened(self._loaded(i, places))
            for state, (_, s) in zip(states, stages, strict=True):
                state.add(f.cast(self._value(s, values), state.inits[0].dtype))
            for i, o in outputs:
                value = converted(f, self._value(o, values), self.outs[i].scalar)
                f.store(self.outs[i], places[i], value)
        for (number, _), state in zip(stages, states, strict=True):
            self.known[number] = f.cast(state.get()[0], self.compute)

    @contextmanager
    def _along(self) -> Iterator[Value]:
        loop = self.f.loop if self.alone else self.f.vector
        with loop(self.length) as at:
            yield at

    def _uses(
        self, stages: list[tuple[int, Stage]], outputs: list[tuple[int, Output]]
    ) -> list[set[int]]:
        """The positions that a pass needs, with those that what is kept of elements needs."""
        found: set[int] = set()
        left = [i for _, s in stages for i in s.used] + [i for _, o in outputs for i in o.used]
        while left:
            i = left.pop()
            if i not in found:
                found.add(i)
                if i > self.program.column and i not in self.known:
                    left += self.program.stages[i - self.program.column - 1].used
        return [found]

    def _state(self, kind: str) -> State:
        f = self.f
        dtype = wide(f, self.compute) if kind == "sum" else self.compute
        init = f.const(NEUTRAL[kind], dtype)
        op = {"sum": "add", "min": "minimum"}.get(kind, "maximum")
        return f.state(init, combine=lambda a, b: f.call(op, a, b))

    def _of_row(self, s: Stage) -> Value:
        """A stage that is computed once for the row."""
        f = self.f
        if s.kind == "first":
            return self._widened(self._loaded(s.used[0], self.bases))
        value = self._value(s, dict(self.known))
        if s.kind == "row":
            return value
        (step,) = self.steps[len(self.outs) + s.operand][-1:]
        column = f.bitcast(f.cast(value, "i32"), "u32")
        last = f.bitcast(self.length - 1, "u32")  # see Note [clamped indices]
        near = f.bitcast(f.call("minimum", column, last), "i32")
        place = plus(self.bases[len(self.outs) + s.operand], near * step)
        return self._widened(f.load(self.ins[s.operand], place))

    def _value(self, what: Stage | Output, values: dict[int, Value]) -> Value:
        """The expression of a stage or output, where `values` are known."""
        args = []
        for i in what.used:
            if i not in values:  # kept for each element
                values[i] = self._value(self.program.stages[i - self.program.column - 1], values)
            args.append(values[i])
        found = Lowering(self.f, args, self.compute).value(what.compact)
        if what.compact.head == "arg":
            return found
        return self.f.cast(found, self.compute)

    def _loaded(self, i: int, places: Sequence[Offset]) -> Value:
        return self.f.load(self.ins[i], places[len(self.outs) + i])

    def _widened(self, value: Value) -> Value:
        return self.f.cast(value, self.compute) if value.dtype in FLOATS else value
