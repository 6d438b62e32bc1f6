"""Convolutions of few channels as kernels of their own: choose, lay out and call.

The kernels are those of kernel/direct, whose notes tell what `long`, `short` and tiles are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.direct import Lines, Slide, Weigh, slide_function, weigh_function
from ...kernel.ir import STREAM, Function
from ...kernel.windows import Geometry
from ...shapes import Shape
from ..threads import current_limit
from . import choice, pool
from .kernels import address, kernel, machine, type_of
from .maps import STREAMED, aligned

_REMEMBERED = 4096
SMALL = 1 << 13  # multiplications up to which NumPy is as fast
PRODUCT = 16  # pairs of an input and an output channel of a group, to which packing does not pay
THIN = 2  # output channels, for which it does not pay however many inputs they have
SHALLOW = 32  # output channels of one input channel, likewise
TAPS = 32  # unrolled in the long array's kernel, at most
UNROLLED = 96  # multiplications in it, to which it is compiled in a reasonable time
WEIGHED = 12  # unrolled in the short array's kernel
FIRST, SECOND = 36 << 10, 512 << 10  # bytes of scratch memory for a tile: preferably, at most
WIDE = 4096  # positions of a tile along its last dimension, at most
ROUND = 64  # they are a multiple of this
ALIGNED = 16  # elements that a line of the cache has at most
FLAT = 1024  # positions of a row, along which lanes run in the short array's kernel
PARTS = 64  # positions of a row, of which several parts are computed at once
BLOCKS = 64  # chunks of the sums of all weights, about
_NONE = np.zeros(1)
_kernels: dict[Any, Callable[..., None]] = {}
_plans: dict[Any, _Plan | None] = {}


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses."""

    build: Callable[[str, Any], Function]
    key: Any  # of the kernel
    stream: Any  # that of the same with streaming stores, if these pay
    ints: list[int]
    table: Any
    scratch: int  # bytes for each thread
    parts: int  # sums to be kept; 0: the kernel computes the long array
    order: list[int] | None = None  # of taps, if not their own


def run_direct(out: Any, x: Any, w: Any, bias: Any, geometry: Geometry) -> bool:
    """Write the form `conv` into `out`; False if a kernel of this module is not for it."""
    layout = None if bias is None else bias.strides
    key = (x.shape, x.strides, w.shape, w.strides, out.strides, layout, x.dtype, geometry)
    try:
        plan = _plans[key]
    except KeyError:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        plan = _plans[key] = _make(out, x, w, bias, geometry)
    if plan is None:
        return False
    threads = current_limit()
    block = np.zeros(threads * plan.scratch + 3 * STREAM, np.uint8)
    scratch = address(block) + STREAM - 1 & -STREAM
    given = [plan.table]
    if plan.parts:
        given += [w, np.zeros(plan.parts, np.float64)]
    else:
        given += [
            _packed(w, plan.key.outputs, plan.order),
            _NONE if bias is None else _widened(bias),
        ]
    key = plan.key if plan.stream is None or address(out) % STREAM else plan.stream
    call = _kernels.get(key) or _load(plan.build, key)
    call(pool.pointer(threads), address(out), address(x), scratch, *map(address, given), *plan.ints)
    return True


def _make(out: Any, x: Any, w: Any, bias: Any, geometry: Geometry) -> _Plan | None:
    """The plan for operands like these; None if a matrix product or NumPy is better."""
    kind = type_of(x.dtype)
    arrays = [a for a in (out, x, w, bias) if a is not None]
    if (
        kind not in ("f32", "f64", "f16", "bf16")
        or any(a.dtype != x.dtype or 0 in a.shape or not aligned(a) for a in arrays)
        or not 1 <= len(geometry.size) <= 3
    ):
        return None
    inputs, outputs = x.shape[2], w.shape[1]
    taps, positions = math.prod(geometry.kernel), math.prod(geometry.output)
    if out.size * inputs * taps < choice.threshold(SMALL):
        return None
    short = taps > positions
    if short and max(geometry.input_dilation) > 1:
        return None
    if short:
        inputs = x.shape[0]
    few = inputs * outputs <= PRODUCT or (inputs == 1 and outputs <= SHALLOW) or outputs <= THIN
    if not few:
        return None
    return (_weigh if short else _slide)(kind, out, x, w, bias, geometry)


