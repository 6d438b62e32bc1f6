"""Forms that read and write at index arrays, over a runtime: lay out and launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernel.expr import call, trace, where
from ...kernel.groups.elements import blocks
from ...kernel.groups.indexing import (
    gather_function,
    nonzero_function,
    scatter_function,
    search_function,
)
from ...kernel.layout import coalesce, row_major, some
from ..indirect import Space, gather_space, take_space
from ..memory_types import is_half
from ..strided import StridedArray
from .launching import Made, sharing
from .layouts import as_words, countable, overlap, padded, steps_in
from .pairs import Paired
from .scans import Scans

_SINGLE, _INT32, _INT64 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)
_IS_NONZERO = trace(lambda a: where(call("ne", a, 0), 1, 0), 1)


class Indexing(Scans):
    """gather, take, scatter, put, searchsorted and nonzero."""

    def gather(self, x: StridedArray, dim: int, index: StridedArray) -> StridedArray:
        return self._read(("gather", dim), x, (index,), lambda: gather_space(x, dim, index))

    def take(self, x: StridedArray, index: tuple[Any, ...]) -> StridedArray:
        arrays = [i for i in index if i.__class__ is not slice]
        dims = tuple([d for d, i in enumerate(index) if i.__class__ is not slice])
        return self._read(("take", dims), x, arrays, lambda: take_space(x, dims, arrays))

    def _read(self, form: Any, x: StridedArray, indices: Sequence[Any], space_of: Any) -> Any:
        words = _one_word(x)
        seen = sharing([words, *indices])
        key = (form, x.dtype, x.shape, x.strides, seen)
        key += tuple([(i.shape, i.strides, i.dtype) for i in indices])

        def make() -> Made:
            space = space_of()
            steps = [row_major(space.shape), space.x, *space.indices]
            sizes, steps = padded(*coalesce(space.shape, steps))
            types = [self.type_of(i.dtype) for i in indices]
            count = countable(space.shape)
            ints = [count, *sizes, *(n for s in steps for n in s)]
            ints += [n for pair in zip(space.reaches, space.lasts, strict=True) for n in pair]
            given = (self.type_of(words.dtype), types, len(sizes))
            own = (0, *[s + 1 for s in seen])
            groups = blocks(count)
            return Made("gather", gather_function, given, own, tuple(ints), groups, space.shape)

        plan = self.plan(key, make)
        out = self.empty(plan.extra, x.dtype)
        if out.size:
            self.launcher.launch(plan, [as_words(out), words, *indices])
        return out

    def scatter(
        self,
        kind: str,
        x: StridedArray,
        dim: int,
        index: StridedArray,
        source: StridedArray,
        inplace: bool = False,
    ) -> StridedArray:
        def space(out: StridedArray, indices: Sequence[Any]) -> Space:
            return gather_space(out, dim, indices[0])

        return self._write(kind, x, ("scatter", dim), [index], source, inplace, space)

    def put(
        self,
        kind: str,
        x: StridedArray,
        index: tuple[Any, ...],
        source: StridedArray,
        inplace: bool = False,
    ) -> StridedArray:
        dims = tuple([d for d, i in enumerate(index) if i.__class__ is not slice])

        def space(out: StridedArray, indices: Sequence[Any]) -> Space:
            return take_space(out, dims, indices)

        indices = [index[d] for d in dims]
        return self._write(kind, x, ("put", dims), indices, source, inplace, space)

    def _write(
        self,
        kind: str,
        x: StridedArray,
        form: Any,
        indices: list[Any],
        source: StridedArray,
        inplace: bool,
        space_of: Any,
    ) -> StridedArray:
        if kind != "set" and is_half(x.dtype):  # combined in single precision, rounded at the end
            wide, given = self.cast(x, _SINGLE), self.cast(source, _SINGLE)
            self._write(kind, wide, form, indices, given, True, space_of)
            if not inplace:
                return self.cast(wide, x.dtype)
            self.assign(x, wide)
            return x
        if inplace:
            source = self.copy(source) if overlap(x, source) else source
            indices = [self.copy(i) if overlap(x, i) else i for i in indices]
        out = x if inplace else self.copy(x)
        target, values = (_one_word(out), _one_word(source)) if kind == "set" else (out, source)
        arrays = [target, values, *indices]
        seen = sharing(arrays)
        key = (form, kind, out.shape, out.strides, out.dtype, source.shape, source.strides, seen)
        key += tuple([(i.shape, i.strides, i.dtype) for i in indices])

        def make() -> Made:
            space = space_of(target, indices)
            steps = [space.x, steps_in(values, space.shape), *space.indices]
            walked = [d for d in range(len(space.shape)) if d not in space.free]
            sizes, free = padded(*some(space.shape, space.free, steps))
            lengths, along = padded(*some(space.shape, walked, steps, ordered=True))
            types = [self.type_of(i.dtype) for i in indices]
            countable(space.shape)
            count = math.prod(sizes)
            ints = [count, *sizes, *lengths]
            for mine, other in zip(free, along, strict=True):
                ints += [*mine, *other]
            ints += [n for pair in zip(space.reaches, space.lasts, strict=True) for n in pair]
            given = (kind, self.type_of(target.dtype), types, len(sizes), len(lengths))
            extra = 0 in space.shape
            return Made("scatter", scatter_function, given, seen, tuple(ints), blocks(count), extra)

        plan = self.plan(key, make)
        if not plan.extra:
            self.launcher.launch(plan, arrays)
        return out

    def searchsorted(self, edges: StridedArray, values: StridedArray, right: bool) -> StridedArray:
        if is_half(edges.dtype):
            edges, values = self.cast(edges, _SINGLE), self.cast(values, _SINGLE)
        length = edges.shape[-1]
        if not values.size or not length:
            return self.full(values.shape, 0, _INT64)
        seen = sharing([edges, values])
        layout = (edges.shape, edges.strides, edges.dtype, values.shape, values.strides)
        key = ("search", right, *layout, seen)

        def make() -> Made:
            rows = edges.seen((*edges.shape[:-1], 1), edges.strides)
            if len(edges.shape) == 1:
                rows = edges.seen((1,), edges.strides)
            steps = [row_major(values.shape), steps_in(rows, values.shape)]
            steps.append(steps_in(values, values.shape))
            sizes, steps = padded(*coalesce(values.shape, steps))
            count, halvings = countable(values.shape), length.bit_length()
            along = steps_in(edges, edges.shape)[-1]
            ints = (count, length, halvings, *sizes, *(n for s in steps for n in s), along)
            given = (self.type_of(edges.dtype), right, len(sizes))
            own = (0, *[s + 1 for s in seen])
            return Made("search", search_function, given, own, ints, blocks(count))

        plan = self.plan(key, make)
        out = self.empty(values.shape, _INT64)
        self.launcher.launch(plan, [out, edges, values])
        return out

    def nonzero(self, x: StridedArray) -> StridedArray:
        if x.dtype.kind == "c":
            raise Paired(x.dtype.name)
        rank = len(x.shape)
        if not x.size:
            return self.empty((0, rank), _INT64)
        ones = self.cast(x, _INT32) if x.dtype == bool else self.map(_IS_NONZERO, (x,), _INT32)
        before = self.scan("sum", self.reshape(ones, (x.size,)), 0)
        total = int(self.to_host(self.slice(before, (slice(x.size - 1, None),)))[0])
        out = self.empty((total, rank), _INT64)
        if not total or not rank:
            return out
        key = ("nonzero", x.shape, x.strides, x.dtype)

        def make() -> Made:
            ints = (x.size, *x.shape, *steps_in(x, x.shape))
            given = (self.type_of(x.dtype), rank)
            return Made("nonzero", nonzero_function, given, (0, 1, 2), ints, blocks(x.size))

        self.launcher.launch(self.plan(key, make), [out, x, before])
        return out


def _one_word(x: StridedArray) -> StridedArray:
    """An array as words, each element one of them."""
    words = as_words(x)
    if len(words.shape) != len(x.shape):
        raise Paired(x.dtype.name)
    return words
