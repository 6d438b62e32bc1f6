"""The forms `scan` and `recurrence`: running sums, products, extremes and linear recurrences.

Note [lines]
A scan is a chain of dependent steps along a line of elements. Where lines lie side by side in
memory, the lanes of a vector take a line each, and a strip of lines is walked step by step; its
running values stay in the cache, or, of a narrow strip, in registers. A strip is as wide as it can
be: memory that is not written in the order in which it lies is several times as slow. Where a
line's own elements lie together, TOGETHER lines are walked at once, so that their chains overlap.

Note [pieces of lines]
A few long lines are cut into pieces of a fixed length, which are walked like lines: once for what
they come to, then, with what all pieces before come to, for the results. That is right for sums and
extremes. A product could overflow in a piece where the running product does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .accumulators import Kept, accumulator, wide
from .ir import FLOATS, Function, State, Value
from .maps import Operand
from .offsets import Offset, at_row, moved, product, quotient

TOGETHER = 4  # lines


class Running:
    """The values that a scan carries along a line; here those of a sum or product."""

    def __init__(self, f: Function, kind: str, dtype: str) -> None:
        self.f = f
        self.kind = kind
        self.types: tuple[str, ...] = (wide(f, dtype),)
        self.op = {"bool": {"sum": "or", "prod": "and"}}.get(dtype, {"sum": "add", "prod": "mul"})

    def inits(self) -> Kept:
        """What is carried before the first element."""
        return (self.f.const(-0.0 if self.kind == "sum" else 1, self.types[0]),)

    def element(self, xs: Sequence[Value], at: Value) -> Kept:
        """One element as what is carried behind it alone."""
        return (self.f.cast(xs[0], self.types[0]),)

    def combine(self, *both: Value) -> Kept:
        """What is carried behind some elements and those that follow them."""
        return (self.f.call(self.op[self.kind], *both),)

    def step(self, carried: Kept, xs: Sequence[Value], at: Value) -> Kept:
        """What is carried behind one more element."""
        return self.combine(*carried, *self.element(xs, at))


class RunningExtreme(Running):
    """An extreme and the last index that attains it; NaN before any other."""

    def __init__(self, f: Function, kind: str, dtype: str) -> None:
        super().__init__(f, kind, dtype)
        self.floating = dtype in FLOATS
        self.types = "u8" if dtype == "bool" else dtype, "i32"
        self.extreme = accumulator(f, kind, self.types[0])

    def inits(self) -> Kept:
        return *self.extreme.inits(self.types[:1]), self.f.const(0, "i32")

    def element(self, xs: Sequence[Value], at: Value) -> Kept:
        return self.f.cast(xs[0], self.types[0]), self.f.cast(at, "i32")

    def combine(self, *both: Value) -> Kept:
        value, index, other, place = both
        (best,) = self.extreme.combine(value, other)
        hit = other == best  # known after the extreme, so that it is no part of the chain
        if self.floating:
            hit = hit | (other != other)
        return best, self.f.select(hit, place, index)


class Recurrence(Running):
    """`h = a * h + b` from zero; the first factor is not looked at."""

    def inits(self) -> Kept:
        return (self.f.const(0, self.types[0]),)

    def step(self, carried: Kept, xs: Sequence[Value], at: Value) -> Kept:
        a, b = (self.f.cast(x, self.types[0]) for x in xs)
        return (self.f.select(at == 0, 0, a) * carried[0] + b,)


def running(f: Function, kind: str, dtype: str) -> Running:
    """What is carried by a scan of elements of the type `dtype`."""
    if kind == "recurrence":
        return Recurrence(f, kind, dtype)
    return (RunningExtreme if kind in ("max", "min") else Running)(f, kind, dtype)


def carried_types(kind: str, dtype: str) -> tuple[str, ...]:
    """The types of what is carried.

    >>> carried_types("max", "f32")
    ('f32', 'i32')
    """
    return running(Function(""), kind, dtype).types


class Lines(NamedTuple):
    """How a scan runs; see the notes."""

    across: bool  # lanes take a line each
    pieces: bool
    narrow: bool  # across: a strip's running values are in registers
    kept: int  # dimensions

    @property
    def scratch(self) -> bool:
        """Whether the kernel wants memory for what is carried, per line and piece."""
        return self.pieces or (self.across and not self.narrow)


def scan_function(name: str, *given: Any) -> Function:
    """The kernel of a scan.

    Steps of operands are along the last kept dimension; they count across lines only. Buffers: the
    outputs, scratch memory for each value that is carried (if wanted), the inputs. Parameters: the
    kept sizes, the length of a line, that of a piece, how many lines (or groups of TOGETHER lines)
    make a block, the width of a strip; then for each output and input the kept steps (but for one
    that is known) and the step along the line.
    """
    return _Builder(name, *given).build()


class _Builder:
    def __init__(
        self,
        name: str,
        kind: str,
        dtype: str,
        outs: Sequence[Operand],
        inputs: Sequence[Operand],
        lines: Lines,
    ) -> None:
        self.lines = lines
        f = self.f = Function(name)
        self.kinds = running(f, kind, dtype)
        self.outs = [f.buffer(f"out{i}", o.dtype, written=True) for i, o in enumerate(outs)]
        self.ins = [f.buffer(f"in{i}", o.dtype) for i, o in enumerate(inputs)]
        types = self.kinds.types if lines.scratch else ()
        self.parts = [f.buffer(f"part{i}", t, written=True) for i, t in enumerate(types)]
        self.kept = [f.param(f"kept{d}") for d in range(lines.kept)]
        self.n, self.piece, self.block, self.width = map(f.param, ("n", "piece", "block", "width"))
        self.steps: list[list[Offset]] = []  # of outputs, then inputs, along the kept dimensions
        self.along: list[Offset] = []
        for i, o in enumerate([*outs, *inputs]):
            known: list[Offset] = [o.step] if lines.across and o.step is not None else []
            rank = lines.kept - len(known)
            self.steps.append([*(f.param(f"step{i}_{d}") for d in range(rank)), *known])
            self.along.append(f.param(f"along{i}"))

    def build(self) -> Function:
        if self.lines.across:
            (self._narrow_strips if self.lines.narrow else self._wide_strips)()
        else:
            (self._pieces if self.lines.pieces else self._lines)()
        return self.f

    # Along lines ----------------------------------------------------------------------------
    def _lines(self) -> None:
        f = self.f
        rows = product(f, self.kept)
        groups = quotient(rows, f.value(TOGETHER, "i64"))
        with f.parallel(quotient(groups, self.block)) as block:
            first = block * self.block
            with f.loop(f.call("minimum", groups - first, self.block)) as g:
                self._group((first + g) * TOGETHER, rows, rows, None, True)

    def _pieces(self) -> None:
        f = self.f
        rows, pieces = product(f, self.kept), quotient(self.n, self.piece)
        whole = self.n // self.piece
        groups = quotient(pieces, f.value(TOGETHER, "i64"))
        for results in (False, True):
            with f.parallel(rows * groups) as block:
                row, first = block // groups, (block % groups) * TOGETHER
                self._group(first, pieces, whole, row, results)
            if results:
                break
            with f.loop(rows) as row:
                state = f.state(*self.kinds.inits(), combine=self.kinds.combine)
                with f.loop(pieces) as p:
                    self._exclude(state, row * pieces + p)

    def _group(
        self, first: Value, lines: Value, whole: Value, row: Value | None, results: bool
    ) -> None:
        """TOGETHER lines from `first` on, at once if all of them are whole, else one by one."""
        f = self.f
        together = first + TOGETHER <= whole
        with f.branch(together):
            self._walk([first + k for k in range(TOGETHER)], lines, self.piece, row, results)
        with f.branch(~together), f.loop(f.call("minimum", lines - first, TOGETHER)) as k:
            line = first + k
            left = self.n - line * self.piece if row is not None else self.n
            count = f.call("minimum", left, self.piece)
            self._walk([line], lines, count, row, results)

    def _walk(
        self, group: list[Value], lines: Value, count: Value, row: Value | None, results: bool
    ) -> None:
        """Some lines; with a row, pieces of it, for what they come to or for the results."""
        f = self.f
        states: list[State] = []
        bases: list[list[Offset]] = []
        starts: list[Value] = []
        for line in group:
            starts.append(line * self.piece if row is not None else f.value(0, "i64"))
            bases.append(at_row(line if row is None else row, self.kept, self.steps))
            if row is not None and results:
                inits = self._carried_at(row * lines + line)
            else:
                inits = self.kinds.inits()
            states.append(f.state(*inits, combine=self.kinds.combine))
        with f.loop(count) as i:
            for state, base, start in zip(states, bases, starts, strict=True):
                at = start + i if row is not None else i
                self._step(state, base, at, results)
        if not results:
            assert row is not None
            for line, state in zip(group, states, strict=True):
                self._carry(row * lines + line, state.get())

    def _step(self, state: State, base: Sequence[Offset], at: Value, results: bool = True) -> None:
        """One element of a line."""
        offsets = moved(base, at, self.along)
        state.set(*self.kinds.step(state.get(), self._load(offsets), at))
        if results:
            self._store(offsets, state.get())

    # Across lines ---------------------------------------------------------------------------
    def _narrow_strips(self) -> None:
        f = self.f
        *outer, columns = self.kept
        rows, strips = product(f, outer), quotient(columns, self.width)
        with f.parallel(quotient(rows, self.block) * strips) as block:
            first, left = (block // strips) * self.block, (block % strips) * self.width
            with f.loop(f.call("minimum", rows - first, self.block)) as r:
                bases = at_row(first + r, outer, self.steps)
                with f.vector(f.call("minimum", columns - left, self.width)) as j:
                    state = f.state(*self.kinds.inits(), combine=self.kinds.combine)
                    offsets = moved(bases, left + j, [s[-1] for s in self.steps])
                    with f.loop(self.n) as i:
                        self._step(state, offsets, i)

    def _wide_strips(self) -> None:
        f, kinds = self.f, self.kinds
        *outer, columns = self.kept
        rows, strips = product(f, outer), quotient(columns, self.width)
        pieces = quotient(self.n, self.piece)
        for results in (False, True):
            if not results and not self.lines.pieces:
                continue
            with f.parallel(rows * pieces * strips) as block:
                left = (block % strips) * self.width
                width = f.call("minimum", columns - left, self.width)
                start = ((block // strips) % pieces) * self.piece
                scratch = (block // strips) * columns + left
                if not results or not self.lines.pieces:
                    with f.vector(width) as j:
                        self._carry(scratch + j, kinds.inits())
                bases = at_row(block // (strips * pieces), outer, self.steps)
                with f.loop(f.call("minimum", self.n - start, self.piece)) as i:
                    begin = moved(bases, start + i, self.along)
                    with f.vector(width) as j:
                        offsets = moved(begin, left + j, [s[-1] for s in self.steps])
                        carried = self._carried_at(scratch + j)
                        carried = kinds.step(carried, self._load(offsets), start + i)
                        self._carry(scratch + j, carried)
                        if results:
                            self._store(offsets, carried)
            if results:
                break
            with f.parallel(rows * strips) as block:
                row, left = block // strips, (block % strips) * self.width
                with f.vector(f.call("minimum", columns - left, self.width)) as j:
                    state = f.state(*kinds.inits(), combine=kinds.combine)
                    with f.loop(pieces) as p:
                        self._exclude(state, (row * pieces + p) * columns + (left + j))

    def _exclude(self, state: State, offset: Value) -> None:
        """What a piece comes to is replaced by what those before it come to."""
        before, own = state.get(), self._carried_at(offset)
        self._carry(offset, before)
        state.set(*self.kinds.combine(*before, *own))

    # Values ---------------------------------------------------------------------------------
    def _load(self, offsets: Sequence[Offset]) -> list[Value]:
        own = offsets[len(self.outs) :]
        return [self.f.load(b, p) for b, p in zip(self.ins, own, strict=True)]

    def _store(self, offsets: Sequence[Offset], carried: Kept) -> None:
        for b, p, v in zip(self.outs, offsets, carried, strict=False):
            self.f.store(b, p, self.f.cast(v, b.scalar))

    def _carried_at(self, offset: Value) -> Kept:
        return tuple([self.f.load(b, offset) for b in self.parts])

    def _carry(self, offset: Value, carried: Kept) -> None:
        for b, v in zip(self.parts, carried, strict=True):
            self.f.store(b, offset, v)
