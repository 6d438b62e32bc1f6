"""Which convolutions are computed by tiles, and by which: what their geometry tells.

Note [which forms]
The more outputs a tile has, the fewer products there are, and the larger are the rounding errors;
sums over channels are most of them, so those are made in short blocks where there are many points.
"auto" uses forms whose error is at most twice that of a plain sum, "fast" others too;
tests/convolution/test_cook_toom.py measures them. Whether a form is used for results at positions
depends on shapes, but not on the size of the batch, so that a result has the same bits in every
batch.

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

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....errors import ArgumentError
from ....kernel.windows import Geometry
from ...base import Backend, Shape
from ...memory import empty
from ..products.gemm_tiles import evenly

MODES = ("exact", "auto", "fast")
# The outputs of a tile by the taps, in one dimension and in each of two.
LINES = {2: 4, 3: 4, 4: 4, 5: 4, 6: 2, 7: 2}
SQUARES = {2: 2, 3: 2, 4: 2, 5: 2}
FASTER_SQUARES = {2: 4, 3: 4}
BESIDE = {1: 2}  # along a dimension of one tap, beside one of several
MOST_TAPS = 5  # of a phase along a dimension
MOST_PHASES = 8  # the code has all of them one after the other, and must be compiled


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


class Slides(NamedTuple):
    """What slides over the input, by dimension: a kernel, or in its place a cotangent."""

    taps: Shape
    places: Shape
    strides: Shape  # of places
    gaps: Shape  # between taps


def slides_of(geometry: Geometry) -> Slides:
    taps, places, strides, gaps = geometry.kernel, geometry.output, *geometry.steps[::3]
    if math.prod(taps) > math.prod(places):
        taps, places, strides, gaps = places, taps, gaps, strides
    return Slides(taps, places, strides, tuple(map(gap_of, gaps, taps)))


def gap_of(gap: int, taps: int) -> int:
    return gap if taps > 1 else 1


Ranges = tuple[tuple[int, int], ...]


def _parts(taps: int, stride: int) -> int:
    """Into how many phases the taps of each remainder are cut."""
    return evenly(-(-taps // stride), MOST_TAPS)


def _count(slides: Slides) -> int:
    """How many phases there are at most."""
    pairs = list(zip(slides.taps, slides.strides, strict=True))
    return math.prod(min(pair) for pair in pairs) * math.prod(_parts(*p) for p in pairs[-2:])


class Phases:
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

    def share(self, outputs: Shape) -> float:
        """The products that are made, of those that would be without phases."""
        products = sum(end - begin for begin, end in self.ranges(outputs))
        return products / (math.prod(self.whole) * math.prod(outputs))

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
        made: Any = empty((*w.shape[:2], len(self.firsts) * channels, *self.taps), w.dtype)
        backend.zero([made])
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


def tiles_along(places: int, outputs: int, gap: int) -> int:
    """How many tiles there are along a dimension; see Note [gaps] in cook_toom_tiles.py."""
    return places if outputs == 1 else evenly(places, outputs * gap) * gap


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


class Tiling:
    """How to compute a convolution by tiles, as far as its geometry tells; the same for the same.

    So it is remembered, and is a key of what else is worked out for it.
    """

    def __init__(
        self,
        geometry: Geometry,
        slides: Slides,
        outputs: Shape,
        phases: Phases | None = None,
        woven: Woven | None = None,
    ) -> None:
        self.slides, self.outputs, self.phases, self.woven = slides, outputs, phases, woven
        self.left = math.prod(geometry.kernel) > math.prod(geometry.output)
        self.low = [pair[0] for pair in geometry.padding]  # elements of padding before the first
        self.windows = max(outputs) == 1  # tiles of one, and nothing is transformed

    @property
    def waste(self) -> float:
        """The places that tiles compute, for one that is wanted; gaps make them reach far."""
        tiles = map(tiles_along, self.slides.places, self.outputs, self.slides.gaps)
        return math.prod(tiles) * math.prod(self.outputs) / math.prod(self.slides.places)


@functools.lru_cache(maxsize=1024)
def tiling(geometry: Geometry, mode: str) -> Tiling | None:
    """How to compute with fewer products; None if there is no form for it."""
    slides, phases = slides_of(geometry), None
    if max(slides.strides) > 1 or (max(slides.gaps) == 1 and max(slides.taps[-2:]) > MOST_TAPS):
        if max(slides.gaps) > 1 or _count(slides) > MOST_PHASES:
            return None
        phases = Phases(slides.taps, slides.strides)
        slides = slides._replace(taps=phases.taps)
    outputs = outputs_of(slides.taps, mode)
    return None if outputs is None else Tiling(geometry, slides, outputs, phases)
