"""Factors of a panel, and systems with a small triangle: what is no product in a large matrix.

Matrices have contiguous rows, a step apart. The rest of a large factorisation is products, which
`backends/cpu/forms/large_matrices.py` puts around these kernels. Every kernel does the same
operations in the same order for any number of threads: columns are independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .ir import Buffer, Function, Operand, Value

COLUMNS = 128  # of a right-hand side, which a thread takes at a time
_TOGETHER = 4  # columns or rows that are subtracted in one pass over another


class _Panel:
    """Some columns of a matrix, each of them in a row of scratch memory."""

    def __init__(self, f: Function, memory: Buffer, rows: Value) -> None:
        self.f, self.memory, self.rows = f, memory, rows

    def get(self, row: Operand, column: Value) -> Value:
        return self.f.load(self.memory, column * self.rows + row)

    def set(self, row: Operand, column: Value, value: Value) -> None:
        self.f.store(self.memory, column * self.rows + row, value)


def lu_panel_function(name: str, dtype: str, pivot: bool) -> Function:
    """LU of all rows of a few columns, in their place; rows are exchanged within the panel.

    Parameters: rows, columns, and the step of rows; buffers: the panel, memory for rows times
    columns elements, the row (from 0 on) that each column exchanged its own with, and info: the
    number, from 1 on, of the first pivot that is zero, or 0. Columns are finished one by one, from
    the left: each is brought up to date with those before it, four of them in one pass.
    """
    f = Function(name)
    x, memory = f.buffer("x", dtype, written=True), f.buffer("memory", dtype, written=True)
    pivots, info = f.buffer("pivots", "i32", written=True), f.buffer("info", "i32", written=True)
    rows, columns, step = f.param("rows"), f.param("columns"), f.param("step")
    panel = _Panel(f, memory, rows)
    with f.loop(columns) as c, f.vector(rows) as i:
        panel.set(i, c, f.load(x, i * step + c))
    first_zero = f.state(f.const(0, "i32"), combine=lambda a, b: b)
    with f.loop(f.call("minimum", rows, columns)) as j:
        _up_to_date(panel, j, j)
        found = _largest(panel, j) if pivot else j
        f.store(pivots, j, f.cast(found, "i32"))
        with f.branch(found != j), f.loop(columns) as c:
            upper, lower = panel.get(j, c), panel.get(found, c)
            panel.set(j, c, lower)
            panel.set(found, c, upper)
        head = panel.get(j, j)
        zero = head == 0
        known = first_zero.get()[0]
        first_zero.set(f.select(zero & (known == 0), f.cast(j, "i32") + 1, known))
        divisor = f.select(zero, 1.0, head)
        with f.vector(rows - j - 1) as below:
            i = j + 1 + below
            panel.set(i, j, panel.get(i, j) / divisor)
    with f.loop(columns - f.call("minimum", rows, columns)) as right:
        _up_to_date(panel, rows + right, rows)
    f.store(info, 0, first_zero.get()[0])
    with f.loop(rows) as i, f.vector(columns) as c:
        f.store(x, i * step + c, panel.get(i, c))
    return f


def _up_to_date(panel: _Panel, column: Value, known: Value) -> None:
    """Subtract from a column its products with the `known` ones that are finished."""
    f, rows = panel.f, panel.rows
    whole = known // _TOGETHER
    with f.loop(whole) as block:
        _eliminated(panel, column, [block * _TOGETHER + t for t in range(_TOGETHER)], rows)
    with f.loop(known - whole * _TOGETHER) as rest:
        _eliminated(panel, column, [whole * _TOGETHER + rest], rows)


def _eliminated(panel: _Panel, column: Value, known: Sequence[Value], rows: Value) -> None:
    """Subtract a few neighbouring columns: a small triangle first, then everything below."""
    f = panel.f
    factors: list[Value] = []
    for k in known:
        value = panel.get(k, column)
        for factor, before in zip(factors, known, strict=False):
            value = f.fma(-panel.get(k, before), factor, value)
        panel.set(k, column, value)
        factors.append(value)
    below = known[-1] + 1
    with f.vector(rows - below) as rest:
        i = below + rest
        value = panel.get(i, column)
        for factor, k in zip(factors, known, strict=True):
            value = f.fma(-panel.get(i, k), factor, value)
        panel.set(i, column, value)


def _largest(panel: _Panel, j: Value) -> Value:
    """The first row, from j on, with the largest element of column j; NaN is as large as any."""
    f = panel.f

    def better(a: Value, i: Value, b: Value, k: Value) -> tuple[Value, Value]:
        take = (b > a) | ((b == a) & (k < i))
        return f.select(take, b, a), f.select(take, k, i)

    none = f.const(-1, panel.memory.scalar)
    best = f.state(none, panel.rows + 0, combine=better)
    with f.vector(panel.rows - j) as below:
        size = f.call("abs", panel.get(j + below, j))
        size = f.select(size == size, size, math.inf)
        most, where = best.get()
        larger = size > most
        best.set(f.select(larger, size, most), f.select(larger, j + below, where))
    return best.get()[1]


def exchange_function(name: str, dtype: str) -> Function:
    """Rows exchanged, one pair after the other: the first with that which its pivot names, and on.

    Parameters: pivots, columns of the matrix, and the step of rows; buffers: the matrix, whose rows
    are counted as the pivots count them, and the pivots.
    """
    f = Function(name)
    x, pivots = f.buffer("x", dtype, written=True), f.buffer("pivots", "i32")
    count, columns, step = f.param("count"), f.param("columns"), f.param("step")
    with f.parallel((columns + (COLUMNS - 1)) // COLUMNS) as block:
        left = block * COLUMNS
        width = f.call("minimum", columns - left, COLUMNS)
        with f.loop(count) as i:
            other = f.cast(f.load(pivots, i), "i64")
            with f.branch(other != i), f.vector(width) as c:
                places = i * step + left + c, other * step + left + c
                upper, lower = (f.load(x, place) for place in places)
                f.store(x, places[0], lower)
                f.store(x, places[1], upper)
    return f


def substitute_function(name: str, dtype: str, upper: bool, unit: bool) -> Function:
    """X of A X = B for a triangular A, in the memory of B.

    Parameters: rows of A, columns of B, the step of B's rows, and both steps of A; buffers: B, A.
    """
    f = Function(name)
    x, a = f.buffer("x", dtype, written=True), f.buffer("a", dtype)
    rows, columns, step = f.param("rows"), f.param("columns"), f.param("step")
    steps = f.param("row_step"), f.param("column_step")
    with f.parallel((columns + (COLUMNS - 1)) // COLUMNS) as block:
        left = block * COLUMNS
        width = f.call("minimum", columns - left, COLUMNS)
        with f.loop(rows) as done:
            i = rows - 1 - done if upper else done

            def subtract(known: Sequence[Value], i: Value = i) -> None:
                known = [rows - 1 - k for k in known] if upper else known
                factors = [f.load(a, i * steps[0] + k * steps[1]) for k in known]
                with f.vector(width) as c:
                    value = f.load(x, i * step + left + c)
                    for factor, k in zip(factors, known, strict=True):
                        value = f.fma(-factor, f.load(x, k * step + left + c), value)
                    f.store(x, i * step + left + c, value)

            whole = done // _TOGETHER
            with f.loop(whole) as group:
                subtract([group * _TOGETHER + t for t in range(_TOGETHER)])
            with f.loop(done - whole * _TOGETHER) as rest:
                subtract([whole * _TOGETHER + rest])
            if not unit:
                head = f.load(a, i * (steps[0] + steps[1]))
                with f.vector(width) as c:
                    place = i * step + left + c
                    f.store(x, place, f.load(x, place) / head)
    return f


def cholesky_block_function(name: str, dtype: str) -> Function:
    """The upper triangular U of Uᵀ U of one small matrix, in the place of its upper triangle.

    Below the diagonal there are zeros afterwards.

    Parameters: rows, and their step; buffers: the matrix, and info: the number, from 1 on, of the
    first row whose pivot is not positive, or 0.
    """
    f = Function(name)
    x, info = f.buffer("x", dtype, written=True), f.buffer("info", "i32", written=True)
    rows, step = f.param("rows"), f.param("step")
    first_bad = f.state(f.const(0, "i32"), combine=lambda a, b: b)
    with f.loop(rows) as j:
        with f.vector(j) as c:
            f.store(x, j * step + c, f.const(0, dtype))
        pivot = f.load(x, j * step + j)
        known = first_bad.get()[0]
        first_bad.set(f.select(~(pivot > 0) & (known == 0), f.cast(j, "i32") + 1, known))
        root = f.call("sqrt", pivot)
        with f.vector(rows - j) as right:
            place = j * step + j + right
            f.store(x, place, f.load(x, place) / root)
        with f.loop(rows - j - 1) as below:
            i = j + 1 + below
            factor = f.load(x, j * step + i)
            with f.vector(rows - i) as right:
                c = i + right
                value = f.fma(-factor, f.load(x, j * step + c), f.load(x, i * step + c))
                f.store(x, i * step + c, value)
    f.store(info, 0, first_bad.get()[0])
    return f
