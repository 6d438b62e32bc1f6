"""The form `update` for groups: several rows of arrays changed in place by one launch.

Buffers are bound one by one, so a launch takes as many rows as there are bindings for; a table of
where each row's blocks begin stands in the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import Expr
from ..ir import Function
from ..lower import Lowering
from ..maps import converted
from .elements import BLOCK, number_of


def update_function(
    name: str,
    double: bool,
    exprs: Sequence[Expr],
    arrays: Sequence[str],
    places: Sequence[int],
    numbers: int,
    dtype: str,
    rows: int,
) -> Function:
    """The kernel of `exprs` over rows of dense arrays; result i goes to `places[i]` of each row.

    Buffers: the arrays of all rows. Parameters: the number of blocks in all, for each row where its
    blocks begin and its number of elements, then the numbers, which follow the arrays as arguments.
    """
    f = Function(name, "i32", double)
    buffers = [
        [f.buffer(f"x{r}_{i}", t, written=i in places) for i, t in enumerate(arrays)]
        for r in range(rows)
    ]
    blocks = f.param("blocks")
    table = [(f.param(f"first{r}"), f.param(f"count{r}")) for r in range(rows)]
    given = [number_of(f, f"number{i}", dtype) for i in range(numbers)]
    with f.parallel(blocks) as block:
        for row, (first, count) in zip(buffers, table, strict=True):
            start = (block - first) * BLOCK
            mine = (block >= first) & (start < count)
            with f.branch(mine), f.vector(f.call("minimum", count - start, BLOCK)) as i:
                at = start + i
                lowering = Lowering(f, [*[f.load(b, at) for b in row], *given], dtype)
                values = [lowering.value(e) for e in exprs]
                for place, value in zip(places, values, strict=True):
                    b = row[place]
                    f.store(b, at, converted(f, value, b.scalar))
    return f
