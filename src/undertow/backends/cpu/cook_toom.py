"""Convolutions by tiles: with fewer products, or as sums over windows, which are tiles of one.

See Note [fewer products] in kernel/cook_toom.py. Windows may have any stride.

The form `conv` is either the result at positions, with the weights transformed once, or, if it has
more taps than positions, the gradient of a weight, in which the form's channels are images; see
Note [two products] in conv.py. Lines are read in place; in more dimensions padding is laid out
once, as for shifts.

Note [which forms]
The more outputs a tile has, the fewer products there are, and the larger are the rounding errors;
sums over channels are most of them, so those are made in short blocks where there are many points.
"auto" uses forms whose error is at most twice that of a plain sum, "fast" others too;
`tests/test_cook_toom.py` measures them. Whether a form is used for results at positions depends on
shapes, but not on the size of the batch, so that a result has the same bits in every batch.

Note [phases]
With a stride s, taps that are s apart see elements that are s apart. So the elements of each
remainder, a phase, are an input of their own, over which every s-th tap slides with stride 1, and
the result is the sum over phases as over channels. More taps than forms have, of any stride, are
cut into phases as well: each sees the elements from its first tap on. Tiles of all phases are read
together. If a phase has a tap less, in its place stands a zero, which is the weight's value at the
last point (infinity), so that the phase is left out there: 7 taps are F(4, 4) and F(4, 3). The
gradient of the weight is the same with results in the place of weights. In the gradient of the
input of a strided convolution the phases are those of the results (see `phases` in
kernel/windows.py). They are computed together: the input is transformed once, a phase that has a
tap less is left out at the last point, and those that are neighbours along lines are woven into
each other as they are written.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...kernel.cook_toom import transforms
from ...kernel.windows import Geometry, Phase
from ...kernel.windows import phases as phases_of
from ..base import Backend, Shape
from ..memory import empty
from ..threads import current_limit
from . import debug, pool
from .cook_toom_text import (
    APART,
    FLAG,
    FORWARD,
    IN_LINE,
    INSIDE,
    ONE_PIECE,
    WEIGHT,
    WHOLE,
    forward_text,
    weight_text,
)
from .cook_toom_tiles import PIECE, SIZE, Form, reads, span_of
from .gemm import ANY, PAGE, gemm, load, micro_kernels, scratch
from .gemm_micro import RELU, Epilogue, tile_text
from .gemm_micro import Shape as Kernel
from .gemm_tiles import Tile, cache_sizes, evenly, host, largest_tile
from .jit import address
from .padded import LINE, padded
from .plans import Plans, forwards

SINGLE = np.dtype(np.float32)
MODES = ("exact", "auto", "fast")
# The outputs of a tile by the taps, in one dimension and in each of two.
LINES = {2: 4, 3: 4, 4: 4, 5: 4, 6: 2, 7: 2}
SQUARES = {2: 2, 3: 2, 4: 2, 5: 2}
FASTER_SQUARES = {2: 4, 3: 4}
BESIDE = {1: 2}  # along a dimension of one tap, beside one of several
CHANNELS = 16  # fewer are not worth transforming
WORK = 1 << 16  # positions × channels × outputs of an image, below which other ways are faster
BATCH_WORK = 1 << 21  # the same of all images, for a weight's gradient
MANY_POINTS = 7  # in one dimension: with so many, sums are short
SHORT, MIDDLING = 32, 96  # terms of a sum, else: more in one go have larger errors
WASTE = 1.25  # places that dilated tiles compute, for one that is wanted
MOST_TAPS = 5  # of a phase along a dimension
MOST_PHASES = 8  # the code has all of them one after the other, and must be compiled
GAIN = 0.7  # products by phases for one without, at most
WOVEN = 0.8  # the same by phases of results
LONG = 384  # terms of windows that are summed in one go
TAPS = 128  # of a window: the code has all of them one after the other, and must be compiled
DEPTH = 128  # tiles that a weight's gradient multiplies at a time
LAID_OUT = 2 << 20  # bytes of them at all points, about
PARTS = 4 << 20  # bytes of all sums of a weight's gradient
LONGEST = 1 << 31  # elements of a line in place, where positions have 32 bits
TILES = 1 << 15  # of as many images as are computed at a time: a plan has tables of them
TABLES = 128 << 20  # bytes of all plans that are remembered


def outputs_of(taps: Shape, mode: str) -> Shape | None:
    """How many outputs a tile has along each dimension; None if there is no form for the taps.

    >>> outputs_of((3,), "auto"), outputs_of((3, 3), "fast"), outputs_of((9,), "auto")
    ((4,), (4, 4), None)
    """
    if mode not in MODES:
        raise ArgumentError(
            f"backends.cpu.fast_convolution must be one of {', '.join(MODES)}, got {mode!r}"
        )
    if len(taps) == 1 or max(taps[:-1]) == 1:
        found = [1] * (len(taps) - 1) + [LINES.get(taps[-1], 0)]
    else:  # of planes, if there are several
        table = BESIDE | SQUARES | (FASTER_SQUARES if mode == "fast" else {})
        found = [1] * (len(taps) - 2) + [table.get(r, 0) for r in taps[-2:]]
    return tuple(found) if all(found) and mode != "exact" else None


def run_cook_toom(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool, mode: str
) -> bool | None:
    """Write a convolution into `out`; whether `relu` is part of it, or None if not for this."""
    slides, phases = _slides(geometry), None
    if max(slides.strides) > 1 or (max(slides.gaps) == 1 and max(slides.taps[-2:]) > MOST_TAPS):
        if max(slides.gaps) > 1 or _count(slides) > MOST_PHASES:
            return None
        phases = _phases(slides.taps, slides.strides)
        slides = slides._replace(taps=phases.taps)
    outputs = outputs_of(slides.taps, mode)
    if outputs is None or (phases and not phases.pay(outputs)):
        return None
    if max(slides.gaps) > 1:  # tiles of all remainders should not reach far beyond the end
        tiles = map(_tiles, slides.places, outputs, slides.gaps)
        if math.prod(tiles) * math.prod(outputs) > WASTE * math.prod(slides.places):
            return None
    return _run_tiles(out, x, w, bias, geometry, backend, relu, slides, outputs, phases)


def run_windows(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool
) -> bool | None:
    """The same as sums over windows, of any stride: tiles of one output, without transforms."""
    slides = _slides(geometry)
    if max(slides.gaps) > 1:
        return None
    outputs = (1,) * len(slides.taps)
    return _run_tiles(out, x, w, bias, geometry, backend, relu, slides, outputs)


class _Slides(NamedTuple):
    """What slides over the input, by dimension: a kernel, or in its place a cotangent."""

    taps: Shape
    places: Shape
    strides: Shape  # of places
    gaps: Shape  # between taps


def _slides(geometry: Geometry) -> _Slides:
    taps, places, strides, gaps = geometry.kernel, geometry.output, *geometry.steps[::3]
    if math.prod(taps) > math.prod(places):
        taps, places, strides, gaps = places, taps, gaps, strides
    return _Slides(taps, places, strides, tuple(map(_gap, gaps, taps)))


def _gap(gap: int, taps: int) -> int:
    return gap if taps > 1 else 1


Ranges = tuple[tuple[int, int], ...]


def _parts(taps: int, stride: int) -> int:
    """Into how many phases the taps of each remainder are cut."""
    return evenly(-(-taps // stride), MOST_TAPS)


def _count(slides: _Slides) -> int:
    """How many phases there are at most."""
    pairs = list(zip(slides.taps, slides.strides, strict=True))
    return math.prod(min(pair) for pair in pairs) * math.prod(_parts(*p) for p in pairs[-2:])


class _Phases:
    """Phases of taps: how many taps each has, and their order; see Note [phases]."""

    def __init__(self, taps: Shape, apart: Shape) -> None:
        self.whole, self.apart = taps, apart
        each: list[Sequence[int]] = []
        found = []
        for d, (r, s) in enumerate(zip(taps, apart, strict=True)):
            parts = _parts(r, s) if d >= len(taps) - 2 else 1
            count = -(-r // (s * parts))
            found.append(count)
            remainders = range(min(r, s))
            all = [b + j * count * s for j in range(parts) for b in remainders]
            each.append([first for first in all if first < r])
        self.taps = tuple(found)
        self.firsts = tuple(sorted(itertools.product(*each), key=self.order))

    def ends(self, first: Shape) -> tuple[bool, ...]:
        """Along which dimensions a phase has a last tap."""
        rows = zip(first, self.taps, self.apart, self.whole, strict=True)
        return tuple([b + (a - 1) * s < r for b, a, s, r in rows])

    def order(self, first: Shape) -> int:
        """So that those with a last tap in a row, in a column and in both are neighbours."""
        *_, row, column = (True, *self.ends(first))
        return (2 if row else 3) if not column else (1 if row else 0)

    @functools.lru_cache(maxsize=1024)  # noqa: B019 (phases are few and remembered themselves)
    def ranges(self, outputs: Shape) -> Ranges:
        """The first phase that has a weight at a point, and the end of them, for each point."""
        ends = [self.ends(first) for first in self.firsts]
        found = []
        every = [range(m + r - 1) for m, r in zip(outputs, self.taps, strict=True)]
        for point in itertools.product(*every):
            last = [i == count[-1] for i, count in zip(point, every, strict=True)]
            if len(point) > 2:
                last[0] = False  # those of planes would not be neighbours
            wanted = [all(e or not i for e, i in zip(end, last, strict=True)) for end in ends]
            there = [n for n, w in enumerate(wanted) if w]
            found.append((there[0], there[-1] + 1))
        return tuple(found)

    def pay(self, outputs: Shape) -> bool:
        """Whether there are few enough products to be worth it."""
        products = sum(end - begin for begin, end in self.ranges(outputs))
        return products <= GAIN * math.prod(self.whole) * math.prod(outputs)

    def places(self) -> list[tuple[slice, ...]]:
        """The taps of each phase among all of them."""
        sizes = [n * s for n, s in zip(self.taps, self.apart, strict=True)]
        return [
            tuple([slice(b, b + n, s) for b, n, s in zip(first, sizes, self.apart, strict=True)])
            for first in self.firsts
        ]

    def weights(self, w: Any, backend: Backend) -> Any:
        """Weights with the phases as channels; a phase that has a tap less ends with zero."""
        channels = w.shape[2]
        made: Any = np.zeros((*w.shape[:2], len(self.firsts) * channels, *self.taps), w.dtype)
        for number, phase in enumerate(self.places()):
            of = w[(..., *phase)]
            there = made[:, :, number * channels : (number + 1) * channels]
            backend.assign(there[(..., *map(slice, of.shape[3:]))], of)
        return made

    def spread(self, out: Any, found: Any, backend: Backend) -> None:
        """Write the gradient of such weights as that of the weights."""
        for number, phase in enumerate(self.places()):
            into = out[(..., *phase)]
            backend.assign(into, found[(number, ..., *map(slice, into.shape[3:]))])


_phases = functools.lru_cache(maxsize=256)(_Phases)


def _run_tiles(
    out: Any,
    x: Any,
    w: Any,
    bias: Any,
    geometry: Geometry,
    backend: Backend,
    relu: bool,
    slides: _Slides,
    outputs: Shape,
    phases: _Phases | None = None,
    woven: Woven | None = None,
) -> bool | None:
    taps, left = slides.taps, math.prod(geometry.kernel) > math.prod(geometry.output)
    if len(taps) > 3 or math.prod(taps) > TAPS or x.dtype != SINGLE:
        return None
    if not _pays(x, w, slides, left, max(outputs) == 1, phases):
        return None
    low = [pair[0] for pair in geometry.padding]
    in_place = len(taps) == 1 and x.strides[-1] == SIZE and (w.strides[-1] == SIZE or not left)
    in_place = in_place and max(x.shape[-1], w.shape[-1]) < LONGEST
    spread = left and max(outputs) == 1
    before = low[0] if in_place and not spread else None
    convolution = _Convolution(slides, outputs, before, phases, woven, spread)

    def ready(x: Any) -> Any:
        if before is not None:
            return x
        if convolution.as_it_is(x, low):
            return x.reshape(*x.shape[:3], -1)
        behind = max(reads(convolution.form.width), PIECE)
        return padded(x, low, convolution.reach, behind, backend)

    images = x.shape[2 if left else 0]
    several = max(1, TILES // math.prod(convolution.tiles))
    parts = [slice(first, first + several) for first in range(0, images, several)]
    if not left:
        weights = convolution.transformed(phases.weights(w, backend) if phases else w, backend)
        for part in parts:
            if not convolution.forward(out[part], ready(x[part]), weights, bias, relu):
                return None  # see Note [what is not finite]
        return True
    total: Any = 0
    for part in parts:
        found = convolution.weight(ready(x[:, :, part]), w[:, :, part], backend)
        if found is None:
            return None
        total = found if len(parts) == 1 else total + found
    if phases is None:
        backend.assign(out, total[0])
    else:
        phases.spread(out, total, backend)
    if bias is not None:
        out += bias.reshape(*bias.shape, *(1,) * len(taps))
    return False


def _tiles(places: int, outputs: int, gap: int) -> int:
    """How many tiles there are along a dimension; see Note [gaps] in cook_toom_tiles.py."""
    return places if outputs == 1 else evenly(places, outputs * gap) * gap


def _pays(
    x: Any, w: Any, slides: _Slides, left: bool, windows: bool, phases: _Phases | None
) -> bool:
    """Whether there is enough to multiply."""
    channels, outputs = x.shape[0 if left else 2], w.shape[1]
    if phases:
        channels *= len(phases.firsts)
    if windows:
        channels *= math.prod(slides.taps)
    work = math.prod(slides.places) * channels * outputs
    enough = work * x.shape[2] >= BATCH_WORK if left else work >= WORK
    return enough and min(channels, outputs) >= CHANNELS


class Woven(NamedTuple):
    """Where results stand: along a dimension, `steps` apart from the first on, which may be before.

    A part is several phases of results that are neighbours along the last dimension, as many as
    that has steps, so that it lacks nothing.
    """

    firsts: tuple[Shape, ...]  # of each part
    steps: Shape
    taps: tuple[Shape, ...]  # of each phase, by part

    @property
    def weave(self) -> int:
        """How many phases a part has."""
        return self.steps[-1]

    def there(self, outputs: Shape, most: Shape) -> list[bool]:
        """Whether a phase has weights at a point, for each of both, if phases have `most` taps."""
        ends = [m + r - 2 for m, r in zip(outputs, most, strict=True)]
        points = list(itertools.product(*(range(end + 1) for end in ends)))
        return [
            all(r == n or i < end for r, n, i, end in zip(taps, most, point, ends, strict=True))
            for taps in self.taps
            for point in points
        ]


class _Weaving(NamedTuple):
    """Phases of results as one convolution of all of them."""

    order: tuple[int, ...]  # of the phases
    parts: tuple[Phase, ...]
    joint: Geometry
    slides: _Slides
    outputs: Shape
    woven: Woven


@functools.lru_cache(maxsize=256)
def _weaving(geometry: Geometry, mode: str, most: float) -> _Weaving | None:
    """How to compute all phases together; None if it takes more than `most` of the products."""
    parts = phases_of(geometry) or ()
    geometries = [part.geometry for part in parts]
    if not 1 < len(parts) <= MOST_PHASES:
        return None
    if any(max(map(_gap, g.dilation, g.kernel)) > 1 for g in geometries):
        return None
    taps = tuple(map(max, *(g.kernel for g in geometries)))
    low = tuple(map(max, *([low for low, _ in g.padding] for g in geometries)))
    shifts = [[a - pair[0] for a, pair in zip(low, g.padding, strict=True)] for g in geometries]
    ends = [
        list(map(sum, zip(s, g.output, strict=True)))
        for s, g in zip(shifts, geometries, strict=True)
    ]
    places = tuple(map(max, *ends))
    begins = [[place.start or 0 for place in part.positions] for part in parts]
    steps = tuple([place.step or 1 for place in parts[0].positions])
    firsts = [
        tuple([b - a * s for b, a, s in zip(begin, shift, steps, strict=True)])
        for begin, shift in zip(begins, shifts, strict=True)
    ]
    order = tuple(sorted(range(len(parts)), key=firsts.__getitem__))
    beginning = [firsts[n] for n in order[:: steps[-1]]]
    if [firsts[n] for n in order] != [
        (*above, column + k) for *above, column in beginning for k in range(steps[-1])
    ]:
        return None
    each = max(taps) == 1  # an element of the input, by a tap for each phase
    outputs = taps if each else outputs_of(taps, mode)
    if outputs is None:
        return None
    woven = Woven(tuple(beginning), steps, tuple([geometries[n].kernel for n in order]))
    slides = _Slides(taps, places, *((1,) * len(taps),) * 2)
    tiles = math.prod(map(_tiles, places, outputs, slides.gaps))
    products = sum(woven.there(outputs, taps)) * tiles
    terms = sum(math.prod(g.kernel) * math.prod(g.output) for g in geometries)
    if (products > most * terms and not each) or math.prod(taps) > math.prod(places):
        return None
    size, ones = geometry.size, (1,) * len(taps)
    padding = tuple(
        [(a, p + r - 1 - n - a) for a, p, r, n in zip(low, places, taps, size, strict=True)]
    )
    joint = Geometry(size, taps, ones, padding, ones, ones)
    return _Weaving(order, parts, joint, slides, outputs, woven)


def run_woven(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool, mode: str
) -> bool:
    """Write all phases of results together, with `relu`; False if it is not for this."""
    found = _weaving(geometry, mode, WOVEN)
    if found is None or out.strides[-1] != SIZE:
        return False
    order, parts, joint, slides, outputs, woven = found
    count, channels = w.shape[1:3]
    turned = np.moveaxis(w, 2, -1)  # with channels together, which are summed over
    w = forwards(backend.copy(forwards(turned)), turned)
    weights: Any = np.zeros((len(w), len(parts) * count, *slides.taps, channels), w.dtype)
    for number, of in enumerate(order):
        given = w[(slice(None), slice(None), *parts[of].taps)]
        into = weights[:, number * count : (number + 1) * count]
        backend.assign(into[(slice(None), slice(None), *map(slice, given.shape[2:-1]))], given)
    weights = np.moveaxis(weights, -1, 2)
    given = (joint, backend, relu, slides, outputs, None, woven)
    return bool(_run_tiles(out, x, weights, bias, *given))


class _Planned(NamedTuple):
    """What the code is told, and what that points to."""

    call: Any
    numbers: int
    scratch: int
    threads: int
    memory: Any
    bytes: int


class _Plans(Plans):
    """Plans whose tables have at most TABLES bytes: then all are forgotten."""

    bytes = 0

    def make(self, key: Any, maker: Callable[..., Any], *given: Any) -> Any:
        plan = super().make(key, maker, *given)
        self.bytes += plan.bytes
        if self.bytes > TABLES:
            self.clear()
            self[key], self.bytes = plan, plan.bytes
        return plan


_plans = _Plans()


class _Convolution:
    """A convolution whose taps are neighbours: its taps, places and tiles.

    Lines in place are read as if there were some places of padding before them. Taps that are
    `spread` are channels of their own.
    """

    def __init__(
        self,
        slides: _Slides,
        outputs: Shape,
        before: int | None,
        phases: _Phases | None,
        woven: Woven | None,
        spread: bool,
    ) -> None:
        self.taps, self.places, self.strides, self.gaps = slides
        taps, places, strides, gaps = slides
        self.outputs, self.before = outputs, before or 0
        ones = (1,) * len(taps)
        at_once = ones if spread else taps  # of a tile
        self.spread = taps if spread else ones
        self.woven = woven or Woven(((0,) * len(taps),), ones, (at_once,))
        form = Form(outputs, at_once, *micro_tile(), before is not None, gap=gaps[-1])
        form = form._replace(weave=self.woven.weave, apart=strides if form.windows else ())
        self.ranges: Ranges = ((0, 1),) * math.prod(form.points)
        last = [(r - 1) * d + 1 for r, d in zip(taps, gaps, strict=True)]  # that a place sees
        if phases is not None:
            form = form._replace(apart=phases.apart, phases=phases.firsts)
            self.ranges = phases.ranges(outputs)
            last = form.reach(taps)
        self.form, self.phases = form, max(len(form.phases), 1)
        self.points = math.prod(form.points)
        self.tiles = [_tiles(*each) for each in zip(places, outputs, gaps, strict=True)]
        self.reach = [
            (t * m - 1) * s + n
            for t, m, s, n in zip(self.tiles, outputs, strides, last, strict=True)
        ]

    # Results at positions --------------------------------------------------------------------
    def forward(self, out: Any, x: Any, weights: Any, bias: Any, relu: bool) -> bool:
        """Write them into `out`; whether all of them are finite."""
        channels = x.shape[2]
        threads = current_limit()
        shapes = x.shape, x.strides, weights.shape, self.before, out.shape, out.strides
        steps = self.strides, self.gaps, self.ranges, self.woven
        key = ("forward", *shapes, self.form, *steps, bias is None, relu, threads)
        plan = _plans.get(key)
        if plan is None:
            spread = out.strides[-1] != SIZE
            form = self.form._replace(spread=spread, bias=bias is not None, relu=relu)
            plan = _plans.make(key, self.plan_forward, form, x, weights, out, channels, threads)
        if bias is not None:
            bias = np.ascontiguousarray(bias)
        return not _run(plan, x, weights, out, bias)

    def transformed(self, w: Any, backend: Backend) -> Any:
        """The weights at each point: (groups, points, outputs, channels and some more)."""
        groups, outputs, channels = w.shape[:3]
        terms = math.prod(w.shape[2:]) if self.form.windows else channels
        long = (-(-terms * SIZE // LINE) | 1) * LINE // SIZE  # rows do not collide in a cache
        if self.form.windows:
            made = empty((groups, 1, outputs, long), SINGLE)
            backend.assign(made[:, 0, :, :terms], w.reshape(groups, outputs, terms))
            return made
        given = _matrix("taps", self.outputs, self.taps)
        made = empty((groups, len(given), outputs, long), SINGLE)
        right = w.reshape(groups, outputs, channels, -1).swapaxes(2, 3)
        into = made.transpose(0, 2, 1, 3)[..., :channels]
        gemm(given.astype(SINGLE), right, into)
        return made

    def plan_forward(
        self, form: Form, x: Any, weights: Any, out: Any, channels: int, threads: int
    ) -> _Planned:
        n, groups = x.shape[:2]
        rows, wide = form.rows, form.vectors * host().vector // SIZE
        grid = np.indices((n, *self.tiles)).reshape(1 + len(self.tiles), -1)
        starts = self.starts_in_x(grid, x)
        begins = grid[0] * x.strides[0] + self.steps_in_x(grid) - self.before * SIZE
        panels = evenly(len(begins), wide)
        behind = panels * wide - len(begins)  # tiles of which nothing is a result
        inside = (starts >= 0) & (starts + span_of(form.width, form.gap) <= x.shape[-1])
        inside = np.pad(
            inside | (not form.in_place), (0, behind), constant_values=not form.in_place
        )
        starts = np.pad(starts, (0, behind), constant_values=x.shape[-1])  # nothing is read
        to, rows_there, columns_there = self.results(grid, out)
        tables: list[Any] = [
            np.pad(begins, (0, behind)),
            starts,
            inside.reshape(panels, wide).all(1) * INSIDE,
        ]
        if form.in_line:
            steps = np.diff(tables[0].reshape(panels, wide))
            line = (steps == self.strides[-1] * SIZE).all(1)
            tables[2] = np.where(line, tables[2] * IN_LINE, tables[2])
        tables += [np.pad(t, ((0, 0), (0, behind))) for t in (to, *rows_there, *columns_there)]
        *_, first_row, end_row, first_column, end_column = tables
        size = (end_row - first_row) * (end_column - first_column)
        whole = (size == math.prod(self.outputs) * form.weave).reshape(-1, panels, wide).all(2)
        tables.append(whole * WHOLE)
        if form.one_piece(host().vector // SIZE):
            steps = np.diff(tables[3].reshape(-1, panels, wide))
            one = (steps == form.outputs[-1] * form.weave * SIZE).all(2)
            tables[-1] = np.where(whole & one, ONE_PIECE, tables[-1])
        # A block stays in the second cache, beside what passes by; threads get several each.
        terms = channels * (math.prod(self.taps) if form.windows else self.phases)
        points = 1 if form.windows else self.points
        tables += self.terms(terms // self.phases)
        tables = [np.ascontiguousarray(t, np.int64) for t in tables]
        fits = max(cache_sizes()[1] // 2 // (points * terms * wide * SIZE), 1)
        blocks = max(evenly(panels, fits), min(panels, evenly(4 * threads, groups)))
        block = -(-panels // blocks)
        blocks = -(-panels // block)
        outputs = weights.shape[2] // len(self.woven.taps)
        row_panels = evenly(outputs, rows)
        panel_rows, longer = divmod(outputs, row_panels)
        numbers = {
            "tasks": groups * blocks,
            "blocks": blocks,
            "block": block,
            "panels": panels,
            "channels": channels,
            "terms": terms,
            "depth": self.depth(terms),
            "outputs": outputs,
            "first_terms": address(tables[9]),
            "end_terms": address(tables[10]),
            "parts": len(self.woven.firsts),
            "row_panels": row_panels,
            "panel_rows": panel_rows,
            "longer_panels": longer,
            "x_group": x.strides[1],
            "x_channel": x.strides[2],
            "x_plane": self.step(-3) * self.gap(-3),
            "x_row": self.step(-2) * self.gap(-2),
            "x_size": x.shape[-1],
            "from": address(tables[0]),
            "starts": address(tables[1]),
            "inside": address(tables[2]),
            "to": address(tables[3]),
            "first_row": address(tables[4]),
            "end_row": address(tables[5]),
            "first_column": address(tables[6]),
            "end_column": address(tables[7]),
            "whole": address(tables[8]),
            "w_group": weights.strides[0],
            "w_point": weights.strides[1],
            "w_row": weights.strides[2],
            "y_group": out.strides[1],
            "y_output": out.strides[2],
            "y_row": out.strides[-2] * self.gap(-2) * (1, *self.woven.steps)[-2],
            "y_step": out.strides[-1] * self.gap(-1),
            "tiles": _kernels(form, {panel_rows, panel_rows + bool(longer)}),
            "thread_bytes": _pages(
                points * (block * wide * SIZE * (terms + rows * form.weave) + APART)
            ),
        }
        return _planned(forward_text, form, FORWARD, numbers, tables, threads)

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
        groups, images = x.shape[1:3]
        channels = len(x) * math.prod(self.spread)
        outputs, rank = w.shape[1], len(self.taps)
        sizes = [t * m for t, m in zip(self.tiles, self.outputs, strict=True)]
        if not (self.form.in_place or self.fits(w, sizes, self.outputs[-1])):
            behind = max(reads(self.outputs[-1]), PIECE)
            w = padded(w, [0] * rank, sizes, behind, backend)
        wide = self.form.vectors * host().vector // SIZE
        rows, columns = evenly(channels, self.form.rows), evenly(outputs, wide)
        high = self.phases * rows * self.form.rows
        # By the shapes alone, since it shows in the last bits.
        bytes = self.points * self.phases * channels * outputs * SIZE
        parts = min(4, PARTS // bytes, images * math.prod(self.tiles) // DEPTH)
        parts = 1 << max(parts, 1).bit_length() - 1  # of two, so that threads have as many
        sums = empty((groups, parts, self.points, high, columns * wide), SINGLE)
        threads = current_limit()
        shapes = x.shape, x.strides, w.shape, w.strides, self.places, self.before, self.spread
        key = ("weight", *shapes, self.form, self.strides, self.gaps, self.ranges, threads)
        plan = _plans.get(key)
        if plan is None:
            plan = _plans.make(key, self.plan_weight, x, w, sizes, sums, threads)
        _run(plan, x, w, sums)
        for point, (first, end) in enumerate(self.ranges if self.phases > 1 else ()):
            each = high // self.phases  # of which some have no such tap
            sums[:, :, point, : first * each] = sums[:, :, point, end * each :] = 0
        if self.form.windows:
            result = backend.reduce("sum", sums, (1,), False) if parts > 1 else sums[:, 0]
        else:
            given = _matrix("outputs", self.taps, self.outputs).astype(SINGLE)
            result = empty((groups, len(given), sums.shape[3] * sums.shape[4]), SINGLE)
            gemm(
                np.broadcast_to(given, (parts, groups, *given.shape)),
                sums.reshape(groups, parts, self.points, -1).swapaxes(0, 1),
                result,
                summed=True,
            )
            if not np.isfinite(backend.reduce("sum", result, (0, 1, 2), False)):
                return None
        if self.form.windows:
            shaped = result.reshape(groups, -1, columns * wide)[:, :channels, :outputs]
            shaped = shaped.reshape(1, groups, len(x), *self.taps, outputs)
            return shaped.transpose(0, 2, 1, 3 + rank, *range(3, 3 + rank))
        shaped = result.reshape(groups, *self.taps, self.phases, -1, columns * wide)
        shaped = shaped[..., :channels, :outputs]
        return shaped.transpose(1 + rank, 2 + rank, 0, 3 + rank, *range(1, 1 + rank))

    def as_it_is(self, x: Any, low: Sequence[int]) -> bool:
        """Whether an input needs no copy: it has no padding, and nothing is read beyond it."""
        alone = self.form.width == 1 == self.strides[-1]
        return alone and not any(low) and self.fits(x, self.reach, 1)

    def fits(self, a: Any, sizes: Sequence[int], count: int) -> bool:
        """Whether an array is whole tiles of neighbours, so many along a line: no more are read."""
        steps = [math.prod(sizes[d:]) * SIZE for d in range(1, len(sizes) + 1)]
        along = reads(count) == count and self.form.gap == 1
        return along and list(a.shape[3:]) == list(sizes) and list(a.strides[3:]) == steps

    def plan_weight(self, x: Any, w: Any, sizes: list[int], sums: Any, threads: int) -> _Planned:
        groups, images = x.shape[1:3]
        channels = len(x) * math.prod(self.spread)
        form, outputs = self.form, w.shape[1]
        lanes = host().vector // SIZE
        wide = form.vectors * lanes
        grid = np.indices((images, *self.tiles)).reshape(1 + len(self.tiles), -1)
        row_panels, column_panels = evenly(channels, form.rows), evenly(outputs, wide)
        x_lanes = np.minimum(np.arange(row_panels * form.rows + lanes), channels - 1)
        w_lanes = np.minimum(np.arange(column_panels * wide), outputs - 1)
        steps = [math.prod(sizes[d:]) * SIZE for d in range(1, len(sizes) + 1)]
        gaps = [s * d for s, d in zip(steps, self.gaps, strict=True)]
        w_plane, w_row = [0, 0, *gaps[:-1]][-2:]
        channel, *tap = np.unravel_index(x_lanes, (len(x), *self.spread))
        taps = sum(t * self.step(d - len(tap)) for d, t in enumerate(tap))
        tables = [
            grid[0] * x.strides[2] + self.steps_in_x(grid) - self.before * SIZE,
            grid[0] * w.strides[2] + self.steps(grid, steps),
            channel * x.strides[0] + taps,
            w_lanes * w.strides[1],
            self.starts_in_x(grid, x),
            self.firsts(grid)[-1],
            *self.terms(row_panels),
        ]
        tables += [_runs(tables[0], self.strides[-1] * SIZE), _runs(tables[1], SIZE)]
        column_block = -(-column_panels // evenly(column_panels, max(1, DEPTH // wide)))
        column_blocks = -(-column_panels // column_block)
        high = self.phases * row_panels
        each = SIZE * (high * form.rows + column_block * wide)  # of a tile at one point
        fits = min(cache_sizes()[1] // 2 // each, LAID_OUT // (self.points * each))
        depth = max(16, min(DEPTH, fits)) // PIECE * PIECE
        numbers = {
            "tasks": groups * sums.shape[1] * column_blocks,
            "parts": sums.shape[1],
            "column_blocks": column_blocks,
            "column_block": column_block,
            "row_panels": row_panels,
            "first_panels": address(tables[6]),
            "end_panels": address(tables[7]),
            "column_panels": column_panels,
            "steps": grid.shape[1],
            "depth": depth,
            "x_group": x.strides[1],
            "x_plane": self.step(-3) * self.gap(-3),
            "x_row": self.step(-2) * self.gap(-2),
            "w_group": w.strides[0],
            "w_plane": w_plane,
            "w_row": w_row,
            "x_from": address(tables[0]),
            "w_from": address(tables[1]),
            "x_runs": address(tables[8]),
            "w_runs": address(tables[9]),
            "x_lanes": address(tables[2]),
            "w_lanes": address(tables[3]),
            "x_starts": address(tables[4]),
            "w_starts": address(tables[5]),
            "x_size": x.shape[-1],
            "w_size": w.shape[-1],
            "y_task": sums.strides[1],
            "y_point": sums.strides[2],
            "y_row": sums.strides[3],
            "tiles": _kernels(form, {form.rows}),
            "thread_bytes": _pages(self.points * (each * depth + high * host().vector + APART)),
        }
        return _planned(weight_text, form, WEIGHT, numbers, tables, threads)


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
    epilogue = Epilogue("rows" if form.bias else "", RELU if form.relu else None)
    shape = Kernel("float", "float", ANY, False, False, False, False)
    if form.windows:
        shape = shape._replace(epilogue=epilogue)
    sizes = [Tile(h, form.vectors) for h in heights]
    return micro_kernels("gemm_tile", tile_text, shape, host(), sizes)


@functools.cache
def _matrix(which: str, m: Shape, r: Shape) -> Any:
    """One of the matrices for m outputs and r taps, of all dimensions together."""
    given = [np.array(getattr(transforms(a, b), which)) for a, b in zip(m, r, strict=True)]
    return functools.reduce(np.kron, given)


def _planned(
    write: Any,
    form: Form,
    fields: list[str],
    numbers: dict[str, int],
    tables: list[Any],
    threads: int,
) -> _Planned:
    """Compile, and put the numbers in the order of the code."""
    debug.note(f"convolution with fewer products: {form}, {numbers}")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)(load("cook_toom", write, form, host()))
    table = (ctypes.c_int64 * len(fields))(*(numbers[name] for name in fields))
    threads = min(threads, numbers["tasks"])
    size = FLAG + threads * numbers["thread_bytes"]
    bytes = sum(t.nbytes for t in tables)
    return _Planned(call, ctypes.addressof(table), size, threads, (table, tables), bytes)


def _run(plan: _Planned, x: Any, w: Any, y: Any, bias: Any = None) -> bool:
    """Compute by a plan; whether the code has found something that is not finite."""
    place = scratch(plan.scratch)
    plan.call(
        pool.pointer(plan.threads) if plan.threads > 1 else None,
        plan.numbers,
        address(x),
        address(w),
        address(y),
        None if bias is None else address(bias),
        place,
    )
    return ctypes.c_int64.from_address(place).value != 0


def _pages(bytes: int) -> int:
    """Rounded up to whole pages."""
    return -(-bytes // PAGE) * PAGE
