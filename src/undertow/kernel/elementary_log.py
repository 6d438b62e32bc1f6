"""log and its relatives as values of the loop IR.

All take x apart into 2**k * (1 + q) with 1 + q between sqrt(1/2) and sqrt(2), where a polynomial
gives log(1 + q), and add k*log(2). Numbers that are not normal and positive are rare lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from .elementary_exp import LOG_2
from .evaluate import FORMAT, INFINITY, NAN, Table, polynomial, product_error, quick_sum
from .ir import Function, Operand, Value

# log(1 + q) = q + q*q * table, 1 + q in [sqrt(1/2), sqrt(2)]: -27.3, -56.6
_LOG: Table = {
    "f32": (
        -0.0763657,
        0.12763463,
        -0.13160186,
        0.14201425,
        -0.16623324,
        0.20001246,
        -0.25000823,
        0.3333333,
        -0.5,
    ),
    "f64": (
        0.026143467092317067,
        -0.05980861182675057,
        0.06503503080682244,
        -0.05678097594013027,
        0.05668441076019248,
        -0.06196630117070619,
        0.06684574862428976,
        -0.07149443519223614,
        0.07691531265649267,
        -0.08332913344353589,
        0.09090923850728808,
        -0.10000015212213831,
        0.11111111150069301,
        -0.1249999969132733,
        0.14285714280047582,
        -0.16666666669827285,
        0.20000000000066986,
        -0.24999999999987968,
        0.3333333333333314,
        -0.5,
    ),
}

# log2(1 + q) = q * log2(e) + q*q * table: -27.7, -56.8
_LOG2: Table = {
    "f32": (
        -0.11013795,
        0.18651485,
        -0.19116022,
        0.20454635,
        -0.23959619,
        0.28857005,
        -0.36069787,
        0.4808982,
        -0.72134733,
    ),
    "f64": (
        0.037743096025920186,
        -0.08662668379714199,
        0.09419857817840292,
        -0.08192564623301278,
        0.08164436248932459,
        -0.08936479681406283,
        0.09645712109321775,
        -0.10315184730787211,
        0.1109639751430605,
        -0.12021781690214564,
        0.13115435661676483,
        -0.1442697627600067,
        0.16029944890267445,
        -0.18033687441151003,
        0.2060992914660051,
        -0.2404491735490151,
        0.28853900817903705,
        -0.36067376022188014,
        0.48089834696298334,
        -0.7213475204444822,
    ),
}

# log10(1 + q) = q * log10(e) + q*q * table: -27.7, -56.8
_LOG10: Table = {
    "f32": (
        -0.033186927,
        0.05613882,
        -0.057526138,
        0.061574854,
        -0.07212833,
        0.0868683,
        -0.10858074,
        0.14476478,
        -0.21714719,
    ),
    "f64": (
        0.011358139560473532,
        -0.0260713978106059,
        0.028354739500675557,
        -0.02466364867196808,
        0.024578435061319223,
        -0.026901393486353054,
        0.029036304633355627,
        -0.031051786269192336,
        0.0334035013384044,
        -0.03618917140969341,
        0.0394813945642738,
        -0.04342952588834794,
        0.04825494243302848,
        -0.05428680852812763,
        0.06204206881595003,
        -0.07238241367075643,
        0.08685889638102831,
        -0.10857362047570536,
        0.1447648273010826,
        -0.21714724095162607,
    ),
}

_SQRT_HALF_BITS = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}
# log2(e), log10(e) and log10(2) = high + low; the last with a short first part.
_LOG2_E = {"f32": (1.442695, 1.925963e-08), "f64": (1.4426950408889634, 2.0355273740931033e-17)}
_LOG10_E = {"f32": (0.4342945, -1.010305e-08), "f64": (0.4342944819032518, 1.098319650216765e-17)}
_LOG10_2 = {
    "f32": (0.30103302, -3.0243555e-06),
    "f64": (0.30102999566395283, 2.8363394551044964e-14),
}


def apart(f: Function, x: Value) -> tuple[Value, Value, Value]:
    """k, k shifted to the exponent's place and q of a normal positive x = 2**k * (1 + q)."""
    k, place, mantissa, _ = apart_from(f, x, _SQRT_HALF_BITS[x.dtype])
    return k, place, mantissa - 1.0


def apart_from(f: Function, x: Value, low: int) -> tuple[Value, Value, Value, Value]:
    """k, k shifted, the mantissa, from the number of bits `low` on, and the bits above low."""
    format = FORMAT[x.dtype]
    above = f.bitcast(x, format.word) - low
    place = above & -(1 << format.digits)
    if x.dtype == "f32":
        k = f.cast(above >> format.digits, "f32")
    else:  # few machines convert 64 bits: set k, made positive, below the digits of 2**52
        biased = f.bitcast(above + (format.bias << format.digits), "u64") >> format.digits
        bits = biased | ((format.bias + format.digits) << format.digits)
        k = f.bitcast(bits, "f64") - (2.0**format.digits + format.bias)
    return k, place, f.bitcast(f.bitcast(x, format.word) - place, x.dtype), above


def _sum(f: Function, k: Value, q: Value, more: Value | None = None) -> Value:
    """k*log(2) + log(1 + q), and the small `more`."""
    high, low = LOG_2[q.dtype]
    rest = k * low if more is None else f.fma(k, low, more)
    rest = f.fma(q * q, polynomial(f, q, _LOG[q.dtype]), rest)
    return f.fma(k, high, q + rest)


