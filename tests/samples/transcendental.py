"""Samples for `undertow.ops.elementwise.transcendental`."""

from __future__ import annotations

import numpy as np

from op_samples import (
    Bad,
    Const,
    S,
    arr,
    binary_samples,
    ints,
    op,
    positive,
    singular,
    unary_samples,
)

from .arithmetic import away, quiet

nan, inf = float("nan"), float("inf")
special = S(Const([nan, inf, -inf, 0.0, -0.0, 1e-300, 700.0, -700.0, 1000.0]))


def within(low, high):
    """Random numbers between bounds."""

    def make(*shape, seed=0):
        return arr(*shape, seed=seed, low=low, high=high)

    return make


def unary(names, reference, make=arr, extra=(), **more):
    """A function of one tensor under one or more names."""
    for name in names.split():
        op(
            name,
            quiet(reference),
            [*unary_samples(make), S(ints(4, low=0, high=1)), special, *extra],
            **more,
        )


unary("exp", np.exp, extra=[S(arr(3) + 1j)])
unary("exp2", np.exp2)
unary("expm1", np.expm1, extra=[S(Const([1e-10, -1e-20]))])
unary("log", np.log, positive, extra=[S(arr(3) + 1j)])
unary("log2", np.log2, positive)
unary("log10", np.log10, positive)
unary("log1p", np.log1p, within(-0.7, 3.0), extra=[S(Const([1e-10, -1e-20, -1.0]))])
unary("sigmoid", lambda x: 1 / (1 + np.exp(-x)))
unary("sin", np.sin)
unary("cos", np.cos)
unary("tan", np.tan, within(-1.2, 1.2))
unary("asin arcsin", np.arcsin, within(-0.9, 0.9))
unary("acos arccos", np.arccos, within(-0.9, 0.9))
unary("atan arctan", np.arctan)
unary("sinh", np.sinh)
unary("cosh", np.cosh)
unary("tanh", np.tanh, extra=[S(arr(3) + 1j)])
unary("asinh arcsinh", np.arcsinh)
unary("acosh arccosh", np.arccosh, within(1.2, 3.0))
unary("atanh arctanh", np.arctanh, within(-0.9, 0.9))
unary("deg2rad", np.deg2rad)
unary("rad2deg", np.rad2deg, bad=[Bad(S(arr(3) + 1j), TypeError, r"\[rad2deg\].*complex")])
for name in ("atan2", "arctan2"):
    op(
        name,
        np.arctan2,
        [
            *binary_samples(away, away),
            S(ints(4), ints(4, seed=1)),
            S(Const([0.0, -0.0, 0.0, inf, nan]), Const([0.0, -1.0, 1.0, -inf, 0.0])),
        ],
    )
op(
    "hypot",
    np.hypot,
    [*binary_samples(away, away), S(Const([1e200, 0.0, inf]), Const([1e200, 0.0, nan]))],
    bad=[Bad(S(ints(3), ints(3)), TypeError, r"\[hypot\].*int64")],
)
infinite = S(
    Const([inf, -inf, inf, 1000.0, -1000.0, nan]), Const([inf, -inf, -inf, 1000.0, 0.0, 1.0])
)
ties = S(arr(3, 4), arr(3, 4))


def np_logaddexp(a, b):
    return np.log(np.exp(a) + np.exp(b)) if a.dtype.kind == "c" else np.logaddexp(a, b)


for name, reference in (("logaddexp", np_logaddexp), ("logaddexp2", np.logaddexp2)):
    op(
        name,
        quiet(reference),
        [*binary_samples(), infinite, ties],
        bad=[Bad(S(ints(3), ints(3)), TypeError, rf"\[{name}\].*int64")],
    )


def np_xlogy(x, y):
    return np.where(np.isnan(y), nan, np.where(x == 0, 0.0, x * np.log(y)))


op(
    "xlogy",
    quiet(np_xlogy),
    [
        *binary_samples(arr, positive),
        S(arr(3), 2.0),
        S(ints(3), ints(3, low=1)),
        S(2.0, positive(3)),
        S(Const([0.0, 0.0, 1.0, 0.0]), Const([0.0, nan, 0.0, -1.0])),
    ],
)


def np_logit(x, eps=None):
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


op(
    "logit",
    quiet(np_logit),
    [
        *unary_samples(within(0.1, 0.9)),
        S(within(-0.5, 1.5)(5), 0.2),
        S(within(0.1, 0.9)(3), eps=1e-6),
        S(Const([0.0, 1.0, -1.0, nan])),
    ],
    bad=[Bad(S(arr(3) + 1j), TypeError, r"\[logit\].*complex")],
)

# Edges of domains, the origin and infinities ---------------------------------------------------
singular("log1p", S(np.array([0.0, -0.5])))
for _name in ("asin", "acos", "arcsin", "arccos"):
    singular(_name, S(np.array([1.0, -1.0, 0.0])))
singular("acosh", S(np.array([1.0, 2.0])))
singular("atan2", S(np.array([0.0, 0.0, 1.0, -1.0]), np.array([1.0, 2.0, 0.0, 0.0])))
singular("hypot", S(np.array([3.0, 0.0]), np.array([0.0, -2.0])))
singular("hypot", S(np.array([0.0]), np.array([0.0])), torch=False)  # torch's is NaN
for _name in ("log", "log2", "log10"):
    singular(_name, S(np.array([0.0])))
singular("log1p", S(np.array([-1.0])))
singular("logit", S(np.array([0.0])), S(np.array([1.0])), S(np.array([-0.0])))
singular("atanh", S(np.array([1.0])), S(np.array([-1.0])))
singular("xlogy", S(np.array([1.0]), np.array([0.0])))
singular("tan", S(np.array([0.0])))
singular("xlogy", S(np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 1.0])))
for _name in ("logaddexp", "logaddexp2"):
    singular(_name, S(np.array([0.0, 1.0]), np.array([0.0, 1.0])))
    singular(_name, S(np.array([-np.inf, 1.0]), np.array([1.0, -np.inf])))
