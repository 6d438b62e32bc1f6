"""Samples for `undertow.ops.statistics`."""

from __future__ import annotations

import warnings

import numpy as np
from op_samples import Bad, Const, S, arr, ints, op

import undertow as ut

from .reduction import reduction_samples


def np_moment(function, root):
    """`var` and `std` with torch's arguments, by their definition."""

    def run(x, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None:
            correction = int(unbiased)
        correction = 1 if correction is None else correction
        axis = None if dim is None or np.ndim(x) == 0 else dim
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            count = x.size / max(np.mean(x, axis=axis).size, 1)
            total = np.var(x, axis=axis, keepdims=keepdim) * count
            out = total / max(count - correction, 0)
            return function(np.sqrt(out) if root else out, np.mean(x, axis=axis, keepdims=keepdim))

    return run


moments = [*reduction_samples(), S(arr(4), False), S(arr(3, 4), 1, False), S(arr(3, 4), 1, True, True),
           S(arr(3, 4), correction=0), S(arr(3, 4), 0, correction=0.5, keepdim=True),
           S(arr(3, 4), unbiased=False), S(arr(5, 4).T, 1), S(arr(3, 0), 0)]  # fmt: skip
moments = [s for s in moments if s.args[0].ndim]
for name, root in (("var", False), ("std", True)):
    bad = [Bad(S(ints(3)), ut.errors.DTypeError, rf"\[{name}\].*int64"),
           Bad(S(arr(3), 1), IndexError, rf"\[{name}\] dim 1"),
           Bad(S(arr(3), unbiased=True, correction=1), ValueError, rf"\[{name}\].*not both")]  # fmt: skip
    degenerate = [S(Const([[3.0]]), 1), S(Const(2.0)), S(Const(np.zeros(0))), S(Const([1.0, 2.0]), correction=3)]
    op(name, np_moment(lambda out, mean: out, root), [*moments, *degenerate], bad=bad)
    op(f"{name}_mean", np_moment(lambda out, mean: [out, mean], root), [*moments, *degenerate], bad=bad)
