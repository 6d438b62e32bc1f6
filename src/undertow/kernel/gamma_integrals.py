"""The incomplete gamma functions P(a, x) and Q(a, x) = 1 - P as scalar expressions.

With D = x**a exp(-x) / gamma(a + 1), substituting t = x exp(-v) below and t = x exp(v) above,

    P = D (1 + x M),  M = the integral of exp(-E(v)),  E = (a + 1 - x) v + x phi(-v)
    Q = D a M,                                         E = (x - a) v + x phi(v)

over v > 0, where phi(z) = exp(z) - 1 - z. The first serves x < max(a, 1/2), the second the rest:
there E grows from 0 without cancellation, so Gauss's rule up to where it reaches 38 finds M to the
last digits for any a, with the same nodes. For x < 1/2 a series gives both without cancellation.

Note [exponents]: exp(-T) amplifies what rounding takes from T by T, which goes up to 700, so T is
a sum of two numbers, of which the second holds most of what rounding took from the first. Near
x = a it is (x - a)**2 / (x + a), exact, less a series in r = (x - a) / (x + a) that is far smaller;
else x - a - a (k log 2 + 2 atanh(r)) with r of x / 2**k, of which all but the parts of atanh beyond
r**3 are as good as exact.

Note [moments]: differentiating M by a or by x puts a factor v or |exp(+-v) - 1| under the
integral, so all its derivatives are integrals M(m, j) of that kind: the gradient by a, of any
order, costs no more than the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf, nan, pi

from .expr import Expr, Operand, call, polynomial, where
from .gamma import LGAMMA_FAR, lgamma_of_one_plus
from .special_tables import INVERSE_FACTORIAL

NEWTON = 6
_END = 38.0  # exp(-38) is below the last digit
_PHI = tuple(1.0 / math.factorial(k) for k in range(17, 1, -1))
_ATANH = tuple(2.0 / k for k in range(27, 1, -2))  # 2 (atanh(r) - r) / r**3 in r*r, r < 0.18
_THIRDS_LOW = 3.7007434154171886e-17  # 2/3 less its nearest float64
_LN2, _LN2_LOW = 0.693359375, -0.00021219444005469058  # the first so short that products are exact


def is_below(a: Expr, x: Expr) -> Expr:
    """Whether M is that of P."""
    return x < call("maximum", a, 0.5)


def front(a: Expr, x: Expr) -> Expr:
    """x**a exp(-x) / gamma(a + 1).

    For a >= 4 by Stirling's formula, whose large parts have been cancelled on paper:
    exp(-T) / sqrt(2 pi a), T = x - a - a log(x / a), and a correction. See Note [exponents].
    """
    large = call("maximum", a, 4.0)
    w = 1.0 / large
    stirling = w * polynomial(w * w, LGAMMA_FAR)
    high, low = _exponent(large, x, stirling)
    grown = call("exp", -high)
    above = (grown - grown * low) * call("sqrt", w * (0.5 / pi))
    small, bounded = call("minimum", a, 4.0), call("minimum", x, 1000.0)  # where exp(-x) is 0
    factorial = _inverse_factorial(small)
    first, lost = _product(call("pow", bounded, small), call("exp", -bounded))
    below, more = _product(first, factorial)
    return where(a < 4.0, below + (more + lost * factorial), above)


def _inverse_factorial(t: Expr) -> Expr:
    """1 / gamma(1 + t) for 0 <= t <= 4, by its recurrence from what it is between 0 and 1."""
    rest, product = t, t * 0.0 + 1.0
    for _ in range(3):
        product = where(rest > 1.0, product * rest, product)
        rest = where(rest > 1.0, rest - 1.0, rest)
    # at 4 the rest is 1
    return (1.0 + rest * (1.0 - rest) * polynomial(rest, INVERSE_FACTORIAL)) / product


def _exponent(a: Expr, x: Expr, more: Expr) -> tuple[Expr, Expr]:
    """T + more of `front` for a >= 4, as a sum of two numbers; see Note [exponents]."""
    whole, lost = _difference(x, a)
    ratio = x / a
    # near: a series whose first part is exact
    r = whole / (x + a)
    square, rest = _product(whole, whole)
    near, off = _quotient(square, rest, *_sum(x, a))
    fits = call("isfinite", square)
    near, off = where(fits, near, whole * r), where(fits, off, 0.0)
    off = off + 2.0 * lost * r - a * (r * (r * r)) * polynomial(r * r, _ATANH) + more
    # else: the logarithm in parts
    k = call("rint", call("log2", ratio))
    k = call("minimum", call("maximum", k, -30.0), 30.0)
    scaled = x * call("exp2", -k)
    quotient, rest = _quotient(scaled - a, 0.0, *_sum(scaled, a))
    square, off_square = _product(quotient, quotient)
    cube, off_cube = _product(quotient, square)
    cubed, off_cubed = _product(a, cube)
    thirds, off_thirds = _product(cubed, cubed * 0.0 + 2.0 / 3.0)
    off_cubed = off_cubed + a * (off_cube + quotient * off_square)
    tail = (
        k * _LN2_LOW + 2.0 * rest / (1.0 - square) + cube * square * polynomial(square, _ATANH[:-1])
    )
    high, away = _difference(whole, *_product(a, k * _LN2))
    for part, off_part in (
        _product(a, 2.0 * quotient),
        (thirds, off_thirds + off_cubed * (2.0 / 3.0) + cubed * _THIRDS_LOW),
        (a * tail, 0.0),
    ):
        high, low = _difference(high, part, off_part)
        away = away + low
    apart, away = high, away + lost + more
    close = (ratio > 0.9) & (ratio < 1.1)
    high, low = where(close, near, apart), where(close, off, away)
    far = (ratio < 2.0**-30) | (ratio > 2.0**30)
    high = where(far, whole - a * call("log", ratio), high)
    low = where(far, more, low)
    total = high + low
    return total, where(call("isfinite", total), low - (total - high), 0.0)


def _sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a + b and what rounding took from it."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _difference(a: Expr, b: Expr, below: Operand = 0.0) -> tuple[Expr, Expr]:
    """a - b and what rounding took from it, less what was `below` b."""
    total, lost = _sum(a, -b)
    return total, lost - below


def _product(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a b and, in float64, what rounding took from it; in float32 nothing is found."""
    total = a * b
    (high, low), (up, down) = _halves(a), _halves(b)
    return total, ((high * up - total) + high * down + low * up) + low * down


