"""Reductions over a runtime: lay out and launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernel.accumulators import kept_types
from ...kernel.expr import Expr, arg, trace
from ...kernel.groups.elements import blocks
from ...kernel.groups.reductions import combine_function, reduce_function
from ...kernel.layout import row_major, some
from ...shapes import reduced_shape
from ..memory_types import numpy_name, scalar_type
from ..strided import StridedArray
from .halves import halved, result_types
from .launching import Made, TooMany, sharing
from .layouts import broadcast, compute_type, countable, padded, steps_in, with_numbers
from .maps import Maps
from .memory import TooLarge

SHORT = 32  # elements that one thread reduces
FEW = 512  # elements that one thread reduces where there are MANY results
MANY = 4096
PIECE = 8192  # elements of a long row that one group takes
_IDENTITY = arg(0)
_DIFFERENCE = trace(lambda a, b: a - b, 2)
_OF_NOTHING = {"sum": 0, "prod": 1, "mean": math.nan, "squares": 0, "any": False, "all": True}


class Reductions(Maps):
    """The forms that reduce."""

    def reduce(self, kind: str, x: StridedArray, dims: tuple[int, ...], keepdim: bool) -> Any:
        if kind == "squares":  # see Note [shifted squares] of kernel/accumulators
            near = self.map_reduce("mean", _IDENTITY, (x,), dims, True, x.dtype)
            return self._map_reduce(kind, _DIFFERENCE, (x, near), dims, keepdim, x.dtype)
        return self._map_reduce(kind, _IDENTITY, (x,), dims, keepdim, x.dtype)

    def map_reduce(
        self,
        kind: str,
        expr: Expr,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: Any,
    ) -> Any:
        if kind == "squares":
            return self.reduce(kind, self.map(expr, operands, dtype), dims, keepdim)
        try:
            return self._map_reduce(kind, expr, operands, dims, keepdim, dtype)
        except TooMany:
            return self.reduce(kind, self.map(expr, operands, dtype), dims, keepdim)

    def _map_reduce(
        self,
        kind: str,
        expr: Expr,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: Any,
        into: StridedArray | None = None,
    ) -> Any:
        """`map_reduce`, of a single result also into an array of one's own."""
        try:
            return self._seen_reduce(kind, expr, operands, dims, keepdim, dtype, into)
        except TooLarge:
            found = halved(self, kind, expr, operands, dims, np.dtype(dtype))
        if not keepdim:
            shape = reduced_shape(broadcast(*[a.shape for a in found]), dims, False)
            found = [self.reshape(a, shape) for a in found]
        if into is None:
            return found[0] if len(found) == 1 else tuple(found)
        self.assign(into, found[0])
        return into

    def _seen_reduce(
        self,
        kind: str,
        expr: Expr,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: Any,
        into: StridedArray | None,
    ) -> Any:
        arrays = [o for o in operands if o.__class__ is StridedArray]
        key: list[Any] = ["reduce", kind, expr, dims, keepdim, dtype]
        for o in operands:
            key += (o.shape, o.strides, o.dtype) if o.__class__ is StridedArray else (o.__class__,)
        seen = sharing(arrays)
        key.append(seen)
        plan = self.plan(tuple(key), _make, self, kind, expr, operands, dims, keepdim, dtype, seen)
        shape, dtypes, floating, pieces = plan.extra
        outs = [self.empty(shape, t) for t in dtypes] if into is None else [into]
        if not outs[0].size:
            return outs[0] if len(outs) == 1 else tuple(outs)
        if not math.prod([broadcast(*[a.shape for a in arrays])[d] for d in dims]):
            return self.full(shape, _OF_NOTHING[kind], dtypes[0])
        number = float if floating else int
        numbers = [number(o) for o in operands if o.__class__ is not StridedArray]
        if not pieces:
            self.launcher.launch(plan, [*outs, *arrays], numbers)
        else:
            count, types, element, kept, ints = pieces
            parts = [self.empty((count,), np.dtype(numpy_name(t))) for t in types]
            self.launcher.launch(plan, [*parts, *arrays], numbers)
            self._combine(kind, element, outs, parts, kept, ints)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _combine(
        self,
        kind: str,
        element: str,
        outs: list[StridedArray],
        parts: list[StridedArray],
        kept: int,
        ints: tuple[int, ...],
    ) -> None:
        """The second launch of a reduction in pieces."""
        types = tuple([self.type_of(o.dtype) for o in outs])
        arrays = [*outs, *parts]

        def make() -> Made:
            given = (kind, element, types, kept)
            return Made("combine", combine_function, given, sharing(arrays), ints, ints[0])

        plan = self.plan(("combine", kind, element, types, kept, ints), make)
        self.launcher.launch(plan, arrays)


def _make(
    k: Maps,
    kind: str,
    expr: Expr,
    operands: Sequence[Any],
    dims: tuple[int, ...],
    keepdim: bool,
    dtype: Any,
    seen: tuple[int, ...],
) -> Made:
    """The plan for operands like these."""
    arrays = [o for o in operands if o.__class__ is StridedArray]
    shape = broadcast(*[a.shape for a in arrays])
    steps = [steps_in(a, shape) for a in arrays]
    types = [k.type_of(a.dtype) for a in arrays]
    result = k.type_of(np.dtype(dtype))
    element = scalar_type(result)
    compute = compute_type(operands, types, result)
    if kind == "squares":
        compute = element = "f64" if k.limits.float64 else "f32"
    dtypes = result_types(kind, np.dtype(dtype))
    countable(shape)
    # The operand with the most elements of its own decides on the order.
    own = [math.prod(n for n, s in zip(shape, st, strict=True) if s) for st in steps]
    lead = own.index(max(own))
    order = [lead, *(i for i in range(len(steps)) if i != lead)]
    out = row_major(reduced_shape(shape, dims, True))
    outer = [d for d in range(len(shape)) if d not in dims]
    kept, kept_steps = padded(*some(shape, outer, [*(steps[i] for i in order), out]))
    walked = [d for d in range(len(shape)) if d in dims]
    reduced, inner = padded(*some(shape, walked, [steps[i] for i in order]))
    place = {i: at for at, i in enumerate(order)}
    results, length = math.prod(kept), math.prod(reduced)
    piece, how = length, "group"
    if length <= SHORT or (length <= FEW and results >= MANY):
        how = "thread"
    elif length > PIECE and results < k.launcher.group:
        piece, how = PIECE, "pieces"
    given = (
        *(kind, expr, with_numbers(operands, types, compute), compute, element),
        *(tuple([k.type_of(t) for t in dtypes]), len(kept), len(reduced), how),
    )
    pieces = -(-length // max(piece, 1))
    ints = [results, length, max(piece, 1), *kept, *reduced, *kept_steps[-1]]
    for i in range(len(arrays)):
        ints += kept_steps[place[i]]
    for i in range(len(arrays)):
        ints += inner[place[i]]
    kinds = kept_types(kind, element, k.limits.float64)
    more = None
    count = len(kinds) if how == "pieces" else len(dtypes)
    if how == "pieces":
        second = (results, length, pieces, *kept, *kept_steps[-1])
        more = (results * pieces, kinds, element, len(kept), second)
    groups = blocks(results) if how == "thread" else results * pieces
    extra = (reduced_shape(shape, dims, keepdim), dtypes, compute.startswith("f"), more)
    seen = (*range(count), *[s + count for s in seen])
    return Made("reduce", reduce_function, given, seen, tuple(ints), groups, extra)
