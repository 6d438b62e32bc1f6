"""Plans of convolutions by tiles: where tiles begin, what they read and write, and in which blocks.

A plan is made once for operands of a layout; see Note [blocks of tiles] in cook_toom_text.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.cook_toom import transforms
from ... import debug
from ...base import Backend, Shape
from ...memory import empty
from ...threads import current_limit
from ..calls.launch import (
    Launch,
    Plan,
    fixed,
    plan_of,
    planned,
    put_back,
    sound,
    take_kept,
    unwritten,
)
from ..codegen.jit import address
from ..codegen.kernels import Kernel
from ..products.gemm import ANY, gemm, load, micro_kernels, pages
from ..products.gemm_micro import RELU, Epilogue, tile_text
from ..products.gemm_micro import Shape as TileShape
from ..products.gemm_tiles import Tile, cache_sizes, evenly, host, largest_tile
from ..threads.pool import pointer
from . import cook_toom_text as text
from .cook_toom_forms import Phases, Ranges, Tiling, Woven, tiles_along
from .cook_toom_tiles import PIECE, SIZE, Form, reads, span_of
from .padded import LINE, padded
from .problem import Arrays, Problem, Way, reshaped

SINGLE = np.dtype(np.float32)
MANY_POINTS = 7  # in one dimension: with so many, sums are short
SHORT, MIDDLING = 32, 96  # terms of a sum, else: more in one go have larger errors
LONG = 384  # terms of windows that are summed in one go
OFTEN = 0.5  # panels whose tiles begin one after the other, for which there is code of its own
DEPTH = 128  # tiles that a weight's gradient multiplies at a time
LAID_OUT = 3 << 19  # bytes of them at all points, about
PARTS = 4 << 20  # bytes of all sums of a weight's gradient
TAPS = 128  # of a window: the code has all of them one after the other, and must be compiled
LONGEST = 1 << 31  # elements of a line in place, where positions have 32 bits
TILES = 1 << 15  # of as many images as are computed at a time: a plan has tables of them


class Tiled(NamedTuple):
    """What a plan remembers."""

    threads: int
    scratch: int  # bytes, for all of them
    copies_x: bool = False  # with padding
    copies_w: bool = False
    sums: Shape = ()  # the shape of a weight's sums, and the matrix that they are transformed by
    matrix: Any = None


class Convolution:
    """A convolution whose taps are neighbours: its taps, places and tiles.

    Lines in place are read as if there were some places of padding before them. In the gradient of
    a weight by windows taps are `spread`: channels of their own.
    """

    def __init__(self, tiling: Tiling, in_place: bool) -> None:
        self.taps, self.places, self.strides, self.gaps = tiling.slides
        taps, places, strides, gaps = tiling.slides
        outputs, phases = tiling.outputs, tiling.phases
        spread = tiling.left and tiling.windows
        self.outputs, self.low = outputs, tiling.low
        self.before = tiling.low[0] if in_place and not spread else 0
        ones = (1,) * len(taps)
        at_once = ones if spread else taps  # of a tile
        self.spread = taps if spread else ones
        self.woven = tiling.woven or Woven(((0,) * len(taps),), ones, (at_once,))
        form = Form(outputs, at_once, *micro_tile(), in_place and not spread, gap=gaps[-1])
        form = form._replace(weave=self.woven.weave, apart=strides if form.windows else ())
        self.ranges: Ranges = ((0, 1),) * math.prod(form.points)
        last = [(r - 1) * d + 1 for r, d in zip(taps, gaps, strict=True)]  # that a place sees
        if phases is not None:
            form = form._replace(apart=phases.apart, phases=phases.firsts)
            self.ranges = phases.ranges(outputs)
            last = form.reach(taps)
        self.form, self.phases = form, max(len(form.phases), 1)
        self.points = math.prod(form.points)
        self.tiles = [tiles_along(*each) for each in zip(places, outputs, gaps, strict=True)]
        self.reach = [
            (t * m - 1) * s + n
            for t, m, s, n in zip(self.tiles, outputs, strides, last, strict=True)
        ]

    def padded(self, x: Any) -> Any:
        """A copy of the input with everything around it that is read."""
        return padded(x, self.low, self.reach, max(reads(self.form.width), PIECE))

    def as_it_is(self, x: Any) -> bool:
        """Whether an input needs no copy: its padding is minded, or nothing beyond it is read."""
        if self.form.in_place:
            return True
        count = self.form.width if self.spread == (1,) * len(self.taps) else 1
        return not any(self.low) and self.fits(x, self.reach, count)

    # Results at positions --------------------------------------------------------------------
    def forward(self, out: Any, x: Any, weights: Any, bias: Any, relu: bool) -> bool:
        """Write them into `out`; whether all of them are finite."""
        plan = plan_of(_make_forward, (out, x, weights), self, relu, current_limit())
        if plan.more.copies_x:
            x = self.padded(x)
        # The code is the same with and without one: compiling it again would take longer.
        if bias is None:
            bias = _zeros(math.prod(out.shape[1:3]))
        elif not bias.flags.c_contiguous:
            unwritten()  # NumPy copies it
            bias = np.ascontiguousarray(bias)
        return _run(plan, x, weights, out, bias)

    def transformed(self, w: Any, backend: Backend) -> Any:
        """The weights at each point: (groups, points, outputs, channels and some more)."""
        groups, outputs, channels = w.shape[:3]
        terms = math.prod(w.shape[2:]) if self.form.windows else channels
        long = (-(-terms * SIZE // LINE) | 1) * LINE // SIZE  # rows do not collide in a cache
        if self.form.windows:
            made = empty((groups, 1, outputs, long), SINGLE)
            backend.assign(made[:, 0, :, :terms].reshape(w.shape), w)
            return made
        given = _matrix("taps", self.outputs, self.taps)
        made = empty((groups, len(given), outputs, long), SINGLE)
        right = reshaped(w, (groups, outputs, channels, -1), backend).swapaxes(2, 3)
        into = made.transpose(0, 2, 1, 3)[..., :channels]
        gemm(given, right, into)
        return made

    def read(self, form: Form, grid: Any, x: Any, panels: int) -> tuple[Form, list[Any]]:
        """The first three tables, by tile or by panel; and the form that knows of them."""
        wide = form.vectors * host().vector // SIZE
        starts = self.starts_in_x(grid, x)
        begins = grid[0] * x.strides[0] + self.steps_in_x(grid) - self.before * SIZE
        behind = panels * wide - len(begins)  # tiles of which nothing is a result
        inside = (starts >= 0) & (starts + span_of(form.width, form.gap) <= x.shape[-1])
        anywhere = not form.in_place
        inside = np.pad(inside | anywhere, (0, behind), constant_values=anywhere)
        starts = np.pad(starts, (0, behind), constant_values=x.shape[-1])  # nothing is read
        begins = np.pad(begins, (0, behind))
        found = inside.reshape(panels, wide).all(1) * text.INSIDE
        line = (np.diff(begins.reshape(panels, wide)) == form.step * SIZE).all(1) & (form.gap == 1)
        form = form._replace(in_line=bool(line.mean() >= OFTEN))
        if form.in_line:
            found = np.where(line, found * text.IN_LINE, found)
        return form, [begins, starts, found]

    def written(self, form: Form, grid: Any, out: Any, panels: int) -> list[Any]:
        """The next six: where results are, which of them are, and which panels are whole."""
        wide = form.vectors * host().vector // SIZE
        to, rows, columns = self.results(grid, out)
        behind = panels * wide - grid.shape[1]
        tables = [np.pad(t, ((0, 0), (0, behind))) for t in (to, *rows, *columns)]
        to, first_row, end_row, first_column, end_column = tables
        size = (end_row - first_row) * (end_column - first_column)
        whole = (size == math.prod(self.outputs) * form.weave).reshape(-1, panels, wide).all(2)
        found = whole * text.WHOLE
        if form.one_piece:
            steps = np.diff(to.reshape(-1, panels, wide))
            one = (steps == form.outputs[-1] * form.weave * SIZE).all(2)
            found = np.where(whole & one, text.ONE_PIECE, found)
        return [*tables, found]

    def results(self, grid: Any, out: Any) -> tuple[Any, list[Any], list[Any]]:
        """By part and tile: where it begins in the result, and the rows that are there; columns."""
        to, rows, columns = [], [], []
        for first in self.woven.firsts:
            ends = grid[0] * out.strides[0]
            edges: list[Any] = []
            moves = zip(self.firsts(grid), first, self.woven.steps, out.shape[3:], strict=True)
            for d, (tile, begin, step, size) in enumerate(moves):
                at = begin + tile * step
                ends = ends + at * out.strides[3 + d]
                count = self.outputs[d]
                if d == len(first) - 1:
                    count, step = count * step, 1
                apart = step * self.gaps[d]
                edges.append([np.clip(-((at - end) // apart), 0, count) for end in (0, size)])
            to.append(ends)
            low, high = edges[-2] if len(edges) > 1 else (np.zeros_like(ends), np.ones_like(ends))
            for below, above in edges[:-2]:  # planes, of one
                low = np.where(above > below, low, high)
            rows.append((low, high))
            columns = edges[-1]
        return (
            np.array(to),
            [np.array(r) for r in zip(*rows, strict=True)],
            [c[None] for c in columns],
        )

    def terms(self, each: int) -> list[Any]:
        """The first that has a weight at a point, and the end, for each; `each` a phase."""
        sides = [np.array(side, np.int64) * each for side in zip(*self.ranges, strict=True)]
        there = self.woven.there(self.outputs, self.form.taps)
        return [np.tile(side, len(self.woven.taps)) * there for side in sides]

    def depth(self, terms: int) -> int:
        """How many terms are summed in one go; by the shapes alone, since it shows in the bits."""
        if self.form.windows:
            return -(-terms // evenly(terms, LONG))
        return SHORT if max(self.form.points) >= MANY_POINTS else MIDDLING

    def steps_in_x(self, grid: Any) -> Any:
        """Where tiles begin in the input, in place or padded."""
        rank = len(self.strides)
        return self.steps(grid, [self.step(d) * self.strides[d] for d in range(-rank, 0)])

    def step(self, dim: int) -> int:
        """Bytes from one element to the next of the padded input along a dimension from the end."""
        return math.prod(self.reach[len(self.reach) + dim + 1 :]) * SIZE

    def starts_in_x(self, grid: Any, x: Any) -> Any:
        """Where they begin in a line, or where nothing is read if that is far outside."""
        starts = self.firsts(grid)[-1] * self.strides[-1] - self.before
        return np.clip(starts, -span_of(self.form.width, self.form.gap), x.shape[-1])

    def gap(self, dim: int) -> int:
        """That along a dimension from the end, if there is one."""
        return self.gaps[dim] if -dim <= len(self.gaps) else 1

    def firsts(self, grid: Any) -> list[Any]:
        """The first place of tiles along each dimension."""
        moves = zip(grid[1:], self.outputs, self.gaps, strict=True)
        return [index // d * (m * d) + index % d for index, m, d in moves]

    def steps(self, grid: Any, strides: Sequence[int]) -> Any:
        """Where tiles begin in memory with such steps."""
        rank = len(self.outputs)
        return sum(f * s for f, s in zip(self.firsts(grid), strides[-rank:], strict=True))

    # The gradient of a weight ----------------------------------------------------------------
    def weight(self, x: Any, w: Any, backend: Backend) -> Any:
        """The gradient, or None if it is not finite; see Note [what is not finite]."""
        plan = plan_of(_make_weight, (x, w), self, current_limit())
        more = plan.more
        groups, parts, points, high, wide = more.sums
        channels, outputs, rank = len(x), w.shape[1], len(self.taps)
        sums = empty(more.sums, SINGLE)
        x = self.padded(x) if more.copies_x else x
        w = self.padded_cotangent(w) if more.copies_w else w
        _run(plan, x, w, sums)
        del x, w  # copies are no longer needed
        if self.form.windows:
            result = backend.reduce("sum", sums, (1,), False) if parts > 1 else sums[:, 0]
            shaped = result.reshape(groups, high, wide)
            shaped = shaped[:, : channels * math.prod(self.spread), :outputs]
            shaped = shaped.reshape(1, groups, channels, *self.taps, outputs)
            return shaped.transpose(0, 2, 1, 3 + rank, *range(3, 3 + rank))
        for point, (first, end) in enumerate(self.ranges if self.phases > 1 else ()):
            each = high // self.phases  # of which some have no such tap
            backend.zero([sums[:, :, point, : first * each], sums[:, :, point, end * each :]])
        result = empty((groups, len(more.matrix), high * wide), SINGLE)
        right = sums.reshape(groups, parts, points, -1).swapaxes(0, 1)
        gemm(
            np.broadcast_to(more.matrix, (parts, 1, *more.matrix.shape)), right, result, summed=True
        )
        if not sound(backend.reduce("sum", result, (0, 1, 2), False)):
            return None
        shaped = result.reshape(groups, *self.taps, self.phases, -1, wide)
        shaped = shaped[..., :channels, :outputs]
        return shaped.transpose(1 + rank, 2 + rank, 0, 3 + rank, *range(1, 1 + rank))

    @property
    def sizes(self) -> list[int]:
        """The places of all tiles along each dimension."""
        return [t * m for t, m in zip(self.tiles, self.outputs, strict=True)]

    def padded_cotangent(self, w: Any) -> Any:
        """A copy of the cotangent with everything that is read."""
        behind = max(reads(self.outputs[-1]), PIECE)
        return padded(w, [0] * len(self.taps), self.sizes, behind)

    def fits(self, a: Any, sizes: Sequence[int], count: int) -> bool:
        """Whether an array is whole tiles of neighbours, so many along a line: no more are read."""
        steps = [math.prod(sizes[d:]) * SIZE for d in range(1, len(sizes) + 1)]
        along = reads(count) == count and self.form.gap == 1
        return along and list(a.shape[3:]) == list(sizes) and list(a.strides[3:]) == steps

    def summed(
        self, x: Any, w: Any, grid: Any, steps: Sequence[int], x_end: int, w_end: int
    ) -> list[Any]:
        """Where tiles begin in both arrays, where lanes do, and where tiles do in their lines."""
        x_lanes = np.minimum(np.arange(x_end), len(x) * math.prod(self.spread) - 1)
        w_lanes = np.minimum(np.arange(w_end), w.shape[1] - 1)
        channel, *tap = np.unravel_index(x_lanes, (len(x), *self.spread))
        taps = sum(t * self.step(d - len(tap)) for d, t in enumerate(tap))
        return [
            grid[0] * x.strides[2] + self.steps_in_x(grid) - self.before * SIZE,
            grid[0] * w.strides[2] + self.steps(grid, steps),
            channel * x.strides[0] + taps,
            w_lanes * w.strides[1],
            self.starts_in_x(grid, x),
            self.firsts(grid)[-1],
        ]


# The same one for the same tiling, since it is a key of plans.
convolution = functools.lru_cache(maxsize=2048)(Convolution)


def tiled(p: Problem, tiling: Tiling) -> Way | None:
    """How to compute by tiles; None if the code is not for it."""
    taps, left = tiling.slides.taps, tiling.left
    if len(taps) > 3 or math.prod(taps) > TAPS or p.x.dtype != SINGLE:
        return None
    in_place = len(taps) == 1 and p.x.strides[-1] == SIZE and (p.w.strides[-1] == SIZE or not left)
    in_place = in_place and max(p.x.shape[-1], p.w.shape[-1]) < LONGEST
    found = convolution(tiling, in_place)
    images, several = p.x.shape[2 if left else 0], max(1, TILES // math.prod(found.tiles))
    parts = [slice(n, n + several) for n in range(0, images, several)]
    if left:
        return Way(functools.partial(_gradient, found, parts, tiling.phases), False, False)
    return Way(functools.partial(_results, found, parts, tiling.phases, p.relu), True, True)


def _results(
    of: Convolution, parts: list[slice], phases: Phases | None, relu: bool, a: Arrays, k: Backend
) -> bool:
    """Results at positions; False as Note [what is not finite] tells."""
    out, x, w, bias = a
    weights = of.transformed(phases.weights(w, k) if phases else w, k)
    return all(of.forward(out[n], x[n], weights, bias, relu) for n in parts)


def _gradient(
    of: Convolution, parts: list[slice], phases: Phases | None, a: Arrays, backend: Backend
) -> bool:
    """The gradient of a weight; likewise."""
    total: Any = None
    for part in parts:
        found = of.weight(a.x[:, :, part], a.w[:, :, part], backend)
        if found is None:
            return False
        if part is parts[0]:
            total = found
        else:
            backend.add_into(total, found)
    if phases is None:
        backend.assign(a.out, total[0])
    else:
        phases.spread(a.out, total, backend)
    return True


def _runs(begins: Any, step: int) -> Any:
    """How many from each one on are so far apart, with itself.

    >>> _runs(np.array([0, 4, 8, 20, 24, 40]), 4).tolist()
    [3, 2, 1, 2, 1, 1]
    """
    ends = np.append(np.flatnonzero(np.diff(begins) != step), len(begins) - 1)
    numbers = np.arange(len(begins))
    return ends[np.searchsorted(ends, numbers)] + 1 - numbers


def micro_tile() -> Tile:
    """A micro-kernel's tile whose rows are at most a vector."""
    rows, vectors = largest_tile(host(), 2)
    return Tile(min(rows, host().vector // SIZE), vectors)


def _kernels(form: Form, heights: set[int]) -> int:
    """The address of the table of micro-kernels, with those of some heights."""
    epilogue = Epilogue("rows", RELU if form.relu else None)
    shape = TileShape("float", "float", ANY, False, False, False, False)
    if form.windows:
        shape = shape._replace(epilogue=epilogue)
    sizes = [Tile(h, form.vectors) for h in heights]
    return micro_kernels("gemm_tile", tile_text, shape, host(), sizes)


@functools.cache
def _zeros(count: int) -> Any:
    return fixed(np.zeros(count, SINGLE))


@functools.cache
def _matrix(which: str, m: Shape, r: Shape) -> Any:
    """One of the matrices for m outputs and r taps, of all dimensions together."""
    given = [np.array(getattr(transforms(a, b), which)) for a, b in zip(m, r, strict=True)]
    return fixed(functools.reduce(np.kron, given).astype(SINGLE))


def _make_forward(
    operands: tuple[Any, Any, Any], of: Convolution, relu: bool, threads: int
) -> Plan:
    out, x, weights = operands
    form = of.form._replace(spread=out.strides[-1] != SIZE, relu=relu)
    n, groups, channels = x.shape[:3]
    copies = not of.as_it_is(x)
    if copies:
        x = of.padded(x)
    elif not form.in_place:
        x = x.reshape(n, groups, channels, -1)
    rows, wide = form.rows, form.vectors * host().vector // SIZE
    grid = np.indices((n, *of.tiles)).reshape(1 + len(of.tiles), -1)
    panels = evenly(grid.shape[1], wide)
    form, tables = of.read(form, grid, x, panels)
    tables += of.written(form, grid, out, panels)
    # A block stays in the second cache, beside what passes by; threads get several each.
    terms = channels * (math.prod(of.taps) if form.windows else of.phases)
    points = 1 if form.windows else of.points
    tables += of.terms(terms // of.phases)
    fits = max(cache_sizes()[1] // 2 // (points * terms * wide * SIZE), 1)
    blocks = max(evenly(panels, fits), min(panels, evenly(4 * threads, groups)))
    block = -(-panels // blocks)
    blocks = -(-panels // block)
    outputs = weights.shape[2] // len(of.woven.taps)
    row_panels = evenly(outputs, rows)
    panel_rows, longer = divmod(outputs, row_panels)
    numbers = {
        "tasks": groups * blocks,
        "blocks": blocks,
        "block": block,
        "panels": panels,
        "channels": channels,
        "terms": terms,
        "depth": of.depth(terms),
        "outputs": outputs,
        "parts": len(of.woven.firsts),
        "row_panels": row_panels,
        "panel_rows": panel_rows,
        "longer_panels": longer,
        "x_group": x.strides[1],
        "x_channel": x.strides[2],
        "x_plane": of.step(-3) * of.gap(-3),
        "x_row": of.step(-2) * of.gap(-2),
        "x_size": x.shape[-1],
        "w_group": weights.strides[0],
        "w_point": weights.strides[1],
        "w_row": weights.strides[2],
        "y_group": out.strides[1],
        "y_output": out.strides[2],
        "y_row": out.strides[-2] * of.gap(-2) * (1, *of.woven.steps)[-2],
        "y_step": out.strides[-1] * of.gap(-1),
        "tiles": _kernels(form, {panel_rows, panel_rows + bool(longer)}),
        "thread_bytes": pages(
            points * (block * wide * SIZE * (terms + rows * form.weave) + text.APART)
        ),
    }
    return _planned(
        text.forward_text, form, text.FORWARD, numbers, tables, threads, copies_x=copies
    )


def _make_weight(operands: tuple[Any, Any], of: Convolution, threads: int) -> Plan:
    x, w = operands
    groups, images = x.shape[1:3]
    channels = len(x) * math.prod(of.spread)
    form, outputs, sizes = of.form, w.shape[1], of.sizes
    copies_x = not of.as_it_is(x)
    copies_w = not (form.in_place or of.fits(w, sizes, of.outputs[-1]))
    if copies_x:
        x = of.padded(x)
    if copies_w:
        w = of.padded_cotangent(w)
    lanes = host().vector // SIZE
    wide = form.vectors * lanes
    grid = np.indices((images, *of.tiles)).reshape(1 + len(of.tiles), -1)
    row_panels, column_panels = evenly(channels, form.rows), evenly(outputs, wide)
    steps = [math.prod(sizes[d:]) * SIZE for d in range(1, len(sizes) + 1)]
    gaps = [s * d for s, d in zip(steps, of.gaps, strict=True)]
    w_plane, w_row = [0, 0, *gaps[:-1]][-2:]
    ends = row_panels * form.rows + lanes, column_panels * wide
    tables = of.summed(x, w, grid, steps, *ends) + of.terms(row_panels)
    tables += [_runs(tables[0], of.strides[-1] * SIZE), _runs(tables[1], SIZE)]
    column_block = -(-column_panels // evenly(column_panels, max(1, DEPTH // wide)))
    column_blocks = -(-column_panels // column_block)
    high = of.phases * row_panels
    # By the shapes alone, since it shows in the last bits.
    bytes = of.points * of.phases * channels * outputs * SIZE
    parts = min(4, PARTS // bytes, images * math.prod(of.tiles) // DEPTH)
    parts = 1 << max(parts, 1).bit_length() - 1  # of two, so that threads have as many
    y_row = column_panels * wide * SIZE
    y_point = high * form.rows * y_row
    each = SIZE * (high * form.rows + column_block * wide)  # of a tile at one point
    fits = min(cache_sizes()[1] // 2 // each, LAID_OUT // (of.points * each))
    depth = max(16, min(DEPTH, fits)) // PIECE * PIECE
    numbers = {
        "tasks": groups * parts * column_blocks,
        "parts": parts,
        "column_blocks": column_blocks,
        "column_block": column_block,
        "row_panels": row_panels,
        "column_panels": column_panels,
        "steps": grid.shape[1],
        "depth": depth,
        "x_group": x.strides[1],
        "x_plane": of.step(-3) * of.gap(-3),
        "x_row": of.step(-2) * of.gap(-2),
        "w_group": w.strides[0],
        "w_plane": w_plane,
        "w_row": w_row,
        "x_size": x.shape[-1],
        "w_size": w.shape[-1],
        "y_task": of.points * y_point,
        "y_point": y_point,
        "y_row": y_row,
        "tiles": _kernels(form, {form.rows}),
        "thread_bytes": pages(of.points * (each * depth + high * host().vector + text.APART)),
    }
    sums = groups, parts, of.points, high * form.rows, column_panels * wide
    matrix = None if form.windows else _matrix("outputs", of.taps, of.outputs)
    more = {"copies_x": copies_x, "copies_w": copies_w, "sums": sums, "matrix": matrix}
    return _planned(text.weight_text, form, text.WEIGHT, numbers, tables, threads, **more)


def _planned(
    write: Any,
    form: Form,
    fields: list[str],
    numbers: dict[str, int],
    tables: list[Any],
    threads: int,
    **more: Any,
) -> Plan:
    """Compile, and put the numbers in the order of the code."""
    debug.note(f"convolution with fewer products: {form}, {numbers}")
    kernel = Kernel(
        "cook_toom", load("cook_toom", write, form, host()), ["ptr"] * (1 + len(text.CALL))
    )
    tables = [np.ascontiguousarray(t, np.int64) for t in tables]
    numbers |= zip(fields[-len(tables) :], map(address, tables), strict=True)
    table = np.array([numbers[name] for name in fields], np.int64)
    threads = min(threads, numbers["tasks"])
    size = text.FLAG + threads * numbers["thread_bytes"]
    launch = Launch(kernel, len(text.CALL), ())
    return planned(launch, tables=[table, *tables], more=Tiled(threads, size, **more))


def _run(plan: Plan, x: Any, w: Any, y: Any, bias: Any = None) -> bool:
    """Compute by a plan; whether the code has found nothing that is not finite."""
    threads, size, *_ = plan.more
    scratch = take_kept(size)
    given = (x, w, y, y if bias is None else bias, scratch, plan.tables[0])
    plan.launch.run(pointer(threads), *given)
    right = bias is None or sound(scratch[:SIZE].view(SINGLE))
    put_back(scratch)
    return right
