"""The forms that are compositions of others: what a device gets that answers only what it must."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernel import tables
from ..kernel.expr import call, trace, where
from ..kernel.row_program import NEUTRAL, Program
from ..kernel.windows import Geometry, Spans
from .base import Array, Backend, NumpyDType, Shape
from .sliding import spread_slices

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_INT32, _INT64, _BOOL = np.dtype(np.int32), np.dtype(np.int64), np.dtype(bool)
_ALL = slice(None)
_SUM = trace(lambda a, b: a + b, 2)
_PRODUCT = trace(lambda a, b: a * b, 2)
_QUOTIENT = trace(lambda a, b: a / b, 2)
_STEP = trace(lambda a, h, b: a * h + b, 3)
_PLACE = trace(lambda a, i, size: a * size + i, 3)
_NOT_LESS = trace(lambda a, b: call("ge", a, b), 2)
_CHOOSE = trace(lambda c, a, b: where(c, a, b), 3)
_EDGE_BELOW = trace(
    lambda e, v: call(
        "logical_or",
        call("lt", e, v),
        call("logical_and", call("isnan", v), call("logical_not", call("isnan", e))),
    ),
    2,
)
_EDGE_UP_TO = trace(lambda e, v: call("logical_or", call("le", e, v), call("isnan", v)), 2)
_WHOLE_BELOW = trace(lambda e, v: call("lt", e, v), 2)
_WHOLE_UP_TO = trace(lambda e, v: call("le", e, v), 2)
_BLOCK = 1 << 20  # comparisons that `searchsorted` makes at a time, about


def _is_half(dtype: NumpyDType) -> bool:
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def _widened(k: Backend, x: Array, wide: NumpyDType = _SINGLE) -> Array:
    return x if x.dtype == wide else k.cast(x, wide)


def _flat(k: Backend, x: Array, shape: tuple[int, ...]) -> Array:
    """`x` in another shape, copied where no view has it."""
    found = k.reshape(x, shape)
    return k.reshape(k.copy(x), shape) if found is None else found


def csr_matmul(
    k: Backend, begins: Array, rows: Array, columns: Array, values: Array, dense: Array
) -> Array:
    """Rows of the dense matrix, times values, added up in the rows of the result."""
    width = dense.shape[1]
    chosen = k.take(dense, (columns,))
    scale = k.reshape(values, (values.size, 1))
    parts = k.map(_PRODUCT, (chosen, k.expand(scale, (values.size, width))), dense.dtype)
    start = k.full((begins.size - 1, width), 0, dense.dtype)
    return k.put("add", start, (rows,), parts, True)


def concat(k: Backend, arrays: Sequence[Array], dim: int) -> Array:
    """Each array written into its place."""
    first = arrays[0].shape
    sizes = [a.shape[dim] for a in arrays]
    out = k.empty((*first[:dim], sum(sizes), *first[dim + 1 :]), arrays[0].dtype)
    start = 0
    for a, size in zip(arrays, sizes, strict=True):
        k.assign(k.slice(out, (*(_ALL,) * dim, slice(start, start + size))), a)
        start += size
    return out


def recurrence(k: Backend, a: Array, b: Array, dim: int, reverse: bool) -> Array:
    """A map for each step."""
    if _is_half(b.dtype):
        wide = recurrence(k, k.cast(a, _SINGLE), k.cast(b, _SINGLE), dim, reverse)
        return k.cast(wide, b.dtype)
    out = k.copy(b)
    lead = (_ALL,) * dim
    steps = range(b.shape[dim])[::-1] if reverse else range(b.shape[dim])
    for before, i in itertools.pairwise(steps):
        target, last = (k.slice(out, (*lead, j)) for j in (i, before))
        k.map(_STEP, (k.slice(a, (*lead, i)), last, target), out.dtype, target)
    return out


# Rows ----------------------------------------------------------------------------------------
def rows(
    k: Backend,
    program: Program,
    operands: Sequence[Any],
    dims: tuple[int, ...],
    dtypes: Sequence[NumpyDType],
) -> tuple[Array, ...]:
    """A map or a reduction for each stage and output of a row program."""
    arrays = operands[: program.elements + program.per_row]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    wide = _DOUBLE if any(a.dtype == _DOUBLE for a in arrays) else _SINGLE
    values: list[Any] = [*operands, None]
    for i, a in enumerate(arrays):
        a = _widened(k, a, wide) if a.dtype.kind in "fV" else a
        values[i] = _flat(k, a, (1,) * (len(shape) - len(a.shape)) + a.shape)
    if program.uses_column:
        (dim,) = dims
        sizes = [shape[dim] if d == dim else 1 for d in range(len(shape))]
        values[-1] = k.reshape(k.arange(0, 1, shape[dim], _INT64), tuple(sizes))

    def value(expr: Any, used: tuple[int, ...]) -> Array:
        if expr.head == "arg":
            return values[used[0]]
        return k.map(expr, [values[i] for i in used], wide)

    def spread(found: Array) -> Array:
        return found if found.shape == shape else k.expand(found, shape)

    for s in program.stages:
        found = value(s.compact, s.used)
        if s.kind == "pick":
            picked = [1 if d in dims else n for d, n in enumerate(shape)]
            index = k.expand(_widened(k, found, _INT64), tuple(picked))
            found = k.gather(spread(values[s.operand]), dims[0], index)
        elif s.kind == "first":
            start = [slice(0, 1) if d in dims else _ALL for d in range(len(shape))]
            found = k.slice(spread(found), tuple(start))
        elif s.kind in NEUTRAL:
            kind = "max" if s.kind == "peak" else s.kind
            found = k.reduce(kind, spread(found), dims, True)
        values.append(found)
    results = []
    for o, dtype in zip(program.outputs, dtypes, strict=True):
        found = value(o.compact, o.used)
        fresh = o.compact.head != "arg"
        if o.kind == "column":
            others = tuple([d for d in range(len(shape)) if d not in dims])
            found = k.reduce("sum", spread(found), others, True)
        elif o.kind == "element" and found.shape != shape:
            found, fresh = spread(found), False
        results.append(found if fresh and found.dtype == dtype else k.cast(found, dtype))
    return tuple(results)


# Indexing ------------------------------------------------------------------------------------
def _indexed(k: Backend, x: Array, index: tuple[Any, ...]) -> Any:
    """The order of dimensions with the indexed ones first, positions over them, and their shape.

    Also where those dimensions stand in the result, by NumPy's rule: together where they are
    neighbours, else first.
    """
    by = [d for d, i in enumerate(index) if i.__class__ is not slice]
    others = [d for d in range(len(x.shape)) if d not in by]
    shape = np.broadcast_shapes(*(index[d].shape for d in by))
    place: Array = k.full((), 0, _INT64)
    for d in by:
        place = k.map(_PLACE, (place, _widened(k, index[d], _INT64), x.shape[d]), _INT64)
    count = math.prod(shape)
    place = _flat(k, k.expand(place, shape), (count, 1))
    neighbours = by == list(range(by[0], by[0] + len(by)))
    return by, others, place, shape, by[0] if neighbours else 0


def _rows_of(k: Backend, x: Array, by: list[int], others: list[int]) -> tuple[Array, Array]:
    """`x` with the indexed dimensions first, and as a matrix (indexed, others)."""
    moved = k.permute(x, (*by, *others))
    sizes = math.prod(x.shape[d] for d in by), math.prod(x.shape[d] for d in others)
    return moved, _flat(k, moved, sizes)


def take(k: Backend, x: Array, index: tuple[Any, ...]) -> Array:
    """A gather of rows of a matrix."""
    by, others, place, shape, at = _indexed(k, x, index)
    _, matrix = _rows_of(k, x, by, others)
    found = k.gather(matrix, 0, k.expand(place, (place.shape[0], matrix.shape[1])))
    found = k.reshape(found, (*shape, *(x.shape[d] for d in others)))
    if not at:
        return found
    n = len(shape)
    order = (*range(n, n + at), *range(n), *range(n + at, n + len(others)))
    return k.copy(k.permute(found, order))


def put(
    k: Backend, kind: str, x: Array, index: tuple[Any, ...], source: Array, inplace: bool
) -> Array:
    """A scatter into rows of a matrix."""
    out = x if inplace else k.copy(x)
    by, others, place, shape, at = _indexed(k, x, index)
    moved, matrix = _rows_of(k, out, by, others)
    rest = [x.shape[d] for d in others]
    n = len(shape)
    source = k.expand(source, (*rest[:at], *shape, *rest[at:]))
    if at:
        source = k.permute(source, (*range(at, at + n), *range(at), *range(at + n, n + len(rest))))
    sizes = place.shape[0], matrix.shape[1]
    source = _flat(k, k.copy(source) if inplace else source, sizes)
    shares = k.memory(matrix) == k.memory(out)
    matrix = k.scatter(kind, matrix, 0, k.expand(place, sizes), source, True)
    if not shares:
        k.assign(moved, k.reshape(matrix, moved.shape))
    return out


def searchsorted(k: Backend, edges: Array, values: Array, right: bool) -> Array:
    """For each value the number of edges below it: compared with all of them, in blocks."""
    if _is_half(edges.dtype):
        edges, values = k.cast(edges, _SINGLE), k.cast(values, _SINGLE)
    count = edges.shape[-1]
    if edges.dtype.kind in "iub":
        below = _WHOLE_UP_TO if right else _WHOLE_BELOW
    else:
        below = _EDGE_UP_TO if right else _EDGE_BELOW
    if len(edges.shape) == 1:
        flat = _flat(k, values, (values.size,))
        lines = k.reshape(edges, (1, count))
    else:
        flat = values
        lines = k.slice(edges, (Ellipsis, None, _ALL))
    out = k.empty(flat.shape, _INT64)
    size = flat.shape[-1]
    one = max(flat.size // max(size, 1) * count, 1)
    step = max(_BLOCK // one, 1)
    for first in range(0, size, step):
        part = (Ellipsis, slice(first, first + step))
        found = k.map(below, (lines, k.slice(flat, (*part, None))), _BOOL)
        total = k.reduce("sum", k.cast(found, _INT64), (len(found.shape) - 1,), False)
        k.assign(k.slice(out, part), total)
    return k.reshape(out, values.shape)


# Windows -------------------------------------------------------------------------------------
def _padded(k: Backend, x: Array, geometry: Geometry) -> Array:
    """`x` in row-major memory with its last dimensions dilated and padded with zeros."""
    lead = len(x.shape) - len(geometry.size)
    shape = (*x.shape[:lead], *[max(n, 0) for n in geometry.padded])
    outer, inner = spread_slices(geometry, lead)
    out = k.full(shape, 0, x.dtype)
    k.assign(k.slice(out, outer), k.slice(x, inner))
    return out


def _windows(k: Backend, x: Array, geometry: Geometry) -> Array:
    """The view (…, taps …, positions …) of a padded array."""
    steps = [s // x.dtype.itemsize for s in x.strides]
    lead = len(x.shape) - len(geometry.size)
    taps = [s * d for s, d in zip(steps[lead:], geometry.dilation, strict=True)]
    positions = [s * d for s, d in zip(steps[lead:], geometry.stride, strict=True)]
    shape = (*x.shape[:lead], *geometry.kernel, *geometry.output)
    return k.as_strided(x, shape, (*steps[:lead], *taps, *positions), 0)


def conv(
    k: Backend, out: Array, x: Array, w: Array, bias: Array | None, geometry: Geometry
) -> None:
    """A product of the kernels with the windows, which are laid out one image at a time."""
    if not out.size:
        return
    wide = _SINGLE if _is_half(x.dtype) else x.dtype
    groups, outputs, channels = w.shape[:3]
    positions = out.shape[3:]
    rank = len(positions)
    depth = channels * math.prod(geometry.kernel)
    kernels = _flat(k, _widened(k, w, wide), (groups, outputs, depth))
    if bias is not None:
        bias = _flat(k, _widened(k, bias, wide), (groups, outputs, *(1,) * rank))
    for image in range(x.shape[0]):
        seen = _padded(k, _widened(k, k.slice(x, (image,)), wide), geometry)
        columns = _flat(k, _windows(k, seen, geometry), (groups, depth, math.prod(positions)))
        product = k.reshape(k.matmul(kernels, columns), (groups, outputs, *positions))
        if bias is not None:
            product = k.map(_SUM, (product, bias), wide)
        k.assign(k.slice(out, (image,)), product)


def convolution(
    k: Backend,
    wanted: str,
    a: Array,
    b: Array,
    bias: Array | None,
    geometry: Geometry,
    groups: int,
    relu: bool,
) -> Array:
    """The form `conv` on views of the operands and of a new result."""
    out = k.empty(convolved_shape(wanted, a, b, geometry, groups), a.dtype)
    to, x, w, biases, turned = convolution_views(k, wanted, out, a, b, bias, geometry, groups)
    k.conv(to, x, w, biases, *turned.steps, relu)
    return out


def convolved_shape(wanted: str, a: Array, b: Array, geometry: Geometry, groups: int) -> Shape:
    """The shape of x, w or y of a convolution, whichever is wanted."""
    if wanted == "y":
        return (a.shape[0], b.shape[0], *geometry.output)
    if wanted == "x":
        return (a.shape[0], b.shape[1] * groups, *geometry.size)
    return (b.shape[1], a.shape[1] // groups, *geometry.kernel)


def convolution_views(
    k: Backend,
    wanted: str,
    out: Array,
    a: Array,
    b: Array,
    bias: Array | None,
    geometry: Geometry,
    groups: int,
) -> tuple[Array, Array, Array, Array | None, Geometry]:
    """What the form `conv` is given for out, x, w and bias to find what is wanted, and by how.

    They have the group as a dimension of its own, so that no turn needs a copy.
    """

    def grouped(x: Array, dim: int) -> Array:
        size = x.shape[dim] // groups
        return k.reshape(x, (*x.shape[:dim], groups, size, *x.shape[dim + 1 :]))

    biases = None if bias is None else grouped(bias, 0)
    last = range(3, 3 + len(geometry.size))
    if wanted == "w":
        turned = (
            k.permute(grouped(x, dim), (*order, *last))
            for x, dim, order in ((out, 0, (2, 0, 1)), (a, 1, (2, 1, 0)), (b, 1, (1, 2, 0)))
        )
        return (*turned, biases, geometry.of_kernel)
    out, x, w = grouped(out, 1), grouped(a, 1), grouped(b, 0)
    if wanted == "y":
        return out, x, w, biases, geometry
    w = k.permute(w, (0, 2, 1, *last))
    w = k.slice(w, (..., *(slice(None, None, -1),) * len(last)))
    return out, x, w, biases, geometry.of_input


def window_sum(k: Backend, x: Array, geometry: Geometry, divisor: float) -> Array:
    """The sum over the taps of each window."""
    rank = len(geometry.size)
    lead = len(x.shape) - rank
    wide = _SINGLE if _is_half(x.dtype) else x.dtype
    windows = _windows(k, _padded(k, _widened(k, x, wide), geometry), geometry)
    total = k.reduce("sum", windows, tuple(range(lead, lead + rank)), False)
    if divisor != 1:
        total = k.map(_QUOTIENT, (total, divisor), wide)
    return _widened(k, total, x.dtype)


def window_max(k: Backend, x: Array, geometry: Geometry) -> tuple[Array, Array]:
    """The first largest element that a window's taps find, by a table of what they look at."""
    values, where_ = _first_largest(k, x, geometry, _looked_at)
    if not _sees_something(geometry).all():
        lowest = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -math.inf
        values = k.map(_CHOOSE, (k.table(_sees_something, geometry), values, lowest), x.dtype)
    return values, where_


