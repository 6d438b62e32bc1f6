"""Convolution, pooling and attention of arrays that no kernel sees as a whole.

See Note [large arrays]; as in cutting.py, `whole` is the form itself for arrays that can be seen.
A convolution is cut in halves: of images, groups and channels, and then of positions and taps, for
which only a part of the input is needed (Note [convolution geometry] in kernel/windows).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...kernel.expr import RELU, call, trace
from ...kernel.layout import Sizes
from ...kernel.windows import Geometry
from ..memory_types import is_half
from ..strided import StridedArray
from .cutting import Range, Whole, regions, shown, within
from .large import narrowed, visible
from .memory import TooLarge

_SINGLE, _INT32, _INT64 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)
_SUM = trace(lambda a, b: a + b, 2)
# A place in flattened dimensions, one of which was cut: how many of them go before, the rest.
_PLACE = trace(lambda p, inner, more, before: call("floor_div", p, inner) * more + p + before, 4)


def looked_at(g: Geometry, d: int, positions: Range, taps: Range) -> tuple[Range, Range]:
    """The elements that these taps see at these positions along a dimension, and their padding.

    >>> looked_at(Geometry((10,), (3,), (1,), ((1, 1),), (1,), (1,)), 0, (4, 8), (0, 3))
    ((3, 9), (0, 0))
    """
    spread = g.input_dilation[d]
    low = positions[0] * g.stride[d] + taps[0] * g.dilation[d] - g.padding[d][0]
    high = (positions[1] - 1) * g.stride[d] + (taps[1] - 1) * g.dilation[d] - g.padding[d][0]
    start, stop = max(-(-low // spread), 0), min(high // spread + 1, g.size[d])
    if stop <= start:
        return (0, 0), (high - low + 1, 0)
    return (start, stop), (start * spread - low, high - (stop - 1) * spread)


def _set(values: Sequence[Any], d: int, value: Any) -> tuple[Any, ...]:
    return (*values[:d], value, *values[d + 1 :])


def _large(k: Any, a: StridedArray, dtype: Any) -> bool:
    """Whether an array would be too large for a kernel in this dtype."""
    return bool(a.size * dtype.itemsize > k.limits.max_binding)


def _half(size: int) -> tuple[Range, Range]:
    return (0, size // 2), (size // 2, size)


def conv(
    k: Any,
    whole: Whole,
    out: StridedArray,
    x: StridedArray,
    w: StridedArray,
    bias: StridedArray | None,
    stride: Sizes,
    padding: tuple[tuple[int, int], ...],
    input_dilation: Sizes,
    dilation: Sizes,
    relu: bool = False,
) -> None:
    """See the module."""
    g = Geometry(x.shape[3:], w.shape[3:], stride, padding, input_dilation, dilation)
    _Convolution(k, whole).run(out, x, w, bias, g, relu)


class _Convolution:
    """Halves of a convolution."""

    def __init__(self, k: Any, whole: Whole) -> None:
        self.k = k
        self.whole = whole

    def run(
        self,
        out: StridedArray,
        x: StridedArray,
        w: StridedArray,
        bias: StridedArray | None,
        g: Geometry,
        relu: bool,
    ) -> None:
        """What is large is cut along the largest dimension: images and channels before places."""
        rank = len(g.size)
        of_x, of_w, of_out = (_large(self.k, a, out.dtype) for a in (x, w, out))
        if of_out:
            dim = _longest(out.shape, rank)
            for part in _half(out.shape[dim]):
                self._positions(dim, part, out, x, w, bias, g, relu)
        elif of_x or of_w:
            shape = x.shape if of_x else w.shape
            dim = _longest(shape, rank)
            if dim < 2 and of_x:  # images and groups
                for part in _half(shape[dim]):
                    self._positions(dim, part, out, x, w, bias, g, relu)
            elif dim < 2:  # groups and results of the kernels
                for part in _half(shape[dim]):
                    self._positions(dim + 1, part, out, x, w, bias, g, relu)
            elif dim > 2 and of_x and out.shape[dim] > 1:
                for part in _half(out.shape[dim]):
                    self._positions(dim, part, out, x, w, bias, g, relu)
            else:
                self._terms(dim, out, x, w, bias, g, relu)
        else:
            self._visible(out, x, w, bias, g, relu)

    def _visible(
        self,
        out: StridedArray,
        x: StridedArray,
        w: StridedArray,
        bias: StridedArray | None,
        g: Geometry,
        relu: bool,
    ) -> None:
        k = self.k
        given = [
            a if a is None or a.dtype == out.dtype else k.cast(a, out.dtype) for a in (x, w, bias)
        ]
        seen = [None if a is None else shown(k, a) for a in given]
        there = visible(k, [out], 1)
        made = k.empty(out.shape, out.dtype) if there is None else there[0]
        self.whole(made, *seen, *g.steps, relu)
        if there is None:
            k.assign(out, made)

    def _positions(
        self,
        dim: int,
        part: Range,
        out: StridedArray,
        x: StridedArray,
        w: StridedArray,
        bias: StridedArray | None,
        g: Geometry,
        relu: bool,
    ) -> None:
        """Some results: images, groups, channels or positions, as dimensions of `out`."""
        out = narrowed(out, dim, *part)
        if dim < 2:
            x = narrowed(x, dim, *part)
        if dim in (1, 2):
            w = narrowed(w, dim - 1, *part)
            bias = None if bias is None else narrowed(bias, dim - 1, *part)
        if dim > 2:
            d = dim - 3
            elements, padding = looked_at(g, d, part, (0, g.kernel[d]))
            x = narrowed(x, dim, *elements)
            g = g._replace(size=x.shape[3:], padding=_set(g.padding, d, padding))
        self.run(out, x, w, bias, g, relu)

    def _terms(
        self,
        dim: int,
        out: StridedArray,
        x: StridedArray,
        w: StridedArray,
        bias: StridedArray | None,
        g: Geometry,
        relu: bool,
    ) -> None:
        """All results as sums over halves of the channels or taps, dimension `dim` of `w`."""
        k = self.k
        size = w.shape[dim]
        if size < 2:
            raise TooLarge(max(a.buffer.nbytes for a in (x, w)))
        wide = _SINGLE if is_half(out.dtype) else out.dtype
        total: Any = None
        for part in _half(size):
            own, some, padding = narrowed(w, dim, *part), x, g.padding
            if dim == 2:
                some = narrowed(x, 2, *part)
            else:
                d = dim - 3
                elements, ends = looked_at(g, d, (0, out.shape[dim]), part)
                some = narrowed(x, dim, *elements)
                padding = _set(g.padding, d, ends)
            found = k.empty(out.shape, wide)
            cut = g._replace(size=some.shape[3:], kernel=own.shape[3:], padding=padding)
            self.run(found, some, own, None, cut, False)
            total = found if total is None else k.map(_SUM, (total, found), wide)
        if bias is not None:
            column = k.reshape(k.cast(bias, wide), (*bias.shape, *(1,) * len(g.size)))
            total = k.map(_SUM, (total, column), wide)
        if relu:
            total = k.map(RELU, (total,), wide)
        k.assign(out, total)


def _longest(shape: Sizes, rank: int) -> int:
    """The largest dimension before the last `rank` ones, or if those are all 1, of these."""
    lead = range(len(shape) - rank)
    dims = lead if any(shape[d] > 1 for d in lead) else range(len(shape) - rank, len(shape))
    return max(dims, key=lambda d: shape[d])


def window(
    k: Any,
    whole: Whole,
    kind: str,
    x: StridedArray,
    kernel: Sizes,
    stride: Sizes,
    padding: tuple[tuple[int, int], ...],
    input_dilation: Sizes,
    dilation: Sizes,
    divisor: float = 1.0,
) -> Any:
    """Halves of what lies side by side, then of the positions."""
    lead = len(x.shape) - len(kernel)
    g = Geometry(x.shape[lead:], kernel, stride, padding, input_dilation, dilation)
    shape = (*x.shape[:lead], *g.output)
    index = _INT32 if math.prod(g.size) < 1 << 31 else _INT64
    outs = [k.empty(shape, t) for t in ([x.dtype, index] if kind == "max" else [x.dtype])]
    widest = max(o.dtype.itemsize for o in outs)

    def run(targets: list[StridedArray], x: StridedArray, g: Geometry) -> None:
        sizes = targets[0].shape
        if targets[0].size * widest <= k.limits.max_binding and not _large(k, x, x.dtype):
            found = whole(kind, shown(k, x), kernel, *g.steps, divisor)
            for target, a in zip(targets, found if kind == "max" else [found], strict=True):
                k.assign(target, a)
            return
        dim = _longest(sizes, len(kernel))
        if sizes[dim] < 2:
            raise TooLarge(x.buffer.nbytes)
        for part in _half(sizes[dim]):
            own = [narrowed(t, dim, *part) for t in targets]
            if dim < lead:
                run(own, narrowed(x, dim, *part), g)
                continue
            d = dim - lead
            elements, ends = looked_at(g, d, part, (0, kernel[d]))
            some = narrowed(x, dim, *elements)
            run(own, some, g._replace(size=some.shape[lead:], padding=_set(g.padding, d, ends)))
            if kind == "max":
                inner = math.prod(g.size[d + 1 :])
                size = some.shape[dim]
                numbers = (max(size, 1) * inner, (g.size[d] - size) * inner, elements[0] * inner)
                k.map(_PLACE, (own[1], *numbers), own[1].dtype, own[1])

    run(outs, x, g)
    return outs[0] if kind == "sum" else tuple(outs)


def heads(
    k: Any,
    form: Callable[..., Sequence[StridedArray]],
    given: Sequence[StridedArray | None],
    shapes: Sequence[tuple[Sizes, Any]],
) -> tuple[StridedArray, ...]:
    """Attention, or its gradients, of some heads at a time; results have these shapes and dtypes.

    There are several heads.
    """
    outs = tuple([k.empty(shape, dtype) for shape, dtype in shapes])
    one = [_of_heads(a, ((0, 1), (0, 1))) for a in (*given, *outs) if a is not None]
    fit = k.limits.max_binding // max(a.size * a.dtype.itemsize for a in one)
    lead = shapes[0][0][:2]
    for ranges in regions(lead, (0, 1), min(fit, math.prod(lead) - 1)):
        some = [None if a is None else shown(k, _of_heads(a, ranges)) for a in given]
        for out, found in zip(outs, form(*some), strict=True):
            k.assign(_of_heads(out, ranges), found)
    return outs


def _of_heads(a: StridedArray, ranges: Sequence[Range]) -> StridedArray:
    """What belongs to ranges of the first two dimensions; size 1 belongs to all."""
    own = [(0, 1) if n == 1 else r for n, r in zip(a.shape, ranges, strict=False)]
    return within(a, [*own, *[(0, n) for n in a.shape[2:]]])
