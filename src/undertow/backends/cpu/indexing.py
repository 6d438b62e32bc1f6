"""Kernels that read at index arrays: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.indexing import gather_function
from ...kernel.ir import STREAM, Function
from ...kernel.layout import Sizes, coalesce
from ...kernel.maps import Operand
from .. import memory
from . import pool
from .kernels import address, kernel, type_of
from .maps import STREAMED

REMEMBERED = 4096
WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # moving data, only its size matters
_kernels: dict[Any, Callable[..., None]] = {}
_plans: dict[Any, _Plan | None] = {}


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses."""

    call: Callable[..., None]
    shape: Sizes  # of the result
    ints: list[int]


class Space(NamedTuple):
    """The loop of Note [indirect offsets] of the kernels: its shape, and steps in elements."""

    shape: Sizes
    free: list[int]  # the dimensions that no index array picks from
    x: Sizes
    indices: list[Sizes]
    reaches: list[int]
    lasts: list[int]


def run_gather(x: Any, dim: int, index: Any) -> Any:
    """`Backend.gather`; None if there is no kernel."""
    key = ("gather", dim, x.dtype, x.shape, x.strides, index.dtype, index.shape, index.strides)
    return _read(key, x, (index,), lambda: gather_space(x, dim, index))


def run_take(x: Any, index: tuple[Any, ...]) -> Any:
    """`Backend.take`; None if there is no kernel."""
    arrays = [i for i in index if i.__class__ is np.ndarray]
    key = (
        "take",
        x.dtype,
        x.shape,
        x.strides,
        *[(i.dtype, i.shape, i.strides) if i.__class__ is np.ndarray else None for i in index],
    )
    return _read(key, x, arrays, lambda: take_space(x, index, arrays))


def _read(key: Any, x: Any, indices: Sequence[Any], space: Callable[[], Space | None]) -> Any:
    try:
        plan = _plans[key]
    except KeyError:
        if len(_plans) >= REMEMBERED:
            _plans.clear()
        plan = _plans[key] = _read_plan(x, indices, space())
    if plan is None:
        return None
    out = memory.empty(plan.shape, x.dtype)
    plan.call(pool.pointer(), address(out), address(x), *map(address, indices), *plan.ints)
    return out


def _read_plan(x: Any, indices: Sequence[Any], space: Space | None) -> _Plan | None:
    word = WORDS.get(x.itemsize)
    if space is None or word is None or 0 in space.shape:
        return None
    out = row_major(space.shape)
    sizes, steps = coalesce(space.shape, [out, space.x, *space.indices])
    inner = [s[-1] if s[-1] in (0, 1) else None for s in steps]
    operands = [
        Operand(t, s)
        for t, s in zip([word, word, *(type_of(i.dtype) for i in indices)], inner, strict=True)
    ]
    size = math.prod(space.shape) * x.itemsize
    stream = size >= STREAMED and not sizes[-1] * x.itemsize % STREAM
    rank = len(sizes)
    key = (*operands, rank, stream)
    if key not in _kernels:

        def make(name: str) -> Function:
            return gather_function(name, operands[0], operands[1], operands[2:], rank, stream)

        _kernels[key] = kernel("gather", key, make)
    ints = [*sizes]
    for s, last in zip(steps, inner, strict=True):
        ints += s if last is None else s[:-1]
    for reach, most in zip(space.reaches, space.lasts, strict=True):
        ints += (reach, most)
    return _Plan(_kernels[key], space.shape, ints)


# Which element is read where -------------------------------------------------------------------
def gather_space(x: Any, dim: int, index: Any) -> Space | None:
    """The loop of gather and scatter; None if an array is not aligned."""
    steps = steps_of(x)
    own = steps_of(index)
    if steps is None or own is None:
        return None
    free = [d for d in range(x.ndim) if d != dim]
    moves = tuple([0 if d == dim else s for d, s in enumerate(steps)])
    return Space(index.shape, free, moves, [own], [steps[dim]], [x.shape[dim] - 1])


def take_space(x: Any, index: tuple[Any, ...], arrays: Sequence[Any]) -> Space | None:
    """The loop of take and put; None if an array is not aligned."""
    steps = steps_of(x)
    owns = [own for own in map(steps_of, arrays) if own is not None]
    if steps is None or len(owns) < len(arrays):
        return None
    dims = [d for d, i in enumerate(index) if i.__class__ is np.ndarray]
    common = np.broadcast_shapes(*(a.shape for a in arrays))
    together = dims[-1] - dims[0] == len(dims) - 1
    kept = [d for d in range(x.ndim) if d not in dims]
    lead = [d for d in kept if together and d < dims[0]]  # else the indexed dimensions go first
    rest = kept[len(lead) :]
    shape = tuple([x.shape[d] for d in lead]) + common + tuple([x.shape[d] for d in rest])
    before, after = (0,) * len(lead), (0,) * len(rest)
    moves = tuple([steps[d] for d in lead]) + (0,) * len(common) + tuple([steps[d] for d in rest])
    wide = [
        before
        + (0,) * (len(common) - a.ndim)
        + tuple([0 if n == 1 else s for n, s in zip(a.shape, own, strict=True)])
        + after
        for a, own in zip(arrays, owns, strict=True)
    ]
    free = [*range(len(lead)), *range(len(shape) - len(rest), len(shape))]
    lasts = [x.shape[d] - 1 for d in dims]
    return Space(shape, free, moves, wide, [steps[d] for d in dims], lasts)


def steps_of(a: Any) -> Sizes | None:
    """The steps of an array in elements; None if some are no whole number of them."""
    size = a.itemsize
    if any(s % size for s in a.strides):
        return None
    return tuple([s // size for s in a.strides])


def row_major(shape: Sizes) -> Sizes:
    """The steps of a fresh array."""
    steps: list[int] = []
    step = 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))
