"""Modified Bessel functions of the first kind, orders 0 and 1, as scalar expressions.

Up to |x| = 8 a polynomial in (x/2)**2, like the power series; beyond it exp(|x|) / sqrt(|x|)
times a polynomial in 16/|x| - 1. The coefficients are explained in erf.py,
Note [fitted coefficients].
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

from .expr import Expr, Operand, call, polynomial, where

# I0(x) and I1(x) / (x/2) in (x/2)**2, |x| in [0, 8].
_I0_NEAR = (
    9.604864662681523e-25,
    1.0805568728893e-22,
    2.6638168379729013e-20,
    4.338239454264185e-18,
    6.279425816382418e-16,
    7.5936581264081e-14,
    7.594093461237802e-12,
    6.151185080653331e-10,
    3.9367599937651325e-08,
    1.9290123422052142e-06,
    6.944444445240514e-05,
    0.0017361111110991466,
    0.027777777777788643,
    0.2499999999999948,
    1.0000000000000009,
    1.0,
)

_I1_NEAR = (
    5.833651333188183e-26,
    7.413211040554544e-24,
    1.891028804078631e-21,
    3.3410044697092935e-19,
    5.231992159979275e-17,
    6.90345927367201e-15,
    7.594078567160322e-13,
    6.834651294492253e-11,
    4.920949921538654e-09,
    2.7557319204030443e-07,
    1.157407407453132e-05,
    0.00034722222222153507,
    0.0069444444444450686,
    0.08333333333333304,
    0.5000000000000001,
    1.0,
)

# The function divided by its derivative, roughly.
_I0_SLOPE = (0.12, 0.35, 1.0)
_I1_SLOPE = (0.13, 0.2, 2.0)

# sqrt(x) exp(-x) I0(x), and the same of I1, in 16/x - 1, x in [8, inf].
_I0_FAR = (
    1.0881994785468934e-10,
    3.525321019700796e-11,
    -7.473844621887592e-10,
    -2.748111637276033e-10,
    2.3981927228949238e-09,
    1.0924527246468664e-09,
    -4.8482509221176966e-09,
    -3.11851456121224e-09,
    6.789790403895736e-09,
    7.323310735122893e-09,
    -5.162517880939013e-09,
    -1.331979859201994e-08,
    -6.805980075129678e-09,
    7.532386417555123e-09,
    2.155681110989874e-08,
    3.932926571091252e-08,
    8.872154618944625e-08,
    2.9735956581528157e-07,
    1.4838475863096976e-06,
    1.1143033802583682e-05,
    0.00013621607439187193,
    0.0033605519836677235,
    0.4021765094450081,
)

_I1_FAR = (
    -1.13288885034257e-10,
    -3.2677656089803323e-11,
    7.79067217908059e-10,
    2.582169443152386e-10,
    -2.5062162405593894e-09,
    -1.0476127785270019e-09,
    5.094016301574338e-09,
    3.0717395650769477e-09,
    -7.222524178953976e-09,
    -7.432535335623792e-09,
    5.722677527454156e-09,
    1.3952625102162603e-08,
    6.795073490187386e-09,
    -8.407326839577817e-09,
    -2.3382691353601083e-08,
    -4.31323156237458e-08,
    -1.0001220638799958e-07,
    -3.483853071371078e-07,
    -1.8349101539664522e-06,
    -1.503854721127423e-05,
    -0.000219235763833829,
    -0.009749577193235609,
    0.38939845902587233,
)


def i0(x: Expr) -> Expr:
    """The modified Bessel function of order 0: even, 1 at 0, growing like exp(|x|).

    Worst error 3.3 ulp in float64, 3.7 in float32.
    """
    return where(abs(x) < 8.0, _near(x, _I0_NEAR, _I0_SLOPE), _grown(x, _I0_FAR))


def i0e(x: Expr) -> Expr:
    """`i0` scaled by exp(-|x|), which stays finite everywhere.

    Worst error 2.6 ulp in float64, 3.7 in float32.
    """
    a = abs(x)
    return where(a < 8.0, call("exp", -a) * _near(x, _I0_NEAR, _I0_SLOPE), _far(a, _I0_FAR))


def i1(x: Expr) -> Expr:
    """The modified Bessel function of order 1, the derivative of `i0`: odd.

    Worst error 3.2 ulp in float64, 3.8 in float32.
    """
    near = (0.5 * x) * _near(x, _I1_NEAR, _I1_SLOPE)
    return where(abs(x) < 8.0, near, call("copysign", _grown(x, _I1_FAR), x))


def i1e(x: Expr) -> Expr:
    """`i1` scaled by exp(-|x|), which stays finite everywhere.

    Worst error 2.6 ulp in float64, 3.2 in float32.
    """
    a = abs(x)
    near = (0.5 * x) * (call("exp", -a) * _near(x, _I1_NEAR, _I1_SLOPE))
    return where(a < 8.0, near, call("copysign", _far(a, _I1_FAR), x))


def _near(x: Expr, table: tuple[float, ...], slope: tuple[float, ...]) -> Operand:
    """The polynomial f for |x| <= 8.

    What rounding takes from (x/2)**2 is found with the help of a short number near x/2, and counts
    by f'/f, for which 1 / slope(x/2) is near enough.
    """
    half = 0.5 * call("minimum", abs(x), 8.0)
    square = half * half
    short = call("rint", half * 512.0) * 0.001953125
    lost = (short * short - square) + (half - short) * (half + short)
    value = polynomial(square, table)
    return value + value * (lost / polynomial(half, slope))


def _far(a: Expr, table: tuple[float, ...]) -> Expr:
    """The scaled function for a >= 8, decaying like 1 / sqrt(a)."""
    return polynomial(16.0 / a - 1.0, table) / call("sqrt", a)


def _grown(x: Expr, table: tuple[float, ...]) -> Expr:
    """`_far` times exp(|x|), with exp(8) in the table because exp overflows too early.

    The bound replaces inf / inf by an overflow, in any precision.
    """
    a = call("minimum", abs(x), 10000.0)
    *rest, first = (c * 2980.9579870417283 for c in table)
    short = 16.0 * round(first / 16)  # exact in float32
    series = short + polynomial(16.0 / a - 1.0, (*rest, first - short))
    return series / call("sqrt", a) * call("exp", a - 8.0)


def even_i(order: int, x: Expr, scaled: bool = False) -> Expr:
    """I_n(x) / x**n, an even entire function; scaled, times exp(-|x|).

    Its derivative is x times the next one. Far out, where the terms do not cancel, the recurrence
    in n.
    """
    zero, one = (i0e, i1e) if scaled else (i0, i1)
    value = even_part(order, x, 1.0, 8.0 + order * order, zero, one)
    if scaled and order > 1:
        near = call("exp", -call("minimum", abs(x), 8.0 + order * order))
        value = where(abs(x) < 8.0 + order * order, near * value, value)
    return value


def even_part(
    order: int,
    x: Expr,
    sign: float,
    edge: float,
    zero: Callable[[Expr], Expr],
    one: Callable[[Expr], Expr],
) -> Expr:
    """f_n(x) / x**n for the I (sign 1) or the J (sign -1), given those of orders 0 and 1.

    The series up to the edge; from there on sign f_(n+1) = f_(n-1) - 2n/x f_n.
    """
    if order == 0:
        return zero(x)
    if order == 1:
        nonzero = where(call("eq", x, 0), 1, x)
        return where(call("eq", x, 0), 0.5, one(nonzero) / nonzero)
    terms = [1.0]
    while abs(terms[-1]) * (edge * edge) ** (len(terms) - 1) > 1e-20 or len(terms) < 10:
        k = len(terms)
        terms.append(terms[-1] * sign / (4 * k * (k + order)))
    square = call("minimum", x * x, edge * edge)
    series = polynomial(square, tuple(reversed(terms))) * (0.5**order / factorial(order))
    far = call("maximum", abs(x), edge)
    lower, value = zero(far), one(far) / far
    for n in range(1, order):
        lower, value = value, sign * (lower - 2.0 * n * value) / (far * far)
    return where(abs(x) < edge, series, value)