def span_max(k: Backend, x: Array, spans: Spans) -> tuple[Array, Array]:
    """The first largest element of each span."""
    return _first_largest(k, x, spans, tables.span_places)


def span_sum(k: Backend, x: Array, spans: Spans) -> Array:
    """The sum of each span: what it sees is laid out, without its repetitions."""
    lead, repeats = len(x.shape) - len(spans.size), tables.span_repeats(spans)
    _, seen = _seen(k, x, spans, tables.span_places)
    if repeats.any():
        seen = k.map(_CHOOSE, (k.table(tables.span_repeats, spans), 0, seen), x.dtype)
    total = k.reduce("sum", seen, (lead + 1,), False)
    return k.reshape(total, (*x.shape[:lead], *spans.output))


def _seen(k: Backend, x: Array, windows: Geometry | Spans, places: Any) -> tuple[Array, Array]:
    """What the taps of windows look at: (…, windows, taps), and the table of their places."""
    lead = x.shape[: len(x.shape) - len(windows.size)]
    flat: Array = _flat(k, x, (*lead, math.prod(windows.size)))
    table = k.table(places, windows)
    count = math.prod(windows.output)
    every = k.expand(table, (*lead, *table.shape))
    shape = (*lead, count, table.shape[0] // count if count else 1)
    return every, k.reshape(k.gather(flat, len(lead), every), shape)


def _first_largest(
    k: Backend, x: Array, windows: Geometry | Spans, places: Any
) -> tuple[Array, Array]:
    """The first largest element that the taps of each window look at, and where it is."""
    every, seen = _seen(k, x, windows, places)
    dim = len(x.shape) - len(windows.size) + 1
    values, best = k.reduce("first_max", seen, (dim,), True)
    where_ = k.gather(k.reshape(k.copy(every), seen.shape), dim, best)
    shape = (*x.shape[: dim - 1], *windows.output)
    kind = _INT32 if math.prod(windows.size) < 1 << 31 else _INT64
    return k.reshape(values, shape), k.cast(k.reshape(where_, shape), kind)


@functools.lru_cache(maxsize=64)
def _taps(geometry: Geometry) -> tuple[Any, Any]:
    """(windows, taps): the position of each in the last dimensions, flattened, and if it exists."""
    place: Any = np.zeros((1, 1), np.int64)
    exists: Any = np.ones((1, 1), bool)
    rows = zip(
        geometry.size,
        geometry.kernel,
        geometry.output,
        geometry.stride,
        geometry.dilation,
        geometry.padding,
        strict=True,
    )
    for size, kernel, output, stride, dilation, (low, _) in rows:
        at = np.arange(output)[:, None] * stride + np.arange(kernel) * dilation - low
        inside = (at >= 0) & (at < size)
        shape = (place.shape[0] * output, place.shape[1] * kernel)
        place = (place[:, None, :, None] * size + at[None, :, None, :]).reshape(shape)
        exists = (exists[:, None, :, None] & inside[None, :, None, :]).reshape(shape)
    return place, exists


def _looked_at(geometry: Geometry) -> Any:
    """The positions of all taps of all windows; in the place of padding, the window's first."""
    place, exists = _taps(geometry)
    if not exists.size:
        return np.zeros(exists.size, np.int64)
    first = np.take_along_axis(place, exists.argmax(axis=1)[:, None], axis=1)
    first = np.where(exists.any(axis=1)[:, None], first, 0)
    return np.where(exists, place, first).reshape(-1)


def _sees_something(geometry: Geometry) -> Any:
    """Which windows see more than padding."""
    return _taps(geometry)[1].any(axis=1).reshape(geometry.output)


# Attention -----------------------------------------------------------------------------------
_EXP_OF_DIFFERENCE = trace(lambda a, b: call("exp", a - b), 2)
_SHIFT = trace(lambda peak: where(call("eq", peak, -math.inf), 0, peak), 1)
_LSE = trace(
    lambda peak, total: where(
        call("eq", total, 0), math.inf, peak + call("log", where(call("eq", total, 0), 1, total))
    ),
    2,
)
_SHARE = trace(lambda e, total: e / where(call("eq", total, 0), 1, total), 2)
_SLOPE = trace(lambda p, dp, dot, scale: p * (dp - dot) * scale, 4)


def _scores(
    k: Backend, q: Array, keys: Array, mask: Array | None, scale: float, causal: bool
) -> Array:
    wide = _SINGLE if _is_half(q.dtype) else q.dtype
    q, keys = _widened(k, q, wide), _widened(k, keys, wide)
    scores = k.map(_PRODUCT, (k.matmul(q, k.transposed(keys)), scale), wide)
    if causal:
        queries = k.reshape(k.arange(0, 1, q.shape[-2], _INT64), (q.shape[-2], 1))
        mask = k.map(_NOT_LESS, (queries, k.arange(0, 1, keys.shape[-2], _INT64)), _BOOL)
    if mask is None:
        return scores
    if mask.dtype == _BOOL:
        return k.map(_CHOOSE, (mask, scores, -math.inf), wide)
    return k.map(_SUM, (scores, _widened(k, mask, wide)), wide)


def attention(
    k: Backend, q: Array, keys: Array, v: Array, mask: Array | None, scale: float, causal: bool
) -> tuple[Array, Array]:
    """The scores, their softmax, and a product."""
    scores = _scores(k, q, keys, mask, scale, causal)
    wide = scores.dtype
    peak = k.map(_SHIFT, (k.reduce("max", scores, (3,), True),), wide)
    weights = k.map(_EXP_OF_DIFFERENCE, (scores, peak), wide)
    total = k.reduce("sum", weights, (3,), True)
    lse = k.map(_LSE, (peak, total), wide)
    out = k.matmul(k.map(_SHARE, (weights, total), wide), _widened(k, v, wide))
    return _widened(k, out, q.dtype), k.reshape(lse, lse.shape[:3])


def attention_backward(
    k: Backend,
    g: Array,
    q: Array,
    keys: Array,
    v: Array,
    mask: Array | None,
    out: Array,
    lse: Array,
    scale: float,
    causal: bool,
) -> tuple[Array, Array, Array]:
    """The weights again, and what the softmax and the two products give back."""
    dtype = q.dtype
    scores = _scores(k, q, keys, mask, scale, causal)
    wide = scores.dtype
    weights = k.map(_EXP_OF_DIFFERENCE, (scores, _flat(k, lse, (*lse.shape, 1))), wide)
    g, q, keys, v, out = (_widened(k, x, wide) for x in (g, q, keys, v, out))
    dot = k.reduce("sum", k.map(_PRODUCT, (g, out), wide), (3,), True)
    slopes = k.map(_SLOPE, (weights, k.matmul(g, k.transposed(v)), dot, scale), wide)
    found = (
        k.matmul(slopes, keys),
        k.matmul(k.transposed(slopes), q),
        k.matmul(k.transposed(weights), g),
    )
    return tuple(_widened(k, x, dtype) for x in found)
