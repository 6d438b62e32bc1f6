"""Samples for `undertow.ops.elementwise.rounding`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, Const, S, arr, binary_samples, bools, ints, op, singular, unary_samples

from .arithmetic import away, clear

nan, inf = float("nan"), float("inf")
special = S(Const([nan, inf, -inf, 0.0, -0.0]))

for name in ("abs", "absolute"):
    op(
        name,
        np.abs,
        [*unary_samples(away), S(ints(4)), special, S(arr(3) + 1j * arr(3, seed=1))],
        bad=[Bad(S(bools(3)), TypeError, r"\[abs\].*bool")],
    )


def np_sign(x):
    if x.dtype == bool:
        return x
    return np.where(np.isnan(x), 0, np.sign(x)).astype(x.dtype)


op(
    "sign",
    np_sign,
    [*unary_samples(away), S(ints(4)), S(bools(4)), special],
    bad=[Bad(S(arr(3) + 1j), TypeError, r"\[sign\].*complex")],
)
op("sgn", np_sign, [*unary_samples(away), S(ints(4)), S(bools(4)), special])
op(
    "copysign",
    np.copysign,
    [
        *binary_samples(away, away),
        S(arr(3), -2.0),
        S(ints(4), ints(4, seed=1)),
        S(Const([1.0, -1.0, 0.0]), Const([-0.0, 0.0, -1.0])),
    ],
)
op(
    "heaviside",
    lambda x, v: np.where(x > 0, 1, np.where(x == 0, v, 0)).astype(x.dtype),
    [*binary_samples(), S(Const([0.0, -0.0, nan, 2.0]), Const([0.5])), S(ints(4), ints(4, seed=2))],
    grad=False,
    inplace=False,
)
for name, reference in {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "fix": np.trunc,
}.items():
    op(
        name,
        reference,
        [*unary_samples(clear), S(ints(4)), special],
        bad=[Bad(S(bools(3)), TypeError, r"bool"), Bad(S(arr(3) + 1j), TypeError, r"complex")],
    )
op(
    "round",
    lambda x, decimals=0: np.round(x, decimals),
    [
        *unary_samples(clear),
        S(ints(4)),
        special,
        S(Const([0.5, 1.5, -2.5])),
        S(clear(4), decimals=2),
        S(clear(4) * 100, decimals=-1),
    ],
    bad=[
        Bad(S(ints(3), decimals=1), TypeError, r"\[round\] decimals=1.*int64"),
        Bad(S(bools(3)), TypeError, r"\[round\].*bool"),
        Bad(S(arr(3), decimals=0.5), TypeError, r"\[round\] decimals"),
    ],
)
op(
    "frac",
    lambda x: x - np.trunc(x),
    unary_samples(clear),
    bad=[Bad(S(ints(3)), TypeError, r"\[frac\].*int64")],
)
op(
    "nan_to_num",
    lambda x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(
        x, nan=nan, posinf=posinf, neginf=neginf
    ),
    [
        *unary_samples(),
        special,
        S(Const([nan, inf, -inf]), 1.0, 2.0, -2.0),
        S(Const([nan, inf]), posinf=3.0),
        S(Const(np.array([complex(nan, inf), complex(-inf, 2), 1 + 1j])), posinf=3.0),
        S(ints(3)),
        S(bools(3)),
    ],
)

# Kinks and jumps -----------------------------------------------------------------------------
for _name in ("abs", "sign", "sgn", "absolute"):
    singular(_name, S(np.array([0.0, -0.0, 1.0])))
for _name in ("floor", "ceil", "trunc", "fix", "round", "frac"):
    singular(_name, S(np.array([0.0, -1.0, 2.0, 0.5, -2.5])))
singular("copysign", S(np.array([0.0, -0.0, 1.0]), np.array([1.0, -1.0, 0.0])))
singular("nan_to_num", S(np.array([0.0, np.inf, -np.inf, np.nan])))
