"""The incomplete gamma functions P(a, x) and Q(a, x) = 1 - P as scalar expressions.

With D = x**a exp(-x) / gamma(a + 1), substituting t = x exp(-v) below and t = x exp(v) above,

    P = D (1 + x M),  M = the integral of exp(-E(v)),  E = (a + 1 - x) v + x phi(-v)
    Q = D a M,                                         E = (x - a) v + x phi(v)

over v > 0, where phi(z) = exp(z) - 1 - z. The first serves x < max(a, 1/2), the second the rest:
there E grows from 0 without cancellation, so Gauss's rule up to where it reaches 38 finds M to the
last digits for any a, with the same nodes. For x < 1/2 a series gives both without cancellation.

Note [moments]: differentiating M by a or by x puts a factor v or |exp(+-v) - 1| under the
integral, so all its derivatives are integrals M(m, j) of that kind: the gradient by a, of any
order, costs no more than the function.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, inf, nan, pi

from .expr import Expr, call, polynomial, where
from .gamma import LGAMMA_FAR, lgamma_of_one_plus

NEWTON = 6
_END = 38.0  # exp(-38) is below the last digit
_PHI = tuple(1.0 / factorial(k) for k in range(17, 1, -1))
_ATANH = tuple(2.0 / k for k in range(49, 1, -2))  # 2 (atanh(r) - r) / r**3 in r*r


def is_below(a: Expr, x: Expr) -> Expr:
    """Whether M is that of P."""
    return x < call("maximum", a, 0.5)


def front(a: Expr, x: Expr) -> Expr:
    """x**a exp(-x) / gamma(a + 1).

    For a >= 4 by Stirling's formula, whose large parts have been cancelled on paper:
    exp(a (log(1 + d) - d)) / sqrt(2 pi a), d = (x - a) / a, and a correction.
    """
    large = call("maximum", a, 4.0)
    w = 1.0 / large
    d = (x - large) / large
    r = d / (2.0 + d)
    cube = r * (r * r)
    near = r * d - cube * polynomial(r * r, _ATANH)
    rate = where((d > -0.6) & (d < 1.5), near, d - call("log", x / large))
    stirling = w * polynomial(w * w, LGAMMA_FAR)
    above = call("exp", -(large * rate) - stirling) * call("sqrt", w * (0.5 / pi))
    small = call("minimum", a, 4.0)
    below = call("pow", x, small) * call("exp", -x) * call("exp", -lgamma_of_one_plus(small))
    return where(a < 4.0, below, above)


def start(a: Expr, x: Expr) -> tuple[Expr, Expr, Expr]:
    """For a, x > 0: the sign of v, the slope of E at 0, and a point beyond its end."""
    below = is_below(a, x)
    sign = where(below, a * 0.0 - 1.0, 1.0)
    slope = where(below, a + 1.0 - x, x - a)
    quadratic = 2.0 * _END / (slope + call("sqrt", slope * slope + 2.0 * _END * x))
    above = call("minimum", quadratic, call("log1p", (1.0 + _END) / x))
    return sign, slope, where(below, _END / slope, above)


def nearer(x: Expr, sign: Expr, slope: Expr, end: Expr) -> Expr:
    """Newton's method for the end, from beyond it, since E is convex; NEWTON steps are enough."""
    rest = slope * end + x * _phi(sign * end) - _END
    return end - rest / (slope + x * (sign * call("expm1", sign * end)))


def node(m: int, j: int) -> Callable[..., Expr]:
    """M(m, j) / end so far, with one more of Gauss's nodes and its weight."""

    def added(
        x: Expr, sign: Expr, slope: Expr, end: Expr, total: Expr, at: Expr, weight: Expr
    ) -> Expr:
        v = at * end
        term = weight * call("exp", -(slope * v + x * _phi(sign * v)))
        for _ in range(m):
            term = term * v
        for _ in range(j):
            term = term * abs(call("expm1", sign * v))
        return total + term

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
    inside = where(is_below(a, x), 1.0 - scale * (1.0 + x * m), scale * (a * m))
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
    end = call("eq", a, 0.0) | call("eq", x, inf)
    value = where(start, first, where(end, 1.0 - first, value))
    return where((start & end) | (a < 0.0) | (x < 0.0), nan, value)
