"""Samples for `ops.random.distributions`; `test_random.py` has the distributions themselves."""

from __future__ import annotations

import numpy as np

from op_samples import Const, S, arr, op, positive
from samples.random import random

CHANCES = np.linspace(0.05, 0.95, 12).reshape(3, 4)

# Samples have the derivative zero, so a difference quotient must not flip one of them.
op(
    "bernoulli",
    None,
    [
        S(Const(CHANCES)),
        S(Const(CHANCES.T)),
        S(Const(arr(0))),
        S(arr(3), 0.5),
        S(Const(np.array(0.3))),
    ],
    torch=None,
    method=False,
    inplace=False,
    gradgrad=False,
)
random("poisson", [S(positive(3, 4)), S(positive(3) * 20), S(positive(0, 2)), S(positive(4, 3).T)])
random("multinomial", [S(Const(CHANCES), 2), S(Const(CHANCES), 5, True), S(Const(CHANCES[0]), 3)])
