"""Windows for groups: pooling, and convolution as a product whose right factor is what windows see.

The geometry's numbers (sizes, stride, padding …) are parameters; see kernel/windows for theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ..accumulators import accumulator, bounds, wide
from ..ir import FLOATS, Function, Value
from ..maps import converted
from ..offsets import Offset, at_row, plus
from .elements import each, number_of, steps_of
from .products import Element, Factors, Seen, Sizes, Term, Tile, apart, one_by_one, tiles


class _Window:
    """Along one dimension: parameters, and where a tap of a position looks."""

    def __init__(self, f: Function, d: int, apart: bool = True) -> None:
        self.f = f
        self.apart = apart  # whether elements may lie apart, with zeros between them
        self.size, self.kernel, self.stride, self.low, self.spread, self.dilation = [
            f.param(f"{name}{d}")
            for name in ("size", "kernel", "stride", "low", "spread", "dilation")
        ]

    def look(self, position: Value, tap: Value) -> tuple[Value, Value]:
        """The element that a tap sees, and whether there is one; else 0."""
        return self.at(self.first(position), tap)

    def first(self, position: Value) -> Value:
        """Where the first tap of a position looks, perhaps before the first element."""
        return position * self.stride - self.low

    def at(self, first: Value, tap: Value) -> tuple[Value, Value]:
        """See `look`."""
        at = first + tap * self.dilation
        if not self.apart:
            inside = (at >= 0) & (at < self.size)
            return self.f.select(inside, at, 0), inside
        place = at // self.spread
        inside = (at >= 0) & (place * self.spread == at) & (place < self.size)
        return self.f.select(inside, place, 0), inside


def window_ints(geometry: Sequence[Sequence[int]]) -> list[int]:
    """The parameters of all windows: of each dimension (size, kernel, stride, low …)."""
    return [n for row in geometry for n in row]


def window_function(
    name: str, double: bool, kind: str, dtype: str, lead: int, rank: int, index: str
) -> Function:
    """Sums, or largest elements and where they are, of windows over the last `rank` dimensions.

    Buffers: out (with max: and positions), row-major, and x. Parameters: the number of results, the
    windows', the sizes of the leading dimensions and of the positions, the steps of x; the divisor
    of a sum.
    """
    f = Function(name, "i32", double)
    out = f.buffer("out", dtype, written=True)
    places = f.buffer("places", index, written=True) if kind == "max" else None
    x = f.buffer("x", dtype)
    count = f.param("count")
    windows = [_Window(f, d) for d in range(rank)]
    sizes = [f.param(f"n{d}") for d in range(lead + rank)]
    steps = steps_of(f, "step", lead + rank)
    divisor = None
    if kind == "sum":
        kinds = accumulator(f, "sum", x.scalar)
        state = None
        if x.scalar in FLOATS:
            divisor = number_of(f, "divisor", wide(f, x.scalar))
    with each(f, count) as i:
        rest = i
        positions: list[Value] = []
        for d in reversed(range(rank)):
            positions.insert(0, rest % sizes[lead + d])
            rest = rest // sizes[lead + d]
        (base,) = at_row(rest, sizes[:lead], [steps[:lead]])
        if places is None:
            state = f.state(f.const(0, kinds.types[0]), combine=kinds.combine)
        else:
            least = f.const(_least(x.scalar), x.scalar)
            state = f.state(least, f.value(-1, "i32"), combine=lambda *both: both[2:])
        with ExitStack() as loops:
            taps = [loops.enter_context(f.loop(w.kernel)) for w in windows]
            looks = [w.look(p, t) for w, p, t in zip(windows, positions, taps, strict=True)]
            here, inside, flat = base, looks[0][1], looks[0][0]
            for d, (place, sees) in enumerate(looks):
                here = plus(here, place * steps[lead + d])
                inside = inside & sees if d else inside
                flat = flat * windows[d].size + place if d else flat
            with f.branch(inside):
                value = f.load(x, here)
                if places is None:
                    state.add(*kinds.lengthen(kinds.element(value)))
                else:
                    best, at = state.get()
                    new = at < 0
                    better = (
                        f.cast(value, "i32") > f.cast(best, "i32")
                        if value.dtype == "bool"
                        else value > best
                    )
                    if value.dtype in FLOATS:
                        better = (better & (best == best)) | ((value != value) & (best == best))
                    take = better | new
                    state.set(f.select(take, value, best), f.select(take, flat, at))
        if places is None:
            total = state.get()[0]
            if divisor is not None:
                total = total / divisor
            f.store(out, i, f.cast(total, out.scalar))
        else:
            best, at = state.get()
            f.store(out, i, best)
            f.store(places, i, f.cast(f.call("maximum", at, 0), index))
    return f


def _least(dtype: str) -> float:
    if dtype in FLOATS:
        return -math.inf
    return 0 if dtype == "bool" else bounds(dtype)[0]


class Convolution(NamedTuple):
    """A kernel of a convolution: types, dimensions, and what becomes of the sums."""

    out: str
    dtype: str
    compute: str
    rank: int
    bias: bool
    relu: bool
    along: tuple[bool, bool]
    tile: Tile | None  # None: a thread for each result
    apart: bool  # whether elements of the input lie apart
    zeros: bool  # whether weights meet zeros, see Note [zeros beside infinity] in products.py


def conv_function(name: str, double: bool, c: Convolution) -> Function:
    """A convolution, by Note [tiles of groups] or a thread for each result.

    A batch of the product is a group of channels; its rows are output channels, its columns the
    positions of all images, its terms the taps of all channels. Buffers: out, x, w, and the bias.
    Parameters: groups, output channels, columns, terms, the length of a piece of terms; the
    windows', the positions along each dimension; the steps of out (pieces, image, group, channel,
    position …), x (image, group, channel, place …), w (group, output, channel, tap …) and of the
    bias (group, channel).
    """
    f = Function(name, "i32", double)
    out = f.buffer("out", c.out, written=True)
    x, w = f.buffer("x", c.dtype), f.buffer("w", c.dtype)
    bias = f.buffer("bias", c.dtype) if c.bias else None
    sizes = Sizes(*map(f.param, ("groups", "outputs", "columns", "terms", "piece")))
    windows = [_Window(f, d, c.apart) for d in range(c.rank)]
    positions = [f.param(f"position{d}") for d in range(c.rank)]
    out_steps = steps_of(f, "out_step", 4 + c.rank)
    x_steps, w_steps = steps_of(f, "x_step", 3 + c.rank), steps_of(f, "w_step", 3 + c.rank)
    bias_steps = steps_of(f, "bias_step", 2) if c.bias else []
    zero = f.const(0, c.dtype if c.dtype not in ("f16", "bf16") else "f32")
    kernel = [window.kernel for window in windows]

    def factors(group: Value, piece: Value | None) -> Factors:
        first: Offset = group * out_steps[2]
        if piece is not None:
            first = plus(first, piece * out_steps[0])
        at_x, at_w = group * x_steps[1], group * w_steps[0]

        def left(row: Value) -> Element:
            start = plus(row * w_steps[1], at_w)

            def element(term: Term) -> Value:
                at = start
                for i, step in zip(term, w_steps[2:], strict=True):
                    at = plus(at, i * step)
                return f.load(w, at)

            return element

        def seen(column: Value) -> Seen:
            image, *at = apart(column, positions)
            start = plus(image * x_steps[0], at_x)
            firsts = [window.first(p) for window, p in zip(windows, at, strict=True)]

            def element(term: Term) -> tuple[Value, Value]:
                channel, *taps = term
                place = plus(channel * x_steps[2], start)
                sees = f.const(True, "bool")
                for d, (window, first, t) in enumerate(zip(windows, firsts, taps, strict=True)):
                    here, inside = window.at(first, t)
                    sees = sees & inside if d else inside
                    place = plus(place, here * x_steps[3 + d])
                return f.load(x, place), sees

            return element

        def right(column: Value) -> Element:
            look = seen(column)

            def element(term: Term) -> Value:
                found, sees = look(term)
                return f.select(sees, found, zero)

            return element

        def into(column: Value) -> Offset:
            image, *at = apart(column, positions)
            place = plus(image * out_steps[1], first)
            for p, step in zip(at, out_steps[4:], strict=True):
                place = plus(place, p * step)
            return place

        def store(row: Value, begin: Offset, column: Value, total: Value) -> None:
            place = plus(row * out_steps[3], begin)
            if bias is not None:
                at_bias = plus(group * bias_steps[0], row * bias_steps[1])
                total = total + f.cast(f.load(bias, at_bias), c.compute)
            if c.relu:
                total = f.select(total < 0, 0, total)
            f.store(out, place, converted(f, total, out.scalar))

        return Factors(left, right, into, store, kernel, seen if c.zeros else None)

    if c.tile:
        tiles(f, sizes, c.compute, c.tile, c.along, factors)
        return f
    terms = [sizes.terms // math.prod(kernel, start=f.value(1, "i32")), *kernel]
    one_by_one(f, sizes, c.compute, terms, factors)
    return f
