"""pow and hypot as values of the loop IR.

Note [pow]
x**y is exp(y * log(x)), and the exponential makes absolute errors of y * log(x), which is up to
745, relative ones. So f32 is computed in f64, and f64 has log(x) as a sum high + low that is right
to about 2**-68. For that, 1/m of the mantissa m is read from a table to seven bits and more, and
log(x) = k*log(2) - log(c) + log(1 + q) with q = m*c - 1 exact and below 2**-7.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction

from .elementary_exp import LOG_2, exp_sum
from .elementary_log import apart, apart_from
from .evaluate import (
    FORMAT,
    INFINITY,
    NAN,
    at_least,
    at_most,
    nearest,
    polynomial,
    power_of_two,
    product_error,
    quick_sum,
)
from .ir import Function, Value

# log2(1 + q) = q * table, 1 + q in [sqrt(1/2), sqrt(2)]: -41.1
_LOG2 = (
    0.06316365288867043,
    -0.12350511512433028,
    0.12612526257704368,
    -0.11962989739905079,
    0.1291444500227045,
    -0.1441257219512171,
    0.16042517252769972,
    -0.18035042776913596,
    0.20609526996542332,
    -0.24044872665927663,
    0.2885390706014488,
    -0.36067376590706035,
    0.48089834658612696,
    -0.7213475204249443,
    1.4426950408893537,
)

# 2**r = table, |r| <= 1/2: -34.5
_EXP2 = (
    1.5201831539679364e-05,
    0.00015469316750039443,
    0.0013333923157608021,
    0.009618027174857356,
    0.05550410352459024,
    0.2402265119873501,
    0.6931471807288307,
    0.9999999999616241,
)

# log(1 + q) = q - q*q/2 + q**3 * table, |q| <= 2**-7, relative to q: -72.6
_LOG = (
    0.11142768740980674,
    -0.12501280242487023,
    0.14285710341171917,
    -0.16666666615709463,
    0.20000000000155413,
    -0.2500000000000061,
    0.3333333333333333,
)


def power(f: Function, x: Value, y: Value) -> Value:
    """x**y, with the special cases of C; see Note [pow]."""
    simple = _POWERS.get(y.args[0]) if y.op == "const" else None
    if simple is not None:
        return simple(f, x)
    format = FORMAT[x.dtype]
    usual = _positive(f, x, y)
    first = 1 << format.digits
    above = f.bitcast(f.bitcast(x, format.word) - first, "u" + format.word[1:])
    normal = above < (2 * format.bias << format.digits)
    finite = f.call("abs", y) < INFINITY
    return f.rare(~(normal & finite), usual, lambda: _any_power(f, x, y))


def _any_power(f: Function, x: Value, y: Value) -> Value:
    """x**y for all x and y."""
    a, size = f.call("abs", x), f.call("abs", y)
    whole = f.call("trunc", y) == y
    half = y * 0.5
    odd = whole & (f.call("trunc", half) != half)
    if x.dtype == "f32" and f.double:
        found = _positive(f, a, y)
    else:
        small = a < FORMAT[x.dtype].tiny
        zero = f.const(0.0, x.dtype)
        found = _positive(f, f.select(small, a * 2.0**54, a), y, f.select(small, -54.0, zero))
    nothing, infinite = f.const(0.0, x.dtype), f.const(INFINITY, x.dtype)
    # Of 0 and infinity, and to the power of infinity.
    extreme = (a == 0.0) | (a == INFINITY) | (size == INFINITY)
    grows = f.call("eq", a > 1.0, y > 0.0)
    found = f.select(extreme, f.select(grows, infinite, nothing), found)
    found = f.select(odd & (f.bitcast(x, FORMAT[x.dtype].word) < 0), -found, found)
    found = f.select((x < 0.0) & (x > -INFINITY) & ~whole, NAN, found)
    found = f.select((x != x) | (y != y), NAN, found)
    one = (y == 0.0) | (x == 1.0) | ((a == 1.0) & (size == INFINITY))
    return f.select(one, 1.0, found)


def _positive(f: Function, x: Value, y: Value, more: Value | None = None) -> Value:
    """x**y for normal x > 0 and finite y; `more` is added to x's exponent."""
    if x.dtype == "f64":
        return _double(f, x, y, more)
    return _single(f, x, y) if f.double else _pairs(f, x, y, more)


