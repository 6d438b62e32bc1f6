"""exp and its relatives as values of the loop IR.

All reduce x to n*log(2) + r with a whole n and |r| <= log(2)/2, where a polynomial gives exp(r),
and scale by 2**n. log(2) is a sum of two constants, the first so short that n times it is exact.
"""

from __future__ import annotations

import math

from .evaluate import (
    Table,
    at_least,
    at_most,
    nearest,
    polynomial,
    power_of_two,
    quick_sum,
)
from .ir import Function, Value

LOG2_E = 1 / math.log(2)
# log(2) = high + low; 16 and 42 bits in the first, so that 8 or 11 more are exact.
LOG_2 = {
    "f32": (0.693145751953125, 1.4286068203094173e-06),
    "f64": (0.6931471805598903, 5.497923018708371e-14),
}
# Below the first, exp rounds to 0; beyond the second, to infinity.
_EXP_RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
_EXP2_RANGE = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}

# exp(r) = 1 + r * table, |r| <= 0.347: -28.2, -57.9
_EXP: Table = {
    "f32": (0.001382324, 0.008368827, 0.04166824, 0.1666652, 0.49999994, 1.0),
    "f64": (2.5005171677504586e-08, 2.7630565281022203e-07, 2.7557570792820867e-06,
            2.4801492197470757e-05, 0.00019841269523473566, 0.0013888888944525572,
            0.008333333333486853, 0.04166666666652656, 0.16666666666666424, 0.5000000000000011,
            1.0),
}  # fmt: skip

# 2**r = 1 + r * table, |r| <= 0.5: -27.9, -57.4
_EXP2: Table = {
    "f32": (0.00015199618, 0.0013391476, 0.009618996, 0.055503584, 0.24022643, 0.6931472),
    "f64": (4.4503500960832713e-10, 7.073767498725295e-09, 1.0178084012937213e-07,
            1.3215435389944397e-06, 1.5252733812474634e-05, 0.00015403530456854984,
            0.001333355814637323, 0.009618129107594369, 0.05550410866482229, 0.2402265069591013,
            0.6931471805599453),
}  # fmt: skip

# exp(r) - 1 = r + r*r * table, |r| <= 0.347
_EXPM1: Table = {
    "f32": (0.0013903468, 0.008366275, 0.0416668, 0.16666546, 0.5),
    "f64": (2.089154768470846e-09, 2.510919837135494e-08, 2.755734614681311e-07,
            2.7557243749009913e-06, 2.4801587245518233e-05, 0.0001984126988658867,
            0.0013888888888919822, 0.00833333333332144, 0.041666666666666616,
            0.16666666666666677, 0.5),
}  # fmt: skip


def _reduce(f: Function, x: Value) -> tuple[Value, Value, Value]:
    """n, n + magic and r = x - n*log(2)."""
    n, shifted = nearest(f, x, LOG2_E)
    high, low = LOG_2[x.dtype]
    return n, shifted, f.fma(n, -low, f.fma(n, -high, x))


def exp(f: Function, x: Value) -> Value:
    """e**x."""
    low, high = _EXP_RANGE[x.dtype]
    n, _, r = _reduce(f, at_least(f, at_most(f, x, high), low))
    return f.call("scale", f.fma(r, polynomial(f, r, _EXP[x.dtype]), 1.0), n)


def exp2(f: Function, x: Value) -> Value:
    """2**x."""
    low, high = _EXP2_RANGE[x.dtype]
    x = at_least(f, at_most(f, x, high), low)
    n, _ = nearest(f, x, 1.0)
    r = x - n
    return f.call("scale", f.fma(r, polynomial(f, r, _EXP2[x.dtype]), 1.0), n)


def tanh(f: Function, x: Value) -> Value:
    """The hyperbolic tangent.

    (1 - z)/(1 + z) with z = exp(-2|x|) = s + s*p, where s is a power of two and p is the reduced
    exp(r) - 1. Near 0, s is 1 and all digits of the numerator come from p. What rounding takes from
    p, numerator, denominator and quotient is kept and added in the end; 1/(1 + z) is (1 + tanh)/2.
    """
    bound = 10.0 if x.dtype == "f32" else 20.0  # where it has become 1
    twice = at_most(f, f.call("abs", x), bound) * -2.0
    _, shifted, r = _reduce(f, twice)
    s = power_of_two(f, shifted)
    p, p_low = quick_sum(f, r, r * r * polynomial(f, r, _EXPM1[x.dtype]))
    p, p_low = s * p, s * p_low
    above, above_low = quick_sum(f, 1.0 - s, -p)
    below, below_low = quick_sum(f, 1.0 + s, p)
    quotient = above / below
    low = f.fma(-quotient, below_low + p_low, above_low - p_low)
    rest = f.call("fused", -quotient, below, above) + low
    quotient = f.fma(rest, f.fma(quotient, 0.5, 0.5), quotient)
    return f.call("copysign", quotient, x)
