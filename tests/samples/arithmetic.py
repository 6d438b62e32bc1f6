"""Samples for `undertow.ops.arithmetic`."""

from __future__ import annotations

import numpy as np
from op_samples import Bad, S, arr, binary_samples, bools, ints, op, unary_samples

import undertow as ut

op(
    "add",
    lambda a, b, alpha=1: a + (b if alpha == 1 else alpha * b),
    [*binary_samples(), S(arr(3), 2), S(arr(3), 2.5), S(ints(3), ints(3, seed=1)),
     S(arr(3), arr(3, seed=1), alpha=3), S(ints(3), 1), S(bools(3), bools(3, seed=1))],
    bad=[
        Bad(S(arr(3), arr(4)), ut.errors.ShapeError, r"\[add\].*\(3,\) and \(4,\)"),
        Bad(S(arr(3), "x"), TypeError, r"\[add\].*str"),
    ],
)  # fmt: skip
op("mul", lambda a, b: a * b, [*binary_samples(), S(arr(3), 2), S(ints(3), ints(3, seed=1))],
   bad=[Bad(S(arr(2, 3), arr(3, 2)), ut.errors.ShapeError, r"\[mul\]")])  # fmt: skip
op("sub", lambda a, b, alpha=1: a - alpha * b,
   [*binary_samples(), S(arr(3), 2), S(arr(3), arr(3, seed=1), alpha=0.5)],
   bad=[Bad(S(bools(3), bools(3)), TypeError, r"\[sub\].*bool")])  # fmt: skip
op("neg", np.negative, [*unary_samples(), S(ints(4))])