def _single(f: Function, x: Value, y: Value) -> Value:
    """x**y for finite f32 x > 0 and y."""
    k, _, q = apart(f, f.cast(x, "f64"))
    exponent = f.cast(y, "f64") * f.fma(q, polynomial(f, q, _LOG2), k)
    exponent = at_least(f, at_most(f, exponent, 200.0), -200.0)
    n, shifted = nearest(f, exponent, 1.0)
    return f.cast(polynomial(f, exponent - n, _EXP2) * power_of_two(f, shifted), "f32")


def _double(f: Function, x: Value, y: Value, more: Value | None = None) -> Value:
    """x**y for normal f64 x > 0 and finite y; `more` is added to x's exponent."""
    k, _, m, above = apart_from(f, x, _ORIGIN)
    if more is not None:
        k = k + more
    index = (above >> 45) & 127
    inverse, log_high, log_low = (f.lookup(table, index, "f64") for table in _inverses())
    q = f.call("fused", m, inverse, -1.0)
    high, low = LOG_2["f64"]
    base = f.fma(k, high, log_high)  # exact
    total, rest = quick_sum(f, base, q)
    square = q * q
    total, error = quick_sum(f, total, square * -0.5)
    rest = rest + f.fma(product_error(f, q, q, square), -0.5, error)
    rest = rest + f.fma(k, low, log_low)
    rest = f.fma(square * q, polynomial(f, q, _LOG), rest)
    total, rest = quick_sum(f, total, rest)
    exponent = y * total
    # A y beyond 2**900 has no finite power but of 1, and an exact product cannot take it.
    y = at_least(f, at_most(f, y, 2.0**900), -(2.0**900))
    low_part = f.fma(y, rest, product_error(f, y, total, exponent))
    return exp_sum(f, exponent, f.select(f.call("abs", exponent) < 800.0, low_part, 0.0))


def _pairs(f: Function, x: Value, y: Value, more: Value | None = None) -> Value:
    """`_double` of f32 where there is no f64: every step is a sum high + low of f32.

    log(1 + q) is 2 atanh(s) with s = q / (2 + q), that is 2s (1 + z/3 + z²/5 + …) with z = s*s
    up to 0.03: the first two terms are pairs, and the others' errors are far behind.
    """
    k, _, q = apart(f, x)
    if more is not None:
        k = k + more
    below, below_low = quick_sum(f, f.const(2.0, "f32"), q)
    s = q / below
    s_low = (f.call("fused", -s, below, q) - s * below_low) / below
    z = s * s
    z_low = f.fma(s + s, s_low, product_error(f, s, s, z))
    third, third_low = quick_sum(f, f.const(_THIRD[0], "f32"), z * polynomial(f, z, _ATANH))
    third_low = third_low + _THIRD[1]
    t = z * third
    t_low = f.fma(z, third_low, f.fma(z_low, third, product_error(f, z, third, t)))
    u = s * t
    u_low = f.fma(s, t_low, f.fma(s_low, t, product_error(f, s, t, u)))
    log, log_low = quick_sum(f, s, u)
    log_low = log_low + (s_low + u_low)
    high, low = LOG_2["f32"]
    total, rest = quick_sum(f, k * high, log + log)
    total, rest = quick_sum(f, total, rest + f.fma(k, low, log_low + log_low))
    # Beyond 2**60 only 1 has a finite power other than 0, and an exact product cannot take it.
    y = at_least(f, at_most(f, y, 2.0**60), -(2.0**60))
    exponent = y * total
    low_part = f.fma(y, rest, product_error(f, y, total, exponent))
    return exp_sum(f, exponent, f.select(f.call("abs", exponent) < 128.0, low_part, 0.0))


