"""Samples for `undertow.ops.elementwise.extremes`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, Const, S, arr, binary_samples, bools, ints, op, singular

nan = float("nan")


def np_clamp(x, min=None, max=None):
    if min is not None:
        x = np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


for name in ("clamp", "clip"):
    op(
        name,
        np_clamp,
        [
            S(arr(3, 4), -0.5, 0.5),
            S(arr(3, 4), min=0),
            S(arr(3, 4).T, max=0.25),
            S(arr(), 0, 1),
            S(arr(0, 3), 0, 1),
            S(arr(3), 1.0, -1.0),
            S(ints(5), -1, 2),
            S(ints(5), max=1.5),
            S(arr(3, 4), arr(4, seed=1) - 1, arr(3, 1, seed=2) + 1),
            S(arr(3), min=arr(seed=1)),
            S(arr(2, 3), max=arr(4, 1, 1, seed=1)),
            S(Const([nan, 1.0]), 0, 1),
            S(bools(3), max=1),
        ],
        bad=[
            Bad(S(arr(3)), ValueError, r"\[clamp\] needs min"),
            Bad(S(arr(3), arr(2)), ValueError, r"\[clamp\].*\(3,\) and \(2,\)"),
        ],
    )
op("clamp_min", np.maximum, [*binary_samples(), S(arr(3), 0.5), S(ints(3), 1)])
op("clamp_max", np.minimum, [*binary_samples(), S(arr(3), 0.5), S(ints(3), 1)])
awkward = [
    S(ints(3), ints(3, seed=1)),
    S(bools(3), bools(3, seed=1)),
    S(ints(3), arr(3)),
    S(Const([nan, 1.0, nan]), Const([1.0, nan, nan])),
]
for name in ("maximum", "minimum", "fmax", "fmin"):
    op(
        name,
        getattr(np, name),
        [*binary_samples(), *awkward],
        bad=[Bad(S(arr(3) + 1j, arr(3)), TypeError, rf"\[{name}\].*complex")],
    )

# Ties and bounds -----------------------------------------------------------------------------
for _name in ("maximum", "minimum", "fmax", "fmin"):
    singular(_name, S(np.array([1.0, 0.0, 2.0]), np.array([1.0, -0.0, 3.0])))
for _name in ("clamp", "clip"):
    singular(_name, S(np.array([-1.0, 1.0, 0.0, 2.0]), -1.0, 1.0))
    singular(_name, S(np.array([1.0, 2.0, 0.5]), np.array([1.0, 0.0, 0.5]), np.array([2.0] * 3)))
singular("clamp_min", S(np.array([0.0, 1.0]), 0.0))
singular("clamp_max", S(np.array([0.0, 1.0]), 1.0))
# One bound is the other: torch gives the gradient to neither.
singular("clamp", S(np.array([1.0]), np.array([3.0]), np.array([3.0])), torch=False)