def _sum2(f: Function, k: Value, q: Value) -> Value:
    """k + log2(1 + q)."""
    return _sum_of_base(f, k, 0.0, q, _LOG2_E, _LOG2)


def _sum10(f: Function, k: Value, q: Value) -> Value:
    """k*log10(2) + log10(1 + q)."""
    high, low = _LOG10_2[q.dtype]
    return _sum_of_base(f, k * high, k * low, q, _LOG10_E, _LOG10)


def _sum_of_base(
    f: Function,
    high: Value,
    low: Operand,
    q: Value,
    factor: dict[str, tuple[float, float]],
    table: Table,
) -> Value:
    """high + low + q*factor + q*q*table, with the product and its sum with `high` exact."""
    first, second = factor[q.dtype]
    product = q * first
    rest = f.fma(q, second, product_error(f, q, first, product))
    rest = f.fma(q * q, polynomial(f, q, table[q.dtype]), rest)
    total, error = quick_sum(f, high, product)
    return total + (error + (rest + low))


def _of_positive(f: Function, x: Value, sum: Callable[[Function, Value, Value], Value]) -> Value:
    """The logarithm that `sum` makes of k and q."""
    format = FORMAT[x.dtype]
    k, _, q = apart(f, x)
    usual = sum(f, k, q)

    def odd() -> Value:
        up = format.digits + 1
        k, _, q = apart(f, x * 2.0**up)
        subnormal = sum(f, k - float(up), q)
        special = f.select(x == 0.0, -INFINITY, f.select(x > 0.0, x, NAN))
        return f.select((x > 0.0) & (x < format.tiny), subnormal, special)

    # One unsigned comparison: the bits of normal positive numbers are those in the middle.
    first = 1 << format.digits
    above = f.bitcast(f.bitcast(x, format.word) - first, "u" + format.word[1:])
    return f.rare(above >= (2 * format.bias << format.digits), usual, odd)


def log(f: Function, x: Value) -> Value:
    """The natural logarithm."""
    return _of_positive(f, x, _sum)


def log2(f: Function, x: Value) -> Value:
    """The logarithm to base 2; exact for powers of 2."""
    return _of_positive(f, x, _sum2)


def log10(f: Function, x: Value) -> Value:
    """The logarithm to base 10."""
    return _of_positive(f, x, _sum10)


def log1p(f: Function, x: Value) -> Value:
    """log(1 + x)."""
    return f.call("copysign", log1p_sum(f, x, None), x)


def log1p_sum(f: Function, x: Value, low: Value | None) -> Value:
    """log(1 + x + low) for a `low` that is small beside x.

    1 + x only tells k; then q = 2**-k * x + (2**-k - 1) loses no digit of x. To divide so little as
    `low`, 1 - q is 1/(1 + q).
    """
    format = FORMAT[x.dtype]
    k, place, _ = apart(f, x + 1.0)
    t = f.bitcast((format.bias << format.digits) - place, x.dtype)
    q = f.fma(x, t, t - 1.0)
    more = None if low is None else low * t * (1.0 - q)
    usual = _sum(f, k, q, more)

    def odd() -> Value:
        k, _, q = apart(f, x)
        large = f.select(x < INFINITY, _sum(f, k, q), x)
        return f.select(x == -1.0, -INFINITY, f.select(x > 0.0, large, NAN))

    return f.rare(~((x > -1.0) & (x < 2.0**64)), usual, odd)


def asinh(f: Function, x: Value) -> Value:
    """The inverse hyperbolic sine, log1p(a + a*a/(1 + sqrt(1 + a*a))) of a = |x|."""
    a = f.call("abs", x)
    square = a * a
    w, low = quick_sum(f, a, square / (f.call("sqrt", square + 1.0) + 1.0))
    return f.call("copysign", _unless_beyond(f, a, a < _ROOT, log1p_sum(f, w, low)), x)


def acosh(f: Function, x: Value) -> Value:
    """The inverse hyperbolic cosine, log1p(t + sqrt(t*(t + 2))) of t = x - 1."""
    t = x - 1.0
    twice = t + t
    square = f.fma(t, t, twice)
    square_low = f.fma(t, t, twice - square)
    root = f.call("sqrt", square)
    root_low = (f.call("fused", -root, root, square) + square_low) / (root + root)
    w, low = quick_sum(f, root, t)
    low = low + f.select(square > 0.0, root_low, 0.0) + ((x - t) - 1.0)
    return _unless_beyond(f, x, (x >= 1.0) & (x < _ROOT), log1p_sum(f, w, low))


_ROOT = 2.0**28  # squares beyond it swallow 1


def _unless_beyond(f: Function, x: Value, within: Value, usual: Value) -> Value:
    """`usual` within the interval, and beyond it log(2x), which is NaN for negative x."""

    def beyond() -> Value:
        k, _, q = apart(f, x)
        large = f.select(x < INFINITY, _sum(f, k + 1.0, q), x)
        return f.select(x > 1.0, large, NAN)

    return f.rare(~within, usual, beyond)


def atanh(f: Function, x: Value) -> Value:
    """The inverse hyperbolic tangent, log1p(w)/2 of w = 2a/(1 - a), a = |x|.

    What rounding takes from w is kept; to divide so little, 1 + w/2 is 1/(1 - a).
    """
    a = f.call("abs", x)
    below = 1.0 - a
    below_low = (1.0 - below) - a
    twice = a + a
    w = twice / below
    rest = f.fma(-w, below_low, f.call("fused", -w, below, twice))
    return f.call("copysign", log1p_sum(f, w, rest * f.fma(w, 0.5, 1.0)) * 0.5, x)