_THIRD = (0.33333334, -9.934108e-09)
_ATANH = (1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5)


_ORIGIN = 0x3FE6A00000000000  # bits of 0.70703125, where the first of the cells below begins


@functools.cache
def _inverses() -> tuple[list[float], list[float], list[float]]:
    """For each 128th of the mantissas c near 1/m, and -log(c) in two parts.

    Of c so few bits that m*c - 1 is exact, of the first part so few that k*log(2) + it is exact.
    """
    inverses, highs, lows = [], [], []
    for cell in range(128):
        # In units of 1/256: from 181/256 in steps of 1, from 1 on in steps of 2.
        begin, width = (181 + cell, 1) if cell < 75 else (256 + 2 * (cell - 75), 2)
        middle = Fraction(2 * begin + width, 512)
        digits = 128 if cell < 75 else 256
        c = Fraction(1) if cell in (74, 75) else Fraction(round(digits / middle), digits)
        log = -_log(c)
        high = Fraction(round(log * 2**42), 2**42)
        inverses.append(float(c))
        highs.append(float(high))
        lows.append(float(log - high))
    return inverses, highs, lows


def _log(c: Fraction) -> Fraction:
    """log(c) for c near 1, to about 120 bits: twice the series of atanh((c - 1)/(c + 1))."""
    z = (c - 1) / (c + 1)
    power, total = z, Fraction(0)
    for i in range(1, 60, 2):
        total += power / i
        power = Fraction(round(power * z * z * 2**160), 2**160)
    return 2 * total


def _square(f: Function, x: Value) -> Value:
    return x * x


def _root(f: Function, x: Value) -> Value:
    """x**0.5, which unlike sqrt is 0 for -0.0 and infinite for -inf."""
    return f.select(x == -INFINITY, INFINITY, f.call("sqrt", x) + 0.0)


# By the exponent.
_POWERS: dict[float, Callable[[Function, Value], Value]] = {
    0.0: lambda f, x: f.const(1.0, x.dtype),
    1.0: lambda f, x: x,
    2.0: _square,
    3.0: lambda f, x: x * x * x,
    4.0: lambda f, x: _square(f, x * x),
    -1.0: lambda f, x: 1.0 / x,
    -2.0: lambda f, x: _square(f, 1.0 / x),
    0.5: _root,
    -0.5: lambda f, x: 1.0 / _root(f, x),
}


def hypot(f: Function, x: Value, y: Value) -> Value:
    """sqrt(x*x + y*y) without needless overflow; f32 in f64, if there is one, where is none."""
    a, b = f.call("abs", x), f.call("abs", y)
    infinite = (a == INFINITY) | (b == INFINITY)
    if x.dtype == "f32" and f.double:
        wide = _root_of_squares(f, f.cast(a, "f64"), f.cast(b, "f64"))
        return f.select(infinite, INFINITY, f.cast(wide, "f32"))
    large, small = f.select(a > b, a, b), f.select(a > b, b, a)
    least, most, much, more = _SQUARES[x.dtype]
    usual = _root_of_squares(f, large, small)

    def scaled() -> Value:
        first = f.select(large > 1.0, f.const(1 / much, x.dtype), more)
        back = f.select(large > 1.0, f.const(much, x.dtype), 1 / more)
        found = _root_of_squares(f, large * first, small * first) * back
        return f.select(infinite, INFINITY, found)

    return f.rare(~((large > least) & (large < most)), usual, scaled)


# Between which sizes squares neither overflow nor lose digits, and by what others are scaled.
_SQUARES = {
    "f32": (2.0**-50, 2.0**62, 2.0**70, 2.0**100),
    "f64": (2.0**-450, 2.0**510, 2.0**600, 2.0**600),
}


def _root_of_squares(f: Function, large: Value, small: Value) -> Value:
    return f.call("sqrt", f.fma(large, large, small * small))
