"""Airy's function Ai and its derivative as scalar expressions.

Polynomials from -2.1 to 1; above, exp(-zeta) x**(-1/4) times a quotient by 1/zeta, where
zeta = 2/3 |x|**(3/2); below, waves like Hankel's of bessel_waves.py. tools/special_tables.py made
the coefficients.

Note [zeta]: an error of zeta is an error of the function as large, relative to it, however large
zeta is. So zeta is taken in two parts: with h the nearest multiple of 3/64 to sqrt(|x|), 2/3 h**3
is exact (as far as float32 underflows, or float64), and the rest is small.
"""

from __future__ import annotations

from math import pi

from . import special_tables as tables
from .bessel_waves import distance_from
from .expr import Expr, Operand, call, polynomial, where


def ai(x: Expr) -> Expr:
    """Ai: decays above zero, waves below.

    Worst error 4 ulp from -2.1 to 60 in float64, and wherever float32 is normal; up to 8 ulp where
    float64 underflows. Below, 4 ulp of the envelope to -30, then as much as the rounding of x does.
    """
    low = polynomial(x + 1.0, tables.AI_LOW)
    middle = polynomial(x, tables.AI_MID)
    whole, rest, power = _zeta(abs(x))
    above = 0.28125 + _quotient(1.0 / (whole + rest), tables.AI_HIGH, tables.AI_HIGH_Q)
    decayed = above / power * (call("exp", -whole) * call("exp", -rest))
    decayed = where(x > 1000.0, 0.0, decayed)  # not the product of inf and 0
    p, q, c, s = _waves(whole, rest, tables.AI_P, tables.AI_P_Q, tables.AI_W, tables.AI_W_Q)
    wave = (p * c + q * s) / power
    return where(x < -2.1, wave, where(x < 0.0, low, where(x < 1.0, middle, decayed)))


def ai_derivative(x: Expr) -> Expr:
    """The derivative of `ai`, about as accurate."""
    t = distance_from(x, tables.AIP_LOW_AT)
    low = t * polynomial(t, tables.AIP_LOW)
    middle = polynomial(x, tables.AIP_MID)
    whole, rest, power = _zeta(abs(x))
    above = _quotient(1.0 / (whole + rest), tables.AIP_HIGH, tables.AIP_HIGH_Q) - 0.296875
    decayed = above * power * (call("exp", -whole) * call("exp", -rest))
    decayed = where(x > 1000.0, -0.0, decayed)  # not the product of inf and 0
    p, q, c, s = _waves(whole, rest, tables.AIP_P, tables.AIP_P_Q, tables.AIP_W, tables.AIP_W_Q)
    wave = (p * s - q * c) * power
    return where(x < -2.1, wave, where(x < 0.0, low, where(x < 1.0, middle, decayed)))


def _zeta(a: Expr) -> tuple[Expr, Expr, Expr]:
    """zeta in two parts, and the fourth root of a."""
    bounded = call("minimum", a, 1e20)
    root = call("sqrt", bounded)
    k = call("rint", root * (64 / 3))
    h = k * (3 / 64)
    step = (bounded - h * h) / (root + h + 1e-30)
    rest = (2 / 3) * step * (bounded + (root * h + h * h))
    return k * k * k * (9 / 131072), rest, call("sqrt", call("sqrt", a))


def _quotient(z: Expr, above: tuple[float, ...], below: tuple[float, ...]) -> Expr:
    return call("div", polynomial(z, above), polynomial(z, below))


def _waves(
    whole: Expr, rest: Expr, p: tuple[float, ...], pq: tuple[float, ...], *w: tuple[float, ...]
) -> tuple[Operand, Operand, Operand, Operand]:
    """P, Q, and the cosine and sine of zeta - pi/4 over sqrt(pi)."""
    inverse = 1.0 / (whole + rest)
    z = (2.0 * inverse) * (2.0 * inverse)
    sines = call("sin", whole), call("sin", rest)
    cosines = call("cos", whole), call("cos", rest)
    sine = sines[0] * cosines[1] + cosines[0] * sines[1]
    cosine = cosines[0] * cosines[1] - sines[0] * sines[1]
    scale = (0.5 / pi) ** 0.5
    return (
        1.0 + _quotient(z, p, pq),
        _quotient(z, *w) * inverse,
        (cosine + sine) * scale,
        (sine - cosine) * scale,
    )
