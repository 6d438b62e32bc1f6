"""Samples for `undertow.ops.elementwise.float_parts`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, Const, S, arr, ints, op, unary_samples

EDGES = Const([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1.7e308, 0.75])
op(
    "frexp",
    np.frexp,
    [*unary_samples(), S(EDGES)],
    bad=[Bad(S(ints(2)), TypeError, r"\[frexp\] needs floating")],
)
op(
    "nextafter",
    np.errstate(over="ignore", under="ignore")(np.nextafter),
    [
        S(arr(3, 4), Const(arr(3, 4, seed=1))),
        S(arr(3, 1), Const(arr(4, seed=1))),
        S(
            Const([1.0, 0.0, -0.0, np.inf, -np.inf, 5e-324, np.nan, 2.0, 1.7976931348623157e308]),
            Const([2.0, -1.0, 1.0, 0.0, 0.0, -1.0, 1.0, 2.0, np.inf]),
        ),
        S(EDGES, Const(0.0)),
    ],
    bad=[Bad(S(ints(2), ints(2)), TypeError, r"\[nextafter\] needs floating")],
    torch_gradgrad=False,
    torch=None,  # it has no derivative; see conformance/test_torch_mathematics.py
)
