"""The form csr_matmul: a matrix that is stored by its nonzero elements, times a dense one.

Note [stripes of columns]
A row of the result is a sum of rows of the dense matrix, each as often as an element of the sparse
row says. A stripe of columns, several vectors wide, is summed in registers while the elements of
the row are walked in order; so an element is read once for each stripe, and the result is written
once. Which rows of the dense matrix come next is known only to who reads ahead, so they are
prefetched. Rows are shared out to the threads in blocks whose size does not depend on their number.
"""

from __future__ import annotations

from .indexing import picked
from .ir import WIDTH, Function, State, Value

ROWS = 16  # of the result, that a thread takes at a time
AHEAD = 8  # elements whose rows are asked for early
LINE = 64  # bytes of a cache line


def csr_matmul_function(name: str, dtype: str, index: str, lanes: int, vectors: int) -> Function:
    """The kernel whose stripes are `vectors` times `lanes` columns; see Note [stripes of columns].

    Buffers: out and dense, whose rows are contiguous; where the elements of each row begin, and one
    more; their columns; their values. Parameters: the number of rows, of columns of the result, of
    elements, the step between rows of dense, and its last row.
    """
    f = Function(name)
    out = f.buffer("out", dtype, written=True)
    dense = f.buffer("dense", dtype)
    begins, columns = f.buffer("begins", index), f.buffer("columns", index)
    values = f.buffer("values", dtype)
    rows, width, number = f.param("rows"), f.param("width"), f.param("number")
    reach = (f.param("step"), f.param("last"))
    stripe = lanes * vectors

    def border(row: Value) -> Value:
        """Where a row begins, within the elements whatever the array says."""
        return picked(f, begins, row, (f.value(1, "i64"), number))

    def summed(row: Value, begin: Value, count: Value, start: Value, extent: Value | int) -> None:
        """The columns from `start` on, `extent` of them in lanes, each with its neighbours."""
        apart = [n * lanes for n in range(vectors)] if isinstance(extent, int) else [0]
        with f.vector(extent) as lane:
            first = start + lane
            sums: list[State] = [
                f.state(f.const(0.0, out.scalar), combine=lambda a, b: a + b) for _ in apart
            ]
            with f.loop(count) as n:
                at = begin + n
                weight = f.load(values, at)
                place = picked(f, columns, at, reach) + first
                far = picked(f, columns, f.call("minimum", at + AHEAD, number - 1), reach) + start
                for more in range(0, len(apart) * lanes, LINE // WIDTH[dtype]):
                    f.prefetch(dense, far + more)
                for total, more in zip(sums, apart, strict=True):
                    element = f.load(dense, place + more)
                    total.set(f.fma(weight, element, total.get()[0]))
            for total, more in zip(sums, apart, strict=True):
                f.store(out, row * width + first + more, total.get()[0])

    blocks = (rows + (ROWS - 1)) // ROWS
    whole = width // stripe
    with f.parallel(blocks * ((width + (stripe - 1)) // stripe)) as block:
        which, top = block // blocks, (block % blocks) * ROWS
        with f.loop(f.call("minimum", rows - top, ROWS)) as r:
            row = top + r
            begin = border(row)
            count = f.call("maximum", border(row + 1) - begin, 0)
            with f.branch(which < whole):
                summed(row, begin, count, which * stripe, lanes)
            with f.branch(which >= whole):
                summed(row, begin, count, whole * stripe, width - whole * stripe)
    return f
