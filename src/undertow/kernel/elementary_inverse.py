"""The inverse trigonometric functions as values of the loop IR."""

from __future__ import annotations

from .evaluate import FORMAT, Table, polynomial
from .ir import Function, Value

# atan(t) = t + t*z * table with z = t*t, |t| <= 0.55: -30.1, -62.6
_ATAN: Table = {
    "f32": (0.034036037, -0.07636524, 0.10845768, -0.14260349, 0.19998868, -0.33333316),
    "f64": (
        0.005109955324352937,
        -0.017072278735654534,
        0.03025560483244094,
        -0.04005371357289455,
        0.04674397417009404,
        -0.052468058326710455,
        0.05880121468321373,
        -0.06666446464713482,
        0.07692292291950696,
        -0.09090908352862566,
        0.11111111088148816,
        -0.14285714285289947,
        0.19999999999996035,
        -0.3333333333333332,
    ),
}

# asin(t) = t + t*z * table with z = t*t, |t| <= 1/2: -27.6, -55.9
_ASIN: Table = {
    "f32": (0.042157013, 0.024185503, 0.04546902, 0.0749531, 0.16666752),
    "f64": (
        0.03191157380024671,
        -0.016223258302266706,
        0.01952765066032011,
        0.00652818993304379,
        0.01216916518904261,
        0.013885241872395957,
        0.017359704208246257,
        0.022371758078501894,
        0.030381959136329132,
        0.044642856828323974,
        0.07500000000337059,
        0.16666666666665408,
    ),
}

# pi/2 = high + low; and pi/4, with so short a first part that multiples are exact.
_HALF_PI = {"f32": (1.5707964, -4.371139e-08), "f64": (1.5707963267948966, 6.123233995736766e-17)}
_QUARTER_PI = {
    "f32": (0.78539824, -8.146034e-08),
    "f64": (0.7853981633974483, 3.061616997868383e-17),
}
_BORDER = 0.55  # above it angles are beyond 1/2, and losing a digit to pi/4 costs little


def atan(f: Function, x: Value) -> Value:
    """The inverse tangent: k*pi/4 and that of a small t, with one division."""
    a = f.call("abs", x)
    middle, beyond = a > _BORDER, a > 1 / _BORDER
    one, zero = f.const(1.0, x.dtype), f.const(0.0, x.dtype)
    above = f.select(beyond, -1.0, f.select(middle, a - 1.0, a))
    below = f.select(beyond, a, f.select(middle, a + 1.0, one))
    k = f.select(beyond, 2.0, f.select(middle, one, zero))
    return f.call("copysign", _atan_sum(f, above / below, k), x)


def _atan_sum(f: Function, t: Value, k: Value) -> Value:
    """k*pi/4 + atan(t)."""
    high, low = _QUARTER_PI[t.dtype]
    z = t * t
    rest = f.fma(t * z, polynomial(f, z, _ATAN[t.dtype]), k * low)
    return f.fma(k, high, t + rest)


def atan2(f: Function, y: Value, x: Value) -> Value:
    """The angle of the point (x, y).

    That of a point in the first eighth with the same |x| and |y| or those exchanged; it is added to
    or taken from a multiple of pi/2. Here k counts eighths.
    """
    dtype = x.dtype
    across, along = f.call("abs", y), f.call("abs", x)
    steep, left = across > along, f.bitcast(x, FORMAT[dtype].word) < 0
    small, large = f.select(steep, along, across), f.select(steep, across, along)
    # lest the sum of the two overflow
    one, zero = f.const(1.0, dtype), f.const(0.0, dtype)
    down = f.select(large > _LARGE[dtype], 0.25, one)
    small, large = small * down, large * down
    equal = small == large  # perhaps both zero or infinite
    middle = (small > large * _BORDER) | (equal & (small > 0.0))
    above = f.select(middle, small - large, small)
    below = f.select(middle, small + large, large)
    t = f.select(equal, zero, above / below)
    k = f.select(middle, one, zero)
    k = f.select(steep, 2.0 - k, k)
    k = f.select(left, 4.0 - k, k)
    t = f.select(f.call("ne", steep, left), -t, t)
    return f.call("copysign", _atan_sum(f, t, k), y)


_LARGE = {"f32": 2.0**125, "f64": 2.0**1021}


def asin(f: Function, x: Value) -> Value:
    """The inverse sine; beyond 1/2, pi/2 less twice that of sqrt((1 - |x|)/2)."""
    beyond, s, rest = _inner(f, f.call("abs", x))
    high, low = _HALF_PI[x.dtype]
    outer = high - (2.0 * s - f.fma(rest, -2.0, low))
    return f.call("copysign", f.select(beyond, outer, s + rest), x)


def acos(f: Function, x: Value) -> Value:
    """The inverse cosine: pi/2 less the inverse sine, of which beyond 1/2 only the latter part."""
    beyond, s, rest = _inner(f, f.call("abs", x))
    high, low = _HALF_PI[x.dtype]
    negative = x < 0.0
    # inner = pi/2 - (s + rest), with their sign; outer = 2*(s + rest), or pi - that
    s, rest = f.select(negative, -s, s), f.select(negative, -rest, rest)
    inner = high - (s - (low - rest))
    outer = 2.0 * (s + rest)
    outer = f.select(negative, 2 * high + (2.0 * (s + (rest + low))), outer)
    return f.select(beyond, outer, inner)


def _inner(f: Function, a: Value) -> tuple[Value, Value, Value]:
    """Whether a > 1/2, and asin(t) as t + rest, where t is a, or sqrt((1 - a)/2) beyond 1/2.

    What rounding takes from the root is to be divided by 2t; times 3 - 4t is near enough where t is
    large enough to matter.
    """
    beyond = a > 0.5
    z = f.select(beyond, f.fma(a, -0.5, 0.5), a * a)
    root = f.call("sqrt", z)
    low = f.call("fused", -root, root, z) * f.fma(root, -4.0, 3.0)
    t = f.select(beyond, root, a)
    low = f.select(beyond, low, 0.0)
    return beyond, t, f.fma(t * z, polynomial(f, z, _ASIN[a.dtype]), low)
