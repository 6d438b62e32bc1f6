"""Samples for `undertow.ops.create.compatibility`."""

from __future__ import annotations

import undertow as ut
from op_samples import Bad, S, arr, op


def summed(x, *sizes):
    shape = tuple(sizes[0]) if isinstance(sizes[0], tuple) else sizes
    lead = x.ndim - len(shape)
    x = x.sum(tuple(range(lead)))
    return x.sum(tuple(d for d, s in enumerate(shape) if s != x.shape[d]), keepdims=True)


op(
    "Tensor.sum_to_size",
    summed,
    [S(arr(3, 4), 1, 4), S(arr(2, 3, 4), (3, 1)), S(arr(3, 4), 4), S(arr(0, 3), 1, 3)],
    bad=[Bad(S(arr(3, 4), 2, 4), ut.errors.ShapeError, r"\(2, 4\) does not broadcast")],
)
