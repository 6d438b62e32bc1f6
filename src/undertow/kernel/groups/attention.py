"""Attention for groups: softmax(q kᵀ scale + mask) v in blocks, never the whole score matrix.

Note [attention of groups]
A group takes LINES lines (queries, or keys) and goes through the others, OTHERS at a time. The
scores of such a block are a product of matrices as in Note [tiles of groups], in registers; what
becomes of them lies in the group's memory as weights, and is the left factor of a second product,
whose sums stay in registers until all others have been there.

The forward takes the softmax as the keys come: each thread has one query's greatest score and its
sum of exponentials, and what was gathered fades when a greater score appears. It saves the
logarithm of each query's sum, from which the gradients compute weights again: that of the values
is weightsᵀ g, those of queries and keys are slopes k and slopesᵀ q, where a slope is
weight * (g vᵀ - dot) * scale, and `dot` a query's sum of g * out. Each is a launch of its own.

A boolean mask tells where a query may look; a float mask is added to the scores. A query that may
look nowhere gets zeros, and +inf is saved of it, so that its weights are zero again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .. import elementary
from ..ir import Buffer, Function, State, Value
from ..maps import converted
from ..offsets import Offset, plus, quotient
from .elements import number_of, steps_of
from .products import Brought, Element, Side, Tile, accumulate

LINES, OTHERS = 64, 32
_SCORES = Tile(8, 4, 8, 8, depth=8)
THREADS = _SCORES.threads  # as many as lines: each thread takes the softmax of one


class Attention(NamedTuple):
    """A kernel; see Note [attention of groups]."""

    kind: str  # forward, weights or slopes
    dtype: str
    compute: str
    flipped: bool  # lines are keys, not queries
    mask: str  # "", "bool", "add" or "causal"
    columns: int  # of the result, for each thread
    along: tuple[bool, ...]  # whether rows of lines, others … lie together, as the buffers come

    @property
    def width(self) -> int:
        """Columns of the result that a group computes."""
        return self.columns * _SCORES.across

    @property
    def shared(self) -> int:
        """Elements in the memory of a group."""
        most = max(OTHERS, self.width)
        return (LINES + most) * _SCORES.depth + LINES * OTHERS + LINES


class _Heads:
    """An operand (batch, head, line, column) of one batch and head."""

    def __init__(self, f: Function, name: str, dtype: str, written: bool = False) -> None:
        self.f = f
        self.buffer = f.buffer(name, dtype, written=written)
        self.steps: list[Offset] = []
        self.name = name
        self.base: Offset = 0

    def take_steps(self) -> None:
        """Parameters, which come after all buffers."""
        self.steps = steps_of(self.f, f"{self.name}_step", 4)

    def enter(self, batch: Value, head: Value) -> None:
        """From here on: this batch and head."""
        self.base = batch * self.steps[0] + head * self.steps[1]

    def at(self, line: Value, column: Value) -> Offset:
        """The place of an element."""
        return plus(line * self.steps[2] + column * self.steps[3], self.base)

    def by_line(self, line: Value) -> Element:
        """The elements of a line, as terms."""
        start = plus(line * self.steps[2], self.base)
        return lambda term: self.f.load(self.buffer, plus(term[0] * self.steps[3], start))

    def by_column(self, column: Value) -> Element:
        """The elements of a column, as terms."""
        start = plus(column * self.steps[3], self.base)
        return lambda term: self.f.load(self.buffer, plus(term[0] * self.steps[2], start))


def attention_function(name: str, double: bool, a: Attention) -> Function:
    """The kernel of one result.

    Buffers: the result, with `forward` what is saved of each query; the lines and the others, whose
    products are scores; the right factor of the weights; for gradients what was saved and, with
    `slopes`, the dots, and the lines and others whose products are by_weight; the mask. All have
    four dimensions, but for what is saved and the dots, which are row-major. Parameters: batches,
    heads, lines, others, terms of a score, columns; with `slopes` the terms of by_weight; the steps
    of each, and the scale.
    """
    return _Builder(name, double, a).build()


class _Builder:
    def __init__(self, name: str, double: bool, a: Attention) -> None:
        f = self.f = Function(name, "i32", double)
        self.a = a
        self.forward, slopes = a.kind == "forward", a.kind == "slopes"
        self.out = _Heads(f, "out", a.dtype, True)
        if self.forward:
            self.saved = f.buffer("saved", a.compute, written=True)
        self.lines, self.others = _Heads(f, "lines", a.dtype), _Heads(f, "others", a.dtype)
        self.right = _Heads(f, "right", a.dtype)
        arrays = [self.out, self.lines, self.others, self.right]
        if not self.forward:
            self.saved = f.buffer("saved", a.compute)
        if slopes:
            self.dots = f.buffer("dots", a.compute)
            self.by_lines = _Heads(f, "by_lines", a.dtype)
            self.by_others = _Heads(f, "by_others", a.dtype)
            arrays += [self.by_lines, self.by_others]
        self.mask = None
        if a.mask in ("bool", "add"):
            self.mask = _Heads(f, "mask", "bool" if a.mask == "bool" else a.dtype)
            arrays.append(self.mask)
        names = ("batches", "heads", "line_count", "other_count", "terms", "columns")
        self.batches, self.heads, self.m, self.n, self.terms, self.columns = map(f.param, names)
        self.by_terms = f.param("by_terms") if slopes else None
        for array in arrays:
            array.take_steps()
        self.arrays = arrays
        self.factor = number_of(f, "factor", a.compute)
        self.zero = f.const(0, a.compute)
        most = max(OTHERS, a.width)
        self.left_tile = f.shared("left_tile", a.compute, LINES * _SCORES.depth)
        self.right_tile = f.shared("right_tile", a.compute, most * _SCORES.depth)
        self.weights = f.shared("weights", a.compute, LINES * OTHERS)
        self.of_line = f.shared("of_line", a.compute, LINES)

    def build(self) -> Function:
        f, a = self.f, self.a
        down = quotient(self.m, f.value(LINES, "i32"))
        across = quotient(self.columns, f.value(a.width, "i32"))
        with f.parallel(self.batches * self.heads * down * across) as job:
            column0, rest = (job % across) * a.width, job // across
            self.line0, place = (rest % down) * LINES, rest // down
            head, batch = place % self.heads, place // self.heads
            for array in self.arrays:
                array.enter(batch, head)
            queries = self.n if a.flipped else self.m
            self.first_query = place * queries
            with f.vector(THREADS) as t:
                self._group(t, column0)
        return f

    def _group(self, t: Value, column0: Value) -> None:
        f, a = self.f, self.a
        self.t = t
        self.top = (t // _SCORES.across) * _SCORES.rows
        side = t % _SCORES.across
        self.side = side * _SCORES.columns
        rows, columns = _SCORES.rows, a.columns
        gathered = f.state(*[self.zero] * rows * columns, combine=lambda *both: both)
        softmax = None
        if self.forward:  # of line number t
            least = f.const(-math.inf, a.compute)
            softmax = f.state(least, self.zero, combine=lambda *both: both)
        begin, blocks = self._others()
        with f.loop(blocks) as block:
            other0 = (begin + block) * OTHERS
            self._weigh(other0, softmax, gathered)
            few = f.call("minimum", self.n - other0, OTHERS)
            held, start = self.right_tile, side * columns
            element = self.right.by_column
            bring = self._bring(held, a.width, not a.along[2], column0, self.columns, element)
            left = Side(self.weights, LINES, self.top, rows, None)
            right = Side(held, a.width, start, columns, bring)
            accumulate(f, gathered, left, right, _SCORES.depth, other0, few)
        totals = self._finish(softmax, column0)
        found = gathered.get()
        for j in range(columns):
            column = column0 + side * columns + j
            for i in range(rows):
                line = self.line0 + self.top + i
                with f.branch((column < self.columns) & (line < self.m)):
                    value = found[i * columns + j]
                    value = value / totals[i] if totals else value
                    scalar = self.out.buffer.scalar
                    f.store(self.out.buffer, self.out.at(line, column), converted(f, value, scalar))

    def _others(self) -> tuple[Value, Value]:
        """The first block of others that these lines meet, and how many follow."""
        f = self.f
        begin, end = f.value(0, "i32"), self.n
        if self.a.mask == "causal":
            if self.a.flipped:
                begin = self.line0 // OTHERS
            else:
                end = f.call("minimum", end, self.line0 + LINES)
        last = quotient(end, f.value(OTHERS, "i32"))
        return begin, f.call("maximum", last - begin, 0)

    def _bring(
        self,
        held: Buffer,
        extent: int,
        lies: bool,
        start: Value,
        size: Value,
        element: Callable[[Value], Element],
    ) -> Brought:
        return Brought(self.f, held, self.t, _SCORES, extent, lies, start, size, element, self.zero)

    def _products(
        self, lines: _Heads, others: _Heads, along: tuple[bool, ...], other0: Value, terms: Value
    ) -> list[Value]:
        """The products of a block of lines and others, those of this thread."""
        f = self.f
        sums = f.state(*[self.zero] * (_SCORES.rows * _SCORES.columns), combine=lambda *b: b)
        held = self.left_tile
        bring = self._bring(held, LINES, along[0], self.line0, self.m, lines.by_line)
        left = Side(held, LINES, self.top, _SCORES.rows, bring)
        held = self.right_tile
        bring = self._bring(held, OTHERS, along[1], other0, self.n, others.by_line)
        right = Side(held, OTHERS, self.side, _SCORES.columns, bring)
        accumulate(f, sums, left, right, _SCORES.depth, f.value(0, "i32"), terms)
        return list(sums.get())

    def _weigh(self, other0: Value, softmax: State | None, gathered: State) -> None:
        """The weights of a block, or their slopes, into the group's memory."""
        f, a = self.f, self.a
        scores = self._products(self.lines, self.others, a.along[:2], other0, self.terms)
        own = [
            (self.side + j) * LINES + self.top + i
            for i in range(_SCORES.rows)
            for j in range(_SCORES.columns)
        ]
        for place, score in zip(own, scores, strict=True):
            f.store(self.weights, place, score * self.factor)
        f.barrier()
        if softmax is not None:
            self._fade(other0, softmax, gathered)
            return
        with f.loop(OTHERS) as i:
            saved = f.load(self.saved, self._query(other0 + i))
            weight = elementary.FUNCTIONS["exp"](f, self._score(other0, i) - saved)
            f.store(self.weights, i * LINES + self.t, weight)
        f.barrier()
        if self.by_terms is None:
            return
        given = (self.by_lines, self.by_others, a.along[3:], other0, self.by_terms)
        by_weight = self._products(*given)
        for number, (place, value) in enumerate(zip(own, by_weight, strict=True)):
            i, j = divmod(number, _SCORES.columns)
            dot = f.load(self.dots, self._query(other0 + self.side + j, self.top + i))
            slope = f.load(self.weights, place) * (value - dot) * self.factor
            f.store(self.weights, place, slope)
        f.barrier()

    def _query(self, other: Value, line: Value | None = None) -> Value:
        """The number of the query of an other and a line (this thread's), or of a near one."""
        f = self.f
        at = other if self.a.flipped else self.line0 + (self.t if line is None else line)
        count = self.n if self.a.flipped else self.m
        return self.first_query + f.call("minimum", at, count - 1)

    def _score(self, other0: Value, i: Value) -> Value:
        """The score of this thread's line and the other number i of a block, masked."""
        f, a = self.f, self.a
        score = f.load(self.weights, i * LINES + self.t)
        line, other = self.line0 + self.t, other0 + i
        inside = other < self.n
        if a.mask == "causal":
            inside = inside & ((line <= other) if a.flipped else (other <= line))
        if self.mask is not None:
            line, other = (
                f.call("minimum", at, count - 1) for at, count in ((line, self.m), (other, self.n))
            )
            place = self.mask.at(other, line) if a.flipped else self.mask.at(line, other)
            found = f.load(self.mask.buffer, place)
            if a.mask == "bool":
                inside = inside & found
            else:
                score = score + f.cast(found, a.compute)
        return f.select(inside, score, f.const(-math.inf, a.compute))

    def _fade(self, other0: Value, softmax: State, gathered: State) -> None:
        """Scores become weights, relative to the greatest score of each query so far."""
        f, t = self.f, self.t
        peak, total = softmax.get()
        best = f.state(peak, combine=lambda x, y: f.call("maximum", x, y))
        with f.loop(OTHERS) as i:
            score = self._score(other0, i)
            f.store(self.weights, i * LINES + t, score)
            best.set(f.call("maximum", best.get()[0], score))
        found = best.get()[0]
        base = f.select(found == -math.inf, f.const(0, self.a.compute), found)
        fade = elementary.FUNCTIONS["exp"](f, peak - base)
        more = f.state(total * fade, combine=lambda x, y: x + y)
        with f.loop(OTHERS) as i:
            place = i * LINES + t
            weight = elementary.FUNCTIONS["exp"](f, f.load(self.weights, place) - base)
            f.store(self.weights, place, weight)
            more.set(more.get()[0] + weight)
        softmax.set(found, more.get()[0])
        f.store(self.of_line, t, fade)
        f.barrier()
        fades = [f.load(self.of_line, self.top + i) for i in range(_SCORES.rows)]
        columns = self.a.columns
        gathered.set(*[g * fades[i // columns] for i, g in enumerate(gathered.get())])

    def _finish(self, softmax: State | None, column0: Value) -> list[Value]:
        """What the gathered values of each line are divided by; the forward saves logarithms."""
        if softmax is None:
            return []
        f, t = self.f, self.t
        peak, total = softmax.get()
        none = total == 0
        line = self.line0 + t
        with f.branch((column0 == 0) & (line < self.m)):
            one = f.const(1, self.a.compute)
            logarithm = elementary.FUNCTIONS["log"](f, f.select(none, one, total))
            found = f.select(none, f.const(math.inf, self.a.compute), peak + logarithm)
            f.store(self.saved, self.first_query + line, found)
        f.store(self.of_line, t, f.select(none, f.const(1, self.a.compute), total))
        f.barrier()
        return [f.load(self.of_line, self.top + i) for i in range(_SCORES.rows)]
