"""Elementwise kernels: choose, lay out and call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.expr import Expr
from ...kernel.ir import FLOATS, INTEGERS, STREAM, Function
from ...kernel.layout import Sizes, coalesce
from ...kernel.lower import NotCompiled
from ...kernel.maps import NUMBER, Operand, map_function
from .. import memory
from . import pool
from .kernels import address, kernel, type_of

_ndarray = np.ndarray
_REMEMBERED = 4096
# Bytes of a result from which on streaming stores are faster, also for whoever reads it next: the
# caches of two cores hold less. Measured: chains of additions, 25 % faster at 8 MB, slower at 4.
STREAMED = 8 << 20
_kernels: dict[Any, Callable[..., None] | None] = {}
_plans: dict[Any, tuple[_Plan | None, tuple[Expr, ...]]] = {}


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses and the numbers."""

    call: Callable[..., None]
    stream: Callable[..., None] | None  # the same with streaming stores
    shape: Sizes
    like: int | None  # the array whose layout the results have; None for row-major
    ints: list[int]  # sizes and steps
    floating: bool  # numbers are
    half: Any  # the dtype of two bytes in which numbers are compared
    span: tuple[int, int] | None  # of integers that numbers are compared with


def run_maps(
    exprs: tuple[Expr, ...],
    operands: Sequence[Any],
    dtypes: tuple[Any, ...],
    into: Sequence[Any] | None = None,
) -> tuple[Any, ...] | None:
    """The arrays of several expressions over the same operands; None if there is no kernel.

    They are fresh arrays, or those to write into, which must not overlap one another nor an operand
    unless it is the very same elements.
    """
    key: list[Any] = [*map(id, exprs), dtypes]
    if into is not None:
        key.append(tuple([(o.shape, o.strides) for o in into]))
    arrays, numbers = [], []
    for o in operands:
        if o.__class__ is _ndarray:
            key.append((o.shape, o.strides, o.dtype))
            arrays.append(o)
        else:
            key.append(o.__class__)
            numbers.append(o)
    signature = tuple(key)
    found = _plans.get(signature)
    if found is None:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        # The expressions stay alive with their plan, so that their identities stay theirs.
        found = _plans[signature] = (_make(exprs, operands, dtypes, into), exprs)
    plan = found[0]
    if plan is None:
        return None
    if plan.floating:
        numbers = [float(n) for n in numbers]  # which tells of an integer that is too large
        if plan.half is not None:  # compared in the arrays' precision, as in torch
            numbers = [float(plan.half.type(n)) for n in numbers]
    elif plan.span is not None and any(not plan.span[0] <= n <= plan.span[1] for n in numbers):
        return None  # it would wrap around
    places = list(map(address, arrays))
    if into is not None:
        outs = list(into)
    elif plan.like is None:
        outs = [memory.empty(plan.shape, t, places) for t in dtypes]
    else:
        outs = [np.empty_like(arrays[plan.like], t) for t in dtypes]
    places = [*map(address, outs), *places]
    if plan.stream is not None and (into is None or places[0] not in places[len(outs) :]):
        heads = {-p % STREAM / o.itemsize for o, p in zip(outs, places, strict=False)}
        head = heads.pop()
        if not heads and head.is_integer():
            plan.stream(pool.pointer(), *places, int(head), *plan.ints, *numbers)
            return tuple(outs)
    plan.call(pool.pointer(), *places, *plan.ints, *numbers)
    return tuple(outs)


