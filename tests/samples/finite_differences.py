"""Samples for `undertow.ops.signal.finite_differences`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, Const, S, arr, ints, op


def np_gradient(x, *, spacing=1, dim=None, edge_order=1):
    """NumPy's, with torch's arguments."""
    given = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing]
    found = np.gradient(x, *given, axis=dim, edge_order=edge_order)
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


PLACES = Const([0.0, 0.5, 2.0, 2.5])
op(
    "gradient",
    np_gradient,
    [
        S(arr(5)),
        S(arr(4, 5), dim=1),
        S(arr(4, 4), spacing=[0.5, 2.0]),
        S(arr(4, 5), spacing=2.0, dim=(0, 1), edge_order=2),
        S(arr(4), spacing=[PLACES]),
        S(arr(4, 4, 2), spacing=[PLACES, PLACES], dim=(1, 0), edge_order=2),
        S(ints(4)),
        S(arr(2)),
    ],
    bad=[
        Bad(S(arr(1)), ValueError, r"\[gradient\] needs 2 elements"),
        Bad(S(arr(3), edge_order=3), ValueError, r"\[gradient\] edge_order"),
        Bad(S(arr(3, 3), spacing=[1.0]), ValueError, r"\[gradient\] needs one spacing"),
        Bad(S(arr(3), spacing=[Const(np.ones(2))]), ValueError, r"\[gradient\] needs 3 coord"),
    ],
)
