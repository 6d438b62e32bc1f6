"""Factors and solutions of many small matrices at once: every lane has a matrix of its own.

A group of matrices is copied into memory of the thread, element by element and there the same
element of all of them together, so that whatever is done is done to a vector: the algorithms below
are the textbook's, over scalars. Rows are exchanged per lane. The order of operations of one matrix
does not depend on its neighbours, so the number of threads and lanes does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .ir import Buffer, Function, Value

GROUP = 16  # matrices that a thread takes at a time


class _Group:
    """A kernel in the making: its parameters, and one element of the matrices of all lanes."""

    def __init__(self, name: str, dtype: str, sizes: str) -> None:
        self.f = f = Function(name)
        self.dtype = dtype
        self.buffers: dict[str, Buffer] = {}
        self.steps: dict[str, list[Value]] = {}
        self.count, *self.sizes = [f.param(n) for n in ("count", *sizes.split())]
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
            at = at + i * step
        return at

    def read(self, name: str, *index: Value) -> Value:
        """An element of this lane's matrix."""
        return self.f.load(self.buffers[name], self.place(name, *index))

    def write(self, name: str, value: Value, *index: Value) -> None:
        """Store an element of this lane's matrix."""
        self.f.store(self.buffers[name], self.place(name, *index), value)

    # Elements in the thread's memory ----------------------------------------------------------
    def slot(self, element: Value) -> Value:
        """Where an element lies; a number that is the same in all lanes makes it a vector."""
        return self.start + element * GROUP + self.lane

    def get(self, element: Value) -> Value:
        return self.f.load(self.buffers["memory"], self.slot(element))

    def set(self, element: Value, value: Value) -> None:
        self.f.store(self.buffers["memory"], self.slot(element), value)

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
def lu_function(name: str, dtype: str, pivot: bool) -> Function:
    """L and U of matrices in one.

    Parameters: how many matrices, their rows and columns, and the steps of the buffers: the
    result, the pivots (counted from 1), info, the matrices. The memory has GROUP times (rows + 1)
    times columns elements for every thread.
    """
    g = _Group(name, dtype, "m n")
    m, n = g.sizes
    g.buffer("out", written=True)
    g.buffer("pivots", "i32", written=True, rank=1)
    g.buffer("info", "i32", written=True, rank=0)
    g.buffer("a")
    f = g.f
    with g.matrices(lambda: (m + 1) * n):
        with f.loop(m) as i, f.loop(n) as j:
            g.set(i * n + j, g.read("a", i, j))
        steps = f.call("minimum", m, n)
        info = _eliminate(g, m, n, steps, lambda k, row: g.write("pivots", row + 1, k), True, pivot)
        with f.loop(m) as i, f.loop(n) as j:
            g.write("out", g.get(i * n + j), i, j)
        g.write("info", info)
    return f


def solve_function(name: str, dtype: str) -> Function:
    """X of A X = B, by the LU factors of A with B beside it.

    Parameters: how many matrices, the rows of A, the columns of B, and the steps of the buffers: X,
    info, A, B. The memory has GROUP times (rows + 1) times (rows + columns) elements for every
    thread.
    """
    g = _Group(name, dtype, "n columns")
    n, columns = g.sizes
    g.buffer("x", written=True)
    g.buffer("info", "i32", written=True, rank=0)
    g.buffer("a")
    g.buffer("b")
    f = g.f
    width = n + columns
    with g.matrices(lambda: (n + 1) * width):
        with f.loop(n) as i:
            with f.loop(n) as j:
                g.set(i * width + j, g.read("a", i, j))
            with f.loop(columns) as j:
                g.set(i * width + (n + j), g.read("b", i, j))
        info = _eliminate(g, n, width, n, lambda k, row: None, False)
        with f.loop(n) as back:
            k = n - 1 - back
            head = g.get(k * width + k)
            with f.loop(columns) as j:
                found = g.get(k * width + (n + j)) / head
                g.write("x", found, k, j)
                with f.loop(k) as i:
                    place = i * width + (n + j)
                    g.set(place, f.fma(-g.get(i * width + k), found, g.get(place)))
        g.write("info", info)
    return f


def pivots_function(name: str, dtype: str) -> Function:
    """The diagonals of U, and how often rows were exchanged: what determinants are made of.

    Parameters: how many matrices, their rows, and the steps of the buffers: the diagonals, the
    exchanges, the matrices. The memory has GROUP times (rows + 1) times rows elements for every
    thread.
    """
    g = _Group(name, dtype, "n")
    (n,) = g.sizes
    g.buffer("out", written=True, rank=1)
    g.buffer("exchanges", "i32", written=True, rank=0)
    g.buffer("a")
    f = g.f
    with g.matrices(lambda: (n + 1) * n):
        with f.loop(n) as i, f.loop(n) as j:
            g.set(i * n + j, g.read("a", i, j))
        exchanges = g.variable(f.const(0, "i32"))

        def moved(k: Value, row: Value) -> None:
            exchanges.set(exchanges.value + f.select(row == g.each(k), f.const(0, "i32"), 1))

        _eliminate(g, n, n, n, moved, False)
        with f.loop(n) as k:
            g.write("out", g.get(k * n + k), k)
        g.write("exchanges", exchanges.value)
    return f


