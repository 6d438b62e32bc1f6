"""The normal distribution and the scaled error function as scalar expressions.

tools/special_tables.py made the coefficients.
"""

from __future__ import annotations

from math import inf, nan, pi, sqrt

from . import special_tables as tables
from .erf import erf, erfinv_center
from .expr import Expr, call, polynomial, where

_HALF = sqrt(0.5)


def erfcx(x: Expr) -> Expr:
    """exp(x*x) erfc(x). Worst error 3.2 ulp in float64, 3.5 in float32."""
    a = abs(x)
    scaled = _scaled(a)
    bounded = call("minimum", a, 30.0)
    h, rest = _split(bounded)
    grown = 2.0 * (call("exp", rest) * call("exp", h * h)) - scaled
    return where(x < 0.0, grown, scaled)


def ndtr(x: Expr) -> Expr:
    """The probability below x. Worst error 3.5 ulp in float64, 3.6 in float32."""
    tail = _tail(abs(x))
    center = 0.5 + 0.5 * erf(x * _HALF)
    return where(abs(x) < 0.7, center, where(x < 0.0, tail, 1.0 - tail))


def log_ndtr(x: Expr) -> Expr:
    """log(ndtr(x)), also where that underflows. Worst error 3.7 ulp in either precision."""
    a = abs(x)
    tail = _tail(a)
    below = call("log", 0.5 * _scaled(a * _HALF)) - 0.5 * a * a
    near = where(x < 0.0, call("log", tail), call("log1p", -tail))
    return where(x < -1.0, where(call("eq", x, -inf), -inf, below), near)


def ndtri(p: Expr) -> Expr:
    """The inverse of `ndtr`: infinite at 0 and 1, NaN beyond.

    Worst error 3.5 ulp in float64, 3.6 in float32.
    """
    tail = call("minimum", p, 1.0 - p)
    s = call("sqrt", -call("log", tail))
    u, v = s - 1.5, s - 5.0
    near = call("div", polynomial(u, tables.NDTRI), polynomial(u, tables.NDTRI_Q))
    far = call("div", polynomial(v, tables.NDTRI_FAR), polynomial(v, tables.NDTRI_FAR_Q))
    size = sqrt(2) * s - where(s < 5.0, near, far)
    outer = where(p < 0.5, -size, size)
    value = where(tail > 0.1, sqrt(2) * erfinv_center(2.0 * (p - 0.5)), outer)
    value = where(call("eq", tail, 0.0), (p - 0.5) * inf, value)
    return where((p < 0.0) | (p > 1.0), nan, value)


def erfcx_derivative(order: int, x: Expr) -> Expr:
    """The derivative of `erfcx` of an order from 1 up.

    By F(n) = 2x F(n-1) + 2(n-1) F(n-2), which loses a digit per order at 2; above, where its terms
    cancel more and more, by -F(n) / F(n-1) = 2n / (2x + 2(n+1) / (2x + ...)).
    """
    low = call("minimum", x, 2.0)
    before, value = erfcx(low), 2.0 * low * erfcx(low) - 2 / sqrt(pi)
    for n in range(2, order + 1):
        before, value = value, 2.0 * low * value + 2.0 * (n - 1) * before
    twice = 2.0 * call("maximum", x, 2.0)
    ratio = call("div", 0.0, twice)
    ratios = []
    for n in range(order + _TRIPS, 0, -1):
        ratio = 2.0 * n / (twice + ratio)
        if n <= order:
            ratios.append(ratio)
    product = erfcx(0.5 * twice)
    for r in reversed(ratios):
        product = -r * product
    return where(x < 2.0, value, product)


_TRIPS = 50  # of the continued fraction, enough from 2 on


def _scaled(a: Expr) -> Expr:
    """erfcx of a >= 0."""
    return polynomial(1.0 - 7.0 / (a + 3.5), tables.ERFCX) / (1.0 + 2.0 * a)


def _split(a: Expr) -> tuple[Expr, Expr]:
    """A short h whose square is exact, also in float32, and a*a - h*h; see `erf.erfc`."""
    h = call("rint", a * 16.0) * 0.0625
    return h, (a - h) * (a + h)


def _tail(a: Expr) -> Expr:
    """The probability above a >= 0: by the scaled function, since a / sqrt(2) is rounded."""
    bounded = call("minimum", a, 40.0)
    h, rest = _split(bounded)
    decay = call("exp", -0.5 * rest) * call("exp", -0.5 * (h * h))
    return (0.5 * _scaled(a * _HALF)) * decay
