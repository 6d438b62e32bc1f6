"""Products of matrices, convolutions and pooling over a runtime: lay out and launch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...kernel.expr import trace
from ...kernel.groups.elements import blocks
from ...kernel.groups.products import Product, Tile, product_function
from ...kernel.groups.windows import Convolution, conv_function, window_function, window_ints
from ...kernel.ir import FLOATS, WIDTH
from ...kernel.layout import Sizes, row_major
from ...kernel.lower import NotCompiled
from ...kernel.windows import Geometry
from ..memory_types import is_half, scalar_type
from ..strided import StridedArray
from .indexing import Indexing
from .large import narrowed, visible
from .launching import Made, sharing
from .layouts import broadcast, countable, overlap, steps_in
from .memory import LargeBlock, TooLarge

USED, USED_OF_LAST = 0.75, 0.5  # of a tile's rows and columns: fewer take a smaller one, or none
DEEP = 2048  # terms of a piece, where there are few tiles
FEW = 64  # tiles
THIN = 512  # terms and fewer results: a reduction
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_PRODUCT = trace(lambda a, b: a * b, 2)
_SUM = trace(lambda a, b: a + b, 2)


class Products(Indexing):
    """matmul, add_product, conv and window."""

    def matmul(
        self, a: StridedArray, b: StridedArray, bias: StridedArray | None = None
    ) -> StridedArray:
        batch = broadcast(a.shape[:-2], b.shape[:-2])
        (rows, terms), columns = a.shape[-2:], b.shape[-1]
        out = self.empty((*batch, rows, columns), a.dtype)
        if not out.size:
            return out
        if any(x.buffer.__class__ is LargeBlock for x in (out, a, b, bias or a)):
            return self._cut_matmul(a, b, bias)
        if not terms:
            zero = self.full(out.shape, 0, a.dtype)
            return zero if bias is None else self.map(_SUM, (zero, bias), a.dtype)
        if bias is None and out.size <= THIN and terms > THIN and not is_half(a.dtype):
            return self._summed(a, b)
        self._multiply(out, a, b, bias, False)
        return out

    def _summed(self, a: StridedArray, b: StridedArray) -> StridedArray:
        """A product of matrices as a reduction, for few results of many terms."""
        left = self.slice(a, (..., slice(None), None, slice(None)))
        right = self.slice(self.transposed(b), (..., None, slice(None), slice(None)))
        dims = (max(len(left.shape), len(right.shape)) - 1,)
        found: StridedArray = self.map_reduce("sum", _PRODUCT, (left, right), dims, False, a.dtype)
        return found

    def _cut_matmul(
        self, a: StridedArray, b: StridedArray, bias: StridedArray | None
    ) -> StridedArray:
        """A product of matrices that no kernel sees as a whole: of halves of them."""
        most = self.limits.max_binding
        few = [x.size * x.dtype.itemsize <= most for x in (a, b)]
        a, b = (  # few elements that lie far apart
            self.copy(x) if little and visible(self, [x], 0) is None else x
            for x, little in zip((a, b), few, strict=True)
        )
        seen = visible(self, [a, b, *([] if bias is None else [bias])], 0)
        batch = broadcast(a.shape[:-2], b.shape[:-2])
        rows, columns = a.shape[-2], b.shape[-1]
        nbytes = math.prod(batch) * rows * columns * a.dtype.itemsize
        if seen is not None and nbytes <= most:
            return self.matmul(seen[0], seen[1], None if bias is None else seen[2])
        sizes = (*batch, rows, columns)
        dim = max(range(len(sizes)), key=lambda d: (d < len(batch) and sizes[d] > 1, sizes[d]))
        if sizes[dim] == 1:
            total = self._summed(a, b)
            return total if bias is None else self.map(_SUM, (total, bias), a.dtype)
        half = sizes[dim] // 2
        found = []
        for start, stop in ((0, half), (half, sizes[dim])):
            factors = []
            for x, own in ((a, len(sizes) - 2), (b, len(sizes) - 1)):
                d = dim - len(sizes) + len(x.shape)  # of its own dimensions
                whole = d < 0 or x.shape[d] == 1 or (dim >= len(batch) and dim != own)
                factors.append(x if whole else narrowed(x, d, start, stop))
            own_bias = bias
            if bias is not None and dim == len(sizes) - 1:
                own_bias = narrowed(bias, 0, start, stop)
            found.append(self.matmul(factors[0], factors[1], own_bias))
        return self.concat(found, dim)

    def add_product(self, target: StridedArray, a: StridedArray, b: StridedArray) -> bool:
        if is_half(a.dtype) or target.dtype.kind != "f" or not target.size or not a.shape[-1]:
            return False
        if a.dtype != target.dtype or overlap(target, a) or overlap(target, b):
            return False
        try:
            self._multiply(target, a, b, None, True)
        except (NotCompiled, TooLarge):
            return False
        return True

    def _multiply(
        self,
        out: StridedArray,
        a: StridedArray,
        b: StridedArray,
        bias: StridedArray | None,
        add: bool,
    ) -> None:
        given = [a, b] if bias is None else [a, b, bias]
        arrays = [out, *given]
        seen = sharing(arrays)
        key: tuple[Any, ...] = ("product", add, out.shape, out.strides, seen, a.dtype)
        key += tuple([(x.shape, x.strides) for x in given])
        plan = self.plan(key, _product, self, out, a, b, bias, add, seen)
        if plan.extra is None:
            self.launcher.launch(plan, arrays)
            return
        parts = self.empty(*plan.extra)
        self.launcher.launch(plan, [parts, a, b])
        total = self.reduce("sum", parts, (0,), False)
        self._finish(out, total, bias, add)

    def _finish(
        self, out: StridedArray, total: StridedArray, bias: StridedArray | None, add: bool
    ) -> None:
        """What becomes of sums that were made in pieces."""
        operands = (total, *([bias] if bias is not None else []), *([out] if add else []))
        if len(operands) == 1:
            self.assign(out, total)
            return
        self.maps((_SUM,), operands, (out.dtype,), (out,))

    # Windows ----------------------------------------------------------------------------------
    def conv(
        self,
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
        if not out.size:
            return
        geometry = Geometry(x.shape[3:], w.shape[3:], stride, padding, input_dilation, dilation)
        if not x.size or not w.size:
            super().conv(out, x, w, bias, stride, padding, input_dilation, dilation, relu)
            return
        given = [x, w] if bias is None else [x, w, bias]
        arrays = [out, *given]
        seen = sharing(arrays)
        key: tuple[Any, ...] = ("conv", geometry, relu, out.shape, out.strides, seen, x.dtype)
        key += tuple([(a.shape, a.strides) for a in given])
        plan = self.plan(key, _conv, self, out, x, w, bias, geometry, relu, seen)
        if plan.extra is None:
            self.launcher.launch(plan, arrays)
            return
        parts = self.empty(*plan.extra)
        self.launcher.launch(plan, [parts, x, w])
        self._finish(out, self.reduce("sum", parts, (0,), False), None, False)

    def window(
        self,
        kind: str,
        x: StridedArray,
        kernel: Sizes,
        stride: Sizes,
        padding: tuple[tuple[int, int], ...],
        input_dilation: Sizes,
        dilation: Sizes,
        divisor: float = 1.0,
    ) -> Any:
        lead = len(x.shape) - len(kernel)
        geometry = Geometry(x.shape[lead:], kernel, stride, padding, input_dilation, dilation)
        shape = (*x.shape[:lead], *geometry.output)
        index = _INT32 if math.prod(geometry.size) < 1 << 31 else _INT64
        outs = [self.empty(shape, x.dtype)]
        if kind == "max":
            outs.append(self.empty(shape, index))
        if not x.size and outs[0].size:  # windows of padding alone
            return super().window(
                kind, x, kernel, stride, padding, input_dilation, dilation, divisor
            )

        def make() -> Made:
            count = countable(shape)
            dtype = self.type_of(x.dtype)
            steps = steps_in(x, x.shape)
            ints = [count, *_windows(geometry), *x.shape[:lead], *geometry.output, *steps]
            given = (kind, dtype, lead, len(kernel), self.type_of(index))
            own = tuple(range(len(outs) + 1))
            floating = scalar_type(dtype) in FLOATS
            return Made("window", window_function, given, own, tuple(ints), blocks(count), floating)

        if outs[0].size:
            plan = self.plan(("window", kind, geometry, x.shape, x.strides, x.dtype), make)
            numbers = (float(divisor),) if kind == "sum" and plan.extra else ()
            self.launcher.launch(plan, [*outs, x], numbers)
        return outs[0] if kind == "sum" else tuple(outs)


def _product(
    k: Products,
    out: StridedArray,
    a: StridedArray,
    b: StridedArray,
    bias: StridedArray | None,
    add: bool,
    seen: tuple[int, ...],
) -> Made:
    """The plan of a product of matrices."""
    shape = out.shape
    batch, (rows, columns), terms = shape[:-2], shape[-2:], a.shape[-1]
    out_steps = steps_in(out, shape)
    a_steps = steps_in(a, (*batch, rows, terms))
    b_steps = steps_in(b, (*batch, terms, columns))
    b_steps = (*b_steps[:-2], b_steps[-1], b_steps[-2])  # of columns, then of terms
    dtype = k.type_of(a.dtype)
    compute = scalar_type(dtype)
    count = math.prod(batch)
    cut = _cut(k, compute, count, rows, columns, terms)
    into, extra = (dtype, None) if cut.pieces == 1 else (compute, None)
    step = 0
    if cut.pieces > 1:
        step = count * rows * columns
        out_steps = row_major(shape)
        extra = ((cut.pieces, *shape), np.dtype(a.dtype if into == dtype else np.float32))
        seen, bias, add = (0, *[s - seen[1] + 1 for s in seen[1:3]]), None, False
    along = (a_steps[-1] == 1, b_steps[-1] == 1)
    p = Product(into, dtype, compute, len(batch), bias is not None, add, along, cut.tile)
    ints = [count, rows, columns, terms, cut.piece, *batch]
    ints += [*out_steps[:-2], step, *out_steps[-2:], *a_steps, *b_steps]
    if bias is not None:
        ints += steps_in(bias, (columns,))
    groups = cut.groups if cut.tile else blocks(count * rows * columns)
    return Made("product", product_function, (p,), seen, tuple(ints), groups, extra, cut.threads)


class _Cut(NamedTuple):
    """How a product is cut into tiles and pieces."""

    tile: Tile | None  # None: there are no tiles
    piece: int
    pieces: int = 1
    groups: int = 0

    @property
    def threads(self) -> int:
        """Of a group, if not as many as usual."""
        return self.tile.threads if self.tile else 0


def _cut(k: Products, compute: str, count: int, rows: int, columns: int, terms: int) -> _Cut:
    tile = next((t for t in k.limits.tiles if _suits(k, t, compute, rows, columns)), None)
    if tile is None:
        return _Cut(None, terms)
    tiles = count * -(-rows // tile.height) * -(-columns // tile.width)
    piece = terms
    if tiles < FEW and terms >= 2 * DEEP and compute in FLOATS:
        piece = DEEP
    pieces = -(-terms // piece)
    return _Cut(tile, piece, pieces, tiles * pieces)


def _suits(k: Products, tile: Tile, compute: str, rows: int, columns: int) -> bool:
    """Whether the device can have such tiles, and enough of one is used."""
    fits = tile.shared * WIDTH[compute] <= k.limits.shared_bytes
    share = USED if tile != k.limits.tiles[-1] else USED_OF_LAST
    used = rows >= share * tile.height and columns >= share * tile.width
    return fits and used and tile.threads <= k.launcher.group


def _conv(
    k: Products,
    out: StridedArray,
    x: StridedArray,
    w: StridedArray,
    bias: StridedArray | None,
    geometry: Geometry,
    relu: bool,
    seen: tuple[int, ...],
) -> Made:
    """The plan of a convolution."""
    dtype = k.type_of(x.dtype)
    compute = scalar_type(dtype)
    groups, outputs, channels = w.shape[:3]
    positions = out.shape[3:]
    columns, terms = out.shape[0] * math.prod(positions), channels * math.prod(w.shape[3:])
    countable(out.shape)
    cut = _cut(k, compute, groups, outputs, columns, terms)
    if bias is not None or relu:
        cut = _Cut(cut.tile, terms, 1, cut.groups // cut.pieces)
    out_steps, extra, step = steps_in(out, out.shape), None, 0
    if cut.pieces > 1:
        step = out.size
        out_steps = row_major(out.shape)
        wide = np.dtype(np.float32) if is_half(x.dtype) else x.dtype
        extra = ((cut.pieces, *out.shape), wide)
        seen = (0, *[s - seen[1] + 1 for s in seen[1:3]])
    x_steps, w_steps = steps_in(x, x.shape), steps_in(w, w.shape)
    along = (not w_steps[3:] or w_steps[-1] == 1, False)
    into = dtype if cut.pieces == 1 else compute
    lies = any(n > 1 for n in geometry.input_dilation)
    kinds = (into, dtype, compute, len(positions), bias is not None, relu)
    zeros = compute in FLOATS and geometry.meets_zeros
    c = Convolution(*kinds, along, cut.tile, lies, zeros)
    ints = [groups, outputs, columns, terms, cut.piece, *_windows(geometry), *positions]
    ints += [step, *out_steps, *x_steps, *w_steps]
    if bias is not None:
        ints += steps_in(bias, bias.shape)
    count = cut.groups if cut.tile else blocks(groups * outputs * columns)
    return Made("conv", conv_function, (c,), seen, tuple(ints), count, extra, cut.threads)


def _windows(g: Geometry) -> list[int]:
    """The parameters of a geometry's windows."""
    low = [pair[0] for pair in g.padding]
    return window_ints(
        list(zip(g.size, g.kernel, g.stride, low, g.input_dilation, g.dilation, strict=True))
    )