def _make(
    exprs: tuple[Expr, ...],
    operands: Sequence[Any],
    dtypes: tuple[Any, ...],
    into: Sequence[Any] | None,
) -> _Plan | None:
    """The plan for operands like these; None if there is no kernel for them."""
    arrays = [o for o in operands if o.__class__ is _ndarray]
    given = arrays if into is None else [*arrays, *into]
    shape = np.broadcast_shapes(*(a.shape for a in given))
    types = [type_of(a.dtype) for a in arrays]
    results = [type_of(np.dtype(t)) for t in dtypes]
    if 0 in shape or "" in types or "" in results or not all(map(aligned, given)):
        return None
    compute = next((t for t in types if t != "bool"), "bool")
    compute = "f32" if compute in ("f16", "bf16") else compute
    if compute == "bool" and len(arrays) < len(operands):
        return None  # a number beside nothing that tells its type
    like = next((i for i, a in enumerate(arrays) if a.shape == shape and dense(a)), None)
    if like is not None and arrays[like].flags.c_contiguous:
        like = None
    if into is None:
        into = [np.empty(shape, "b") if like is None else arrays[like]] * len(results)
    steps = [steps_of(a, shape) for a in (*into, *arrays)]
    sizes, steps = coalesce(shape, steps)
    inner = [s[-1] if s[-1] in (0, 1) else None for s in steps]
    outputs = [Operand(t, s) for t, s in zip(results, inner, strict=False)]
    listed = iter([Operand(t, s) for t, s in zip(types, inner[len(results) :], strict=True)])
    number = Operand(compute, NUMBER)
    inputs = [next(listed) if o.__class__ is _ndarray else number for o in operands]
    calls = [_kernel(exprs, inputs, outputs, compute, len(sizes), False)]
    streams = (
        None not in inner
        and all(  # a tile's rows are too short
            math.prod(shape) * np.dtype(t).itemsize >= STREAMED
            and last == 1
            and not any(step * np.dtype(t).itemsize % STREAM for step in s[:-1])
            for t, s, last in zip(dtypes, steps, inner, strict=False)
        )
    )
    if streams:
        calls.append(_kernel(exprs, inputs, outputs, compute, len(sizes), True))
    if calls[0] is None:
        return None
    ints = [*sizes]
    for s, last in zip(steps, inner, strict=True):
        ints += s if last is None else s[:-1]
    half = None
    if "bool" in results:
        half = next((a.dtype for a in arrays if a.itemsize == 2 and a.dtype.kind not in "iu"), None)
    span = None
    if compute in INTEGERS and "bool" in results:
        limits = np.iinfo(next(a.dtype for a in arrays if a.dtype.kind in "iu"))
        span = (limits.min, limits.max)
    return _Plan(
        calls[0], calls[-1] if streams else None, shape, like, ints, compute in FLOATS, half, span
    )


def _kernel(
    exprs: tuple[Expr, ...],
    inputs: list[Operand],
    outputs: list[Operand],
    compute: str,
    rank: int,
    stream: bool,
) -> Callable[..., None] | None:
    key = (tuple(map(str, exprs)), tuple(inputs), tuple(outputs), compute, rank, stream)
    if key not in _kernels:

        def make(name: str) -> Function:
            return map_function(name, exprs, inputs, outputs, compute, rank, stream)

        try:
            _kernels[key] = kernel("map", key, make)
        except NotCompiled:
            _kernels[key] = None
    return _kernels[key]


def apart(out: Any, operands: Sequence[Any]) -> bool:
    """Whether no operand overlaps `out`, but for those that are the very same elements."""
    place = address(out)
    for o in operands:
        if o.__class__ is _ndarray and np.may_share_memory(o, out):
            same = address(o) == place and o.strides == out.strides and o.dtype == out.dtype
            if not same or o.shape != out.shape:
                return False
    return True


def aligned(a: Any) -> bool:
    """Whether the steps are whole elements."""
    return not any(s % a.itemsize for s in a.strides)


def steps_of(a: Any, shape: Sizes) -> Sizes:
    """The steps of `a`, in elements, when it is broadcast to `shape`."""
    own = [0 if n == 1 else s // a.itemsize for n, s in zip(a.shape, a.strides, strict=True)]
    return (0,) * (len(shape) - a.ndim) + tuple(own)


def dense(a: Any) -> bool:
    """Whether the elements lie together in memory, in some order of the dimensions."""
    if a.flags.forc:
        return True
    size = a.itemsize
    for step, n in sorted(zip(a.strides, a.shape, strict=True)):
        if n != 1:
            if step != size:
                return False
            size *= n
    return True
