"""The form `window`: sums and largest elements of windows, several positions at once.

Note [spans]
What a window covers along one dimension is its span: the elements first, first + step, …, `count`
of them, all inside of x. Padding, dilation and the zeros between the elements of a dilated x are
gone by then, so that a kernel knows nothing of them: it reads the spans of every position from
tables. A window without elements has count 0, and as its first the element nearest to it.

Note [runs]
Along the innermost dimension, positions run in lanes. The lanes of a vector must agree on how many
elements they have, so the positions come in runs: p0, p0 + hop, p0 + 2 hop … whose spans have one
count, and each begins `lane` elements after the one before. Where x is not dilated there is one
long run between a few short ones at the edges. Where it is, as in the gradient of a mean with a
stride, positions of each remainder have runs of their own; or, if that makes fewer, neighbours that
see the same are a run, and `lane` is 0. If the channels are innermost in memory, they are the lanes
instead, and there are no runs. If windows are wide and far apart, their own elements are the lanes:
a piece of a span at a time, for each the elements of the other dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from .ir import FLOATS, INTEGERS, Function, State, Value
from .offsets import quotient

BLOCK = 16384  # elements that one block of work reads, about
PIECE = 4096  # elements of a span that are summed in their own precision
RUN = 4  # words of a run: the first position, how many, the first element, how many of these


class Pool(NamedTuple):
    """What makes another kernel.

    kind: sum, max, or mean, a sum that is divided. `index_type` is that of indices, for max. `lead`
    counts the dimensions in front that the windows do not cover, `outer` those whose spans are
    tables. `taps` is the usual count of a run, if it is small. `lane` and `hop` are x's and the
    result's steps from position to position, or None for parameters. `lanes` are the positions, the
    channels or the elements; see Note [runs].
    """

    kind: str
    dtype: str
    index_type: str
    lead: int
    outer: int
    taps: int | None
    lane: int | None
    hop: int | None
    lanes: str


def pool_function(name: str, pool: Pool) -> Function:
    """The kernel of Note [spans].

    Buffers: out, for max the indices, x, for each outer dimension the firsts and the counts, and
    the runs unless lanes are channels. Parameters: how many planes and how many positions of the
    first outer dimension (or runs, if there is none) make a block; the sizes of the leading
    dimensions, then x's steps along them, then out's; for each outer dimension the positions, x's
    steps from element to element and within a span, out's step, and for max those two steps in
    indices; then the number of channels that are lanes, or the number of runs, x's steps from
    element to element and within a span, for max the indices' steps within a span and from position
    to position; the steps `lane` and `hop` if not known; and for mean the divisor.
    """
    return _Pools(name, pool).function()


class _Pools:
    def __init__(self, name: str, pool: Pool) -> None:
        self.pool = pool
        f = self.f = Function(name)
        largest = pool.kind == "max"
        self.across = pool.lanes == "channels"
        self.out = f.buffer("out", pool.dtype, written=True)
        self.indices = f.buffer("indices", pool.index_type, written=True) if largest else None
        self.x = f.buffer("x", pool.dtype)
        self.firsts = [f.buffer(f"first{d}", "i64") for d in range(pool.outer)]
        self.counts = [f.buffer(f"count{d}", "i64") for d in range(pool.outer)]
        if not self.across:
            self.runs = f.buffer("runs", "i64")
        self.together, self.chunk = f.param("together"), f.param("chunk")
        self.sizes = [f.param(f"size{d}") for d in range(pool.lead)]
        self.lead = [[f.param(f"{b}_lead{d}") for d in range(pool.lead)] for b in ("x", "out")]
        self.outer = [self._steps(str(d), largest, True) for d in range(pool.outer)]
        if self.across:
            self.number = f.param("lanes")
        else:
            self.number = f.param("runs_number")
            self.inner = self._steps("", largest, False)
            self.index_lane = f.param("index_lane") if largest else 0
        self.lane = f.param("lane") if pool.lane is None else pool.lane
        self.hop = f.param("hop") if pool.hop is None else pool.hop
        self.divisor = f.param("divisor", "f64") if pool.kind == "mean" else None
        self.kept = self.x.scalar  # the type of what is known of a window
        if pool.lanes == "elements" and not largest and self.kept in FLOATS:
            self.kept = "f64"

    def _steps(self, of: str, largest: bool, outer: bool) -> dict[str, Value]:
        names = ["positions"] * outer + ["x", "tap"] + ["out"] * outer
        names += (["index"] * outer + ["index_tap"]) if largest else []
        return {n: self.f.param(f"{n}{of}_step") for n in names}

    def function(self) -> Function:
        """The kernel."""
        f = self.f
        planes = self.sizes[0]
        for size in self.sizes[1:]:
            planes = planes * size
        cut = self.outer[0]["positions"] if self.outer else self.number
        chunks = (cut + (self.chunk - 1)) // self.chunk
        groups = (planes + (self.together - 1)) // self.together
        with f.parallel(groups * chunks) as block:
            begin = (block % chunks) * self.chunk
            count = f.call("minimum", cut - begin, self.chunk)
            first = (block // chunks) * self.together
            with f.loop(f.call("minimum", planes - first, self.together)) as i:
                plane = first + i
                at = [f.value(0, "i64")] * 2
                for d in reversed(range(len(self.sizes))):
                    part = plane if d == 0 else plane % self.sizes[d]
                    plane = plane if d == 0 else plane // self.sizes[d]
                    at = [
                        a + part * s[d] if a.op != "const" else part * s[d]
                        for a, s in zip(at, self.lead, strict=True)
                    ]
                self._positions(0, at[0], at[1], f.value(0, "i64"), [], begin, count)
        return f

    def _positions(
        self,
        d: int,
        at: Value,
        out: Value,
        index: Value,
        counts: list[Value],
        begin: Value,
        count: Value,
    ) -> None:
        """The positions of outer dimension `d`, then of those behind it."""
        f = self.f
        if d == len(self.outer):
            self._row(at, out, index, counts, begin, count)
            return
        steps = self.outer[d]
        with f.loop(count if d == 0 else steps["positions"]) as i:
            p = begin + i if d == 0 else i
            first = f.load(self.firsts[d], p)
            if "index" in steps:
                index = index + first * steps["index"]
            self._positions(
                d + 1,
                at + first * steps["x"],
                out + p * steps["out"],
                index,
                [*counts, f.load(self.counts[d], p)],
                f.value(0, "i64"),
                self.number,
            )

    def _row(
        self, at: Value, out: Value, index: Value, counts: list[Value], begin: Value, count: Value
    ) -> None:
        """The positions, or the channels, that run in lanes; or positions whose elements do."""
        f, taps = self.f, self.pool.taps
        if self.across:
            with f.vector(count) as i, self._window(i, at, out, index, 0) as spot:
                self._walk(0, spot, f.value(0, "i64"), counts, 1)
            return
        with f.loop(count) as i:
            run = (begin + i) * RUN
            position, number, first, own = (f.load(self.runs, run + j) for j in range(RUN))
            bases = at + first * self.inner["x"], out + position, index + first, self.index_lane
            if self.pool.lanes == "elements":
                with f.loop(number) as p, self._window(p, *bases) as spot:
                    self._elements(spot, counts, own)
                return
            for usual in (False,) if taps is None else (True, False):
                with self._if(usual, own), f.vector(number) as p, self._window(p, *bases) as spot:
                    self._walk(0, spot, f.value(0, "i64"), counts, taps if usual else own)

    def _if(self, usual: bool, own: Value) -> Any:
        """Only for runs with the usual count, or only for others."""
        taps = self.pool.taps
        if taps is None:
            return nullcontext()
        return self.f.branch(own == taps if usual else own != taps)

    @contextmanager
    def _window(
        self, i: Value, at: Value, out: Value, index: Value, index_lane: Value | int
    ) -> Iterator[Value]:
        """A state to which the body adds what a window covers; then it is stored."""
        f = self.f
        self.state = self._nothing(self.kept)
        yield at + i * self.lane
        value, *far = self.state.get()
        target = out + i * self.hop
        if self.divisor is not None:
            value = value / f.cast(self.divisor, value.dtype)
        f.store(self.out, target, f.cast(value, self.x.scalar))
        if self.indices is not None:
            start = f.cast(index + i * index_lane, self.pool.index_type)
            f.store(self.indices, target, start + far[0])

    def _nothing(self, kind: str) -> State:
        """What is known of no elements."""
        f = self.f
        if self.indices is None:
            return f.state(f.const(0, kind), combine=lambda a, b: a + b)
        inits = f.const(lowest(kind), kind), f.const(0, self.pool.index_type)
        return f.state(*inits, combine=self._larger)

    def _larger(self, value: Value, place: Value, other: Value, there: Value) -> Sequence[Value]:
        """Of two elements and their places the larger; of equals the first, or the last NaN."""
        f = self.f
        take = (other > value) | ((other == value) & (there < place))
        if value.dtype in FLOATS:
            take = take | ((other != other) & ((value == value) | (there > place)))
        return f.select(take, other, value), f.select(take, there, place)

    def _elements(self, at: Value, counts: list[Value], own: Value) -> None:
        """The elements of a window, those of its last span in lanes, a piece of it at a time."""
        f, kind, whole = self.f, self.x.scalar, self.state
        with f.loop(quotient(own, f.value(PIECE, "i64"))) as number:
            first = number * PIECE
            piece = self._nothing(kind)
            with f.vector(f.call("minimum", own - first, PIECE)) as j:
                self.state = self._nothing(kind)
                self._walk(0, at + first + j, first + j, counts, 1)
                piece.add(*self.state.get())
            value, *far = piece.get()
            whole.add(f.cast(value, self.kept), *far)
        self.state = whole

    def _walk(
        self, d: int, at: Value, far: Value, counts: list[Value], own: Value | int | None
    ) -> None:
        """The elements of a window; `far` is how far from the first of them, in indices."""
        f = self.f
        if d < len(counts):
            steps = self.outer[d]
            with f.loop(counts[d]) as j:
                further = far + j * steps["index_tap"] if "index_tap" in steps else far
                self._walk(d + 1, at + j * steps["tap"], further, counts, own)
        elif self.pool.lanes != "positions":
            self._meet(f.load(self.x, at), far)
        elif isinstance(own, Value):
            with f.loop(own) as j:
                self._tap(at, far, j)
        else:
            for i in range(own or 0):
                self._tap(at, far, f.const(i, "i64"))

    def _tap(self, at: Value, far: Value, j: Value) -> None:
        first = j.op == "const" and j.args[0] == 0
        if "index_tap" in self.inner and not first:
            far = far + self.inner["index_tap"] * j
        self._meet(self.f.load(self.x, at if first else at + self.inner["tap"] * j), far)

    def _meet(self, value: Value, far: Value) -> None:
        """Combine an element into the state: the first of equal ones stays, or the last NaN."""
        f = self.f
        best, *known = self.state.get()
        if not known:
            self.state.set(best + value)
            return
        better = value > best
        if value.dtype in FLOATS:
            better = better | (value != value)
        far = f.cast(far, self.pool.index_type)
        self.state.set(f.select(better, value, best), f.select(better, far, known[0]))


def lowest(dtype: str) -> float:
    """The smallest number of a type: the largest element of nothing."""
    if dtype in INTEGERS:
        return -(1 << (int(dtype[1:]) - 1)) if dtype[0] == "i" else 0
    return -float("inf")
