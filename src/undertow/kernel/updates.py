"""The form `update`: the same expressions over many rows of arrays, written into them, one pass.

Note [rows of an update]
The arrays of a row have one size and lie dense, so a row is split anywhere: a table lists blocks of
at most BLOCK elements (as in kernel/maps), whichever rows they come from, and a launch runs them
all. Each operand has one buffer, its array in the first row. Where the arrays of other rows lie is
told with each launch, as elements from there, so that the table depends on sizes alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expr import Expr
from .ir import WIDTH, Function
from .lower import Lowering
from .maps import AHEAD, converted


def update_function(
    name: str,
    exprs: Sequence[Expr],
    arrays: Sequence[str],
    places: Sequence[int],
    numbers: int,
    dtype: str,
) -> Function:
    """The kernel of `exprs` over rows of arrays of these types; result i goes to `places[i]`.

    Its buffers are the arrays of the first row; where each row begins, an entry for each array; and
    the table: for each block its number of elements, its row, and where in it it begins. Its
    parameters are the number of blocks, then the numbers, which follow the arrays as arguments of
    the expressions.
    """
    f = Function(name)
    buffers = [f.buffer(f"x{i}", t, written=i in places) for i, t in enumerate(arrays)]
    begins, table = f.buffer("begins", "i64"), f.buffer("table", "i64")
    blocks = f.param("blocks")
    given = [f.cast(f.param(f"number{i}", "f64"), dtype) for i in range(numbers)]
    with f.parallel(blocks) as block:
        entry = block * 3
        count, row, done = (f.load(table, entry + i) for i in range(3))
        first = row * len(arrays)
        starts = [f.load(begins, first + i) + done for i in range(len(arrays))]
        with f.vector(count) as i:
            at = [start + i for start in starts]
            for b, a in zip(buffers, at, strict=True):  # see Note [reading ahead]
                f.prefetch(b, a + AHEAD // WIDTH[b.dtype])
            loaded = [f.load(b, a) for b, a in zip(buffers, at, strict=True)]
            lowering = Lowering(f, [*loaded, *given], dtype)
            values = [lowering.value(e) for e in exprs]
            for place, value in zip(places, values, strict=True):
                b = buffers[place]
                f.store(b, at[place], converted(f, value, b.scalar))
    return f
