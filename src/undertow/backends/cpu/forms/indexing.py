"""Kernels that read at index arrays: choose, lay out and call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.indexing import gather_function
from ....kernel.layout import coalesce, row_major
from ....kernel.lower import NotCompiled
from ...indirect import Space, gather_space, take_space
from ..calls.launch import Launch, Plan, Room, plan_of, planned, run
from ..calls.layouts import known, listed, streams, typed
from ..codegen.kernels import kernel, type_of

WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # moving data, only its size matters


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
    dims = [d for d, i in enumerate(index) if i.__class__ is np.ndarray]
    return _make(x, arrays, take_space(x, dims, arrays))


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
