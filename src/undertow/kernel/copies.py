"""Copies between arrays that lie along different dimensions.

Note [transposed copies]
Where the result is contiguous along one dimension and x along another, neither order of the loops
is good: one of the two would take an element from each line of memory that it touches, and if its
step is a power of two, these lines share so few places in the cache that they are gone before the
next element is wanted. So square tiles are copied to memory of the thread's own, transposing them,
and from there to the result.
"""

from __future__ import annotations

from .ir import Function
from .maps import converted

TILE = 64


def transpose_function(
    name: str, out_dtype: str, x_dtype: str, outer: int, stream: bool
) -> Function:
    """The kernel of Note [transposed copies].

    Buffers: out, x and TILE * TILE elements of x for each thread. Dimensions: `outer` ones, then
    the one along which x is contiguous, then the one along which out is. Parameters: the sizes,
    then of out and of x the steps of the outer dimensions and of the one along which the other is
    contiguous. To `stream`, out and its steps must be multiples of STREAM bytes.
    """
    f = Function(name)
    out, x = f.buffer("out", out_dtype, written=True), f.buffer("x", x_dtype)
    tiles = f.buffer("tiles", x_dtype, written=True)
    sizes = [f.param(f"n{d}") for d in range(outer + 2)]
    out_steps = [f.param(f"out_step{d}") for d in range(outer + 1)]
    x_steps = [f.param(f"x_step{d}") for d in range(outer + 1)]
    height, width = sizes[-2:]
    across = (width + (TILE - 1)) // TILE
    count = ((height + (TILE - 1)) // TILE) * across
    for size in sizes[:outer]:
        count = count * size
    with f.parallel(count) as block:
        left = (block % across) * TILE
        rest = block // across
        down = (height + (TILE - 1)) // TILE
        top = (rest % down) * TILE
        rest = rest // down
        into = top * out_steps[-1] + left
        at = left * x_steps[-1] + top
        for d in reversed(range(outer)):
            i = rest if d == 0 else rest % sizes[d]
            rest = rest if d == 0 else rest // sizes[d]
            into, at = into + i * out_steps[d], at + i * x_steps[d]
        tile = f.thread() * (TILE * TILE)
        rows, columns = f.call("minimum", height - top, TILE), f.call("minimum", width - left, TILE)
        with f.loop(columns) as c, f.vector(rows) as r:
            f.store(tiles, tile + r * TILE + c, f.load(x, at + c * x_steps[-1] + r))
        with f.loop(rows) as r, f.vector(columns) as c:
            found = f.load(tiles, tile + r * TILE + c)
            f.store(out, into + r * out_steps[-1] + c, converted(f, found, out.scalar), stream)
    return f
