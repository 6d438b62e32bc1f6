"""Samples for `undertow.ops.elementwise.arithmetic`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import (
    Bad,
    Const,
    S,
    arr,
    binary_samples,
    bools,
    ints,
    op,
    positive,
    singular,
    unary_samples,
)

nan, inf = float("nan"), float("inf")


def away(*shape, seed=0):
    """Random numbers of size 0.3 to 2.5 and either sign."""
    return np.asarray(positive(*shape, seed=seed) * np.where(bools(*shape, seed=seed + 7), 1, -1))


def clear(*shape, seed=0):
    """Random numbers whose quotients by those of `away` are no integers."""
    return np.asarray(arr(*shape, seed=seed) * 3 + 0.0137)


def quiet(function):
    """A NumPy function that does not warn."""

    def run(*args, **kwargs):
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return run


op(
    "add",
    lambda a, b, alpha=1: a + (b if alpha == 1 else alpha * b),
    [
        *binary_samples(),
        S(arr(3), 2),
        S(arr(3), 2.5),
        S(ints(3), ints(3, seed=1)),
        S(arr(3), arr(3, seed=1), alpha=3),
        S(ints(3), 1),
        S(bools(3), bools(3, seed=1)),
        S(ints(3), arr(3)),
        S(ints(3).astype(np.int8), ints(3, low=0).astype(np.uint8)),
    ],
    bad=[
        Bad(S(arr(3), arr(4)), ut.errors.ShapeError, r"\[add\].*\(3,\) and \(4,\)"),
        Bad(S(arr(3), "x"), TypeError, r"\[add\].*str"),
        Bad(S(ints(3), ints(3), alpha=0.5), ValueError, r"\[add\] alpha.*0.5"),
    ],
)
sub_samples = [
    *binary_samples(),
    S(arr(3), 2),
    S(arr(3), arr(3, seed=1), alpha=0.5),
    S(ints(3), ints(3), alpha=2),
]
for name in ("sub", "subtract"):
    op(
        name,
        lambda a, b, alpha=1: a - alpha * b,
        sub_samples,
        bad=[Bad(S(bools(3), bools(3)), TypeError, r"\[sub\].*bool")],
    )
op(
    "rsub",
    lambda a, b, alpha=1: b - alpha * a,
    [*binary_samples(), S(arr(3), 2), S(arr(3), arr(3, seed=1), alpha=0.5)],
    bad=[Bad(S(bools(3), bools(3)), TypeError, r"\[rsub\].*bool")],
)
for name in ("mul", "multiply"):
    op(
        name,
        lambda a, b: a * b,
        [
            *binary_samples(),
            S(arr(3), 2),
            S(ints(3), ints(3, seed=1)),
            S(Const(arr(2, 2)), 1j),
            S(bools(3), bools(3, seed=1)),
        ],
        bad=[Bad(S(arr(2, 3), arr(3, 2)), ut.errors.ShapeError, r"\[mul\]")],
    )
for name in ("neg", "negative"):
    op(
        name,
        np.negative,
        [*unary_samples(), S(ints(4)), S(np.array([1, 2], np.uint8))],
        bad=[Bad(S(bools(3)), TypeError, r"\[neg\].*bool")],
    )
op(
    "positive",
    lambda x: x,
    [*unary_samples(), S(ints(4))],
    bad=[Bad(S(bools(3)), TypeError, r"\[positive\].*bool")],
)


def np_div(a, b, rounding_mode=None):
    quotient = np.true_divide(a, b)
    if rounding_mode is None:
        return quotient
    whole = np.asarray(a).dtype.kind == np.asarray(b).dtype.kind == "i"
    rounded = np.floor(quotient) if rounding_mode == "floor" else np.trunc(quotient)
    return rounded.astype(int) if whole else rounded


rounded = [
    S(s.args[0], s.args[1], rounding_mode=mode)
    for mode in ("floor", "trunc")
    for s in [
        *binary_samples(clear, away),
        S(clear(3), 0.7),
        S(ints(5, seed=1), 3),
        S(ints(4), np.array([2, -2, 3, -3])),
        S(ints(4), -0.5),
    ]
]
for name in ("div", "divide"):
    op(
        name,
        quiet(np_div),
        [
            *binary_samples(arr, away),
            S(arr(3), 2),
            S(ints(3), ints(3, low=1)),
            S(ints(3), 4),
            S(Const(arr(3)), 0.0),
            S(Const([1.0, 0.0, -1.0]), Const([0.0, 0.0, 0.0])),
            *rounded,
        ],
        check_dtype=True,
        rtol=1e-6,
        bad=[
            Bad(S(arr(3), arr(3), rounding_mode="up"), ValueError, r"\[div\].*'up'"),
            Bad(S(ints(3), 0, rounding_mode="floor"), RuntimeError, r"\[div\].*by zero"),
            Bad(S(ints(3), ints(3) * 0, rounding_mode="trunc"), RuntimeError, "by zero"),
        ],
    )
op("true_divide", quiet(np.true_divide), [*binary_samples(arr, away), S(ints(3), 4)])
op(
    "floor_divide",
    quiet(np.floor_divide),
    [
        *binary_samples(clear, away),
        S(clear(3), 0.7),
        S(ints(5), 3),
        S(ints(5), -3),
        S(ints(4), np.array([2, -2, 3, -3])),
        S(Const([1.5, -1.5, 0.0, inf]), Const([0.0, 0.0, 0.0, 2.0])),
        S(7, ints(3, low=1)),
    ],
    grad=False,  # torch has no gradient for it; that of div(rounding_mode="floor") is compared
    bad=[
        Bad(S(ints(3), 0), RuntimeError, r"\[floor_divide\] integer division by zero"),
        Bad(S(bools(3), bools(3)), TypeError, r"\[floor_divide\].*bool"),
    ],
)
for name, reference in {"remainder": np.remainder, "fmod": np.fmod}.items():
    op(
        name,
        quiet(reference),
        [
            *binary_samples(clear, away),
            S(clear(3), 0.7),
            S(ints(5), 3),
            S(ints(5), -3),
            S(ints(4), np.array([2, -2, 3, -3])),
            S(Const([5.0, -5.0, 3.0]), Const([inf, inf, 0.0])),
        ],
        bad=[Bad(S(ints(3), 0), RuntimeError, rf"\[{name}\] integer division by zero")],
    )
op("reciprocal", quiet(np.reciprocal), [*unary_samples(away), S(Const([0.0, inf]))])
op("square", np.square, [*unary_samples(), S(ints(4))])
op(
    "sqrt",
    quiet(np.sqrt),
    [*unary_samples(positive), S(ints(4, low=0)), S(Const([-1.0, 0.0, inf]))],
)
op(
    "rsqrt",
    quiet(lambda x: 1 / np.sqrt(x)),
    [*unary_samples(positive), S(ints(4, low=1)), S(Const([-1.0, 0.0, inf]))],
)
op(
    "pow",
    quiet(lambda a, b: np.power(np.asarray(a) * 1.0, b)),
    [
        *binary_samples(positive, arr),
        *[S(away(4), n) for n in (0, 1, 2, 3, 4, -1, -2, 2.0)],
        S(positive(4), 0.5),
        S(positive(4), 1.5),
        S(positive(4), -0.5),
        S(2.5, arr(3)),
        S(1, arr(3)),
        S(ints(4), 2),
        S(ints(4), 3),
        S(ints(4), 0),
        S(ints(4, low=1), 0.5),
        S(ints(4), ints(4, low=0)),
        S(ints(4, low=1), -1.0),
        S(2, ints(4, low=0)),
        S(away(4), ints(4)),
        S(arr(0), 2),
        S(Const([0.0, -inf, -8.0, nan]), 0),
        S(Const([0.0, -inf, -8.0]), 3),
    ],
    bad=[
        Bad(S(ints(3), -1), RuntimeError, r"\[pow\].*negative power -1"),
        Bad(S(bools(3), bools(3)), TypeError, r"\[pow\].*bool"),
    ],
)
op(
    "float_power",
    lambda a, b: np.power(np.asarray(a) * 1.0, b),
    [*binary_samples(positive, arr), S(ints(3, low=1), -1), S(positive(3), 2), S(2, arr(3))],
)
op(
    "addcmul",
    lambda a, b, c, value=1: a + value * b * c,
    [
        S(arr(3, 4), arr(3, 4, seed=1), arr(3, 4, seed=2)),
        S(arr(3, 1), arr(4, seed=1), arr(seed=2), value=0.5),
        S(ints(3), ints(3), ints(3), value=2),
    ],
    bad=[Bad(S(ints(3), ints(3), ints(3), value=0.5), ValueError, r"\[addcmul\] alpha")],
)
op(
    "addcdiv",
    lambda a, b, c, value=1: a + value * b / c,
    [
        S(arr(3, 4), arr(3, 4, seed=1), away(3, 4, seed=2)),
        S(arr(3, 1), arr(4, seed=1), away(seed=2), value=0.5),
    ],
    bad=[Bad(S(ints(3), ints(3), ints(3)), TypeError, r"\[addcdiv\].*integers")],
)
op(
    "lerp",
    lambda a, b, w: a + w * (b - a),
    [
        S(arr(3, 4), arr(3, 4, seed=1), 0.3),
        S(arr(3, 4), arr(3, 4, seed=1), 0.7),
        S(arr(3), arr(3, seed=1), 1.0),
        S(arr(3), arr(3, seed=1), -2),
        S(arr(3, 4), arr(4, seed=1), arr(3, 1, seed=2)),
        S(arr(3), arr(3, seed=1), arr(seed=2)),
    ],
    bad=[Bad(S(ints(3), ints(3), 1), TypeError, r"\[lerp\].*int64")],
)
op(
    "ldexp",
    lambda a, b: a * 2.0**b,
    [*binary_samples(), S(arr(3), ints(3)), S(ints(3), ints(3, low=0))],
)

# Zeros and powers of them ----------------------------------------------------------------------
singular("sqrt", S(np.array([0.0, 1.0])))
for _exponent in (0, 1, 2, 3, 0.5, 1.5, 2.5, 0.0, 1.0):
    singular("pow", S(np.array([0.0, 1.0]), _exponent))
singular("pow", S(np.array([0.0, 0.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0, 0.0])))
singular("pow", S(2.0, np.array([0.0, 1.0])), S(1.0, np.array([0.0, 1.0])))
singular("float_power", S(np.array([0.0, 1.0]), 2))
singular("square", S(np.array([0.0])))
singular("remainder", S(np.array([0.0, 2.0, -4.0, 1.0]), 2.0))
singular("fmod", S(np.array([0.0, 2.0, -4.0, 1.0]), 2.0))
singular("floor_divide", S(np.array([1.0, 3.0]), 2.0), torch=False)  # which has no derivative
for _name in ("reciprocal", "rsqrt"):
    singular(_name, S(np.array([0.0])))
singular("div", S(np.array([1.0]), np.array([0.0])), S(np.array([0.0]), np.array([2.0])))
singular("pow", S(np.array([0.0]), -1), S(np.array([0.0]), -0.5), S(np.array([0.0]), -2.0))
singular("lerp", S(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.5, 0.0])))
