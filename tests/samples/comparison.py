"""Samples for `undertow.ops.elementwise.comparison`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, binary_samples, bools, ints, op, singular, unary_samples

nan, inf = float("nan"), float("inf")


def few(*shape, seed=0):
    """Integers with many ties."""
    return ints(*shape, seed=seed, low=0, high=3)


op(
    "where",
    lambda c, x, y: np.where(np.asarray(c, bool), x, y),
    [
        S(bools(3, 4), arr(3, 4), arr(3, 4, seed=1)),
        S(bools(3, 1), arr(4), arr(seed=1)),
        S(bools(4), arr(2, 1, 1), arr(3, 1, seed=1)),
        S(bools(), arr(), arr(seed=1)),
        S(bools(0, 3), arr(1, 3), arr(3, seed=1)),
        S(bools(4, 3).T, arr(4, 3).T, arr(3, 4, seed=1)),
        S(bools(3), arr(3), 0),
        S(bools(3), 1.5, arr(3)),
        S(bools(3), 1, 2),
        S(bools(3), 1.0, 2),
        S(bools(3), ints(3), arr(3)),
        S(bools(3), ints(3), 2.5),
        S(bools(3), ints(3), 2),
        S(bools(3), bools(3, seed=1), 2),
        S(bools(2, 3), Const(arr(2, 3)), inf),
    ],
    method=False,
    bad=[
        Bad(S(ints(3), arr(3), arr(3)), TypeError, r"\[where\] the condition.*int64"),
        Bad(S(True, arr(3), arr(3)), TypeError, r"\[where\] the condition.*bool"),
        Bad(S(bools(3), arr(3)), TypeError, r"\[where\].*NoneType"),
        Bad(S(bools(3), arr(2), arr(3)), ut.errors.ShapeError, r"\[where\]"),
    ],
)

comparisons = [
    *binary_samples(few),
    *binary_samples(),
    S(few(4), 1),
    S(few(4), 0.5),
    S(arr(3), 0),
    S(few(4), arr(4)),
    S(bools(4), bools(4, seed=1)),
    S(bools(4), True),
    S(Const([nan, inf, 0.0]), Const([nan, inf, -0.0])),
]
names = {
    "eq": (np.equal,),
    "ne": (np.not_equal, "not_equal"),
    "lt": (np.less, "less"),
    "le": (np.less_equal, "less_equal"),
    "gt": (np.greater, "greater"),
    "ge": (np.greater_equal, "greater_equal"),
}
for first, (reference, *others) in names.items():
    bad = [
        Bad(S(arr(3), "x"), TypeError, rf"\[{first}\].*str"),
        Bad(S(arr(3), arr(4)), ut.errors.ShapeError, rf"\[{first}\]"),
    ]
    if first not in ("eq", "ne"):
        bad.append(Bad(S(arr(3) + 1j, arr(3)), TypeError, rf"\[{first}\].*complex"))
    for name in (first, *others):
        op(name, reference, comparisons, grad=False, bad=bad)

for name in ("logical_and", "logical_or", "logical_xor"):
    op(
        name,
        getattr(np, name),
        [
            *binary_samples(few),
            S(bools(4), bools(4, seed=1)),
            S(arr(3), few(3)),
            S(Const([nan, 0.0, -0.0]), Const([0.0, 1.0, 0.0])),
        ],
        grad=False,
    )
op(
    "logical_not",
    np.logical_not,
    [*unary_samples(few), S(bools(4)), S(Const([0.0, -0.0, nan]))],
    grad=False,
)

for name in ("and", "or", "xor"):
    op(
        f"bitwise_{name}",
        getattr(np, f"bitwise_{name}"),
        [
            *binary_samples(ints),
            S(bools(4), bools(4, seed=1)),
            S(ints(4), 3),
            S(ints(4), bools(4)),
            S(ints(4).astype(np.int8), np.arange(4).astype(np.uint8)),
            S(bools(3), True),
            S(bools(3), 2),
            S(5, ints(3)),
        ],
        bad=[Bad(S(arr(3), arr(3)), TypeError, rf"\[bitwise_{name}\].*float64")],
    )
op(
    "bitwise_not",
    np.invert,
    [*unary_samples(ints), S(bools(4)), S(np.arange(4).astype(np.uint8))],
    bad=[Bad(S(arr(3)), TypeError, r"\[bitwise_not\].*float64")],
)


def shifts(*shape, seed=0):
    """Places to shift by."""
    return ints(*shape, seed=seed, low=0, high=8)


for side in ("left", "right"):
    op(
        f"bitwise_{side}_shift",
        getattr(np, f"{side}_shift"),
        [
            *binary_samples(ints, shifts),
            S(ints(4), 2),
            S(1, shifts(3)),
            S(ints(3), 70),
            S(np.array([-128, 100], np.int8), 3),
        ],
        bad=[Bad(S(arr(3), arr(3)), TypeError, rf"\[bitwise_{side}_shift\].*float64")],
    )

special = S(Const([nan, inf, -inf, 0.0, -0.0, -1.5, 2.0]))
for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit"):
    bad = [Bad(S(arr(3) + 1j), TypeError, rf"\[{name}\].*complex")]
    op(
        name,
        getattr(np, name),
        [*unary_samples(), special, S(ints(4)), S(bools(3))],
        grad=False,
        bad=bad if name in ("isposinf", "isneginf", "signbit") else [],
    )
op(
    "isreal",
    np.isreal,
    [*unary_samples(), S(np.array([1j, 1, 0])), S(ints(3)), S(bools(3))],
    grad=False,
)

close = arr(3, 4)
op(
    "isclose",
    lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: np.isclose(a, b, rtol, atol, equal_nan),
    [
        S(close, close + 1e-7),
        S(close, close + 1e-2),
        S(close, close[0] + 1e-7),
        S(arr(), arr()),
        S(close, close * 1.05, rtol=0.1),
        S(close, close + 0.01, 0.0, 0.1),
        S(arr(0), arr(0)),
        S(Const([nan, inf, inf, 1.0]), Const([nan, inf, -inf, inf])),
        S(ints(4), ints(4) + 1, rtol=0.3),
        S(Const([nan, 1.0]), Const([nan, nan]), equal_nan=True),
        S(bools(3), bools(3, seed=1)),
        S(np.uint8([0, 103, 255, 9]), np.uint8([255, 104, 254, 7]), rtol=0.0, atol=1.0),
        S(np.int8([-128, -128, 5]), np.int8([127, -127, 4]), rtol=0.0, atol=1.0),
        S(np.int64([-(2**63), 2**62]), np.int64([2**63 - 1, 2**62 - 1]), rtol=0.0, atol=1.0),
    ],
    grad=False,
    bad=[
        Bad(S(arr(3), ints(3)), TypeError, r"\[isclose\].*float64 and undertow.int64"),
        Bad(S(arr(3), arr(3), rtol=-1.0), ValueError, r"\[isclose\] rtol.*-1.0"),
    ],
)
op(
    "allclose",
    lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: np.allclose(a, b, rtol, atol, equal_nan),
    [
        S(close, close + 1e-9),
        S(close, close + 1e-2),
        S(arr(0), arr(0)),
        S(Const([nan]), Const([nan]), equal_nan=True),
        S(Const([nan]), Const([nan])),
    ],
    grad=False,
)
op(
    "equal",
    lambda a, b: a.shape == b.shape and bool(np.all(a == b)),
    [
        S(arr(3), arr(3)),
        S(arr(3), arr(3, seed=1)),
        S(arr(3), arr(1)),
        S(arr(0), arr(0)),
        S(Const([nan]), Const([nan])),
        S(ints(2), ints(2).astype(np.float32)),
        S(arr(), arr()),
    ],
    grad=False,
)
op(
    "isin",
    lambda x, test, assume_unique=False, invert=False: np.isin(x, test, invert=invert),
    [
        S(ints(3, 4), ints(3)),
        S(ints(3, 4).T, ints(2, 2)),
        S(ints(4), ints(3), invert=True),
        S(ints(4), 2),
        S(3, ints(4)),
        S(ints(4), ints(0)),
        S(ints(0, 3), ints(2)),
        S(ints(), ints(4)),
        S(Const([nan, 1.0, inf]), Const([nan, inf])),
        S(ints(4), ints(3), assume_unique=True),
    ],
    grad=False,
    bad=[Bad(S(1, 2), TypeError, r"\[isin\] expects at least one tensor")],
)

# Where a condition changes ---------------------------------------------------------------------
_flags = np.array([True, False])
singular("where", S(_flags, np.array([0.0, 1.0]), np.array([0.0, 2.0])))
