"""The forms of a batch: each is answered by the same form on the whole; see Note [batches].

A form that is not here is a composition of others, which are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...kernel.expr import Expr, trace
from ...kernel.row_program import Program
from ...kernel.windows import Geometry
from ..base import Array, Backend, NumpyDType, Padding, Shape
from ..registry import backend_of
from ..strided import overlaps
from .frames import BatchArray, Frame
from .lifting import UnmappedWriteError, ValueLookedAtError

_ALL = slice(None)
_INT64 = np.dtype(np.int64)
_SUM = trace(lambda a, b: a + b, 2)
_PRODUCT = trace(lambda a, b: a * b, 2)


class BatchBackend(Backend):
    """One frame over another backend, whose arrays are the wholes."""

    def __init__(self, frame: Frame, below: Backend) -> None:
        self.frame = frame
        self.below = below
        self.base = below.base
        self.device = below.device
        self.frames = (*below.frames, frame)

    # Into the batch, and out of it --------------------------------------------------------------
    def lift(self, x: Array) -> BatchArray:
        """An array of a backend with fewer frames, as one of this: equal along those it lacks."""
        if x.__class__ is BatchArray:
            k = x.backend
            if k is self:
                return x
            if k.frame is self.frame:
                return BatchArray(self.below.lift(x.whole), self, x.fresh)
        x = self.below.lift(x)
        return BatchArray(self.below.slice(x, (None, ...)), self, False)

    def of(self, whole: Any) -> Any:
        """Wholes that were just made, as arrays of this backend."""
        if isinstance(whole, (tuple, list)):
            return tuple([self.of(w) for w in whole])
        return whole if whole is None else BatchArray(whole, self)

    def whole(self, x: Array) -> Any:
        """All elements of all batches, for a check that is about every one of them."""
        return self.below.whole(self.lift(x).whole)

    def _wholes(self, arrays: Sequence[Any], rank: int | None = None) -> list[Any]:
        """Wholes whose dimensions after the first are lined up from the right; numbers stay."""
        lifted = [
            self.lift(a) if hasattr(a, "dtype") and hasattr(a, "shape") else a for a in arrays
        ]
        if rank is None:
            rank = max((len(a.shape) for a in lifted if a.__class__ is BatchArray), default=0)
        return [_ranked(self.below, a, rank) if a.__class__ is BatchArray else a for a in lifted]

    def _alike(self, *arrays: Any) -> list[Any]:
        """Wholes, all of which have as many elements along the first dimension; None stays."""
        lifted = [None if a is None else self.lift(a).whole for a in arrays]
        count = max(w.shape[0] for w in lifted if w is not None)
        if self.frame.size == 0 and any(w is not None and w.shape[0] == 0 for w in lifted):
            count = 0
        return [w if w is None else self._stretched(w, count) for w in lifted]

    def _stretched(self, whole: Array, count: int) -> Array:
        if whole.shape[0] == count:
            return whole
        return self.below.expand(whole, (count, *whole.shape[1:]))

    def full_size(self, x: Array) -> Array:
        """The whole with every element of the batch, expanded if they are equal."""
        return self._stretched(self.lift(x).whole, self.frame.size)

    def mapped(self, x: Any) -> bool:
        """Whether elements of the batch may differ."""
        return x is not None and self.lift(x).whole.shape[0] != 1

    def _written(self, target: Array, *sources: Any) -> Array:
        """The whole of an array that is about to be changed by these."""
        if target.__class__ is not BatchArray or target.backend is not self:
            raise UnmappedWriteError()
        if target.whole.shape[0] != self.frame.size and any(
            hasattr(s, "dtype") and self.mapped(s) for s in sources
        ):
            target.grow()
        whole = target.whole  # an empty one has strides of 0, and nothing to write to
        if whole.size and overlaps(whole.shape[:1], whole.strides[:1]):
            raise UnmappedWriteError()
        return whole

    # Memory ---------------------------------------------------------------------------------------
    def empty(self, shape: Shape, dtype: NumpyDType) -> Array:
        return BatchArray(self.below.empty((self.frame.size, *shape), dtype), self)

    def full(self, shape: Shape, value: Any, dtype: NumpyDType) -> Array:
        return BatchArray(self.below.full((1, *shape), value, dtype), self)

    def from_host(self, array: Any) -> Array:
        return self.lift(self.base.from_host(array))

    def to_host(self, array: Array) -> Any:
        if self.frame.size != 1 and array.whole.shape[0] != 1:
            raise ValueLookedAtError()
        return self.below.to_host(self.below.slice(array.whole, (0,)))

    def assign(self, target: Array, source: Array) -> None:
        whole = self._written(target, source)
        (other,) = self._wholes((source,), len(target.shape))
        self.below.assign(whole, other)

    def arange(self, start: Any, step: Any, count: int, dtype: NumpyDType) -> Array:
        return self.of(self.below.slice(self.below.arange(start, step, count, dtype), (None, ...)))

    def table(self, make: Callable[..., Any], *args: Any) -> Array:
        return self.lift(self.base.table(make, *args))

    def copy(self, x: Array) -> Array:
        return self.of(self.below.copy(self.lift(x).whole))

    def cast(self, x: Array, dtype: NumpyDType) -> Array:
        return self.of(self.below.cast(self.lift(x).whole, dtype))

    def transfer(self, x: Array, target: Backend) -> Array:
        below = self.below
        if below.frames:
            moved = below.transfer(x.whole, target)
        else:
            moved = below.transfer(x.whole, target.base)
        return BatchArray(moved, self.frame.over(backend_of(moved)))

    def concat(self, arrays: Sequence[Array], dim: int) -> Array:
        return self.of(self.below.concat(self._alike(*arrays), dim + 1))

    # Questions ------------------------------------------------------------------------------------
    def begin(self) -> Any:
        return self.base.begin()

    def end(self, token: Any) -> None:
        self.base.end(token)

    def writable(self, x: Array) -> bool:
        return self.below.writable(x.whole)

    def memory(self, x: Array) -> int:
        return self.below.memory(x.whole)

    def owned(self, holder: list[Any], i: int) -> bool:
        return False

    def address(self, x: Array) -> int:
        return self.below.address(x.whole)

    def storage_offset(self, x: Array) -> int:
        return self.below.storage_offset(x.whole)

    def storage_size(self, x: Array) -> int:
        return self.below.storage_size(x.whole)

    def require(
        self,
        x: Array,
        low: float,
        high: float,
        error: Callable[[Any], Exception],
        but: int | None = None,
    ) -> Any:
        return self.below.require(self.lift(x).whole, low, high, error, but)

    def within(self, x: Array, low: float, high: float) -> bool:
        return self.below.within(self.lift(x).whole, low, high)

    # Views ----------------------------------------------------------------------------------------
    def _view(self, x: Array, how: Callable[[Any], Any]) -> Array:
        x = self.lift(x)
        whole = how(x.whole)
        return None if whole is None else x.seen(whole, how)

    def as_strided(self, x: Array, shape: Shape, strides: Shape, offset: int) -> Array:
        def how(w: Any) -> Any:
            step = w.strides[0] // w.dtype.itemsize
            return self.below.as_strided(w, (w.shape[0], *shape), (step, *strides), offset)

        return self._view(x, how)

    def reshape(self, x: Array, shape: Shape) -> Any:
        return self._view(x, lambda w: self.below.reshape(w, (w.shape[0], *shape)))

    def permute(self, x: Array, dims: Sequence[int]) -> Array:
        rank = len(x.shape)
        order = (0, *[d % rank + 1 for d in dims])
        return self._view(x, lambda w: self.below.permute(w, order))

    def expand(self, x: Array, shape: Shape) -> Array:
        more = (None,) * (len(shape) - len(x.shape))

        def how(w: Any) -> Any:
            if more:
                w = self.below.slice(w, (_ALL, *more))
            return self.below.expand(w, (w.shape[0], *shape))

        return self._view(x, how)

    def slice(self, x: Array, slices: tuple[Any, ...]) -> Array:
        return self._view(x, lambda w: self.below.slice(w, (_ALL, *slices)))

    def part(self, x: Array, which: str) -> Array:
        return self._view(x, lambda w: self.below.part(w, which))

    def bits(self, x: Array, dtype: NumpyDType) -> Array:
        return self._view(x, lambda w: self.below.bits(w, dtype))

    # Computation ----------------------------------------------------------------------------------
    def maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[NumpyDType],
        outs: Sequence[Array] | None = None,
    ) -> Sequence[Array]:
        if outs is None:
            return list(self.of(self.below.maps(exprs, self._wholes(operands), dtypes)))
        targets = [self._written(out, *operands) for out in outs]
        rank = max(len(out.shape) for out in outs)
        self.below.maps(exprs, self._wholes(operands, rank), dtypes, targets)
        return list(outs)

    def add_into(self, target: Array, value: Array) -> None:
        self.maps((_SUM,), (target, value), (target.dtype,), (target,))

    def reduce(self, kind: str, x: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        x = self.lift(x)
        shifted = tuple([d % len(x.shape) + 1 for d in dims])
        return self.of(self.below.reduce(kind, x.whole, shifted, keepdim))

    def map_reduce(
        self,
        kind: str,
        expr: Expr,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: NumpyDType,
    ) -> Array:
        wholes = self._wholes(operands)
        rank = max(len(w.shape) for w in wholes if hasattr(w, "shape")) - 1
        shifted = tuple([d % rank + 1 for d in dims])
        return self.of(self.below.map_reduce(kind, expr, wholes, shifted, keepdim, dtype))

    def rows(
        self,
        program: Program,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        dtypes: Sequence[NumpyDType],
    ) -> tuple[Array, ...]:
        if any(o.kind == "column" for o in program.outputs):  # a sum over the rows of one element
            return super().rows(program, operands, dims, dtypes)
        wholes = self._wholes(operands)
        rank = max(len(w.shape) for w in wholes if hasattr(w, "shape")) - 1
        shifted = tuple([d % rank + 1 for d in dims])
        return self.of(self.below.rows(program, wholes, shifted, dtypes))

    def scan(self, kind: str, x: Array, dim: int) -> Any:
        return self.of(self.below.scan(kind, self.lift(x).whole, dim + 1))

    def recurrence(self, a: Array, b: Array, dim: int, reverse: bool) -> Array:
        x, y = self._alike(a, b)
        return self.of(self.below.recurrence(x, y, dim + 1, reverse))

    def sort(
        self, x: Array, dim: int, descending: bool, count: int | None = None
    ) -> tuple[Array, Array]:
        return self.of(self.below.sort(self.lift(x).whole, dim + 1, descending, count))

    def ranked(self, x: Array, dim: int, rank: int) -> tuple[Array, Array]:
        return self.of(self.below.ranked(self.lift(x).whole, dim + 1, rank))

    def nonzero(self, x: Array) -> Array:
        if self.frame.size == 1 or not self.mapped(x):
            found = self.below.nonzero(self.below.slice(self.lift(x).whole, (0,)))
            return self.of(self.below.slice(found, (None, ...)))
        raise ValueLookedAtError("asks for the places of what is not zero")

    def matmul(self, a: Array, b: Array, bias: Array | None = None) -> Array:
        k = self.below
        x, y = self.lift(a).whole, self.lift(b).whole
        if bias is not None and self.mapped(bias):
            product = self.matmul(a, b)
            return self.maps((_SUM,), (product, bias), (product.dtype,))[0]
        if bias is not None:
            bias = k.slice(self.lift(bias).whole, (0,))
        if x.shape[-1] == 1 and bias is None:  # an outer product is no sum of any
            return self.maps((_PRODUCT,), (a, b), (x.dtype,))[0]
        if y.shape[0] == 1 and len(y.shape) == 3:  # one matrix for all: rows of one product
            rows = k.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
            one = k.slice(y, (0,))
            if rows is None:
                return self.of(k.matmul(x, one, bias))
            return self.of(k.reshape(k.matmul(rows, one, bias), (*x.shape[:-1], y.shape[-1])))
        if x.shape[0] == 1 and len(x.shape) == 3 and len(y.shape) == 3 and y.shape[2] == 1:
            rows = k.reshape(y, y.shape[:2])  # one matrix times a vector of each
            if rows is not None:
                found = k.matmul(rows, k.transposed(k.slice(x, (0,))))
                found = k.reshape(found, (*found.shape, 1))
                return self.of(found if bias is None else k.map(_SUM, (found, bias), found.dtype))
        rank = max(len(x.shape), len(y.shape)) - 1
        x, y = (_widened(k, w, rank) for w in (x, y))
        return self.of(k.matmul(x, y, bias))

    # Indexing ------------------------------------------------------------------------------------
    def gather(self, x: Array, dim: int, index: Array) -> Array:
        if not x.shape or not index.shape:  # a number counts as a row of one
            found = self.gather(self.reshape(x, x.shape or (1,)), dim, _row(self, index))
            return found if index.shape else self.reshape(found, ())
        whole, places = self._alike(x, index)
        return self.of(self.below.gather(whole, dim + 1, places))

    def scatter(
        self, kind: str, x: Array, dim: int, index: Array, source: Array, inplace: bool = False
    ) -> Array:
        source = self.expand(self.lift(source), tuple(index.shape))
        if not x.shape:
            row = self.scatter(
                kind, self.reshape(x, (1,)), dim, _row(self, index), _row(self, source), inplace
            )
            return x if inplace else self.reshape(row, ())
        if inplace:
            whole = self._written(x, index, source)
            places, added = (
                self._stretched(self.lift(a).whole, whole.shape[0]) for a in (index, source)
            )
            self.below.scatter(kind, whole, dim + 1, places, added, True)
            return x
        whole, places, added = self._alike(x, index, source)
        return self.of(self.below.scatter(kind, whole, dim + 1, places, added))

    def take(self, x: Array, index: tuple[Any, ...]) -> Array:
        k = self.below
        by = [d for d, i in enumerate(index) if i.__class__ is not slice]
        places = [self.lift(index[d]) for d in by]
        if not any(p.whole.shape[0] != 1 for p in places):
            first = [k.slice(p.whole, (0,)) for p in places]
            chosen: list[Any] = [_ALL, *index]
            for d, p in zip(by, first, strict=True):
                chosen[d + 1] = p
            found = k.take(self.lift(x).whole, tuple(chosen))
            if _neighbours(by):
                return self.of(found)
            rank = max(len(p.shape) for p in first)  # they stand first, before the batch
            order = (rank, *range(rank), *range(rank + 1, len(found.shape)))
            return self.of(k.copy(k.permute(found, order)))
        whole, indices, rank = self._indexed(x, by, places)
        found = k.take(whole, indices)
        if not by[0] or not _neighbours(by):
            return self.of(found)
        n = by[0]  # dimensions that stand before the indexed ones
        order = (0, *range(1 + rank, 1 + rank + n), *range(1, 1 + rank))
        order = (*order, *range(1 + rank + n, len(found.shape)))
        return self.of(k.copy(k.permute(found, order)))

    def _indexed(self, x: Array, by: list[int], places: list[Any]) -> tuple[Any, Any, int]:
        """The whole with the indexed dimensions after the batch, and an index of them all."""
        k = self.below
        rank = max(len(p.shape) for p in places)
        wholes = self._wholes(places, rank)
        count = self.frame.size
        whole = self.full_size(x)
        others = [d for d in range(len(x.shape)) if d not in by]
        whole = k.permute(whole, (0, *[d + 1 for d in by], *[d + 1 for d in others]))
        each = k.reshape(k.arange(0, 1, count, _INT64), (count, *(1,) * rank))
        return whole, (each, *wholes, *(_ALL,) * len(others)), rank

    def put(
        self, kind: str, x: Array, index: tuple[Any, ...], source: Array, inplace: bool = False
    ) -> Array:
        k = self.below
        out = x if inplace else self.of(k.copy(self.full_size(x)))
        target = self._written(out, source, *[i for i in index if i.__class__ is not slice])
        by = [d for d, i in enumerate(index) if i.__class__ is not slice]
        others = [d for d in range(len(x.shape)) if d not in by]
        places = [self.lift(index[d]) for d in by]
        rank = max(len(p.shape) for p in places)
        count = target.shape[0]
        wholes = self._wholes(places, rank)
        moved = k.permute(target, (0, *[d + 1 for d in by], *[d + 1 for d in others]))
        each = k.reshape(k.arange(0, 1, count, _INT64), (count, *(1,) * rank))
        # The shape that `take` gives, with the indexed dimensions first.
        shape = np.broadcast_shapes(*(p.shape for p in places))
        rest = [x.shape[d] for d in others]
        n = by[0] if _neighbours(by) else 0
        logical = (*rest[:n], *shape, *rest[n:])
        (given,) = self._wholes((source,), len(logical))
        given = k.expand(given, (count, *logical))
        order = (0, *range(1 + n, 1 + n + rank), *range(1, 1 + n))
        given = k.permute(given, (*order, *range(1 + n + rank, 1 + len(logical))))
        chosen = (each, *wholes, *(_ALL,) * len(others))
        changed = k.put(kind, moved, chosen, given, True)
        if k.memory(changed) != k.memory(target):
            k.assign(moved, changed)
        return out

    # Larger forms --------------------------------------------------------------------------------
    def random_map(
        self, expr: Expr, x: Array, numbers: tuple[float, ...], limit: int, seed: int, offset: int
    ) -> Array:
        if self.frame.randomness == "different":
            whole = self.full_size(x)
            return self.of(self.below.random_map(expr, whole, numbers, limit, seed, offset))
        return super().random_map(expr, x, numbers, limit, seed, offset)

    def philox(self, seed: int, offset: int, count: int) -> Array:
        if self.frame.randomness == "different":
            drawn = self.below.philox(seed, offset, self.frame.size * count)
            return self.of(self.below.reshape(drawn, (self.frame.size, count)))
        return self.of(self.below.slice(self.below.philox(seed, offset, count), (None, ...)))

    def convolution(
        self,
        wanted: str,
        a: Array,
        b: Array,
        bias: Array | None,
        geometry: Geometry,
        groups: int,
        relu: bool = False,
    ) -> Array:
        """A batch of inputs is more inputs; a batch of kernels is more groups."""
        k = self.below
        if wanted != "w" and not self.mapped(b) and not (bias is not None and self.mapped(bias)):
            whole = self.lift(a).whole
            count = whole.shape[0]
            rows = _flat(k, whole, (count * whole.shape[1], *whole.shape[2:]))
            one, added = (
                None if o is None else k.slice(self.lift(o).whole, (0,)) for o in (b, bias)
            )
            found = k.convolution(wanted, rows, one, added, geometry, groups, relu)
            return self.of(k.reshape(found, (count, whole.shape[1], *found.shape[1:])))
        x, w, biases = self._alike(a, b, bias)
        if not self.frame.size:  # the shape is that of any kernels
            one, each, added = (
                o if o is None else k.full(o.shape[1:], 0, o.dtype) for o in (x, w, biases)
            )
            found = k.convolution(wanted, one, each, added, geometry, groups, relu)
            return self.of(k.empty((0, *found.shape), found.dtype))
        count = x.shape[0]
        x = _channels(k, x)
        w = _channels(k, w) if wanted == "w" else _flat(k, w, (count * w.shape[1], *w.shape[2:]))
        if biases is not None:
            biases = _flat(k, biases, (count * biases.shape[1],))
        found = k.convolution(wanted, x, w, biases, geometry, count * groups, relu)
        if wanted == "w":
            size = found.shape[0] // count
            return self.of(k.reshape(found, (count, size, *found.shape[1:])))
        size = found.shape[1] // count
        apart = k.reshape(found, (found.shape[0], count, size, *found.shape[2:]))
        return self.of(k.permute(apart, (1, 0, *range(2, len(apart.shape)))))

    def window(
        self,
        kind: str,
        x: Array,
        kernel: Shape,
        stride: Shape,
        padding: Padding,
        input_dilation: Shape,
        dilation: Shape,
        divisor: float = 1.0,
    ) -> Any:
        steps = (kernel, stride, padding, input_dilation, dilation, divisor)
        return self.of(self.below.window(kind, self.lift(x).whole, *steps))

    def spans(self, kind: str, x: Array, output: Shape) -> Any:
        return self.of(self.below.spans(kind, self.lift(x).whole, output))

    def attention(
        self, q: Array, k: Array, v: Array, mask: Array | None, scale: float, causal: bool
    ) -> tuple[Array, Array]:
        (query, key, value), mask, shape = self._heads((q, k, v), mask)
        found = self.below.attention(query, key, value, mask, scale, causal)
        return self.of([self.below.reshape(f, (*shape, *f.shape[1:])) for f in found])

    def attention_backward(
        self,
        g: Array,
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None,
        out: Array,
        lse: Array,
        scale: float,
        causal: bool,
    ) -> tuple[Array, Array, Array]:
        given, mask, shape = self._heads((g, q, k, v, out, lse), mask)
        grad, query, key, value, result, sums = given
        found = self.below.attention_backward(
            grad, query, key, value, mask, result, sums, scale, causal
        )
        return self.of([self.below.reshape(f, (*shape, *f.shape[1:])) for f in found])

    def _heads(self, arrays: Sequence[Array], mask: Array | None) -> tuple[list[Any], Any, Shape]:
        """Arrays (b, …) with the batch in their first dimension; so a mask, if it needs to be.

        Also the two sizes that this dimension consists of.
        """
        k = self.below
        wholes = self._alike(*arrays)
        count, size = wholes[0].shape[:2]
        if mask is not None:
            whole = self.lift(mask).whole
            if (whole.shape[0] == 1 and len(whole.shape) == 5 and whole.shape[1] == 1) or (
                whole.shape[0] == 1 and len(whole.shape) < 5
            ):
                mask = k.slice(whole, (0,))
            else:
                whole = _widened(k, whole, 4)
                shape = (count, size, *whole.shape[2:])
                mask = _flat(k, k.expand(whole, shape), (count * size, *whole.shape[2:]))
        flat = [_flat(k, w, (count * w.shape[1], *w.shape[2:])) for w in wholes]
        return flat, mask, (count, size)

    def fft(self, kind: str, x: Array, dims: Shape, size: int, norm: str) -> Array:
        rank = len(x.shape)
        shifted = tuple([d % rank + 1 for d in dims])
        return self.of(self.below.fft(kind, self.lift(x).whole, shifted, size, norm))

    def linalg(self, kind: str, arrays: Sequence[Array], *options: Any) -> tuple[Array, ...]:
        wholes = self._alike(*arrays)
        found = self.below.linalg(kind, wholes, *options)
        count = wholes[0].shape[0]  # what was not asked for is empty, and of no batch
        return tuple([self.of(f) if f.shape[:1] == (count,) else self.lift(f) for f in found])

    def searchsorted(self, edges: Array, values: Array, right: bool) -> Array:
        k = self.below
        if not self.mapped(edges) and len(edges.shape) == 1:
            one = k.slice(self.lift(edges).whole, (0,))
            return self.of(k.searchsorted(one, self.lift(values).whole, right))
        lines, found = self._alike(edges, values)
        if len(lines.shape) == 2 and len(found.shape) != 2:
            shape = found.shape
            found = _flat(k, found, (shape[0], math.prod(shape[1:])))
            return self.of(k.reshape(k.searchsorted(lines, found, right), shape))
        return self.of(k.searchsorted(lines, found, right))


def _row(k: Backend, x: Any) -> Any:
    return x if x.shape else k.reshape(x, (1,))


def _ranked(k: Backend, x: BatchArray, rank: int) -> Any:
    return _widened(k, x.whole, rank)


def _widened(k: Backend, whole: Any, rank: int) -> Any:
    """Dimensions of size 1 after the first, until there are `rank` more."""
    more = rank + 1 - len(whole.shape)
    return k.slice(whole, (_ALL, *(None,) * more)) if more > 0 else whole


def _flat(k: Backend, x: Any, shape: Shape) -> Any:
    """`x` in another shape, copied where no view has it."""
    found = k.reshape(x, shape)
    return k.reshape(k.copy(x), shape) if found is None else found


def _channels(k: Backend, whole: Any) -> Any:
    """(batch, n, channels, …) as (n, batch * channels, …)."""
    count, n, channels = whole.shape[:3]
    turned = k.permute(whole, (1, 0, *range(2, len(whole.shape))))
    return _flat(k, turned, (n, count * channels, *whole.shape[3:]))


def _neighbours(dims: list[int]) -> bool:
    return dims == list(range(dims[0], dims[0] + len(dims)))
