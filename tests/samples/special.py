"""Samples for `undertow.ops.elementwise.special`."""

from __future__ import annotations

import math

import numpy as np

from op_samples import Bad, Const, S, arr, ints, op, positive, singular, unary_samples

from .arithmetic import away
from .transcendental import within

nan, inf = float("nan"), float("inf")
erf, erfc, lgamma = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc, math.lgamma))


def np_erfinv(y):
    """Newton's method on math.erf."""
    x = np.zeros_like(y)
    for _ in range(50):
        x = x - (erf(x) - y) * np.sqrt(np.pi) / 2 * np.exp(x * x)
    return x


def np_polygamma(n, x):
    """The first million terms of the sum over (x + k)**-(n + 1), and the integral of the rest."""
    terms = 100_000
    k = np.arange(terms).reshape(-1, *(1,) * np.ndim(x))
    total = ((x + k) ** -(n + 1.0)).sum(0) + (x + terms - 0.5) ** -n / n
    return (-1) ** (n + 1) * math.factorial(n) * total


def np_digamma(x):
    """The sum over 1/(k + 1) - 1/(x + k), and the integral of the rest."""
    terms = 100_000
    k = np.arange(terms).reshape(-1, *(1,) * np.ndim(x))
    rest = np.log((x + terms - 0.5) / (terms + 0.5))
    return -np.euler_gamma + (1 / (k + 1.0) - 1 / (x + k)).sum(0) + rest


def np_i0(x):
    """The power series."""
    return sum((x / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(60))


whole = S(ints(4, low=1, high=3))
op(
    "erf",
    erf,
    [*unary_samples(), whole, S(Const([inf, -inf, nan, 0.0, 30.0]))],
    bad=[Bad(S(arr(3) + 1j), TypeError, r"\[erf\].*complex")],
)
op("erfc", erfc, [*unary_samples(), whole, S(Const([inf, -inf, nan, 5.0, 20.0]))])
op("erfinv", np_erfinv, unary_samples(within(-0.9, 0.9)))
op(
    "lgamma",
    lgamma,
    [*unary_samples(positive), whole, S(arr(5) * 0.3 - 1.5), S(Const([100.0, 1e10]))],
)
op("digamma", np_digamma, unary_samples(positive))
op(
    "polygamma",
    np_polygamma,
    [S(n, *s.args) for n in (1, 2, 3) for s in unary_samples(positive)],
    method=False,
    inplace=False,
    bad=[
        Bad(S(-1, positive(3)), ValueError, r"\[polygamma\].*-1"),
        Bad(S(1.5, positive(3)), TypeError, r"\[polygamma\] n must be an integer"),
    ],
)
op("i0", np_i0, [*unary_samples(), S(np.array([0.0, 5.0, -9.0, 12.0]))])
op("sinc", np.sinc, [*unary_samples(), S(np.array([1.0, -2.0, 1e-3, 0.31, 0.32])), S(away(4) * 4)])

# Poles, and values that are limits -------------------------------------------------------------
singular("sinc", S(np.array([0.0, 1.0, -2.0])))
singular("sinc", S(np.array([1e-9, -1e-100])), torch=False)  # torch loses all digits
singular("erfinv", S(np.array([1.0])), S(np.array([-1.0])))
singular("i0", S(np.array([0.0, 8.0, -8.0])))
singular("erfinv", S(np.array([0.0, 0.5])))
singular("lgamma", S(np.array([1.0, 2.0])))
singular("polygamma", S(1, np.array([1.0, 2.0])))
