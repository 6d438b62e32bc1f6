"""Elementwise forms over a runtime: lay out and launch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...kernel.expr import Expr, arg
from ...kernel.groups.elements import blocks
from ...kernel.groups.maps import map_function
from ...kernel.ir import FLOATS, INTEGERS
from ...kernel.layout import coalesce, row_major
from ..memory_types import scalar_type
from ..strided import StridedArray
from .core import Core
from .large import pieces
from .launching import Made, Plan, TooMany, sharing
from .layouts import (
    as_words,
    broadcast,
    compute_type,
    countable,
    overlap,
    padded,
    steps_in,
    type_known,
    with_numbers,
)
from .memory import LargeBlock, TooLarge
from .prepared import Prepared

_IDENTITY = (arg(0),)
_ARGUMENTS = tuple([arg(i) for i in range(32)])
_UNIT = 16  # bytes, of which operands in one buffer begin at a multiple
_INT64, _BYTE = np.dtype(np.int64), np.dtype(np.uint8)


class Maps(Core):
    """The forms that compute element by element."""

    def maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[Any],
        outs: Sequence[StridedArray] | None = None,
    ) -> Sequence[StridedArray]:
        try:
            return self._seen_maps(exprs, operands, dtypes, outs)
        except TooLarge:
            return self._cut_maps(exprs, operands, dtypes, outs)

    def _cut_maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[Any],
        outs: Sequence[StridedArray] | None,
    ) -> Sequence[StridedArray]:
        """`maps` of arrays that no kernel sees as a whole."""
        arrays = [o for o in operands if o.__class__ is StridedArray]
        shape = broadcast(*[a.shape for a in arrays])
        if outs is None:
            outs = [self.empty(shape, t) for t in dtypes]
        else:
            operands, arrays = self._apart(outs, operands, arrays)
            shape = outs[0].shape
        for part in pieces(self, [*outs, *arrays], len(outs), shape):
            given = iter(part[len(outs) :])
            some = [next(given) if o.__class__ is StridedArray else o for o in operands]
            self.maps(exprs, some, dtypes, part[: len(outs)])
        return outs

    def _seen_maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[Any],
        outs: Sequence[StridedArray] | None,
    ) -> Sequence[StridedArray]:
        try:
            return self._maps(exprs, operands, dtypes, outs)
        except TooMany:
            if len(exprs) == 1:
                return self._maps(exprs, self._joined(operands), dtypes, outs)
        found = [self.maps((e,), operands, (t,))[0] for e, t in zip(exprs, dtypes, strict=True)]
        if outs is None:
            return found
        for out, value in zip(outs, found, strict=True):
            self.assign(out, value)
        return outs

    def _joined(self, operands: Sequence[Any], results: int = 1) -> list[Any]:
        """The operands, as many of the small ones in one buffer as a kernel has no bindings for."""
        given = list(operands)
        places = [i for i, o in enumerate(given) if o.__class__ is StridedArray]
        few = max(self.limits.max_bindings - results - 1, 0)  # besides that buffer
        surplus = sorted(places, key=lambda i: -int(given[i].size))[few:]
        sizes = [-(-given[i].size * given[i].dtype.itemsize // _UNIT) * _UNIT for i in surplus]
        whole = self.empty((sum(sizes),), _BYTE)
        alike: dict[Any, list[tuple[StridedArray, StridedArray]]] = {}
        for i, start in zip(surplus, itertools.accumulate([0, *sizes]), strict=False):
            o = given[i]
            given[i] = StridedArray(self, whole.buffer, o.shape, o.dtype, None, start)
            alike.setdefault((o.shape, o.dtype), []).append((given[i], as_words(o)))
        most = self.limits.max_bindings - 1
        for pairs in alike.values():
            for first in range(0, len(pairs), most):
                outs, sources = zip(*pairs[first : first + most], strict=True)
                exprs = _ARGUMENTS[: len(sources)]
                words = [as_words(o) for o in outs]
                self._maps(exprs, sources, [w.dtype for w in words], words)
        return given

    def _maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[Any],
        outs: Sequence[StridedArray] | None,
    ) -> Sequence[StridedArray]:
        arrays = [o for o in operands if o.__class__ is StridedArray]
        if not arrays:
            arrays = [self.from_host(np.asarray(operands[0], dtypes[0]))]
            operands = (arrays[0], *operands[1:])
        if outs is not None:
            operands, arrays = self._apart(outs, operands, arrays)
        key: list[Any] = [exprs, *dtypes]
        for o in operands:
            if o.__class__ is StridedArray:
                key += (o.shape, o.strides, o.dtype)
            else:
                key.append(o.__class__)
        numbers = len(arrays) != len(operands)
        if outs is None:  # fresh results share no buffer with anything
            seen = sharing(arrays)
            key.append(seen)
            plan = self.plan(tuple(key), map_plan, self, exprs, operands, dtypes, None, seen)
            shape, fresh = plan.extra[:2]
            outs = [self.empty(shape, t) for t in fresh]
        else:
            key += [(o.shape, o.strides) for o in outs]
            seen = sharing([*outs, *arrays])
            key.append(seen)
            plan = self.plan(tuple(key), map_plan, self, exprs, operands, dtypes, outs, seen)
            shape = plan.extra[0]
        if 0 in shape:
            return outs
        given: list[Any] = []
        if numbers:
            given = [o for o in operands if o.__class__ is not StridedArray]
            told = _told(plan, given)
            if told is None:  # beyond the type of the arrays, with which they are compared
                wide = [self.cast(o, _INT64) if o in arrays else o for o in operands]
                return self.maps(exprs, wide, dtypes, outs)
            given = told
        self.launcher.launch(plan, [*outs, *arrays], given)
        return outs

    def prepare(
        self, exprs: tuple[Expr, ...], arrays: tuple[bool, ...], largest: bool = False
    ) -> Callable[..., Any]:
        if len(exprs) > 1 or len(arrays) > 2:
            return super().prepare(exprs, arrays, largest)
        return Prepared(self, map_plan, exprs, arrays).start

    def _apart(
        self, outs: Sequence[StridedArray], operands: Sequence[Any], arrays: list[StridedArray]
    ) -> tuple[Sequence[Any], list[StridedArray]]:
        """The operands, copied where they overlap a result in other elements."""
        if any(overlap(o, a) for o in outs for a in arrays):
            operands = [
                self.copy(a)
                if a.__class__ is StridedArray and any(overlap(o, a) for o in outs)
                else a
                for a in operands
            ]
            arrays = [o for o in operands if o.__class__ is StridedArray]
        return operands, arrays

    def assign(self, target: StridedArray, source: StridedArray) -> None:
        if not target.size:
            return
        if target.dtype == source.dtype:
            target, source = as_words(target), as_words(source)
            same = target.shape == source.shape and target.strides == source.strides
            if same and target.buffer is source.buffer and target.offset == source.offset:
                return
        if overlap(target, source):
            source = self.copy(source)
        arrays = [target, source]
        if any(a.buffer.__class__ is LargeBlock for a in arrays):
            for part in pieces(self, arrays, 1, target.shape):
                self.assign(*part)
            return
        key: tuple[Any, ...] = ("assign", target.shape, target.strides, target.dtype)
        key += (source.shape, source.strides, source.dtype, sharing(arrays))
        plan = self.plan(
            key, map_plan, self, _IDENTITY, (source,), (target.dtype,), (target,), key[-1]
        )
        self.launcher.launch(plan, arrays)


def map_plan(
    k: Core,
    exprs: tuple[Expr, ...],
    operands: Sequence[Any],
    dtypes: Sequence[Any],
    outs: Sequence[StridedArray] | None,
    seen: tuple[int, ...],
) -> Made:
    """The plan for operands like these; `extra`: the results' shape and dtypes, how numbers go."""
    arrays = [o for o in operands if o.__class__ is StridedArray]
    shape = broadcast(*[a.shape for a in arrays])
    if outs is not None:
        shape = broadcast(shape, *[o.shape for o in outs])
    types = [k.type_of(a.dtype) for a in arrays]
    results = [k.type_of(np.dtype(t)) for t in dtypes]
    own = [steps_in(a, shape) for a in arrays]
    if outs is None:
        out_steps = [row_major(shape)] * len(results)
        first = len(results)
        seen = (*range(first), *[s + first for s in seen])
    else:
        out_steps = [steps_in(o, shape) for o in outs]
    compute = compute_type(operands, types, results[0])
    sizes, steps = padded(*coalesce(shape, [*out_steps, *own]))
    given = (exprs, with_numbers(operands, types, compute), results, compute, len(sizes))
    count = countable(shape)
    ints = (count, *sizes, *(n for s in steps for n in s))
    fresh = [np.dtype(t) for t in dtypes]
    extra = (shape, fresh, compute in FLOATS, *_compared(arrays, compute, results))
    return Made("map", map_function, given, seen, ints, blocks(count), extra)


def _compared(arrays: Sequence[Any], compute: str, results: Sequence[str]) -> tuple[Any, Any]:
    """How numbers are compared with arrays: as a dtype of two bytes, and in a span of integers."""
    if "bool" not in results:
        return None, None
    kinds = [a.dtype for a in arrays if scalar_type(type_known(a.dtype)) in ("f32",)]
    half = next((t for t in kinds if t.itemsize == 2), None)
    whole = next((a.dtype for a in arrays if a.dtype.kind in "iu"), None)
    if compute not in INTEGERS or whole is None:
        return half, None
    limits = np.iinfo(whole)
    return half, (limits.min, limits.max)


def _told(plan: Plan, numbers: list[Any]) -> list[Any] | None:
    """Numbers as the kernel takes them; None if one does not fit."""
    _, _, floating, half, span = plan.extra
    if floating:
        numbers = [float(n) for n in numbers]  # which tells of an integer that is too large
        return numbers if half is None else [float(half.type(n)) for n in numbers]
    if span is not None and any(not span[0] <= n <= span[1] for n in numbers):
        return None
    return [int(n) for n in numbers]
