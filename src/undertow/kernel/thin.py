"""Products with few columns: sums along k in the lanes of vectors, for operands with k contiguous.

    void tile(pool, a, b, c, bias, k, a_row, b_column, c_row, c_column, mode, bias_row, bias_column)

A tile is R rows by S columns of the result; each of its elements has a vector of partial sums.
Steps are in bytes.

Note [thin]
With n columns, fewer than a vector has lanes, the tiles of `gemm_micro` leave lanes empty and need
one load per multiply-add. Here a step takes R + S loads for R*S multiply-adds in full lanes.
Element p of k falls into lane p mod L, and the lanes are added by halves at the end; so the order
of additions depends on k alone, not on where in the result one is.
"""

from __future__ import annotations

from .expr import Expr
from .ir import Buffer, Function, Operand
from .lower import lower

BUFFERS = ("a", "b", "c", "bias")
PARAMETERS = ("k", "a_row", "b_column", "c_row", "c_column", "mode", "bias_row", "bias_column")
ADD, FINISH = 1, 2  # modes: add to the result that is there; apply the epilogue


def thin_function(
    name: str, dtype: str, rows: int, columns: int, biased: bool, activation: Expr | None
) -> Function:
    """The tile of so many rows and columns, with a bias or not, then an expression of the sums."""
    f = Function(name)
    a, b, c, bias = (f.buffer(n, dtype, written=n == "c") for n in BUFFERS)
    k, a_row, b_column, c_row, c_column, mode, bias_row, bias_column = map(f.param, PARAMETERS)
    totals = f.shared("totals", dtype, rows * columns)

    def apart(buffer: Buffer, step: Operand, count: int) -> list[Buffer]:
        found = [buffer]
        while len(found) < count:
            found.append(f.moved(found[-1], step))
        return found

    def grid(buffer: Buffer, row: Operand, column: Operand) -> list[Buffer]:
        return [x for line in apart(buffer, row, rows) for x in apart(line, column, columns)]

    left, right = apart(a, a_row, rows), apart(b, b_column, columns)
    zero = f.const(0, dtype)
    sums = [f.state(zero, combine=lambda x, y: x + y) for _ in range(rows * columns)]
    with f.vector(k) as p:
        others = [f.load(column, p) for column in right]
        for r, row in enumerate(left):
            one = f.load(row, p)
            for other, total in zip(others, sums[r * columns :], strict=False):
                total.set(f.fma(one, other, total.get()[0]))
    places = grid(c, c_row, c_column)
    with f.branch((mode & ADD) != 0):
        for total, place in zip(sums, places, strict=True):
            total.add(f.load(place, 0))
    if biased or activation is not None:
        with f.branch(mode >= FINISH):
            given = [
                x for row in apart(bias, bias_row, rows) for x in apart(row, bias_column, columns)
            ]
            for n, (total, place) in enumerate(zip(sums, given, strict=True)):
                if biased:
                    total.add(f.load(place, 0))
                f.store(totals, n, total.get()[0])
            if activation is not None:
                with f.vector(rows * columns) as i:
                    f.store(totals, i, lower(f, activation, [f.load(totals, i)], dtype))
            for n, total in enumerate(sums):
                total.set(f.load(totals, n))
    for total, place in zip(sums, places, strict=True):
        f.store(place, 0, total.get()[0])
    return f
