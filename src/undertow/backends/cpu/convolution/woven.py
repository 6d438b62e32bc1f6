"""Transposed convolutions whose phases of results are computed together; see Note [phases]."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ....kernel.windows import Geometry, Phase
from ....kernel.windows import phases as phases_of
from ...base import Backend
from ...memory import empty
from ..calls.layouts import forwards
from .cook_toom_forms import MOST_PHASES, Slides, Tiling, Woven, gap_of, outputs_of, tiles_along
from .cook_toom_plan import tiled
from .cook_toom_tiles import SIZE
from .phases import fill_rest
from .problem import Arrays, Problem, Way


def plan(p: Problem) -> Way | None:
    """How to compute it so; None if it cannot be."""
    found = weaving(p.geometry, p.mode) if p.dilated else None
    if found is None or p.out.strides[-1] != SIZE:
        return None
    way = tiled(p, found.tiling)
    if way is None:
        return None
    return way._replace(run=functools.partial(_run, found, way, p.relu))


def _run(weaving: Weaving, way: Way, relu: bool, a: Arrays, backend: Backend) -> bool:
    fill_rest(a, relu, weaving.parts, backend)
    order, parts, tiling, _ = weaving
    count, channels = a.w.shape[1:3]
    turned = np.moveaxis(a.w, 2, -1)  # with channels together, which are summed over
    w = forwards(backend.copy(forwards(turned)), turned)
    taps = tiling.slides.taps
    weights: Any = empty((len(w), len(parts) * count, *taps, channels), w.dtype)
    backend.zero([weights])
    for number, of in enumerate(order):
        given = w[(slice(None), slice(None), *parts[of].taps)]
        into = weights[:, number * count : (number + 1) * count]
        backend.assign(into[(slice(None), slice(None), *map(slice, given.shape[2:-1]))], given)
    return way.run(a._replace(w=np.moveaxis(weights, -1, 2)), backend)


class Weaving(NamedTuple):
    """Phases of results as one convolution of all of them."""

    order: tuple[int, ...]  # of the phases
    parts: tuple[Phase, ...]
    tiling: Tiling
    share: float  # of the products that phases one by one would take


@functools.lru_cache(maxsize=256)
def weaving(geometry: Geometry, mode: str) -> Weaving | None:
    """How to compute all phases of results together; None if they cannot be."""
    parts = phases_of(geometry) or ()
    geometries = [part.geometry for part in parts]
    if not 1 < len(parts) <= MOST_PHASES:
        return None
    if any(max(*g.stride, *map(gap_of, g.dilation, g.kernel)) > 1 for g in geometries):
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
    slides = Slides(taps, places, *((1,) * len(taps),) * 2)
    tiles = math.prod(map(tiles_along, places, outputs, slides.gaps))
    products = sum(woven.there(outputs, taps)) * tiles
    terms = sum(math.prod(g.kernel) * math.prod(g.output) for g in geometries)
    if math.prod(taps) > math.prod(places):
        return None
    size, ones = geometry.size, (1,) * len(taps)
    padding = tuple(
        [(a, p + r - 1 - n - a) for a, p, r, n in zip(low, places, taps, size, strict=True)]
    )
    joint = Geometry(size, taps, ones, padding, ones, ones)
    share = 0 if each else products / terms
    return Weaving(order, parts, Tiling(joint, slides, outputs, woven=woven), share)
