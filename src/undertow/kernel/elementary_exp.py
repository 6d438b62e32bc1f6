"""exp and its relatives as values of the loop IR.

All reduce x to n*log(2) + r with a whole n and |r| <= log(2)/2, where a polynomial gives exp(r),
and scale by 2**n. log(2) is a sum of two constants, the first so short that n times it is exact.
"""

from __future__ import annotations

import math

from .evaluate import FORMAT, Table, at_least, at_most, estrin, nearest, polynomial, power_of_two
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
_EXPM1_LEAST = {"f32": -18.0, "f64": -38.0}  # it is -1 from here on
_SINH_MOST = {"f32": 90.0, "f64": 711.0}  # infinite from here on
_LARGE = {"f32": 87.0, "f64": 708.0}  # up to here 2**n is a normal number, and 2**-n too

# exp(r) = 1 + r * table, |r| <= 0.347: -28.2, -57.9
_EXP: Table = {
    "f32": (0.001382324, 0.008368827, 0.04166824, 0.1666652, 0.49999994, 1.0),
    "f64": (
        2.5005171677504586e-08,
        2.7630565281022203e-07,
        2.7557570792820867e-06,
        2.4801492197470757e-05,
        0.00019841269523473566,
        0.0013888888944525572,
        0.008333333333486853,
        0.04166666666652656,
        0.16666666666666424,
        0.5000000000000011,
        1.0,
    ),
}

# 2**r = 1 + r * table, |r| <= 0.5: -27.9, -57.4
_EXP2: Table = {
    "f32": (0.00015199618, 0.0013391476, 0.009618996, 0.055503584, 0.24022643, 0.6931472),
    "f64": (
        4.4503500960832713e-10,
        7.073767498725295e-09,
        1.0178084012937213e-07,
        1.3215435389944397e-06,
        1.5252733812474634e-05,
        0.00015403530456854984,
        0.001333355814637323,
        0.009618129107594369,
        0.05550410866482229,
        0.2402265069591013,
        0.6931471805599453,
    ),
}

# exp(r) - 1 = r + r*r * table, |r| <= 0.347: -26.1, -61.5
_EXPM1: Table = {
    "f32": (0.0013903468, 0.008366275, 0.0416668, 0.16666546, 0.5),
    "f64": (
        2.089154768470846e-09,
        2.510919837135494e-08,
        2.755734614681311e-07,
        2.7557243749009913e-06,
        2.4801587245518233e-05,
        0.0001984126988658867,
        0.0013888888888919822,
        0.00833333333332144,
        0.041666666666666616,
        0.16666666666666677,
        0.5,
    ),
}

# tanh(x) = x + x*z * table with z = x*x, |x| < 0.55, in f32: -24.7
_TANH = (0.016436366, -0.052671388, 0.13320723, -0.33332947)

# exp(2r) = table, |r| <= 0.1735, in f32: -23.4
_EXP_TWICE = (0.2652756, 0.670377, 1.3334118, 1.9999658, 1.9999994, 1.0)

# cosh(r) = 1 + z * table with z = r*r, |r| <= 0.347: -33.1, -58.0
_COSH: Table = {
    "f32": (0.0013936159, 0.04166645, 0.5),
    "f64": (
        2.763185424404526e-07,
        2.4801488402443317e-05,
        0.0013888888948432267,
        0.041666666666510296,
        0.5000000000000013,
    ),
}

# sinh(r) = r + r*z * table with z = r*r, |r| <= 0.347: -26.1, -61.7
_SINH: Table = {
    "f32": (0.00836689, 0.1666654),
    "f64": (
        2.510940497044315e-08,
        2.7557243254309655e-06,
        0.00019841269886961485,
        0.008333333333321353,
        0.16666666666666677,
    ),
}


def _reduce(f: Function, x: Value) -> tuple[Value, Value, Value]:
    """n, n + magic and r = x - n*log(2)."""
    n, shifted, r, _ = _reduce_fully(f, x)
    return n, shifted, r


def _reduce_fully(f: Function, x: Value) -> tuple[Value, Value, Value, Value]:
    """The same, and what rounding takes from r."""
    n, shifted = nearest(f, x, LOG2_E)
    high, low = LOG_2[x.dtype]
    exact = f.fma(n, -high, x)
    r = f.fma(n, -low, exact)
    return n, shifted, r, f.fma(n, -low, exact - r)


def exp(f: Function, x: Value) -> Value:
    """e**x."""
    low, high = _EXP_RANGE[x.dtype]
    n, _, r = _reduce(f, at_least(f, at_most(f, x, high), low))
    return f.call("scale", f.fma(r, polynomial(f, r, _EXP[x.dtype]), 1.0), n)


def one_minus_exp2(f: Function, a: Value, b: Value) -> Value:
    """1 - 2**(a * b) to the precision of 1, where 2**n is a normal number."""
    magic = FORMAT[a.dtype].magic
    shifted = f.fma(a, b, magic)
    r = f.fma(a, b, magic - shifted)
    grown = f.fma(r, estrin(f, r, _EXP2[a.dtype]), 1.0)
    return f.fma(-grown, power_of_two(f, shifted), 1.0)


def exp_sum(f: Function, x: Value, more: Value) -> Value:
    """e**(x + more) for a `more` that is small beside x."""
    least, most = _EXP_RANGE[x.dtype]
    n, _, r, low = _reduce_fully(f, at_least(f, at_most(f, x, most), least))
    r = r + (low + more)
    return f.call("scale", f.fma(r, polynomial(f, r, _EXP[x.dtype]), 1.0), n)


