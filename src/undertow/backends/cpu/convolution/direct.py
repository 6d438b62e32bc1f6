"""Convolutions of few channels as kernels of their own: lay out and call.

The kernels are kernel/direct_slide and direct_weigh; the notes of kernel/direct tell what `long`,
`short` and tiles are.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.direct import Lines
from ....kernel.direct_slide import Slide, slide_function
from ....kernel.direct_weigh import Weigh, weigh_function
from ....kernel.ir import STREAM, Function
from ....kernel.windows import Geometry
from ...base import Backend
from ...memory import scratch as lines
from ...threads import current_limit
from ..calls.launch import Launch, Plan, fixed, keep, planned
from ..calls.layouts import STREAMED, aligned
from ..codegen.kernels import address, kernel, machine, type_of
from ..threads.pool import pointer
from .direct_layout import ALIGNED, FIRST, TileLayout, classes_of, every, steps_of_six, three
from .problem import Arrays, Problem, Way

ALONE = 1 << 17  # multiplications for which no other thread is woken
TAPS = 32  # unrolled in the long array's kernel, at most
UNROLLED = 96  # multiplications in it, to which it is compiled in a reasonable time
WEIGHED = 12  # unrolled in the short array's kernel
FLAT = 1024  # positions of a row, along which lanes run in the short array's kernel
PARTS = 64  # positions of a row, of which several parts are computed at once
SCRATCH = 4 << 20  # bytes of a tile; what is more, as by long dilations, is mostly copied in vain
BLOCKS = 64  # chunks of the sums of all weights, about
BUFFERS = 6  # of each of these kernels
BEHIND = 2 * STREAM  # bytes of scratch memory that may be read behind what is written
_NONE = fixed(np.zeros(1))


class Scratch(NamedTuple):
    """What a plan remembers: the memory that its kernel needs."""

    bytes: int  # for all threads
    per_thread: int  # and besides for each
    parts: int  # sums to be kept; 0: the kernel computes the long array


def plan(p: Problem) -> Way | None:
    """How to compute it so; None if there is no kernel for it."""
    found = kernel_plan(p)
    return None if found is None else Way(functools.partial(_run, found), True, True)


def _run(plan: Plan, a: Arrays, backend: Backend) -> bool:
    out, x, w, bias = a
    launch, (shared, per_thread, parts) = plan.launch, plan.more
    if plan.alone:
        pool, scratch = 0, keep(shared + per_thread + BEHIND)
    else:
        threads = current_limit()
        pool, scratch = pointer(threads), lines(shared + threads * per_thread + BEHIND)
        backend.zero([scratch])  # for those that are framed
    if plan.stream is not None and not address(out) % STREAM:
        launch = plan.stream
    if parts:
        bias = np.empty(parts)
    elif bias is None:
        bias = _NONE
    launch.run(pool, out, x, scratch, *plan.tables, w, bias)
    return True


def kernel_plan(p: Problem) -> Plan | None:
    """The plan of the kernel; None if there is none."""
    kind = type_of(p.x.dtype)
    arrays = [a for a in (p.out, p.x, p.w, p.bias) if a is not None]
    if kind not in ("f32", "f64", "f16", "bf16") or not 1 <= len(p.geometry.size) <= 3:
        return None
    if any(a.dtype != p.x.dtype or 0 in a.shape or not aligned(a) for a in arrays):
        return None
    if not p.left:
        return _slide(kind, *p[:6])
    if p.dilated or p.bias is not None:
        return None
    return _weigh(kind, p.out, p.x, p.w, p.geometry, p.relu)


def _at_once(outputs: int, most: int) -> int:
    """How many output channels to compute together."""
    return -(-outputs // -(-outputs // most))


def _compute(x: Any) -> Any:
    return np.dtype(np.float32) if x.itemsize == 2 else x.dtype


# Plans ------------------------------------------------------------------------------------------
def _slide(
    kind: str, out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, relu: bool
) -> Plan | None:
    """The plan of the long array's kernel."""
    (n, groups, channels), outputs = x.shape[:3], w.shape[1]
    dtype, steps = _compute(x), steps_of_six(out)
    dilated = max(geometry.input_dilation) > 1
    # Of several inputs fewer, but in more than one row, which share the weights.
    many = _at_once(outputs, 8 if machine().vector == 64 and channels == 1 else 4)
    if dilated:
        found = classes_of(geometry)
        if found is None:
            return None
        long, lows, taps, classes = found
        for d, e in enumerate(three(geometry.input_dilation)):
            steps[3 + d] *= e
    else:
        long, lows = geometry.output, [low for low, _ in geometry.padding]
        taps = every(geometry.kernel, geometry.dilation)
    windows = TileLayout(x, long, geometry.stride, taps, lows, channels, dtype.itemsize)
    more: list[int] = []
    by_channel, *by_tap = steps_of_six(w)[2:]
    at_taps = [
        sum(map(operator.mul, t, by_tap))
        for t in itertools.product(*map(range, three(geometry.kernel)))
    ]
    weights = at_taps  # of a run of them
    if dilated:
        lines, first = Lines(kind, windows.step, 1, 1, 0), [0]
        at_channels = [c * by_channel for c in range(channels)]
        rounds, weights, more = _dealt(windows, classes, out, at_channels, at_taps)
    else:
        lines, first, rounds = _unrolled(windows, kind, channels, min(TAPS, UNROLLED // many))
    sections = [first, rounds, windows.phases, windows.rows(1, [0, *steps[3:5]]), weights, more]
    table, starts = TileLayout.table(sections)
    several = dilated or len(rounds) > 1
    parts, rows = _sums(windows, many) if several else (1, 1)
    size, alone = windows.image * channels, _alone(out, w)
    if size * dtype.itemsize > SCRATCH:
        return None
    packed = groups * -(-outputs // many) * many * len(rounds) * lines.taps
    packed = -(-packed // ALIGNED) * ALIGNED
    framed = math.prod(windows.grid) == 1 and not alone
    ints = windows.ints(len(rounds), packed, size, framed, starts)
    ints += [n, groups, channels, outputs, *steps, *windows.steps[:2]]
    ints += [0, 0] if bias is None else [s // bias.itemsize for s in bias.strides]
    ints += [*steps_of_six(w)[:2], by_channel, len(weights), starts[3]]
    if dilated:
        ints += [len(more) // 7, starts[4]]
    step = steps[5] if steps[5] in (1, 2) else None
    fetch = not dilated and len(rounds) == channels > 1 and windows.step is not None
    key = Slide(lines, step, several, many, parts, rows, False, dilated, fetch, relu)
    streams = out.nbytes >= STREAMED and parts == 1 and step == 1
    streams = streams and not any(s * out.itemsize % STREAM for s in steps[:5])
    stream = _launch(slide_function, key._replace(stream=True), ints) if streams else None
    return planned(
        _launch(slide_function, key, ints),
        tables=[table],
        alone=alone,
        stream=stream,
        more=Scratch(packed * dtype.itemsize, size * dtype.itemsize, 0),
    )


def _unrolled(
    windows: TileLayout, kind: str, channels: int, limit: int
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


def _sums(windows: TileLayout, many: int) -> tuple[int, int]:
    """Parts of a row and rows whose sums hide together how long a multiplication takes."""
    sums = 4 if many <= 2 else 2 if many <= 4 else 1
    if windows.tile[0] * windows.tile[1] >= sums:
        return 1, sums
    return sums if windows.tile[2] >= PARTS else 1, 1


def _dealt(
    windows: TileLayout,
    classes: list[Any],
    out: Any,
    at_channels: Sequence[int],
    at_taps: list[int],
) -> tuple[list[int], list[int], list[int]]:
    """Rounds and weights of all classes of positions, and what the kernel is told of each class."""
    rounds: list[int] = []
    weights: list[int] = []
    more: list[int] = []
    for at, sizes, members in classes:
        place = sum(i * s for i, s in zip(at, steps_of_six(out)[3:], strict=True))
        # The rounds follow the one entry of the table for the tap that is unrolled.
        more += [place, *sizes, 1 + len(rounds), len(weights), len(at_channels) * len(members)]
        for (c, at_channel), (number, u) in itertools.product(enumerate(at_channels), members):
            rounds.append(c * windows.image + windows.tap(u))
            weights.append(at_channel + at_taps[number])
    return rounds, weights, more


def _weigh(kind: str, out: Any, x: Any, w: Any, geometry: Geometry, relu: bool) -> Plan | None:
    """The plan of the short array's kernel."""
    (variants, groups, images), outputs = x.shape[:3], w.shape[1]
    dtype = _compute(x)
    windows = TileLayout(
        x,
        geometry.kernel,
        geometry.dilation,
        every(geometry.output, geometry.stride),
        [low for low, _ in geometry.padding],
        1,
        dtype.itemsize,
    )
    together = 1
    tiles = math.prod(windows.grid)
    if tiles == 1:
        most = max(min(FIRST // windows.bytes(windows.tile), images), 1)
        together = -(-images // -(-images // most))
    times = -(-images // together)
    out_steps, w_steps = steps_of_six(out), steps_of_six(w)
    places = list(itertools.product(*windows.taps))
    lines = _weighed(windows, kind, len(places))
    blocks = -(-len(places) // lines.taps)
    padded = [*places, *places[:1] * (blocks * lines.taps - len(places))]
    taps = [windows.tap(u, lines.ahead) for u in padded[:: lines.run]]
    outs = [
        sum(i * s for i, s in zip(t, out_steps[3:], strict=True))
        for t in itertools.product(*[range(len(taps)) for taps in windows.taps])
    ]
    rows = windows.rows(together, w_steps[2:5])
    table, starts = TileLayout.table([taps, [], windows.phases, rows, outs])
    chunks = min(times * tiles, max(BLOCKS // (groups * variants), 1))
    size, alone = windows.image * together, _alone(out, w)
    if size * dtype.itemsize > SCRATCH:
        return None
    ints = windows.ints(blocks, 0, size, tiles == 1 and not alone, starts)
    ints += [variants, groups, images, outputs, len(places), together, times, chunks, starts[3]]
    ints += [*out_steps[:3], *windows.steps[:2], *w_steps]
    held = 24 if machine().vector == 64 else 10
    many = _at_once(outputs, max(min(held // lines.taps, 8), 1))
    tall = windows.tile[2] < FLAT and len(rows) > 3
    key = Weigh(lines, 1 if w_steps[5] == 1 else None, many, tall, relu)
    parts = groups * variants * chunks * -(-outputs // many) * many * len(padded)
    launch, more = _launch(weigh_function, key, ints), Scratch(0, size * dtype.itemsize, parts)
    return planned(launch, tables=[table], alone=alone, more=more)


def _weighed(windows: TileLayout, kind: str, count: int) -> Lines:
    """How taps are unrolled: whole rows of them, or the part of a row."""
    row = len(windows.taps[2])
    rows = count // row
    whole = [m for m in range(1, rows + 1) if not rows % m and m * row <= WEIGHED]
    if whole:
        return windows.lines(kind, whole[-1] * row)
    return Lines(kind, windows.step, -(-row // -(-row // WEIGHED)), 1, 0)


def _alone(out: Any, w: Any) -> bool:
    """Whether one thread multiplies faster than another one wakes up."""
    return bool(out.size * math.prod(w.shape[2:]) < ALONE)


def _launch(build: Callable[[str, Any], Function], key: Any, ints: Sequence[int]) -> Launch:
    # The short pipeline makes sums no slower, in half the time, but windows a little.
    form, tuned = ("slide", False) if build is slide_function else ("weigh", True)
    return Launch(kernel(form, build, key, tuned=tuned), BUFFERS, ints)
