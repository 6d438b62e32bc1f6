"""Factors and solutions of many small matrices at once: every lane has a matrix of its own.

A group of matrices is copied into memory of the thread, element by element and there the same
element of all of them together, so that whatever is done is done to a vector: the algorithms below
are the textbook's, over scalars. Rows are exchanged per lane. The order of operations of one matrix
does not depend on its neighbours, so the number of threads and lanes does not show.

All kernels are built for a number of lanes, or for 0: then matrices may have any steps. Otherwise
each of them is contiguous, and as many of its elements as there are lanes are copied at a time, for
Note [transposes] of the CPU's kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from .ir import Buffer, Function, Operand, Value

GROUP = 16  # matrices that a thread takes at a time


class _Group:
    """A kernel in the making: its parameters, and one element of the matrices of all lanes."""

    def __init__(
        self, name: str, dtype: str, lanes: int, sizes: str, known: Sequence[int] = ()
    ) -> None:
        self.f = f = Function(name)
        self.dtype = dtype
        self.lanes = lanes
        self.known = known
        self.buffers: dict[str, Buffer] = {}
        self.steps: dict[str, list[Value]] = {}
        self.count, *self.sizes = [f.param(n) for n in ("count", *sizes.split())]
        if known:
            self.sizes = [f.const(size, "i64") for size in known]
        self.pitch = f.value(0, "i64")
        self.first = self.lane = self.start = self.matrix = self.pitch

    def buffer(self, name: str, dtype: str = "", written: bool = False, rank: int = 2) -> None:
        """An array of matrices (or of vectors, or numbers) with its steps, that of matrices first.

        Parameters come in the order in which they are declared.
        """
        self.buffers[name] = self.f.buffer(name, dtype or self.dtype, written)
        self.steps[name] = [self.f.param(f"{name}_step{i}") for i in range(rank + 1)]

    @contextmanager
    def matrices(self, elements: Callable[[], Value]) -> Iterator[None]:
        """Over all matrices, with memory for so many elements of each."""
        f = self.f
        self.buffers["memory"] = f.buffer("memory", self.dtype, written=True)
        size = elements()
        with f.parallel((self.count + (GROUP - 1)) // GROUP) as group:
            self.start = f.thread() * (size * GROUP)
            self.first = group * GROUP
            with f.vector(f.call("minimum", self.count - self.first, GROUP)) as lane:
                self.lane = lane
                self.matrix = self.first + lane
                yield

    # Elements of the arrays -------------------------------------------------------------------
    def place(self, name: str, *index: Value) -> Value:
        """Where an element of this lane's matrix lies."""
        matrix, *inner = self.steps[name]
        at = self.matrix * matrix
        for i, step in zip(index, inner, strict=True):
            at = at + (i if self.lanes and step is inner[-1] and len(inner) == 2 else i * step)
        return at

    def read(self, name: str, *index: Value) -> Value:
        """An element of this lane's matrix."""
        return self.f.load(self.buffers[name], self.place(name, *index))

    def write(self, name: str, value: Value, *index: Value) -> None:
        """Store an element of this lane's matrix."""
        self.f.store(self.buffers[name], self.place(name, *index), value)

    def bring(
        self, name: str, rows: Value, width: Value, first: Operand = 0, pitch: Value | None = None
    ) -> None:
        """Copy this lane's matrix to memory, from `first` on, its rows `pitch` elements apart."""
        for inner, outer in self._elements(name, rows, width, first, pitch):
            found = [self.f.load(self.buffers[name], place) for place in outer]
            for element, value in zip(inner, found, strict=True):
                self.set(element, value)

    def give(
        self, name: str, rows: Value, width: Value, first: Operand = 0, pitch: Value | None = None
    ) -> None:
        """Copy the other way."""
        for inner, outer in self._elements(name, rows, width, first, pitch):
            found = [self.get(element) for element in inner]
            for place, value in zip(outer, found, strict=True):
                self.f.store(self.buffers[name], place, value)

    def _elements(
        self, name: str, rows: Value, width: Value, first: Operand, pitch: Value | None
    ) -> Iterator[tuple[list[Value], list[Value]]]:
        """Places in memory and in an array, in loops; as many as there are lanes, if in a row."""
        f, lanes = self.f, self.lanes
        if lanes and pitch is None:  # rows follow each other in both
            rows, width = f.value(1, "i64"), rows * width
        pitch = width if pitch is None else pitch
        with f.loop(rows) as i:
            done = width // lanes * lanes if lanes else f.value(0, "i64")
            if lanes:
                with f.loop(width // lanes) as block:
                    inner = i * pitch + block * lanes + first
                    outer = self.place(name, i, block * lanes)
                    ahead = range(1, lanes)
                    yield [inner, *[inner + j for j in ahead]], [outer, *[outer + j for j in ahead]]
            with f.loop(width - done) as rest:
                j = done + rest
                yield [i * pitch + j + first], [self.place(name, i, j)]

    # Elements in the thread's memory ----------------------------------------------------------
    def slot(self, element: Value) -> Value:
        """Where an element lies; a number that is the same in all lanes makes it a vector."""
        return self.start + element * GROUP + self.lane

    def get(self, element: Value) -> Value:
        return self.f.load(self.buffers["memory"], self.slot(element))

    def set(self, element: Value, value: Value) -> None:
        self.f.store(self.buffers["memory"], self.slot(element), value)

    def in_turn(self, steps: Value) -> Iterator[Value]:
        """The numbers below min(rows, columns): a loop, or one after the other if these are known.

        Then the loops inside have known lengths too, and short loops are mostly counting.
        """
        if self.known:
            yield from [self.f.const(i, "i64") for i in range(min(self.known))]
        else:
            with self.f.loop(steps) as i:
                yield i

    def each(self, number: Value) -> Value:
        """A number that is the same in all lanes as an i32 of each of them."""
        return self.f.cast(number + self.lane * 0, "i32")

    def variable(self, start: Value) -> _Variable:
        return _Variable(self.f, start)


class _Variable:
    """A value for each lane that changes."""

    def __init__(self, f: Function, start: Value) -> None:
        self.state = f.state(start, combine=lambda a, b: b)

    @property
    def value(self) -> Value:
        return self.state.get()[0]

    def set(self, value: Value) -> None:
        self.state.set(value)


# LU --------------------------------------------------------------------------------------------
def lu_function(
    name: str, dtype: str, lanes: int, few: bool, pivot: bool, known: tuple[int, ...]
) -> Function:
    """L and U of matrices in one, whose rows and columns may be `known`.

    Parameters: how many matrices, their rows and columns, and the steps of the buffers: the
    result, the pivots (counted from 1), info, the matrices. The memory has GROUP times (rows + 1)
    times columns elements for every thread.
    """
    g = _Group(name, dtype, lanes, "m n", known)
    m, n = g.sizes
    g.buffer("out", written=True)
    g.buffer("pivots", "i32", written=True, rank=1)
    g.buffer("info", "i32", written=True, rank=0)
    g.buffer("a")
    f = g.f
    with g.matrices(lambda: (m + 1) * n):
        g.bring("a", m, n)
        steps = f.call("minimum", m, n)
        search = _Search(few, pivot, lambda k, row: g.write("pivots", row + 1, k), True)
        info = _eliminate(g, m, n, steps, search)
        g.give("out", m, n)
        g.write("info", info)
    return f


def solve_function(name: str, dtype: str, lanes: int, few: bool) -> Function:
    """X of A X = B, by the LU factors of A with B beside it.

    Parameters: how many matrices, the rows of A, the columns of B, and the steps of the buffers: X,
    info, A, B. The memory has GROUP times (rows + 1) times (rows + columns) elements for every
    thread.
    """
    g = _Group(name, dtype, lanes, "n columns")
    n, columns = g.sizes
    g.buffer("x", written=True)
    g.buffer("info", "i32", written=True, rank=0)
    g.buffer("a")
    g.buffer("b")
    f = g.f
    width = n + columns
    with g.matrices(lambda: (n + 1) * width):
        g.bring("a", n, n, 0, width)
        g.bring("b", n, columns, n, width)
        info = _eliminate(g, n, width, n, _Search(few))
        with f.loop(n) as back:
            k = n - 1 - back
            head = g.get(k * width + k)
            with f.loop(columns) as j:
                found = g.get(k * width + (n + j)) / head
                g.set(k * width + (n + j), found)
                with f.loop(k) as i:
                    place = i * width + (n + j)
                    g.set(place, f.fma(-g.get(i * width + k), found, g.get(place)))
        g.give("x", n, columns, n, width)
        g.write("info", info)
    return f


def pivots_function(name: str, dtype: str, lanes: int, few: bool) -> Function:
    """The diagonals of U, and how often rows were exchanged: what determinants are made of.

    Parameters: how many matrices, their rows, and the steps of the buffers: the diagonals, the
    exchanges, the matrices. The memory has GROUP times (rows + 1) times rows elements for every
    thread.
    """
    g = _Group(name, dtype, lanes, "n")
    (n,) = g.sizes
    g.buffer("out", written=True, rank=1)
    g.buffer("exchanges", "i32", written=True, rank=0)
    g.buffer("a")
    f = g.f
    with g.matrices(lambda: (n + 1) * n):
        g.bring("a", n, n)
        exchanges = g.variable(f.const(0, "i32"))

        def moved(k: Value, row: Value) -> None:
            exchanges.set(exchanges.value + f.select(row == g.each(k), f.const(0, "i32"), 1))

        _eliminate(g, n, n, n, _Search(few, moved=moved))
        with f.loop(n) as k:
            g.write("out", g.get(k * n + k), k)
        g.write("exchanges", exchanges.value)
    return f


class _Search(NamedTuple):
    """How pivots are found and rows exchanged."""

    few: bool  # rows: so few that all are looked through, where a gather would take longer
    pivot: bool = True
    moved: Callable[[Value, Value], None] = lambda k, row: None  # told which row (i32) went up to k
    factors: bool = False  # whether what is to the left of the pivots is wanted


def _eliminate(g: _Group, m: Value, n: Value, steps: Value, search: _Search) -> Value:
    """The first `steps` columns of the matrices in memory made triangular, rows exchanged.

    Returns the number, from 1 on, of the first pivot that is zero, or 0. Behind the matrices there
    is memory for one more row. Row k goes there, and on its way through the rows below each lane
    puts it in the place of the one that went up: a lane's own row is cheap to read, but dear to
    write. The factors to the left of column k move along only if these are wanted.
    """
    f = g.f
    spare = m * n
    info = g.variable(f.const(0, "i32"))
    for k in g.in_turn(steps):
        found = _largest(g, m, n, k) if search.pivot else None
        search.moved(k, g.each(k) if found is None else found)
        if found is not None:
            left = f.value(0, "i64") if search.factors else k
            _bring_up(g, m, n, k, left, found, search.few)
        head = g.get(k * n + k)
        zero = head == 0
        unknown = info.value == 0
        info.set(f.select(zero & unknown, g.each(k) + 1, info.value))
        divisor = f.select(zero, 1.0, head)
        with f.loop(m - k - 1) as below:
            i = k + 1 + below
            mine = None if found is None else found == f.cast(i, "i32")
            if mine is not None and search.factors:
                with f.loop(k) as j:
                    g.set(i * n + j, _exchanged(g, mine, spare + j, i * n + j))
            factor = _exchanged(g, mine, spare + k, i * n + k) / divisor
            g.set(i * n + k, factor)
            with f.loop(n - k - 1) as right:
                j = k + 1 + right
                old = _exchanged(g, mine, spare + j, i * n + j)
                g.set(i * n + j, f.fma(-factor, g.get(k * n + j), old))
    return info.value


def _bring_up(
    g: _Group, m: Value, n: Value, k: Value, left: Value, found: Value, few: bool
) -> None:
    """Row k to the memory behind the matrices, and the row that each lane found in its place."""
    f = g.f
    spare = m * n
    if few:
        with f.loop(n - left) as right:
            g.set(spare + left + right, g.get(k * n + left + right))
        with f.loop(m - k - 1) as below:
            i = k + 1 + below
            mine = found == f.cast(i, "i32")
            with f.loop(n - left) as right:
                j = left + right
                g.set(k * n + j, f.select(mine, g.get(i * n + j), g.get(k * n + j)))
        return
    chosen = f.cast(found, "i64") * n
    with f.loop(n - left) as right:
        j = left + right
        g.set(spare + j, g.get(k * n + j))
        g.set(k * n + j, g.get(chosen + j))


def _exchanged(g: _Group, mine: Value | None, spare: Value, own: Value) -> Value:
    """An element of the row that went down where it came to this one, else the row's own."""
    return g.get(own) if mine is None else g.f.select(mine, g.get(spare), g.get(own))


def _largest(g: _Group, m: Value, n: Value, k: Value) -> Value:
    """The row (i32), from k on, with the largest element of column k; NaN is as large as any."""
    f = g.f

    def size_of(row: Value) -> Value:
        size = f.call("abs", g.get(row * n + k))
        return f.select(size == size, size, math.inf)

    best = f.state(size_of(k), g.each(k), combine=lambda a, i, b, j: (b, j))
    with f.loop(m - k - 1) as below:
        row = k + 1 + below
        size = size_of(row)
        most, where = best.get()
        larger = size > most
        best.set(f.select(larger, size, most), f.select(larger, g.each(row), where))
    return best.get()[1]


# Cholesky factors ------------------------------------------------------------------------------
def cholesky_function(name: str, dtype: str, lanes: int) -> Function:
    """The lower triangular L of L Lᵀ, zero above its diagonal.

    Parameters: how many matrices, their rows, and the steps of the buffers: L, info, the matrices,
    of which the lower triangle is read. The memory has GROUP times rows times rows elements for
    every thread.
    """
    g = _Group(name, dtype, lanes, "n")
    (n,) = g.sizes
    g.buffer("out", written=True)
    g.buffer("info", "i32", written=True, rank=0)
    g.buffer("a")
    f = g.f
    with g.matrices(lambda: n * n):
        info = g.variable(f.const(0, "i32"))
        g.bring("a", n, n)
        with f.loop(n) as j:
            pivot = g.variable(g.get(j * n + j))
            with f.loop(j) as k:
                left = g.get(j * n + k)
                pivot.set(f.fma(-left, left, pivot.value))
            bad = ~(pivot.value > 0)
            unknown = info.value == 0
            info.set(f.select(bad & unknown, g.each(j) + 1, info.value))
            root = f.call("sqrt", pivot.value)
            g.set(j * n + j, root)
            with f.loop(n - j - 1) as below:
                i = j + 1 + below
                total = g.variable(g.get(i * n + j))
                with f.loop(j) as k:
                    total.set(f.fma(-g.get(i * n + k), g.get(j * n + k), total.value))
                g.set(i * n + j, total.value / root)
                g.set(j * n + i, f.const(0, dtype))
        g.give("out", n, n)
        g.write("info", info.value)
    return f


# Triangular systems ----------------------------------------------------------------------------
def triangular_function(name: str, dtype: str, lanes: int, upper: bool, unit: bool) -> Function:
    """X of A X = B for triangular A.

    Parameters: how many matrices, the rows of A, the columns of B, and the steps of the buffers: X,
    A, B. The memory has GROUP times rows times (rows + columns) elements for every thread.
    """
    g = _Group(name, dtype, lanes, "n columns")
    n, columns = g.sizes
    g.buffer("x", written=True)
    g.buffer("a")
    g.buffer("b")
    f = g.f
    behind = n * columns  # where A begins
    with g.matrices(lambda: n * (n + columns)):
        g.bring("b", n, columns)
        g.bring("a", n, n, behind)
        with f.loop(n) as step:
            i = n - 1 - step if upper else step
            with f.loop(step) as known:
                k = n - 1 - known if upper else known
                factor = g.get(behind + i * n + k)
                with f.loop(columns) as j:
                    place = i * columns + j
                    g.set(place, f.fma(-factor, g.get(k * columns + j), g.get(place)))
            if not unit:
                head = g.get(behind + i * n + i)
                with f.loop(columns) as j:
                    g.set(i * columns + j, g.get(i * columns + j) / head)
        g.give("x", n, columns)
    return f