def _halves(a: Expr) -> tuple[Expr, Expr]:
    """A number as a sum of two with half of its digits (Veltkamp); in float32 as 0 and itself."""
    wide = a * 134217729.0
    high = where(call("isfinite", wide), wide - (wide - a), 0.0)
    return high, a - high


def _quotient(a: Expr, a_low: Operand, b: Expr, b_low: Expr) -> tuple[Expr, Expr]:
    """(a + a_low) / (b + b_low) as a sum of two numbers."""
    found = a / b
    product, lost = _product(found, b)
    return found, ((a - product) - lost + a_low - found * b_low) / b


def start(a: Expr, x: Expr) -> tuple[Expr, Expr, Expr]:
    """For a, x > 0: the sign of v, the slope of E at 0, and a point beyond its end."""
    below = is_below(a, x)
    sign = where(below, a * 0.0 - 1.0, 1.0)
    slope = where(below, a + 1.0 - x, x - a)
    # Since phi(v) >= v**2 / 2 the first is beyond the end, and so is where x expm1(v) is _END and
    # a times that. Below, phi(-v) >= v**2 / 3 up to v = 1, and v / 3 from there on.
    quadratic = _end_of(slope, x, 0.5)
    above = call("minimum", quadratic, call("log1p", (_END + a * quadratic) / x))
    close = _end_of(slope, x, 1.0 / 3.0)
    apart = where(close < 1.0, close, _END / (slope + x * (1.0 / 3.0)))
    return sign, slope, where(below, apart, above)


