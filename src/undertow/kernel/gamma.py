"""log|gamma| and its derivatives, digamma and polygamma, as scalar expressions.

The coefficients are explained in erf.py, Note [fitted coefficients].

Note [reflection]: `lgamma` and `digamma` evaluate their core at y = |x|, or at 1 + |x| when
|x| < 1, so never below 1. The recurrence gamma(1 + a) = a gamma(a) and the reflection
gamma(a) gamma(-a) = -pi / (a sin(pi a)) lead back to x. The factors a of the two cancel for
-1 < x < 0, so that no product of tiny numbers can underflow there.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import ceil, comb, factorial, floor, inf, log2, nan, pi

from .expr import Expr, call, polynomial, where

# log gamma(1 + t) / (t (t - 1)) - 0.5625 + t / 16 in t, t in [0, 4.625].
_LGAMMA_NEAR_P = (
    3.7904951429676306e-07,
    2.2943048038715787e-05,
    0.0004147952264533253,
    0.0025809729441507046,
    -0.0005171228830927503,
    -0.06899862347711135,
    -0.2961329956553303,
    -0.5431829313145272,
    -0.4541316032116692,
    -0.1265658468286082,
    0.01471566490153283,
)

_LGAMMA_NEAR_Q = (
    -2.3373725367685444e-11,
    6.06948308284085e-06,
    0.0004208137183494715,
    0.010032322690607406,
    0.11320860344316741,
    0.6902387524560339,
    2.4237982839239325,
    5.011930213322384,
    5.993115495264856,
    3.818075640477091,
    1.0,
)

# x (log gamma(x) - Stirling's formula) in 1/(x*x), x in [4, inf].
LGAMMA_FAR = (
    0.03686739114470535,
    -0.018529842349409912,
    0.005842830219816524,
    -0.0018988790775843355,
    0.0008413741438815142,
    -0.0005952337085914222,
    0.0007936507676291937,
    -0.0027777777777176055,
    0.08333333333333331,
)

# digamma(1 + t) / (1 + t - root) - 0.75 in t, t in [0, 3].
_DIGAMMA_NEAR_P = (
    -4.092868544896141e-06,
    -0.00033648512295118973,
    -0.007539420219208677,
    -0.06566275676005869,
    -0.23675047140551608,
    -0.2577443640545442,
    0.2784493650042805,
    0.5003801375034053,
)

_DIGAMMA_NEAR_Q = (
    5.493425338825715e-06,
    0.0004882204942307578,
    0.012526258173511343,
    0.13541136731167883,
    0.7079881314333463,
    1.8491840595239417,
    2.264563759984068,
    1.0,
)

# x*x (log(x) - 1/(2x) - digamma(x)) in 1/(x*x), x in [4, inf].
_DIGAMMA_FAR = (
    0.5365319953712206,
    -0.25668496075487657,
    0.07392821575261915,
    -0.020787300608348224,
    0.007569628806402783,
    -0.004166595597256864,
    0.003968253547733588,
    -0.008333333332362195,
    0.08333333333333295,
)

# digamma's positive root in three parts, the first two exact in float32.
_DIGAMMA_ROOT = (1.4616321325302124, 1.243814917728514e-08, 7.616337690747509e-16)

# sin(pi r) / r in r*r, |r| in [0, 1/2].
_SINPI = (
    7.697826768224191e-07,
    -2.1903497074626018e-05,
    0.0004662998161898394,
    -0.007370430505916944,
    0.0821458865731029,
    -0.5992645293189447,
    2.5501640398773007,
    -5.167712780049969,
    3.141592653589793,
)


def lgamma(x: Expr) -> Expr:
    """log|gamma(x)|, infinite at the poles 0, -1, -2, ...

    Between 1 and 5.625 a quotient times (y - 1)(y - 2), so that the zeros at 1 and 2 keep their
    relative accuracy; above Stirling's formula with a fitted correction; Note [reflection] for
    the rest. Worst error 3.3 ulp in float64 and float32; for x < 0, where it has many zeros,
    2 eps of 1 + max(|lgamma(x)|, |lgamma(-x)|).
    """
    a = abs(x)
    small = a < 1.0
    y = where(small, 1.0 + a, a)
    t = where(small, a, a - 1.0)
    factors = (a - 1.0) * where(small, a, a - 2.0)
    ratio = call("div", polynomial(t, _LGAMMA_NEAR_P), polynomial(t, _LGAMMA_NEAR_Q))
    w = 1.0 / y
    stirling = (y - 0.5) * (call("log", y) - 1.0) + (
        w * polynomial(w * w, LGAMMA_FAR) + 0.4189385332046727  # (log(2 pi) - 1) / 2
    )
    near = factors * (0.5625 - 0.0625 * t + ratio) + 0.0  # the sum makes lgamma(1) 0.0, not -0.0
    core = where(a < 5.625, near, stirling)
    negative = x < 0.0
    below = (1 / pi) * abs(_sin_pi(_from_nearest(a))) * call("maximum", a, 1.0)
    divisor = where(negative, below, call("minimum", a, 1.0))
    value = where(negative, -core, core) - call("log", divisor)
    return where(_negative_integer(x), inf, value)


def lgamma_of_one_plus(t: Expr) -> Expr:
    """`lgamma(1 + t)` for t >= 0, accurate also where 1 + t is rounded."""
    ratio = call("div", polynomial(t, _LGAMMA_NEAR_P), polynomial(t, _LGAMMA_NEAR_Q))
    return where(t < 4.625, t * (t - 1.0) * (0.5625 - 0.0625 * t + ratio), lgamma(1.0 + t))


def digamma(x: Expr) -> Expr:
    """The derivative of `lgamma`: NaN at the negative integers, -inf at 0.0, inf at -0.0.

    Between 1 and 4 a quotient times the distance from the root at 1.4616, kept in three parts;
    above 4 log(x) - 1/(2x) less a fitted correction; Note [reflection] for the rest.
    Worst error 3.1 ulp in float64, 3.6 in float32; for x < 0, 3 eps of
    1 + |digamma(x)| + |digamma(-x)|.
    """
    a = abs(x)
    small = a < 1.0
    t = where(small, a, a - 1.0)
    distance = where(small, 1.0 + a, a)
    for part in _DIGAMMA_ROOT:
        distance = distance - part
    ratio = call("div", polynomial(t, _DIGAMMA_NEAR_P), polynomial(t, _DIGAMMA_NEAR_Q))
    near = distance * (0.75 + ratio)
    inverse = 1.0 / x
    w = abs(inverse)
    z = w * w
    far = call("log", a) - (0.5 * w + z * polynomial(z, _DIGAMMA_FAR))
    core = where(a < 4.0, near, far)
    negative = x < 0.0
    # The recurrence and the reflection both add -1/x, and cancel where both are used.
    core = core - where(call("logical_xor", negative, small), inverse, 0.0)
    value = where(negative, core + pi * _cot_pi(a), core)
    return where(_negative_integer(x), nan, value)


def polygamma(order: int, x: Expr) -> Expr:
    """The derivative of `digamma` of the given order, 0 being `digamma` itself.

    Euler and Maclaurin's formula for the Hurwitz zeta function: ten terms of the sum over
    (x + k)**-(order + 1), then the integral and seven Bernoulli corrections from x + 10 on.
    Below -1/2 the reflection formula, whose derivatives are polynomials in cot(pi x). The poles
    take the sign of the limit from the right, as in torch. Worst error for x > 0 and orders to 10
    3 ulp in float64, 3.5 in float32; for x < 0 a few of the nearest pole's term, by the order.
    Above order 30 float32 cannot hold the reflection.
    """
    if order < 0:
        raise ValueError(f"[polygamma] the order must not be negative, got {order}")
    if order == 0:
        return digamma(x)
    reflected = x < -0.5
    y = where(reflected, 1.0 - x, x)
    near = y < 1.0
    # order! is put under the power as a power of two to the power, so that neither leaves the
    # range of float32 before the result does; what is left of it comes last.
    bits = log2(factorial(order)) / (order + 1)
    low, high = floor(bits), ceil(bits) if order <= 30 else floor(bits)

    def either(x: Expr, factor: Callable[[int], float]) -> Expr:
        """x times a factor of the bits that serve y."""
        return where(near, x * factor(low), x * factor(high))

    def power(k: int, exponent: float) -> Expr:
        """(y + k)**-exponent in these units."""
        base = y + float(k)
        found = call("pow", either(abs(base), lambda b: 2.0**-b), -exponent)
        if k == 0:
            return call("copysign", found, y) if order % 2 == 0 else found
        part = base - y
        lost = (y - (base - part)) + (float(k) - part)  # what rounding took from y + k
        lost = where(y < 2.0**60, lost, 0.0)
        return found - found * (exponent * (lost / base))

    u = 1.0 / (y + 10.0)
    corrections = u * polynomial(u * u, _maclaurin_coefficients(order)) + 0.5
    integral = either(power(10, float(order)), lambda b: 2.0**b) * (u * corrections + 1.0 / order)
    terms = [power(k, order + 1.0) for k in range(10)]
    # The largest last: near 0 that is the first term, far out the integral.
    total = either((integral + sum(terms[8:0:-1], terms[9])) + terms[0], partial(_left, order))
    # total is the value at y but for the sign. Differentiating psi(x) = psi(1 - x) - pi cot(pi x)
    # leaves it negative in every order.
    cot = polynomial(_cot_pi(x), _cot_derivative(order))
    below = -(total + call("mul", cot, pi ** (order + 1)))
    value = where(reflected, below, total if order % 2 else -total)
    pole = _negative_integer(x) | call("eq", x, 0.0)
    return where(pole, inf if order % 2 else -inf, value)


def _left(order: int, bits: int) -> float:
    """order! in units of 2**(bits (order + 1))."""
    return float(Fraction(factorial(order), 2 ** (bits * (order + 1))))


def _maclaurin_coefficients(order: int) -> tuple[float, ...]:
    """B(j) / j! times (order + 1) ... (order + j - 1), for j = 14, 12 down to 2."""
    bernoulli = bernoulli_numbers(14)
    return tuple(
        float(bernoulli[j] * Fraction(factorial(order + j - 1), factorial(order) * factorial(j)))
        for j in range(14, 0, -2)
    )


def bernoulli_numbers(last: int) -> list[Fraction]:
    """B(0) to B(last)."""
    found = [Fraction(1)]
    for n in range(1, last + 1):
        inner = sum((comb(n + 1, k) * found[k] for k in range(n)), Fraction(0))
        found.append(-inner / (n + 1))
    return found


def _cot_derivative(order: int) -> tuple[float, ...]:
    """The derivative of cot of the given order, as a polynomial in cot: cot' = -1 - cot**2."""
    powers = [0, 1]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(powers)][1:]
        powers = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return tuple(float(c) for c in reversed(powers))


def _negative_integer(x: Expr) -> Expr:
    """Also -inf, where every neighbourhood has poles."""
    return (x < 0.0) & call("eq", x, call("rint", x))


def _from_nearest(x: Expr) -> Expr:
    """x less the nearest integer, exact."""
    return x - call("rint", x)


def _sin_pi(r: Expr) -> Expr:
    """sin(pi r) for |r| <= 1/2."""
    return r * polynomial(r * r, _SINPI)


def _cot_pi(x: Expr) -> Expr:
    """cot(pi x), accurate also near its zeros at the half integers."""
    r = _from_nearest(x)
    return _sin_pi(0.5 - abs(r)) / _sin_pi(r)
