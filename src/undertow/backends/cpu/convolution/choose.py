"""Which algorithm computes a convolution: by its geometry, layouts and dtype alone.

`TABLE` has them in the order in which they are asked, each with when it pays, which was measured;
docs/inside_convolution.md shows the table and the measurements. A test can have one of them
wherever it is possible, whether it pays or not, by `only`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ....errors import ArgumentError, UnsupportedError
from ..calls import choice
from . import cook_toom, direct, lanes, packed, patches, phases, product, shifted, woven
from .cook_toom_forms import Tiling, tiling
from .cook_toom_plan import SINGLE
from .problem import Problem, Way

# Patches: taps along a line, which are copied together; rows, columns and terms of the product.
RUN, LEAST = 8, 16
# Patches and shifts: multiplications of an image, or of all for a weight's gradient, for a copy.
COPIED = 1 << 19
# Direct: multiplications up to which NumPy is as fast. Of a group, pairs of an input and an output
# channel up to which packing for a matrix product does not pay, and outputs for which it does not,
# however many inputs they have. Measured with kernels of 3 x 3, 5, 7 x 7 and 9.
SMALL, PAIRS, THIN = 1 << 13, 64, 4
# Tiles: channels, and positions × channels × outputs of an image, or of all images for a weight's
# gradient. Transforming the weights of a strided convolution costs as much as so many positions
# save; and the gradient of a weight is transformed back once, for all images.
CHANNELS, WORK, BATCH_WORK = 16, 1 << 16, 1 << 21
STRIDED_POSITIONS = 512
BATCH_POSITIONS, STRIDED_BATCH_POSITIONS = 128, 4096
# The products of phases of taps, and of results, for one without; the places that are computed
# between far taps for one that is wanted.
GAIN, WOVEN, GAPS = 0.7, 0.8, 1.25
# Shifts: terms of one product, since each passes over the result; places of the copy for one of the
# input or the result, most of them zeros between far taps; places per position along a row.
TERMS, FAR, WASTE = 16, 4, 1.5


class Algorithm(NamedTuple):
    """A row of the table."""

    plan: Callable[[Problem], Way | None]  # None where it is not possible
    pays: Callable[[Problem], bool]


def choose(p: Problem, forced: str = "") -> tuple[str, Way] | None:
    """The first that pays and is possible, and how; None if nothing is.

    One that is forced need not pay; a dilated input it may compute phase by phase. Half precision
    is computed in single but by direct kernels, which convert what they read.
    """
    half = p.x.itemsize == 2
    for name, (plan, pays) in TABLE.items():
        if (name == forced or not forced) and (name == "direct" or not half):
            way = plan(p) if forced or pays(p) else None
            if way is not None:
                return name, way
    if half:
        return None
    if p.dilated:
        found = phases.plan(p, lambda part: choose(part, forced))
        return None if found is None else ("phases", found)
    if forced:
        raise UnsupportedError(f"[conv] there is no {forced} convolution of {p.geometry}")
    return None


# When algorithms pay ----------------------------------------------------------------------------
def _patches(p: Problem) -> bool:
    found = patches.patches(p)
    if found is None or found.taps[-1] < RUN:
        return False
    sizes = found.rows, found.columns, math.prod(found.counts)
    return min(sizes) >= LEAST and math.prod(sizes) >= COPIED


def _direct(p: Problem) -> bool:
    inputs, outputs, taps = p.x.shape[2], p.w.shape[1], math.prod(p.geometry.kernel)
    if p.out.size * inputs * taps < choice.threshold(SMALL):
        return False
    if min(taps, math.prod(p.geometry.output)) == 1 and inputs * outputs > 4:
        return False  # it is a matrix product
    return outputs <= THIN or outputs * (p.x.shape[0] if p.left else inputs) <= PAIRS


def _woven(p: Problem) -> bool:
    found = woven.weaving(p.geometry, p.mode) if p.dilated else None
    if found is None or found.share > WOVEN:
        return False
    return _tiles(p, found.tiling, p.w.shape[1] * len(found.parts))


def _fewer(p: Problem) -> bool:
    found = None if p.dilated else tiling(p.geometry, p.mode)
    if found is None or (found.phases and found.phases.share(found.outputs) > GAIN):
        return False
    if max(found.slides.gaps) > 1 and found.waste > GAPS:
        return False
    return _tiles(p, found, p.w.shape[1])


def _shifted(p: Problem) -> bool:
    found = shifted.shifts(p)
    if found is None:
        return False
    channels = terms = p.x.shape[2]
    outputs, taps = p.w.shape[1], math.prod(p.geometry.kernel)
    work = channels * outputs * taps * math.prod(p.geometry.output)
    if p.left:  # a sum over images, not over channels
        channels, terms, work = len(p.x), taps, work * len(p.x)
    # Packing windows pays by the outputs that share them, a copy without them by the channels.
    places = found.reach[-1] / found.along[-1]
    if channels < outputs * places or places > WASTE or terms < TERMS or work < COPIED:
        return False
    seen = max(math.prod(found.along), math.prod(p.geometry.size))
    return math.prod(found.reach) <= FAR * seen


def _lanes(p: Problem) -> bool:
    found = None if p.dilated else lanes.windows(p.geometry)
    return found is not None and _tiles(p, found, p.w.shape[1])


def _tiles(p: Problem, tiling: Tiling, outputs: int) -> bool:
    """Whether there is enough to multiply, and enough for each weight that is transformed."""
    channels, positions, least = p.x.shape[2], math.prod(tiling.slides.places), WORK
    few = STRIDED_POSITIONS if tiling.phases else 0
    if tiling.left:
        channels, positions, least = p.x.shape[0], positions * p.x.shape[2], BATCH_WORK
        few = STRIDED_BATCH_POSITIONS if tiling.phases else BATCH_POSITIONS
    if tiling.phases:
        channels *= len(tiling.phases.firsts)
    if tiling.windows:
        channels, few = channels * math.prod(tiling.slides.taps), 0
    if positions * channels * outputs < least or min(channels, outputs) < CHANNELS:
        return False
    return positions >= few and p.x.dtype == SINGLE


TABLE = {
    "patches": Algorithm(patches.plan, _patches),
    "direct": Algorithm(direct.plan, _direct),
    "woven": Algorithm(woven.plan, _woven),
    "product": Algorithm(product.plan, lambda p: True),
    "fewer": Algorithm(cook_toom.plan, _fewer),
    "lanes": Algorithm(lanes.plan, _lanes),
    "shifted": Algorithm(shifted.plan, _shifted),
    "packed": Algorithm(packed.plan, lambda p: True),
}


# For tests --------------------------------------------------------------------------------------
forced = ""  # the algorithm that must be taken


@contextlib.contextmanager
def only(name: str) -> Iterator[Any]:
    """Compute convolutions by one algorithm; those for which it is not possible raise an error."""
    global forced
    if name not in TABLE:
        raise ArgumentError(f"[conv] no algorithm {name!r}; there are {', '.join(TABLE)}")
    before, forced = forced, name
    try:
        yield
    finally:
        forced = before
