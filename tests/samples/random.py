"""Samples for `ops.random.random`, for devices and gradients; `test_random.py` has the rest."""

from __future__ import annotations

import undertow as ut
from op_samples import S, arr, ints, op, positive


def random(name, samples, **more):
    """A random function: no reference and no torch, and its methods draw anew."""
    op(name, None, samples, torch=None, method=False, inplace=False, **more)


for name in ("rand", "randn"):
    random(
        name,
        [
            S(2, 3),
            S(()),
            S(0),
            S(size=(2,)),
            S(3, dtype=ut.float64),
            S(3, dtype=ut.float16),
            S(2, dtype=ut.complex64),
        ],
    )
for name in ("rand_like", "randn_like"):
    random(name, [S(arr(2, 3)), S(arr()), S(arr(0, 2)), S(ints(2), dtype=ut.float32)], grad=False)
random(
    "randint", [S(5, (2, 3)), S(-3, 4, (5,)), S(5, size=()), S(3, (0,)), S(9, (2,), dtype=ut.int8)]
)
random("randint_like", [S(arr(2, 3), 5), S(ints(4), -3, 3)], grad=False)
random("randperm", [S(0), S(1), S(10), S(5, dtype=ut.int32)])
random(
    "normal",
    [
        S(arr(3, 4), positive(4)),
        S(arr(3), 2.0),
        S(1.5, positive(3)),
        S(0.0, 1.0, (2, 3)),
        S(arr(2, 1), positive(3)),
        S(arr(0), 1.0),
    ],
)
