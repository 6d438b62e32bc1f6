"""Samples for `undertow.ops.reduction`."""

from __future__ import annotations

import numpy as np
from op_samples import Bad, S, arr, bools, ints, op

import undertow as ut


def reduction_samples(make=arr):
    """Every way of naming dimensions, on awkward shapes."""
    return [
        S(make(3, 4)),
        S(make(3, 4), 0),
        S(make(3, 4), dim=-1, keepdim=True),
        S(make(2, 3, 4), (0, 2)),
        S(make(2, 3, 4), dim=(0, -1), keepdim=True),
        S(make()),
        S(make(), 0),
        S(make(4, 3).T, 1),
    ]


def np_reduce(function):
    """A NumPy reduction with torch's argument names."""

    def run(x, dim=None, keepdim=False, dtype=None):
        if np.ndim(x) == 0:
            dim = None
        return function(x, axis=dim, keepdims=keepdim)

    return run


op("sum", np_reduce(np.sum),
   [*reduction_samples(), S(arr(0, 3)), S(arr(0, 3), 0), S(ints(3, 4), 1), S(bools(3, 4), 0)],
   bad=[Bad(S(arr(3), 1), IndexError, r"\[sum\] dim 1"),
        Bad(S(arr(3, 3), (0, 0)), ut.errors.ArgumentError, r"\[sum\].*twice")])  # fmt: skip