def _end_of(slope: Expr, x: Expr, part: float) -> Expr:
    """Where slope v + part x v**2 is _END, without an overflow."""
    root = call("sqrt", x) * math.sqrt(4.0 * part * _END)
    larger = call("maximum", slope, root)
    u, v = slope / larger, root / larger
    return 2.0 * _END / (slope + larger * call("sqrt", u * u + v * v))


def nearer(x: Expr, sign: Expr, slope: Expr, end: Expr) -> Expr:
    """Newton's method for the end, from beyond it, since E is convex; NEWTON steps are enough."""
    rest = slope * end + x * _phi(sign * end) - _END
    return end - rest / (slope + x * (sign * call("expm1", sign * end)))


def nodes(m: int, j: int, count: int) -> Callable[..., Expr]:
    """M(m, j) / end so far, with so many more of Gauss's nodes and their weights, summed apart."""

    def added(x: Expr, sign: Expr, slope: Expr, end: Expr, total: Expr, *given: Expr) -> Expr:
        terms = []
        for at, weight in zip(given[:count], given[count:], strict=True):
            v = at * end
            term = weight * call("exp", -(slope * v + x * _phi(sign * v)))
            for _ in range(m):
                term = term * v
            for _ in range(j):
                term = term * abs(call("expm1", sign * v))
            terms.append(term)
        while len(terms) > 1:  # in pairs, for rounding
            terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=True)]
        return total + terms[0]

    return added


def _phi(z: Expr) -> Expr:
    """exp(z) - 1 - z."""
    return where(abs(z) < 0.7, z * z * polynomial(z, _PHI), call("expm1", z) - z)


def gammainc(a: Expr, x: Expr, m: Expr) -> Expr:
    """P(a, x), from 0 at x = 0 to 1 at infinity, given M(0, 0) at max(x, 1/2)."""
    scale = front(a, x)
    s = _series(a, call("minimum", x, 0.5))
    inside = where(is_below(a, x), scale * (1.0 + x * m), 1.0 - scale * (a * m))
    value = where(x < 0.5, scale * call("exp", x) * (1.0 - a * s), inside)
    return _at_the_edges(a, x, value, 0.0)


def gammaincc(a: Expr, x: Expr, m: Expr) -> Expr:
    """Q(a, x) = 1 - P(a, x), accurate where it is small."""
    scale = front(a, x)
    s = _series(a, call("minimum", x, 0.5))
    times, lost = _product(a, m)
    inside = where(is_below(a, x), 1.0 - scale * (1.0 + x * m), scale * times + scale * lost)
    log = a * call("log", x) - lgamma_of_one_plus(a)
    tiny = call("exp", log) * (a * s) - call("expm1", log)
    return _at_the_edges(a, x, where(x < 0.5, tiny, inside), 1.0)


def _series(a: Expr, x: Expr) -> Expr:
    """s, where 1 - a s is gamma(a + 1) x**-a P, for x <= 1/2."""
    power, total = x, x / (a + 1.0)
    for n in range(2, 16):
        power = power * (x * (-1.0 / n))
        total = total + power / (a + float(n))
    return total


def _at_the_edges(a: Expr, x: Expr, value: Expr, first: float) -> Expr:
    """The value, or the limit: `first` at x = 0 and at a = inf, 1 - first at a = 0, x = inf."""
    start = call("eq", x, 0.0) | call("eq", a, inf)
    end = (call("eq", a, 0.0) & call("eq", x, x)) | call("eq", x, inf)
    value = where(start, first, where(end, 1.0 - first, value))
    return where((start & end) | (a < 0.0) | (x < 0.0), nan, value)