# Layout -----------------------------------------------------------------------------------------
def _steps(a: Any) -> list[int]:
    """The steps of an operand: its three first dimensions, and three spatial ones."""
    own = [s // a.itemsize for s in a.strides]
    return [*own[:3], *[0] * (6 - a.ndim), *own[3:]]


def _three(sizes: Sequence[int], fill: int = 1) -> tuple[int, ...]:
    return (*[fill] * (3 - len(sizes)), *sizes)


class _Windows:
    """Tiles and what they see of x; the parameters that all kernels of this form begin with."""

    def __init__(
        self, x: Any, long: Shape, by_long: Shape, taps: Sequence[Sequence[int]],
        lows: Sequence[int], images: int, width: int,
    ) -> None:  # fmt: skip
        self.long, self.by_long = _three(long), _three(by_long)
        # Along each dimension, where the taps are, from the first on.
        self.taps = [*[(0,)] * (3 - len(taps)), *taps]
        lows = _three(lows, 0)
        # Rows begin some elements before, so that x's first one begins a line of the cache.
        whole = ALIGNED * self.by_long[2]
        self.low = [*lows[:2], -(-lows[2] // whole) * whole]
        self.shift = self.low[2] - lows[2]
        self.size = _three(x.shape[3:])
        self.steps = _steps(x)
        a = self.by_long[2]
        self.phases = sorted({(u + self.shift) % a for u in self.taps[2]})
        self.width = width  # bytes of an element of scratch
        self.tile = self._cut(images)
        self.grid = [-(-n // t) for n, t in zip(self.long, self.tile, strict=True)]
        self.seen, self.line = self._region(self.tile)
        self.image = self.seen[0] * self.seen[1] * self.line * len(self.phases)
        step = self.steps[5] * a
        self.step = step if self.steps[5] == 1 and a in (1, 2) else None

    def _region(self, tile: Sequence[int]) -> tuple[list[int], int]:
        """Rows of x that a tile meets in two dimensions, and elements of a phase of one."""
        dims = zip(tile, self.by_long, self.taps, strict=True)
        rows = [(q - 1) * a + max(taps) + 1 for q, a, taps in dims]
        line = -(-(rows[2] + self.shift) // self.by_long[2])
        return rows[:2], -(-line // ALIGNED) * ALIGNED

    def bytes(self, tile: Sequence[int]) -> int:
        """Scratch memory for an image's part that a tile meets."""
        rows, line = self._region(tile)
        return rows[0] * rows[1] * line * len(self.phases) * self.width

    def _cut(self, images: int) -> list[int]:
        """The size of a tile; see Note [tiles] of kernel/direct."""
        whole = list(self.long)
        for d in range(3):
            tile = [*[1] * d, *whole[d:]]
            if self.bytes(tile) * images <= FIRST and (d < 2 or tile[2] <= WIDE):
                return tile
            best = tile[d] = self._most(tile, d, FIRST // images)
            # Neighbouring tiles meet some rows both; they should be less than half.
            fair = min(max(self.taps[d]) // self.by_long[d] + 1, whole[d])
            if best < fair:
                best = self._most(tile, d, SECOND // images)
            if best >= 1 or d == 2:
                best = max(min(best, WIDE), 1) if d == 2 else min(best, whole[d])
                count = -(-whole[d] // best)
                tile[d] = -(-whole[d] // count)
                if d == 2:
                    tile[d] = min(-(-tile[d] // ROUND) * ROUND, whole[d])
                return tile
        raise AssertionError

    def _most(self, tile: Sequence[int], d: int, limit: int) -> int:
        """How many positions of a dimension a tile can have; 0 if none."""
        low, high = 0, self.long[d]
        while low < high:
            middle = (low + high + 1) // 2
            if self.bytes([*tile[:d], middle, *tile[d + 1 :]]) <= limit:
                low = middle
            else:
                high = middle - 1
        return low

    def tap(self, u: Sequence[int], ahead: int = 0) -> int:
        """What a tap at an element meets in scratch, at the first position; or some before it."""
        along, phase = divmod(u[2] + self.shift, self.by_long[2])
        row = (u[0] * self.seen[1] + u[1]) * len(self.phases) + self.phases.index(phase)
        return row * self.line + along - ahead

    def rows(self, images: int, steps: Sequence[int]) -> list[int]:
        """For each row of a tile its places in scratch and, by steps, in the long array."""
        found = []
        for i, d, h in itertools.product(range(images), range(self.tile[0]), range(self.tile[1])):
            row = (d * self.by_long[0] * self.seen[1] + h * self.by_long[1]) * len(self.phases)
            found += [i * self.image + row * self.line,
                      i * steps[0] + d * steps[1] + h * steps[2]]  # fmt: skip
        return found

    def table(
        self, taps: list[int], rounds: list[int], rows: list[int], more: list[int]
    ) -> tuple[Any, list[int]]:
        """The table, and where its sections begin but for the first."""
        sections = [taps, rounds, self.phases, rows, more]
        starts = list(itertools.accumulate(map(len, sections)))
        return np.array([n for s in sections for n in s], np.int64), starts[:4]

    def ints(self, rounds: int, per_thread: int, framed: bool, starts: list[int]) -> list[int]:
        """The parameters of kernel/direct's `_Windows`."""
        return [
            *self.long, *self.tile, *self.grid, *self.by_long, *self.low, *self.size, *self.seen,
            self.line, len(self.phases), rounds, self.image, per_thread, framed, *self.steps[3:],
            self.steps[2], *starts[:3],
        ]  # fmt: skip

    def lines(self, dtype: str, taps: int) -> Lines:
        """What the kernel is told; the taps of a row are one run if neighbours are."""
        last = self.taps[2]
        run = min(len(last), taps)
        if taps % run or self.by_long[2] > 1 or max(last) >= len(last):
            run = 1
        line = 64 // self.width  # shifts depend on it only if vectors are as long
        ahead = self.shift % line if run > 1 and machine().vector == 64 else 0
        return Lines(dtype, self.step, taps, run, ahead)


def _at_once(outputs: int, most: int) -> int:
    """How many output channels to compute together."""
    return -(-outputs // -(-outputs // most))


def _widened(a: Any) -> Any:
    """A small operand of half precision in a row-major copy, others as they are."""
    return a.astype(np.float32, "C") if a.itemsize == 2 else a


def _compute(x: Any) -> Any:
    return np.dtype(np.float32) if x.itemsize == 2 else x.dtype


# Plans ------------------------------------------------------------------------------------------
def _slide(kind: str, out: Any, x: Any, w: Any, bias: Any, geometry: Geometry) -> _Plan | None:
    """The plan of the long array's kernel."""
    (n, groups, channels), outputs = x.shape[:3], w.shape[1]
    dtype, steps = _compute(x), _steps(out)
    dilated = max(geometry.input_dilation) > 1
    many = _at_once(outputs, 8 if machine().vector == 64 else 4)
    if dilated:
        found = _classes(geometry)
        if found is None:
            return None
        long, lows, taps, classes = found
        for d, e in enumerate(_three(geometry.input_dilation)):
            steps[3 + d] *= e
    else:
        long, lows = geometry.output, [low for low, _ in geometry.padding]
        taps = _every(geometry.kernel, geometry.dilation)
    windows = _Windows(x, long, geometry.stride, taps, lows, channels, dtype.itemsize)
    more: list[int] = []
    rounds: list[int] = []
    order: list[int] | None = None
    if dilated:
        lines, first, order = Lines(kind, windows.step, 1, 1, 0), [0], []
        for at, sizes, members in classes:
            place = sum(i * s for i, s in zip(at, _steps(out)[3:], strict=True))
            # The rounds follow the one entry of the table for the tap that is unrolled.
            more += [place, *sizes, 1 + len(rounds), len(rounds), channels * len(members)]
            for c, (number, u) in itertools.product(range(channels), members):
                rounds.append(c * windows.image + windows.tap(u))
                order.append(c * math.prod(geometry.kernel) + number)
    else:
        lines, first, rounds = _unrolled(windows, kind, channels, min(TAPS, UNROLLED // many))
    table, starts = windows.table(first, rounds, windows.rows(1, [0, *steps[3:5]]), more)
    parts = rows = 1
    several = dilated or len(rounds) > 1
    if several:
        # As many sums at once as hide how long a multiplication takes.
        sums = 4 if many <= 2 else 2 if many <= 4 else 1
        if windows.tile[0] * windows.tile[1] >= sums:
            rows = sums
        elif windows.tile[2] >= PARTS:
            parts = sums
    size = windows.image * channels
    ints = windows.ints(len(rounds), size, math.prod(windows.grid) == 1, starts)
    ints += [n, groups, channels, outputs, *steps, *windows.steps[:2]]
    bias = np.broadcast_to(_NONE, w.shape[:2]) if bias is None else _widened(bias)
    ints += [s // bias.itemsize for s in bias.strides]
    if dilated:
        ints += [len(more) // 7, starts[3]]
    step = steps[5] if steps[5] in (1, 2) else None
    key = Slide(lines, step, several, many, parts, rows, False, dilated)
    streams = out.nbytes >= STREAMED and parts == 1 and step == 1
    streams = streams and not any(s * out.itemsize % STREAM for s in steps[:5])
    return _Plan(
        slide_function, key, key._replace(stream=True) if streams else None, ints, table,
        size * dtype.itemsize, 0, order,
    )  # fmt: skip


def _every(kernel: Shape, dilation: Shape) -> list[Sequence[int]]:
    """Where taps are along each dimension."""
    return [range(0, n * d, d) for n, d in zip(kernel, dilation, strict=True)]


def _unrolled(
    windows: _Windows, kind: str, channels: int, limit: int
) -> tuple[Lines, list[int], list[int]]:
    """How taps are unrolled, up to a limit; the places of the first of each run, and of rounds."""
    spans: list[Sequence[int]] = list(windows.taps)
    outer: list[Sequence[int]] = [(0,), (0,), (0,)]  # taps that are not unrolled
    for d, taps in enumerate(windows.taps):
        if math.prod(map(len, spans)) > limit:
            # Of a long row as many as divide it, unless they would begin in another phase.
            most = limit if d == 2 and windows.by_long[2] == 1 else 1
            some = max(m for m in range(1, most + 1) if not len(taps) % m)
            outer[d], spans[d] = taps[::some], taps[:some]
    lines = windows.lines(kind, math.prod(map(len, spans)))
    runs = itertools.product(*spans[:2], spans[2][:: lines.run])
    zero = windows.tap((0, 0, 0))
    rounds = [
        c * windows.image + windows.tap(u) - zero
        for c, u in itertools.product(range(channels), itertools.product(*outer))
    ]
    return lines, [windows.tap(u, lines.ahead) for u in runs], rounds


def _classes(
    geometry: Geometry,
) -> tuple[Shape, list[int], list[Sequence[int]], list[Any]] | None:
    """Classes of positions; see Note [classes] of kernel/direct. None if strides are in the way.

    The long array's sizes, the padding in front, where taps are along each dimension, and for each
    class its first position, its sizes, and its taps: their numbers and where they are.
    """
    long, lows, found = [], [], []
    taps: list[Sequence[int]] = []
    for d, e in enumerate(geometry.input_dilation):
        size, low, by = geometry.output[d], geometry.padding[d][0], geometry.dilation[d]
        if e > 1 and (geometry.stride[d] > 1 or (d == 1 and len(geometry.size) == 3 and size % e)):
            return None  # rows of a tile would not be one after the other
        met = [
            [(t, (r + t * by - low) // e) for t in range(geometry.kernel[d])
             if not (r + t * by - low) % e]
            for r in range(e)
        ]  # fmt: skip
        least = min(u for members in met for _, u in members)
        long.append(-(-size // e))
        lows.append(-least)
        taps.append(sorted({u - least for members in met for _, u in members}))
        found.append([
            (r, -(-(size - r) // e), [(t, u - least) for t, u in members])
            for r, members in enumerate(met)
        ])  # fmt: skip
    missing = 3 - len(long)
    found = [[(0, 1, [(0, 0)])]] * missing + found
    kernel = _three(geometry.kernel)
    classes = []
    for three in itertools.product(*found):
        at, sizes = [c[0] for c in three], [max(c[1], 0) for c in three]
        members = [
            ((a[0] * kernel[1] + b[0]) * kernel[2] + c[0], (a[1], b[1], c[1]))
            for a, b, c in itertools.product(*[c[2] for c in three])
        ]
        classes.append((at, sizes, members))
    return tuple(long), lows, taps, classes


def _packed(w: Any, many: int, order: list[int] | None) -> Any:
    """Kernels in the order of the long array's kernel: its channels in blocks of so many.

    With an order of the taps of all channels, if it is not their own.
    """
    outputs = w.shape[1]
    if outputs > many:
        blocks = -(-outputs // many)
        first = np.minimum(np.arange(blocks) * many, outputs - many)
        w = w[:, first[:, None] + np.arange(many)]
    else:
        w = w[:, None]
    w = w.transpose(0, 1, *range(3, w.ndim), 2)
    if order is not None:
        w = w.reshape(*w.shape[:2], -1, many)[:, :, order]
    return np.ascontiguousarray(w, np.float32 if w.itemsize == 2 else w.dtype)


def _weigh(kind: str, out: Any, x: Any, w: Any, bias: Any, geometry: Geometry) -> _Plan | None:
    """The plan of the short array's kernel."""
    if bias is not None:
        return None
    (variants, groups, images), outputs = x.shape[:3], w.shape[1]
    dtype = _compute(x)
    windows = _Windows(
        x, geometry.kernel, geometry.dilation, _every(geometry.output, geometry.stride),
        [low for low, _ in geometry.padding], 1, dtype.itemsize,
    )  # fmt: skip
    together = 1
    tiles = math.prod(windows.grid)
    if tiles == 1:
        most = max(min(FIRST // windows.bytes(windows.tile), images), 1)
        together = -(-images // -(-images // most))
    times = -(-images // together)
    out_steps, w_steps = _steps(out), _steps(w)
    places = list(itertools.product(*windows.taps))
    row = len(windows.taps[2])
    rows_of_taps = len(places) // row
    whole = [m for m in range(1, rows_of_taps + 1) if not rows_of_taps % m and m * row <= WEIGHED]
    if whole:
        unrolled = whole[-1] * row
        lines = windows.lines(kind, unrolled)
    else:
        unrolled = -(-row // -(-row // WEIGHED))
        lines = Lines(kind, windows.step, unrolled, 1, 0)
    blocks = -(-len(places) // unrolled)
    padded = [*places, *places[:1] * (blocks * unrolled - len(places))]
    taps = [windows.tap(u, lines.ahead) for u in padded[:: lines.run]]
    outs = [
        sum(i * s for i, s in zip(t, out_steps[3:], strict=True))
        for t in itertools.product(*[range(len(taps)) for taps in windows.taps])
    ]
    rows = windows.rows(together, w_steps[2:5])
    table, starts = windows.table(taps, [], rows, outs)
    chunks = min(times * tiles, max(BLOCKS // (groups * variants), 1))
    size = windows.image * together
    ints = windows.ints(blocks, size, tiles == 1, starts)
    ints += [variants, groups, images, outputs, len(places), together, times, chunks, starts[3],
             *out_steps[:3], *windows.steps[:2], *w_steps]  # fmt: skip
    held = 24 if machine().vector == 64 else 10
    many = _at_once(outputs, max(min(held // unrolled, 8), 1))
    tall = windows.tile[2] < FLAT and len(rows) > 2
    key = Weigh(lines, 1 if w_steps[5] == 1 else None, many, tall)
    parts = groups * variants * chunks * -(-outputs // many) * many * len(padded)
    return _Plan(weigh_function, key, None, ints, table, size * dtype.itemsize, parts)


def _load(build: Callable[[str, Any], Function], key: Any) -> Callable[..., None]:
    form = "slide" if build is slide_function else "weigh"
    found = _kernels[key] = kernel(form, key, lambda name: build(name, key))
    return found
