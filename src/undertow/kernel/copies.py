"""Copies between arrays that lie along different dimensions, and with zeros around them.

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


def pad_function(name: str, dtype: str, dense: bool) -> Function:
    """A copy with zeros around it, of images, groups and channels with three dimensions each.

    Buffers: out, x. Parameters: the sizes of x's first three dimensions; of the others those of the
    part that is copied, and where in out it begins, with the steps of the first two there; all
    elements of a channel of out; the steps of x, but for the last if it is `dense`. A channel is
    filled with zeros and then copied into, while it is in the first cache.
    """
    f = Function(name)
    out, x = f.buffer("out", dtype, written=True), f.buffer("x", dtype)
    images, groups, channels = (f.param(n) for n in ("images", "groups", "channels"))
    planes, rows, columns = (f.param(n) for n in ("planes", "rows", "columns"))
    first, by_plane, by_row, whole = (f.param(n) for n in ("first", "by_plane", "by_row", "whole"))
    steps = [f.param(f"step{d}") for d in range(5 if dense else 6)]
    zero = f.const(0.0, out.scalar)
    with f.parallel(images * groups * channels) as task:
        into = task * whole
        with f.vector(whole) as column:
            f.store(out, into + column, zero)
        rest = task // channels
        at = (task % channels) * steps[2] + (rest % groups) * steps[1] + (rest // groups) * steps[0]
        with f.loop(planes) as plane, f.loop(rows) as row:
            to = into + first + plane * by_plane + row * by_row
            of = at + plane * steps[3] + row * steps[4]
            with f.vector(columns) as column:
                f.store(out, to + column, f.load(x, of + (column if dense else column * steps[5])))
    return f
