"""Layouts of direct convolutions: tiles, what they see of x, and where the taps are.

What these are is told in the notes of kernel/direct and kernel/direct_slide.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.direct import Lines
from ....kernel.windows import Geometry
from ....shapes import Shape
from ..codegen.kernels import machine

FIRST, SECOND = 36 << 10, 512 << 10  # bytes of scratch memory for a tile: preferably, else
WIDE = 4096  # positions of a tile along its last dimension, at most
ROUND = 64  # they are a multiple of this
ALIGNED = 16  # elements that a line of the cache has at most


def steps_of_six(a: Any) -> list[int]:
    """The steps of an operand: its three first dimensions, and three spatial ones."""
    own = [s // a.itemsize for s in a.strides]
    return [*own[:3], *[0] * (6 - a.ndim), *own[3:]]


def three(sizes: Sequence[int], fill: int = 1) -> tuple[int, ...]:
    return (*[fill] * (3 - len(sizes)), *sizes)


class TileLayout:
    """Tiles and what they see of x; the parameters that all kernels of this form begin with."""

    def __init__(
        self,
        x: Any,
        long: Shape,
        by_long: Shape,
        taps: Sequence[Sequence[int]],
        lows: Sequence[int],
        images: int,
        width: int,
    ) -> None:
        self.long, self.by_long = three(long), three(by_long)
        # Along each dimension, where the taps are, from the first on.
        self.taps = [*[(0,)] * (3 - len(taps)), *taps]
        lows = three(lows, 0)
        # Rows begin some elements before, so that x's first one begins a line of the cache.
        whole = ALIGNED * self.by_long[2]
        self.low = [*lows[:2], -(-lows[2] // whole) * whole]
        self.shift = self.low[2] - lows[2]
        self.size = three(x.shape[3:])
        self.steps = steps_of_six(x)
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
        """For each row of a tile its places in scratch, by steps in the long array, and in x."""
        found = []
        for i, d, h in itertools.product(range(images), range(self.tile[0]), range(self.tile[1])):
            row = (d * self.by_long[0] * self.seen[1] + h * self.by_long[1]) * len(self.phases)
            x_row = d * self.by_long[0] * self.steps[3] + h * self.by_long[1] * self.steps[4]
            long = i * steps[0] + d * steps[1] + h * steps[2]
            found += [i * self.image + row * self.line, long, x_row]
        return found

    @staticmethod
    def table(sections: Sequence[Sequence[int]]) -> tuple[Any, list[int]]:
        """The table, taps, rounds, phases, rows and more, and where all but the first begin."""
        starts = list(itertools.accumulate(map(len, sections)))
        return np.array([n for s in sections for n in s], np.int64), starts[:-1]

    def ints(
        self, rounds: int, first: int, per_thread: int, framed: bool, starts: list[int]
    ) -> list[int]:
        """The parameters of kernel/direct's `TileLoops`."""
        found = [*self.long, *self.tile, *self.grid, *self.by_long, *self.low, *self.size]
        found += [*self.seen, self.line, len(self.phases), rounds, self.image, first, per_thread]
        return [*found, framed, *self.steps[3:], self.steps[2], *starts[:3]]

    def lines(self, dtype: str, taps: int) -> Lines:
        """What the kernel is told; the taps of a row are one run if neighbours are."""
        last = self.taps[2]
        run = min(len(last), taps)
        if taps % run or self.by_long[2] > 1 or max(last) >= len(last):
            run = 1
        line = 64 // self.width  # shifts depend on it only if vectors are as long
        ahead = self.shift % line if run > 1 and machine().vector == 64 else 0
        return Lines(dtype, self.step, taps, run, ahead)


def every(kernel: Shape, dilation: Shape) -> list[Sequence[int]]:
    """Where taps are along each dimension."""
    return [range(0, n * d, d) for n, d in zip(kernel, dilation, strict=True)]


def classes_of(
    geometry: Geometry,
) -> tuple[Shape, list[int], list[Sequence[int]], list[Any]] | None:
    """Classes of positions; see Note [classes] of kernel/direct_slide.

    None if strides are in the way, or if there are more classes than taps, so that some have none.

    The long array's sizes, the padding in front, where taps are along each dimension, and for each
    class its first position, its sizes, and its taps: their numbers and where they are.
    """
    long, lows, found = [], [], []
    taps: list[Sequence[int]] = []
    for d, e in enumerate(geometry.input_dilation):
        size, low, by = geometry.output[d], geometry.padding[d][0], geometry.dilation[d]
        if e > geometry.kernel[d]:
            return None
        if e > 1 and (geometry.stride[d] > 1 or (d == 1 and len(geometry.size) == 3 and size % e)):
            return None  # rows of a tile would not be one after the other
        met = [
            [
                (t, (r + t * by - low) // e)
                for t in range(geometry.kernel[d])
                if not (r + t * by - low) % e
            ]
            for r in range(e)
        ]
        least = min(u for members in met for _, u in members)
        long.append(-(-size // e))
        lows.append(-least)
        taps.append(sorted({u - least for members in met for _, u in members}))
        found.append(
            [
                (r, -(-(size - r) // e), [(t, u - least) for t, u in members])
                for r, members in enumerate(met)
            ]
        )
    missing = 3 - len(long)
    found = [[(0, 1, [(0, 0)])]] * missing + found
    kernel = three(geometry.kernel)
    classes = []
    for parts in itertools.product(*found):
        at, sizes = [c[0] for c in parts], [max(c[1], 0) for c in parts]
        members = [
            ((a[0] * kernel[1] + b[0]) * kernel[2] + c[0], (a[1], b[1], c[1]))
            for a, b, c in itertools.product(*[c[2] for c in parts])
        ]
        classes.append((at, sizes, members))
    return tuple(long), lows, taps, classes
