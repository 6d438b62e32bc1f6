"""The inverse trigonometric functions as values of the loop IR."""

from __future__ import annotations

from .evaluate import FORMAT, Table, polynomial
from .ir import Function, Value

# atan(t) = t + t*z * table with z = t*t, |t| <= 1: -25.8, -57.6
_ATAN: Table = {
        "f32": (0.002919844, -0.016364552, 0.043206424, -0.07551761, 0.106657974, -0.14211005,
            0.19993767, -0.33333153),
        "f64": (1.3214803872991033e-05, -0.00015205695143737682, 0.0008308351689022132,
            -0.00288351832936598, 0.007193734836645514, -0.0138965721982739, 0.02198052419994319,
            -0.02990024503728322, 0.03663956563707138, -0.04219060023720841, 0.04722275120534112,
            -0.05253504070829324, 0.05880524393935397, -0.0666640344741579, 0.07692279759124676,
            -0.09090906995507754, 0.11111111006555649, -0.14285714282556788, 0.1999999999995108,
            -0.33333333333333065),
}  # fmt: skip

# asin(t) = t + t*z * table with z = t*t, |t| <= 1/2: -27.6, -55.9
_ASIN: Table = {
        "f32": (0.042157013, 0.024185503, 0.04546902, 0.0749531, 0.16666752),
        "f64": (0.03191157380024671, -0.016223258302266706, 0.01952765066032011,
            0.00652818993304379, 0.01216916518904261, 0.013885241872395957, 0.017359704208246257,
            0.022371758078501894, 0.030381959136329132, 0.044642856828323974, 0.07500000000337059,
            0.16666666666665408),
}  # fmt: skip

# pi/2 = high + low.
_HALF_PI = {
    "f32": (1.5707964, -4.371139e-08),
    "f64": (1.5707963267948966, 6.123233995736766e-17),
}


def atan(f: Function, x: Value) -> Value:
    """The inverse tangent; beyond 1, pi/2 less that of 1/x."""
    a = f.call("abs", x)
    beyond = a > 1.0
    t = f.select(beyond, -1.0 / a, a)
    high, low = _HALF_PI[x.dtype]
    zero = f.const(0.0, x.dtype)
    base, rest = f.select(beyond, high, zero), f.select(beyond, low, zero)
    return f.call("copysign", _atan_sum(f, t, base, rest), x)


def _atan_sum(f: Function, t: Value, high: Value, low: Value) -> Value:
    """high + low + atan(t) for |t| <= 1."""
    z = t * t
    return high + (t + f.fma(t * z, polynomial(f, z, _ATAN[t.dtype]), low))


def atan2(f: Function, y: Value, x: Value) -> Value:
    """The angle of the point (x, y).

    The inverse tangent of the smaller over the larger of |x| and |y| is added to or taken from a
    multiple of pi/2.
    """
    dtype = x.dtype
    across, along = f.call("abs", y), f.call("abs", x)
    steep = across > along
    left = f.bitcast(x, FORMAT[dtype].word) < 0
    t = f.select(steep, along, across) / f.select(steep, across, along)
    # 0/0 and inf/inf
    t = f.select(across == along, f.select(along == 0.0, 0.0, f.const(1.0, dtype)), t)
    t = f.select(f.call("ne", steep, left), -t, t)
    high, low = _HALF_PI[dtype]
    zero = f.const(0.0, dtype)
    base = f.select(steep, high, f.select(left, 2 * high, zero))
    rest = f.select(steep, low, f.select(left, 2 * low, zero))
    return f.call("copysign", _atan_sum(f, t, base, rest), y)


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