def _eliminate(
    g: _Group,
    m: Value,
    n: Value,
    steps: Value,
    moved: Callable[[Value, Value], None],
    factors: bool,
    pivot: bool = True,
) -> Value:
    """The first `steps` columns of the matrices in memory made triangular, rows exchanged.

    `moved` is told which row (i32) went up to which. Returns the number, from 1 on, of the first
    pivot that is zero, or 0. Behind the matrices there is memory for one more row. Row k goes
    there, and on its way through the rows below each lane puts it in the place of the one that went
    up: a lane's own row is cheap to read, but dear to write. The factors to the left of column k
    move along only if these are wanted.
    """
    f = g.f
    spare = m * n
    info = g.variable(f.const(0, "i32"))
    with f.loop(steps) as k:
        found = _largest(g, m, n, k) if pivot else None
        moved(k, g.each(k) if found is None else found)
        if found is not None:
            chosen = f.cast(found, "i64") * n
            left = f.value(0, "i64") if factors else k
            with f.loop(n - left) as right:
                j = left + right
                g.set(spare + j, g.get(k * n + j))
                g.set(k * n + j, g.get(chosen + j))
        head = g.get(k * n + k)
        zero = head == 0
        unknown = info.value == 0
        info.set(f.select(zero & unknown, g.each(k) + 1, info.value))
        divisor = f.select(zero, 1.0, head)
        with f.loop(m - k - 1) as below:
            i = k + 1 + below
            mine = None if found is None else found == f.cast(i, "i32")
            if mine is not None and factors:
                with f.loop(k) as j:
                    g.set(i * n + j, _exchanged(g, mine, spare + j, i * n + j))
            factor = _exchanged(g, mine, spare + k, i * n + k) / divisor
            g.set(i * n + k, factor)
            with f.loop(n - k - 1) as right:
                j = k + 1 + right
                old = _exchanged(g, mine, spare + j, i * n + j)
                g.set(i * n + j, f.fma(-factor, g.get(k * n + j), old))
    return info.value


def _exchanged(g: _Group, mine: Value | None, spare: Value, own: Value) -> Value:
    """An element of the row that went down where it came to this one, else the row's own."""
    return g.get(own) if mine is None else g.f.select(mine, g.get(spare), g.get(own))


def _largest(g: _Group, m: Value, n: Value, k: Value) -> Value:
    """The row (i32), from k on, with the largest element of column k."""
    f = g.f
    best = f.state(f.call("abs", g.get(k * n + k)), g.each(k), combine=lambda a, i, b, j: (b, j))
    with f.loop(m - k - 1) as below:
        row = k + 1 + below
        size = f.call("abs", g.get(row * n + k))
        most, where = best.get()
        larger = size > most
        best.set(f.select(larger, size, most), f.select(larger, g.each(row), where))
    return best.get()[1]


# Cholesky factors ------------------------------------------------------------------------------
def cholesky_function(name: str, dtype: str) -> Function:
    """The lower triangular L of L Lᵀ, zero above its diagonal.

    Parameters: how many matrices, their rows, and the steps of the buffers: L, info, the matrices,
    of which the lower triangle is read. The memory has GROUP times rows times rows elements for
    every thread.
    """
    g = _Group(name, dtype, "n")
    (n,) = g.sizes
    g.buffer("out", written=True)
    g.buffer("info", "i32", written=True, rank=0)
    g.buffer("a")
    f = g.f
    with g.matrices(lambda: n * n):
        info = g.variable(f.const(0, "i32"))
        with f.loop(n) as j:
            pivot = g.variable(g.read("a", j, j))
            with f.loop(j) as k:
                left = g.get(j * n + k)
                pivot.set(f.fma(-left, left, pivot.value))
            bad = ~(pivot.value > 0)
            unknown = info.value == 0
            info.set(f.select(bad & unknown, g.each(j) + 1, info.value))
            root = f.call("sqrt", pivot.value)
            g.set(j * n + j, root)
            g.write("out", root, j, j)
            with f.loop(n - j - 1) as below:
                i = j + 1 + below
                total = g.variable(g.read("a", i, j))
                with f.loop(j) as k:
                    total.set(f.fma(-g.get(i * n + k), g.get(j * n + k), total.value))
                found = total.value / root
                g.set(i * n + j, found)
                g.write("out", found, i, j)
                g.write("out", f.const(0, dtype), j, i)
        g.write("info", info.value)
    return f


# Triangular systems ----------------------------------------------------------------------------
def triangular_function(name: str, dtype: str, upper: bool, unit: bool) -> Function:
    """X of A X = B for triangular A.

    Parameters: how many matrices, the rows of A, the columns of B, and the steps of the buffers: X,
    A, B. The memory has GROUP times rows times columns elements for every thread.
    """
    g = _Group(name, dtype, "n columns")
    n, columns = g.sizes
    g.buffer("x", written=True)
    g.buffer("a")
    g.buffer("b")
    f = g.f
    with g.matrices(lambda: n * columns), f.loop(n) as step:
        i = n - 1 - step if upper else step
        with f.loop(columns) as j:
            g.set(i * columns + j, g.read("b", i, j))
        with f.loop(step) as known:
            k = n - 1 - known if upper else known
            factor = g.read("a", i, k)
            with f.loop(columns) as j:
                place = i * columns + j
                g.set(place, f.fma(-factor, g.get(k * columns + j), g.get(place)))
        head = None if unit else g.read("a", i, i)
        with f.loop(columns) as j:
            found = g.get(i * columns + j)
            if head is not None:
                found = found / head
                g.set(i * columns + j, found)
            g.write("x", found, i, j)
    return f