def exp2(f: Function, x: Value) -> Value:
    """2**x."""
    low, high = _EXP2_RANGE[x.dtype]
    x = at_least(f, at_most(f, x, high), low)
    n, _ = nearest(f, x, 1.0)
    r = x - n
    return f.call("scale", f.fma(r, polynomial(f, r, _EXP2[x.dtype]), 1.0), n)


def expm1(f: Function, x: Value) -> Value:
    """e**x - 1: with exp(r) - 1 = r + t it is (2**n - 1) + 2**n * (r + t), near 0 just r + t."""
    most = _EXP_RANGE[x.dtype][1]
    x_in = at_least(f, at_most(f, x, most), _EXPM1_LEAST[x.dtype])
    n, shifted, r, low = _reduce_fully(f, x_in)
    s = power_of_two(f, shifted)
    t = f.fma(r * r, polynomial(f, r, _EXPM1[x.dtype]), low)
    usual = f.call("copysign", f.fma(s, t, f.fma(s, r, s - 1.0)), x)
    return f.rare(x > _LARGE[x.dtype], usual, lambda: f.call("scale", (r + t) + 1.0, n))


def expm1_sum(f: Function, x: Value, more: Value) -> Value:
    """e**(x + more) - 1 for a `more` that is small beside x, where 2**n is a normal number."""
    _, shifted, r = _reduce(f, x)
    s = power_of_two(f, shifted)
    p = r + f.fma(r * r, polynomial(f, r, _EXPM1[x.dtype]), more)
    return f.fma(s, p, s - 1.0)


def sinh(f: Function, x: Value) -> Value:
    """The hyperbolic sine, by the addition theorem.

    With r + t the sine of r and 1 + u its cosine; near 0, n is 0, and r + t remains.
    """
    n, up, down, r, t, u = _hyperbolic(f, x)
    sinh_n, cosh_n = up - down, up + down
    usual = sinh_n + f.fma(cosh_n, r, f.fma(cosh_n, t, sinh_n * u))
    return f.call("copysign", _unless_large(f, x, n, usual, (t + u) + r), x)


def cosh(f: Function, x: Value) -> Value:
    """The hyperbolic cosine, (exp(|x|) + exp(-|x|))/2, with the same t and u."""
    n, up, down, r, t, u = _hyperbolic(f, x)
    p = r + t
    usual = up + f.fma(up, p + u, f.fma(down, u - p, down))
    return _unless_large(f, x, n, usual, p + u)


def _hyperbolic(f: Function, x: Value) -> tuple[Value, Value, Value, Value, Value, Value]:
    """n, 2**n/2, 2**-n/2, r, sinh(r) - r and cosh(r) - 1, for |x| = n*log(2) + r."""
    format = FORMAT[x.dtype]
    bounded = at_most(f, f.call("abs", x), _SINH_MOST[x.dtype])
    n, shifted, r, low = _reduce_fully(f, bounded)
    up = power_of_two(f, shifted - 1.0)
    quarter = 2 * (format.bias - 1) << format.digits  # of the exponents of up * down = 1/4
    down = f.bitcast(quarter - f.bitcast(up, format.word), x.dtype)
    z = r * r
    t = f.fma(r * z, polynomial(f, z, _SINH[x.dtype]), low)
    return n, up, down, r, t, z * polynomial(f, z, _COSH[x.dtype])


def _unless_large(f: Function, x: Value, n: Value, usual: Value, p: Value) -> Value:
    """`usual`, but exp(|x|)/2 for large x, where p = exp(r) - 1."""
    large = f.call("abs", x) > _LARGE[x.dtype]
    return f.rare(large, usual, lambda: f.call("scale", f.fma(p, 0.5, 0.5), n))


def tanh(f: Function, x: Value) -> Value:
    """The hyperbolic tangent."""
    return _tanh_single(f, x) if x.dtype == "f32" else _tanh_double(f, x)


def _tanh_single(f: Function, x: Value) -> Value:
    """A polynomial for |x| < 0.55, and beyond it t/(t + 2) with t = exp(2|x|) - 1.

    There t is so large that what it lost hardly matters, nor that log(2)/2 is one constant.
    """
    a = f.call("abs", x)
    bounded = at_most(f, a, 10.0)  # from where on t + 2 is t
    n, shifted = nearest(f, bounded, 2 * LOG2_E)
    r = f.call("fused", n, -0.5 / LOG2_E, bounded)
    t = f.fma(power_of_two(f, shifted), polynomial(f, r, _EXP_TWICE), -1.0)
    z = a * a
    inner = f.fma(a * z, polynomial(f, z, _TANH), a)
    return f.call("copysign", f.select(a < 0.55, inner, t / (t + 2.0)), x)


def _tanh_double(f: Function, x: Value) -> Value:
    """By one formula, which costs less than a polynomial beside.

    (1 - z)/(1 + z) with z = exp(-2|x|) = s + s*p, where s is a power of two and p is the reduced
    exp(r) - 1. Near 0, s is 1 and all digits of the numerator come from p. What rounding takes from
    numerator, denominator and quotient is added in the end; 1/(1 + z) is (1 + tanh)/2.
    """
    _, shifted, r = _reduce(f, at_most(f, f.call("abs", x), 20.0) * -2.0)
    s = power_of_two(f, shifted)
    p = f.fma(r * r, polynomial(f, r, _EXPM1[x.dtype]), r)
    above = f.fma(-s, p, 1.0 - s)
    above_low = f.fma(-s, p, (1.0 - s) - above)
    below = f.fma(s, p, 1.0 + s)
    below_low = f.fma(s, p, (1.0 - below) + s)
    quotient = above / below
    low = f.fma(-quotient, below_low, above_low)
    rest = f.call("fused", -quotient, below, above) + low
    return f.call("copysign", f.fma(rest, f.fma(quotient, 0.5, 0.5), quotient), x)
