"""The forms `reduce` and `map_reduce`: a scalar expression over broadcast operands, reduced.

Note [rows and columns]
The dimensions that are kept and those that are reduced come coalesced, each for themselves, with
the smallest steps of the largest operand last. Where the smallest step of all is a reduced one, a
result's elements lie together, in a row: lanes run along it, and their states are combined at its
end. Else neighbours belong to neighbouring results: a lane to a column, and rows are walked down.

Note [pieces]
One reduced dimension, `split`, is cut into pieces of a fixed length, so that few results of many
elements also occupy all threads. What accumulates in a piece goes to scratch memory, and pieces are
combined in order. Of columns, a piece is a few rows: GROUP of them at a time are added to the sums
of a strip of columns, which stay in the cache. So memory is read along as many lines at once, which
processors fetch ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from .accumulators import LAST, Accumulator, Kept, Position, accumulator
from .complex_lower import PARTS, ComplexLowering, Pair
from .expr import Expr
from .ir import FLOATS, Function, State, Value
from .lower import Lowering, NotCompiled
from .maps import NUMBER, Operand, converted, load_pair, store_pair
from .offsets import Offset, at_row, moved, plus, product, quotient, times

RUN = 2048  # elements along a row; see Note [short and long sums] of accumulators
SEARCHED = 512  # elements, of which the largest is searched
GROUP = 8, 2  # rows at once; fewer where an expression is computed for each


class Loops(NamedTuple):
    """How a reduction runs; see the notes."""

    columns: bool
    pieces: bool
    kept: int  # dimensions
    reduced: int
    split: int  # which of the reduced


def reduce_function(name: str, *given: Any) -> Function:
    """The kernel that computes `expr` in the type `compute` and reduces it as of type `element`.

    Operand steps are along the dimension of the lanes. Its buffers are the outputs, scratch memory
    for each value of the accumulator (with pieces), and the inputs that are no numbers. Its
    parameters: the kept sizes, the reduced sizes, the length of a piece, how many kept rows make a
    block, the width of a strip of columns; the outputs' kept steps (all have the same), and for
    each input its kept and its reduced steps (but for those along the lanes that are known); the
    numbers.
    """
    return _Builder(name, *given).build()


class _Builder:
    def __init__(
        self,
        name: str,
        kind: str,
        expr: Expr,
        inputs: Sequence[Operand],
        compute: str,
        element: str,
        outs: Sequence[Operand],
        loops: Loops,
    ) -> None:
        self.expr, self.inputs, self.compute, self.element = expr, inputs, compute, element
        self.loops = loops
        f = self.f = Function(name)
        self.kinds = accumulator(f, kind, element)
        arrays = [o for o in inputs if o.step != NUMBER]
        self.outs = [
            f.buffer(f"out{i}", PARTS.get(o.dtype, o.dtype), written=True)
            for i, o in enumerate(outs)
        ]
        self.ins = [f.buffer(f"in{i}", PARTS.get(o.dtype, o.dtype)) for i, o in enumerate(arrays)]
        self.parts = [
            f.buffer(f"part{i}", t, written=True)
            for i, t in enumerate(self.kinds.types)
            if loops.pieces
        ]
        self.paired = [o.dtype in PARTS for o in arrays]
        self.kept = [f.param(f"kept{d}") for d in range(loops.kept)]
        self.reduced = [f.param(f"reduced{d}") for d in range(loops.reduced)]
        self.piece, self.together, self.width = map(f.param, ("piece", "together", "width"))
        self.out_steps = self._steps("out", loops.kept, outs[0].step if loops.columns else None)
        self.kept_steps: list[list[Offset]] = []
        self.reduced_steps: list[list[Offset]] = []
        for i, o in enumerate(arrays):
            known = (o.step, None) if loops.columns else (None, o.step)
            self.kept_steps.append(self._steps(f"in{i}_kept", loops.kept, known[0]))
            self.reduced_steps.append(self._steps(f"in{i}_reduced", loops.reduced, known[1]))
        self.numbers = []
        for i, o in enumerate(inputs):
            if o.step == NUMBER:
                if o.dtype in PARTS:
                    raise NotCompiled("a complex number in a reduction")
                wide = "f64" if o.dtype in FLOATS else "i64"
                self.numbers.append(
                    f.cast(f.param(f"number{i}", wide), PARTS.get(compute, compute))
                )

    def _steps(self, name: str, rank: int, last: int | None) -> list[Offset]:
        known: list[Offset] = [] if last is None else [last]
        return [*(self.f.param(f"{name}_step{d}") for d in range(rank - len(known))), *known]

    def build(self) -> Function:
        if self.loops.columns:
            (self._columns_in_pieces if self.loops.pieces else self._columns)()
        else:
            (self._rows_in_pieces if self.loops.pieces else self._rows)()
        return self.f

    # Rows -----------------------------------------------------------------------------------
    def _rows(self) -> None:
        f = self.f
        rows = product(f, self.kept)
        with f.parallel(quotient(rows, self.together)) as block:
            first = block * self.together
            with f.loop(f.call("minimum", rows - first, self.together)) as r:
                target, bases = self._bases(first + r, self.kept)
                self._finish(target, self._along_row(bases, 0, self.reduced[self.loops.split]))

    def _rows_in_pieces(self) -> None:
        f = self.f
        rows, length = product(f, self.kept), self.reduced[self.loops.split]
        pieces = quotient(length, self.piece)
        with f.parallel(rows * pieces) as block:
            start = (block % pieces) * self.piece
            _, bases = self._bases(block // pieces, self.kept)
            count = f.call("minimum", length - start, self.piece)
            self._keep(block, self._along_row(bases, start, count))
        with f.loop(rows) as row:
            state = self._state()
            with f.vector(pieces) as i:
                state.add(*self._kept_at(row * pieces + i))
            target, _ = self._bases(row, self.kept)
            self._finish(target, state.get())

    def _along_row(self, bases: Sequence[Offset], start: Offset, count: Value) -> Kept:
        """What accumulates over a piece of a row, the lanes along its last dimension."""
        f, kinds = self.f, self.kinds
        state = self._state()
        run = f.value(SEARCHED if isinstance(kinds, Position) else RUN, "i64")

        def last(bases: Sequence[Offset], start: Offset, count: Value) -> None:
            with f.loop(quotient(count, run)) as i:
                begin = i * run
                at, left = plus(start, begin), f.call("minimum", count - begin, run)
                if isinstance(kinds, Position):
                    self._search(state, bases, at, left)
                else:
                    state.add(*kinds.lengthen(self._run(kinds, bases, at, left)))

        self._walk(bases, start, count, last)
        return state.get()

    def _run(
        self, kinds: Accumulator, bases: Sequence[Offset], start: Offset, count: Value
    ) -> Kept:
        """What accumulates in lanes."""
        f = self.f
        state = f.state(*kinds.inits(kinds.short), combine=kinds.combine)
        with f.vector(count, unroll=4) as i:
            offsets = self._moved(bases, plus(start, i), -1)
            state.add(*kinds.element(self._value(offsets)))
        return state.get()

    def _search(self, state: State, bases: Sequence[Offset], start: Offset, count: Value) -> None:
        """Find the extreme of a run; only if it is better than what was found, look for its offset.

        Lanes that keep track of offsets would take several times as long to combine.
        """
        f, kinds = self.f, self.kinds
        assert isinstance(kinds, Position)
        (extreme,) = self._run(kinds.extreme, bases, start, count)
        with f.branch(kinds.better(state.get()[0], extreme)):
            first = f.state(f.const(LAST, "i32"), combine=lambda a, b: f.call("minimum", a, b))
            with f.vector(count, unroll=4) as i:
                at = plus(start, i)
                (x,) = kinds.extreme.element(self._value(self._moved(bases, at, -1)))
                here = f.cast(f.value(at, "i64"), "i32")
                first.add(f.select(kinds.hit(x, extreme), here, LAST))
            state.set(extreme, *first.get())

    # Columns --------------------------------------------------------------------------------
    def _columns(self) -> None:
        f = self.f
        *outer, columns = self.kept
        rows, strips = product(f, outer), quotient(columns, self.width)
        with f.parallel(quotient(rows, self.together) * strips) as block:
            first = (block // strips) * self.together
            left = (block % strips) * self.width
            with f.loop(f.call("minimum", rows - first, self.together)) as r:
                target, bases = self._bases(first + r, outer)
                with f.vector(f.call("minimum", columns - left, self.width)) as j:
                    state = self._state()

                    def add(offsets: Sequence[list[Offset]], indices: list[Offset]) -> None:
                        state.set(*self._joined(state.get(), offsets, indices))

                    offsets = self._moved_kept(bases, left + j)
                    self._walk(offsets, 0, self.reduced[self.loops.split], self._groups(add))
                    self._finish(plus(target, times(left + j, self.out_steps[-1])), state.get())

    def _columns_in_pieces(self) -> None:
        f = self.f
        *outer, columns = self.kept
        rows, strips = product(f, outer), quotient(columns, self.width)
        length = self.reduced[self.loops.split]
        pieces = quotient(length, self.piece)
        with f.parallel(rows * pieces * strips) as block:
            left = (block % strips) * self.width
            width = f.call("minimum", columns - left, self.width)
            start = ((block // strips) % pieces) * self.piece
            count = f.call("minimum", length - start, self.piece)
            row = block // (strips * pieces)
            scratch = (block // strips) * columns + left
            with f.vector(width) as j:
                self._keep(scratch + j, self.kinds.inits(self.kinds.types))

            def add(bases: Sequence[list[Offset]], indices: list[Offset]) -> None:
                with f.vector(width) as j:
                    offsets = [self._moved_kept(b, left + j) for b in bases]
                    kept = self._joined(self._kept_at(scratch + j), offsets, indices)
                    self._keep(scratch + j, kept)

            _, bases = self._bases(row, outer)
            self._walk(bases, start, count, self._groups(add))
        with f.parallel(rows * strips) as block:
            row, left = block // strips, (block % strips) * self.width
            target, _ = self._bases(row, outer)
            scratch = row * pieces * columns + left
            with f.vector(f.call("minimum", columns - left, self.width)) as j:
                state = self._state()
                with f.loop(pieces) as i:
                    state.add(*self._kept_at(scratch + i * columns + j))
                self._finish(plus(target, times(left + j, self.out_steps[-1])), state.get())

    def _groups(
        self, add: Callable[[Sequence[list[Offset]], list[Offset]], None]
    ) -> Callable[[Sequence[Offset], Offset, Value], None]:
        """The loop over the last reduced dimension, a group of elements at a time."""
        f, group = self.f, GROUP[0 if self.expr.head == "arg" else 1]

        def last(bases: Sequence[Offset], start: Offset, count: Value) -> None:
            groups = count // group
            for number, size, done in ((groups, group, 0), (count % group, 1, groups * group)):
                with f.loop(number) as i:
                    first = plus(plus(start, done), i if size == 1 else i * size)
                    indices = [first + k if k else first for k in range(size)]
                    add([self._moved(bases, at, -1) for at in indices], indices)

        return last

    def _joined(self, kept: Kept, offsets: Sequence[list[Offset]], indices: list[Offset]) -> Kept:
        """What is kept with some more elements."""
        kinds = self.kinds
        values = [self._value(p) for p in offsets]
        if isinstance(kinds, Position):
            for x, at in zip(values, indices, strict=True):
                here = self.f.cast(self.f.value(at, "i64"), "i32")
                kept = kinds.join(*kept, *kinds.extreme.element(x), here)
            return kept
        few = [kinds.element(x) for x in values]
        while len(few) > 1:  # in pairs
            few = [kinds.combine(*a, *b) for a, b in zip(few[::2], few[1::2], strict=True)]
        return kinds.combine(*kept, *kinds.lengthen(few[0]))

    # Offsets --------------------------------------------------------------------------------
    def _bases(self, row: Value, sizes: Sequence[Value]) -> tuple[Offset, list[Offset]]:
        """The offsets of the output and the inputs at a number of a kept row."""
        target, *bases = at_row(row, sizes, [self.out_steps, *self.kept_steps])
        return target, bases

    def _walk(
        self,
        bases: Sequence[Offset],
        start: Offset,
        count: Value,
        last: Callable[[Sequence[Offset], Offset, Value], None],
    ) -> None:
        """Loops over the reduced dimensions, `count` from `start` on of the split one.

        `last` makes the innermost one: it is given the offsets where it begins, and its extent.
        """
        f, split = self.f, self.loops.split
        with ExitStack() as open_loops:
            for d, size in enumerate(self.reduced[:-1]):
                i = open_loops.enter_context(f.loop(count if d == split else size))
                bases = self._moved(bases, plus(start, i) if d == split else i, d)
            if split == len(self.reduced) - 1:
                last(bases, start, count)
            else:
                last(bases, 0, self.reduced[-1])

    def _moved(self, bases: Sequence[Offset], at: Offset, d: int) -> list[Offset]:
        """Places moved along a reduced dimension."""
        return moved(bases, at, [s[d] for s in self.reduced_steps])

    def _moved_kept(self, bases: Sequence[Offset], at: Offset) -> list[Offset]:
        """Places moved along the last kept dimension."""
        return moved(bases, at, [s[-1] for s in self.kept_steps])

    # Values ---------------------------------------------------------------------------------
    def _value(self, offsets: Sequence[Offset]) -> Any:
        """The element at these offsets of the inputs."""
        f = self.f
        loaded = iter(
            [
                load_pair(f, b, p) if two else f.load(b, p)
                for b, p, two in zip(self.ins, offsets, self.paired, strict=True)
            ]
        )
        given = iter(self.numbers)
        args: list[Any] = [
            next(given) if o.step == NUMBER else _widened(f, next(loaded), self.compute)
            for o in self.inputs
        ]
        if self.compute not in PARTS:
            return converted(f, Lowering(f, args, self.compute).value(self.expr), self.element)
        lowering = ComplexLowering(f, args, PARTS[self.compute])
        found = lowering.value(self.expr)
        if self.element in PARTS:
            return lowering.pair(found)
        if isinstance(found, Pair):
            raise NotCompiled(f"a complex number in a reduction of {self.element}")
        return converted(f, found, self.element)

    def _state(self) -> State:
        return self.f.state(*self.kinds.inits(self.kinds.types), combine=self.kinds.combine)

    def _kept_at(self, offset: Value) -> Kept:
        return tuple([self.f.load(b, offset) for b in self.parts])

    def _keep(self, offset: Value, kept: Kept) -> None:
        for b, value in zip(self.parts, kept, strict=True):
            self.f.store(b, offset, value)

    def _finish(self, offset: Offset, kept: Kept) -> None:
        """Store the results."""
        f = self.f
        found: Any = self.kinds.results(kept, product(f, self.reduced))
        for b, v in zip(self.outs, found, strict=True):
            if isinstance(v, Pair):
                store_pair(f, b, offset, v)
            else:
                f.store(b, offset, f.cast(v, b.scalar))


def _widened(f: Function, value: Any, compute: str) -> Any:
    """A loaded float in the type that is computed in."""
    if isinstance(value, Pair) or compute in PARTS:
        return value
    return f.cast(value, compute) if value.dtype in FLOATS else value
