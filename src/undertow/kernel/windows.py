"""The geometry of windows that slide over dilated and padded dimensions: one resolver for all.

Note [convolution geometry]
Along one dimension a convolution is y[p] = Σ_t x'[p · stride + t · dilation] w[t], where x' is x
with `input_dilation - 1` zeros between neighbours and padding at both ends, which cuts off elements
where it is negative. Its two derivatives have the same form. The cotangent of x is a convolution of
y's with the kernel reversed: stride and input dilation change places. The cotangent of w is a
convolution of x with y's as the kernel: stride and dilation change places. The low padding follows
from which elements meet; the high one is what makes the result have the size of what it belongs to,
though a stride may have left elements over in the forward.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

from ..shapes import Shape

Padding = tuple[tuple[int, int], ...]  # low and high, for each dimension


def extent(kernel: int, dilation: int) -> int:
    """The elements from the first to the last of a dilated kernel.

    >>> extent(3, 2)
    5
    """
    return (kernel - 1) * dilation + 1 if kernel else 0


def same_padding(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """The padding with which there are ceil(size / stride) windows, the odd one at the end.

    >>> same_padding(10, 4, 1, 1), same_padding(10, 3, 2, 1)
    ((1, 2), (0, 1))
    """
    total = max((-(-size // stride) - 1) * stride + extent(kernel, dilation) - size, 0)
    return total // 2, total - total // 2


class _Fields(NamedTuple):
    size: Shape
    kernel: Shape
    stride: Shape
    padding: Padding
    input_dilation: Shape
    dilation: Shape


class Geometry(_Fields):
    """Sizes, kernel and steps of a convolution, with an entry for each dimension.

    What follows from them is remembered with it.
    """

    @property
    def padded(self) -> Shape:
        """The sizes that the kernel slides over."""
        return tuple(
            [
                extent(n, d) + low + high
                for n, d, (low, high) in zip(
                    self.size, self.input_dilation, self.padding, strict=True
                )
            ]
        )

    @property
    def extent(self) -> Shape:
        """The sizes of the dilated kernel."""
        return tuple([extent(n, d) for n, d in zip(self.kernel, self.dilation, strict=True)])

    @functools.cached_property
    def output(self) -> Shape:
        """The number of positions that the kernel takes.

        >>> Geometry((10,), (3,), (2,), ((1, 1),), (1,), (2,)).output
        (4,)
        """
        rows = zip(self.padded, self.extent, self.stride, strict=True)
        return tuple([max((whole - kernel) // step + 1, 0) for whole, kernel, step in rows])

    @functools.cached_property
    def meets_zeros(self) -> bool:
        """Whether weights meet zeros around the input or in it, which stay zeros for infinite ones.

        Not asked of the gradient of a weight, in whose place stands a cotangent.
        """
        zeros = self.padded != self.size or any(map(any, self.padding))
        return zeros and math.prod(self.kernel) <= math.prod(self.output)

    @functools.cached_property
    def steps(self) -> tuple[Shape, Padding, Shape, Shape]:
        """Everything but the sizes, in the order of the form `conv`."""
        return self.stride, self.padding, self.input_dilation, self.dilation

    @functools.cached_property
    def of_input(self) -> Geometry:
        """That of y's cotangent with the kernel reversed, which gives x's.

        >>> g = Geometry((10,), (3,), (2,), ((1, 1),), (1,), (1,))
        >>> g.output, g.of_input.output
        ((5,), (10,))
        """
        return _of_input(self)

    @functools.cached_property
    def of_kernel(self) -> Geometry:
        """That of x with y's cotangent as the kernel, which gives the kernel's.

        >>> g = Geometry((10,), (3,), (2,), ((1, 1),), (1,), (1,))
        >>> g.of_kernel.output
        (3,)
        """
        return _of_kernel(self)


class Spans(NamedTuple):
    """Windows that cover a size as evenly as they can: i sees i n // m to ceil((i + 1) n / m).

    Along each dimension n elements and m windows. An element is seen by the windows that its number
    would cover if there were n windows of m elements, so the transpose of their sums is the same.
    """

    size: Shape
    output: Shape

    @property
    def of_input(self) -> Spans:
        """Those that sum the cotangents of the windows that see each element.

        >>> Spans((5,), (2,)).bounds(0), Spans((5,), (2,)).of_input.bounds(0)
        ([(0, 3), (2, 5)], [(0, 1), (0, 1), (0, 2), (1, 2), (1, 2)])
        """
        return Spans(self.output, self.size)

    def bounds(self, d: int) -> list[tuple[int, int]]:
        """The first element of each window along a dimension, and where the next would be."""
        n, m = self.size[d], self.output[d]
        return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


class Phase(NamedTuple):
    """A part of a convolution of a dilated input that is a convolution of the input itself."""

    positions: tuple[slice, ...]
    taps: tuple[slice, ...]
    geometry: Geometry


@functools.lru_cache(maxsize=1024)
def phases(geometry: Geometry) -> tuple[Phase, ...] | None:
    """The convolution of a dilated input as several of the input itself, without its zeros.

    Positions that are `input_dilation` apart see the same taps, those that do not fall on zeros.
    Where all taps do, positions are in no phase, so there are never more phases than taps. None if
    a dimension has both a stride and an input dilation.

    >>> parts = phases(Geometry((3,), (3,), (1,), ((2, 2),), (2,), (1,)))
    >>> [(part.positions, part.taps) for part in parts]  # doctest: +NORMALIZE_WHITESPACE
    [((slice(0, None, 2),), (slice(0, None, 2),)), ((slice(1, None, 2),), (slice(1, None, 2),))]
    """
    along = []
    for d, (size, spread, stride) in enumerate(
        zip(geometry.size, geometry.input_dilation, geometry.stride, strict=True)
    ):
        if spread > 1 and size > 1 and stride > 1:
            return None
        along.append(_phases_along(_part(geometry, slice(d, d + 1))))
    return tuple([functools.reduce(_beside, parts) for parts in itertools.product(*along)])


def _part(g: Geometry, dims: slice) -> Geometry:
    """The geometry of some dimensions."""
    return Geometry(
        g.size[dims],
        g.kernel[dims],
        g.stride[dims],
        g.padding[dims],
        g.input_dilation[dims],
        g.dilation[dims],
    )


def _beside(x: Phase, y: Phase) -> Phase:
    """A phase of the dimensions of both."""
    g, h = x.geometry, y.geometry
    whole = Geometry(
        g.size + h.size,
        g.kernel + h.kernel,
        g.stride + h.stride,
        g.padding + h.padding,
        g.input_dilation + h.input_dilation,
        g.dilation + h.dilation,
    )
    return Phase(x.positions + y.positions, x.taps + y.taps, whole)


def _phases_along(g: Geometry) -> list[Phase]:
    """The phases of a geometry of one dimension."""
    (size,), (kernel,), _, ((low, _),), (spread,), (dilation,) = g
    if spread == 1 or size == 1:
        return [Phase((slice(None),), (slice(None),), g._replace(input_dilation=(1,)))]
    found = []
    every = spread // math.gcd(spread, dilation)  # taps
    gap = every * dilation // spread
    for phase, first in sorted(
        ((low - t * dilation) % spread, t) for t in range(min(every, kernel))
    ):
        positions = len(range(phase, g.output[0], spread))
        if not positions:
            break
        taps = len(range(first, kernel, every))
        front = (low - phase - first * dilation) // spread
        back = positions - 1 + extent(taps, gap) - size - front
        part = Geometry((size,), (taps,), (1,), ((front, back),), (1,), (gap,))
        found.append(Phase((slice(phase, None, spread),), (slice(first, None, every),), part))
    return found


def _of_input(g: Geometry) -> Geometry:
    padding = []
    rows = zip(g.size, g.input_dilation, g.extent, g.output, g.stride, g.padding, strict=True)
    for size, spread, kernel, output, stride, (low, _) in rows:
        front = kernel - 1 - low
        whole = extent(size, spread) + kernel - 1
        padding.append((front, whole - front - extent(output, stride)))
    return Geometry(g.output, g.kernel, g.input_dilation, tuple(padding), g.stride, g.dilation)


def _of_kernel(g: Geometry) -> Geometry:
    padding = []
    rows = zip(g.size, g.input_dilation, g.extent, g.output, g.stride, g.padding, strict=True)
    for size, spread, kernel, output, stride, (low, _) in rows:
        whole = kernel - 1 + extent(output, stride)
        padding.append((low, whole - low - extent(size, spread)))
    return Geometry(g.size, g.output, g.dilation, tuple(padding), g.input_dilation, g.stride)
