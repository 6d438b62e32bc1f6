"""Hurwitz' zeta function and its derivatives by the exponent as scalar expressions.

zeta(s, q) is the sum of (q + k)**-s over k >= 0, for s > 1. Euler and Maclaurin's formula: twelve
terms, then with w = q + 12 the integral and the corrections,

    w**-s R(s),  R = w / (s - 1) + 1/2 + sum of B(2i) / (2i)! s (s + 1) ... (s + 2i - 2) w**(1 - 2i)
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial, inf, nan

from .expr import Expr, Operand, call, polynomial, where
from .gamma import bernoulli_numbers

_TERMS = 12
_CORRECTIONS = 9


def zeta(order: int, s: Expr, q: Expr) -> Expr:
    """The derivative by s of the given order.

    Infinite at s = 1 and where q is 0, -1, -2, ...; NaN for s < 1, and for other q < 0 unless s is
    whole; for those, where more terms than twelve would be needed, NaN below -2.
    """
    logarithm = [call("log", abs(q + float(k))) for k in range(_TERMS + 1)] if order else []
    total: Operand = _rest(order, s, q + float(_TERMS), logarithm[-1] if order else 0.0)
    for k in range(_TERMS - 1, -1, -1):
        term = call("pow", q + float(k), -s)
        for _ in range(order):
            term = term * -logarithm[k]
        total = total + term
    if order == 0:  # at infinity the first term is left
        total = where(call("eq", s, inf), call("pow", q, -s), total)
    value = where(s < 1.0, nan, where(call("eq", s, 1.0), inf, total))
    whole = call("eq", q, call("floor", q))
    below = where(whole, inf, where(call("eq", s, call("floor", s)) & (q > -2.0), value, nan))
    return where((q <= 0.0) & (s > 1.0), below, value)


def _rest(order: int, s: Expr, w: Expr, log: Operand) -> Operand:
    """The derivative of w**-s R(s), by Leibniz' rule."""
    inverse = 1.0 / w
    square = inverse * inverse
    total: Operand = 0.0
    for i in range(order + 1):
        # the derivative of R of order i
        found: Operand = 0.5 if i == 0 else 0.0
        correction: Operand = 0.0
        for j in range(_CORRECTIONS, 0, -1):
            correction = correction * square + polynomial(s, _rising(j, i))
        found = found + inverse * correction
        pole = 1.0 / (s - 1.0)
        part: Operand = w * ((-1.0) ** i * factorial(i))
        for _ in range(i + 1):
            part = part * pole
        term = (found + part) * float(comb(order, i))
        for _ in range(order - i):
            term = term * (-log)
        total = total + term
    return call("pow", w, -s) * total


def _rising(j: int, order: int) -> tuple[float, ...]:
    """B(2j) / (2j)! s (s + 1) ... (s + 2j - 2), differentiated, as coefficients."""
    powers = [bernoulli_numbers(2 * j)[2 * j] / factorial(2 * j)]
    for k in range(2 * j - 1):  # lowest power first: times (s + k)
        powers = [
            k * a + b for a, b in zip([*powers, Fraction(0)], [Fraction(0), *powers], strict=True)
        ]
    for _ in range(order):
        powers = [k * c for k, c in enumerate(powers)][1:]
    return tuple(float(c) for c in reversed(powers)) or (0.0,)
