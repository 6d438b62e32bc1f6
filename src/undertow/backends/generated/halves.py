"""Reductions of arrays that no kernel sees as a whole: of their halves; see Note [large arrays]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernel.accumulators import POSITIONS
from ...kernel.expr import Expr, call, trace, where
from ..strided import StridedArray, expanded
from .large import farthest, halves, visible
from .layouts import broadcast
from .memory import TooLarge

# How the results of two halves are one.
_BOTH = {
    "sum": trace(lambda a, b: a + b, 2),
    "prod": trace(lambda a, b: a * b, 2),
    "max": trace(lambda a, b: call("maximum", a, b), 2),
    "min": trace(lambda a, b: call("minimum", a, b), 2),
    "any": trace(lambda a, b: call("logical_or", a, b), 2),
    "all": trace(lambda a, b: call("logical_and", a, b), 2),
}
_MEAN = trace(lambda a, b, part: a * part + b * (1 - part), 3)
_BETTER = {
    "max": trace(lambda a, b: call("gt", b, a), 2),
    "min": trace(lambda a, b: call("lt", b, a), 2),
}
_NAN_AFTER = trace(
    lambda better, a, b: call(
        "logical_or", better, call("logical_and", call("ne", b, b), call("eq", a, a))
    ),
    3,
)
_CHOICE = trace(lambda c, a, b: where(c, b, a), 3)
_LATER = trace(lambda c, a, b, start: where(c, b + start, a), 4)
_BOOL = np.dtype(bool)


def result_types(kind: str, dtype: Any) -> list[Any]:
    """The dtypes of a reduction's results."""
    if kind in ("any", "all"):
        return [_BOOL]
    if kind not in POSITIONS:
        return [dtype]
    return [*([dtype] if kind.startswith("first") else []), np.dtype(np.int64)]


def halved(
    k: Any, kind: str, expr: Expr, operands: Sequence[Any], dims: tuple[int, ...], dtype: Any
) -> list[StridedArray]:
    """The results of `map_reduce`, with the dimensions that were reduced."""
    arrays = [o for o in operands if o.__class__ is StridedArray]
    shape = broadcast(*[a.shape for a in arrays])
    arrays = [expanded(a, shape) for a in arrays]
    kept = [d for d in range(len(shape)) if d not in dims]
    nbytes = math.prod(shape[d] for d in kept) * max(t.itemsize for t in result_types(kind, dtype))
    large = nbytes > k.limits.max_binding
    seen = None if large else visible(k, arrays, 0)
    if seen is not None:
        found = k._map_reduce(kind, expr, _given(operands, seen), dims, True, dtype)
        return list(found) if isinstance(found, tuple) else [found]
    dim = max(kept, key=lambda d: shape[d]) if large else farthest(arrays)
    first, second = (_given(operands, half) for half in halves(arrays, dim))

    def both(how: str) -> list[list[StridedArray]]:
        return [halved(k, how, expr, half, dims, dtype) for half in (first, second)]

    if dim in kept:
        return [k.concat(pair, dim) for pair in zip(*both(kind), strict=True)]
    size, middle = shape[dim], shape[dim] // 2
    if kind == "squares":  # of differences from what is nearly the mean
        return halved(k, "sum", call("mul", expr, expr), operands, dims, dtype)
    if kind in POSITIONS:
        if len(dims) > 1:
            raise TooLarge(max(a.buffer.nbytes for a in arrays))
        best = kind[-3:]
        (one, before), (other, after) = both(f"first_{best}")
        better = k.map(_BETTER[best], (one, other), _BOOL)
        if dtype.kind in "fV":
            better = k.map(_NAN_AFTER, (better, one, other), _BOOL)
        place = k.map(_LATER, (better, before, after, middle), before.dtype)
        if kind.startswith("arg"):
            return [place]
        return [k.map(_CHOICE, (better, one, other), one.dtype), place]
    (one,), (other,) = both(kind)
    if kind == "mean":
        return [k.map(_MEAN, (one, other, middle / size), one.dtype)]
    return [k.map(_BOTH[kind], (one, other), one.dtype)]


def _given(operands: Sequence[Any], arrays: Sequence[StridedArray]) -> list[Any]:
    """Operands with these arrays in place of theirs."""
    given = iter(arrays)
    return [next(given) if o.__class__ is StridedArray else o for o in operands]
