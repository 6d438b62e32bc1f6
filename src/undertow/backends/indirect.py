"""Which element gather, take, scatter and put touch where: one loop, for arrays of any device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..kernel.layout import Sizes
from ..kernel.lower import NotCompiled


class Space(NamedTuple):
    """The loop of Note [indirect offsets] in kernel/indexing: its shape, and steps in elements."""

    shape: Sizes
    free: list[int]  # the dimensions that no index array picks from
    x: Sizes
    indices: list[Sizes]
    reaches: list[int]
    lasts: list[int]


def gather_space(x: Any, dim: int, index: Any) -> Space:
    """The loop of gather and scatter."""
    steps, own = _steps(x), _steps(index)
    free = [d for d in range(len(x.shape)) if d != dim]
    moves = tuple([0 if d == dim else s for d, s in enumerate(steps)])
    return Space(index.shape, free, moves, [own], [steps[dim]], [x.shape[dim] - 1])


def take_space(x: Any, dims: Sequence[int], arrays: Sequence[Any]) -> Space:
    """The loop of take and put, with index arrays for these dimensions."""
    steps = _steps(x)
    common = np.broadcast_shapes(*[a.shape for a in arrays])
    together = dims[-1] - dims[0] == len(dims) - 1
    kept = [d for d in range(len(x.shape)) if d not in dims]
    lead = [d for d in kept if together and d < dims[0]]  # else the indexed dimensions go first
    rest = kept[len(lead) :]
    shape = tuple([x.shape[d] for d in lead]) + common + tuple([x.shape[d] for d in rest])
    moves = tuple([steps[d] for d in lead]) + (0,) * len(common) + tuple([steps[d] for d in rest])
    wide = []
    for a in arrays:
        own = tuple([s if n > 1 else 0 for n, s in zip(a.shape, _steps(a), strict=True)])
        missing = len(lead) + len(common) - len(own)
        wide.append((0,) * missing + own + (0,) * len(rest))
    free = [*range(len(lead)), *range(len(shape) - len(rest), len(shape))]
    lasts = [x.shape[d] - 1 for d in dims]
    return Space(shape, free, moves, wide, [steps[d] for d in dims], lasts)


def _steps(a: Any) -> Sizes:
    """The steps of an array in elements, whatever its sizes."""
    size, offset = a.dtype.itemsize, getattr(a, "offset", 0)
    if a.size and (offset % size or any(s % size for s in a.strides)):
        raise NotCompiled("elements that are no whole number of them apart")
    return tuple([s // size for s in a.strides])
