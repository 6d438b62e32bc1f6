"""Bessel functions of the first and the second kind, orders 0 and 1, as scalar expressions.

Near zero a series by x*x, and for the second kind 2/pi log(x/z) J(x), z its first zero, beside
it. Then, for each zero up to about 8, its distance times a polynomial, so that these zeros keep
their relative accuracy. Beyond, Hankel's sqrt(2 / (pi x)) (P cos c - Q sin c) with fitted P and Q,
where the cosine of c = x - pi/4 is taken as (cos x + sin x) / sqrt(2), lest x - pi/4 be rounded:
an error there is one of the envelope. tools/special_tables.py made the coefficients.
"""

from __future__ import annotations

from math import inf, nan, pi

from . import special_tables as tables
from .bessel import even_part
from .expr import Expr, Operand, call, polynomial, where


def j0(x: Expr) -> Expr:
    """J0: even, 1 at zero. Worst error 2.6 ulp in float64, 2.7 in float32."""
    a = abs(x)
    far = _hankel(a, 0, 7.0, tables.J0_P, tables.J0_Q)
    value = where(a < 7.0, _around(a, tables.J0_2_AT, tables.J0_2), far)
    value = where(a < 3.96, _around(a, tables.J0_1_AT, tables.J0_1), value)
    return where(a < 1.5, polynomial(a * a, tables.J0), value)


def j1(x: Expr) -> Expr:
    """J1: odd. Worst error 3.1 ulp in float64, 3.1 in float32."""
    a = abs(x)
    far = _hankel(a, 1, 8.5, tables.J1_P, tables.J1_Q)
    value = where(a < 8.5, _around(a, tables.J1_2_AT, tables.J1_2), far)
    value = where(a < 5.4, _around(a, tables.J1_1_AT, tables.J1_1), value)
    near = x * polynomial(x * x, tables.J1)
    return where(a < 2.0, near, where(x < 0.0, -value, value))


def y0(x: Expr) -> Expr:
    """Y0: -inf at zero, NaN below. Worst error 3.2 ulp in float64, 3.5 in float32."""
    far = _hankel(x, 0, 8.5, tables.Y0_P, tables.Y0_Q, second=True)
    value = where(x < 8.5, _around(x, tables.Y0_2_AT, tables.Y0_2), far)
    value = where(x < 5.5, _around(x, tables.Y0_1_AT, tables.Y0_1), value)
    distance, ratio = _from_first(x, tables.Y0_AT)
    square = x * x
    regular = distance * polynomial(square, tables.Y0)
    near = (2 / pi) * ratio * polynomial(square, tables.Y0_J) + regular
    return _on_positive(x, where(x < 2.2, near, value))


def y1(x: Expr) -> Expr:
    """Y1: -inf at zero, NaN below. Worst error 3.4 ulp in float64, 3.5 in float32."""
    far = _hankel(x, 1, 7.0, tables.Y1_P, tables.Y1_Q, second=True)
    value = where(x < 7.0, _around(x, tables.Y1_1_AT, tables.Y1_1), far)
    distance, ratio = _from_first(x, tables.Y1_AT)
    square = x * x
    regular = distance * polynomial(square, tables.Y1) / x
    near = (2 / pi) * ratio * (x * polynomial(square, tables.Y1_J)) + regular
    return _on_positive(x, where(x < 3.5, near, value))


def even_j(order: int, x: Expr) -> Expr:
    """J_n(x) / x**n, an even entire function, whose derivative is -x times the next one."""
    return even_part(order, x, -1.0, order + 1.0, j0, j1)


def distance_from(x: Expr, point: tuple[float, ...]) -> Expr:
    """x less a number in parts, of which all but the last are subtracted exactly near it."""
    for part in point:
        x = x - part
    return x


def _around(x: Expr, point: tuple[float, ...], table: tuple[float, ...]) -> Expr:
    t = distance_from(x, point)
    return t * polynomial(t, table)


def _from_first(x: Expr, point: tuple[float, ...]) -> tuple[Expr, Expr]:
    """x*x - z*z and log(x / z), both accurate near z."""
    z = sum(point)
    t = distance_from(x, point)
    log = where(abs(t) < 0.5 * z, call("log1p", t * (1 / z)), call("log", x * (1 / z)))
    return t * (x + z), log


def _on_positive(x: Expr, value: Expr) -> Expr:
    return where(x < 0.0, nan, where(call("eq", x, 0.0), -inf, value))


def _hankel(
    x: Expr,
    order: int,
    edge: float,
    p_table: tuple[float, ...],
    q_table: tuple[float, ...],
    second: bool = False,
) -> Operand:
    """The function for x >= edge; zero at infinity."""
    inverse = 1.0 / x
    z = (edge * inverse) * (edge * inverse)
    p, q = polynomial(z, p_table), polynomial(z, q_table) * inverse
    finite = where(call("isinf", x), 1.0, x)
    sine, cosine = call("sin", finite), call("cos", finite)
    # sqrt(2) times the cosine and the sine of x - pi/4, and of x - 3 pi/4
    c, s = cosine + sine, sine - cosine
    if order:
        c, s = s, -c
    wave = p * s + q * c if second else p * c - q * s
    return call("sqrt", inverse * (1 / pi)) * wave
