"""Kernels that read at index arrays: choose, lay out and call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.indexing import gather_function
from ....kernel.layout import Sizes, coalesce, row_major
from ....kernel.lower import NotCompiled
from ..calls.launch import Launch, Plan, Room, plan_of, planned, run
from ..calls.layouts import aligned, known, listed, steps_of, streams, typed
from ..codegen.kernels import kernel, type_of

WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # moving data, only its size matters


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
    plan = plan_of(_make_gather, (x, index), dim)
    return run(plan, (x, index))[0] if plan else None


def run_take(x: Any, index: tuple[Any, ...]) -> Any:
    """`Backend.take`; None if there is no kernel."""
    plan = plan_of(_make_take, (x, *index))
    if not plan:
        return None
    return run(plan, [x, *[i for i in index if i.__class__ is np.ndarray]])[0]


def _make_gather(operands: Sequence[Any], dim: int) -> Plan:
    x, index = operands
    return _make(x, (index,), gather_space(x, dim, index))


def _make_take(operands: Sequence[Any]) -> Plan:
    x, *index = operands
    arrays = [i for i in index if i.__class__ is np.ndarray]
    return _make(x, arrays, take_space(x, tuple(index), arrays))


def _make(x: Any, indices: Sequence[Any], space: Space) -> Plan:
    word = WORDS.get(x.itemsize)
    if word is None or 0 in space.shape:
        raise NotCompiled("no elements, or of an odd size")
    sizes, steps = coalesce(space.shape, [row_major(space.shape), space.x, *space.indices])
    inner = known([s[-1] for s in steps])
    out, source, *others = typed([word, word, *(type_of(i.dtype) for i in indices)], inner)
    stream = streams(space.shape, x.dtype, [sizes[-1]])
    call = kernel("gather", gather_function, out, source, others, len(sizes), stream)
    ints = [*sizes, *listed(steps, inner)]
    for pair in zip(space.reaches, space.lasts, strict=True):
        ints += pair
    return planned(Launch(call, 2 + len(indices), ints), [Room(space.shape, x.dtype)])


# Which element is read where -------------------------------------------------------------------
def gather_space(x: Any, dim: int, index: Any) -> Space:
    """The loop of gather and scatter."""
    steps, own = _own_steps(x), _own_steps(index)
    free = [d for d in range(x.ndim) if d != dim]
    moves = tuple([0 if d == dim else s for d, s in enumerate(steps)])
    return Space(index.shape, free, moves, [own], [steps[dim]], [x.shape[dim] - 1])


def take_space(x: Any, index: tuple[Any, ...], arrays: Sequence[Any]) -> Space:
    """The loop of take and put."""
    steps = _own_steps(x)
    if not all(map(aligned, arrays)):
        raise NotCompiled("indices that are no whole number of them apart")
    dims = [d for d, i in enumerate(index) if i.__class__ is np.ndarray]
    common = np.broadcast_shapes(*(a.shape for a in arrays))
    together = dims[-1] - dims[0] == len(dims) - 1
    kept = [d for d in range(x.ndim) if d not in dims]
    lead = [d for d in kept if together and d < dims[0]]  # else the indexed dimensions go first
    rest = kept[len(lead) :]
    shape = tuple([x.shape[d] for d in lead]) + common + tuple([x.shape[d] for d in rest])
    before, after = (0,) * len(lead), (0,) * len(rest)
    moves = tuple([steps[d] for d in lead]) + (0,) * len(common) + tuple([steps[d] for d in rest])
    wide = [before + steps_of(a, common) + after for a in arrays]
    free = [*range(len(lead)), *range(len(shape) - len(rest), len(shape))]
    lasts = [x.shape[d] - 1 for d in dims]
    return Space(shape, free, moves, wide, [steps[d] for d in dims], lasts)


def _own_steps(a: Any) -> Sizes:
    """The steps of an array in elements, whatever its sizes."""
    if not aligned(a):
        raise NotCompiled("elements that are no whole number of them apart")
    return tuple([s // a.itemsize for s in a.strides])
