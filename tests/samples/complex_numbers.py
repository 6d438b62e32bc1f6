"""Samples for `undertow.ops.elementwise.complex_numbers`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, Const, S, arr, bools, ints, op, unary_samples
from undertow.errors import DTypeError, ShapeError

F32 = np.float32
nan, inf = float("nan"), float("inf")
COMPLEX = ints(2, 3) + 1j * ints(2, 3, seed=1)
parts = [S(COMPLEX), S(COMPLEX.T), S(COMPLEX[:1, :1].reshape(())), S(COMPLEX[:, :0])]

op("real", np.real, [*parts, S(arr(2)), S(ints(2))], method=False)
for name in ("conj", "conj_physical"):
    op(name, np.conj, [*parts, S(arr(2)), S(ints(2))])
op("imag", np.imag, parts, method=False, bad=[Bad(S(arr(2)), DTypeError, r"\[imag\].*float64")])


def np_angle(x):
    """NumPy's, but that -0.0 is no negative number."""
    return np.angle(x if x.dtype.kind == "c" else x + 0)


op(
    "angle",
    np_angle,
    [*parts, *unary_samples(), S(ints(4)), S(bools(2)), S(Const([nan, 0.0, -0.0, inf, -inf]))],
)
op(
    "view_as_real",
    lambda x: np.stack([x.real, x.imag], -1),
    parts[:3],
    bad=[Bad(S(arr(2)), DTypeError, r"\[view_as_real\].*float64")],
)
op(
    "view_as_complex",
    lambda x: x[..., 0] + 1j * x[..., 1],
    [S(arr(3, 2)), S(arr(2)), S(arr(2, 3, 2).swapaxes(0, 1)), S(arr(3, 2).astype(F32))],
    rtol=1e-6,
    bad=[
        Bad(S(np.ones((2, 3), F32)), ShapeError, r"\[view_as_complex\].*\(2, 3\)"),
        Bad(S(np.ones((2, 2), F32).T), ShapeError, r"\[view_as_complex\].*\(1, 2\)"),
        Bad(S(ints(2)), DTypeError, r"\[view_as_complex\].*int64"),
    ],
)
pairs = [
    S(arr(3), arr(3, seed=1)),
    S(arr(2, 1), arr(3)),
    S(arr(3).astype(F32), arr(3, seed=1).astype(F32)),
    S(arr(), arr(seed=1)),
    S(arr(0), arr(0)),
]
op(
    "complex",
    lambda real, imag: real + 1j * imag,
    pairs,
    bad=[
        Bad(S(ints(2), ints(2)), DTypeError, r"\[complex\].*int64"),
        Bad(S(arr(2), arr(2).astype(F32)), DTypeError, r"\[complex\].*float64"),
        Bad(S(arr(2), arr(3)), ShapeError, r"\[complex\].*2"),
    ],
)
# Torch's gradient has the wrong sign where `abs` is negative: see tests/conformance.
sizes = [S(np.asarray(np.abs(s.args[0])), *s.args[1:]) for s in pairs]
op(
    "polar",
    lambda abs, angle: abs * np.exp(1j * angle),
    sizes,
    rtol=1e-5,
    atol=1e-6,
    bad=[Bad(S(ints(2), ints(2)), DTypeError, r"\[polar\].*int64")],
)
