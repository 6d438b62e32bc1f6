"""The trigonometric functions as values of the loop IR.

Note [reduction]
x = n * pi/2 + r, with pi/2 a sum of three constants. The first step x - n*first is exact, since the
result has few digits; the second is rounded once. This is good while n is small beside the
constants' digits; larger x are rare lanes, reduced in integers.

Note [huge arguments]
As Payne and Hanek observed, of x * 2/pi = mantissa * 2**e * 2/pi only the part modulo 4 matters, so
the digits of 2/pi that contribute multiples of 4 are left out, and those far behind the point too.
The window of digits between is taken from a table, multiplied by the mantissa modulo a power of
two, and the top two bits of the product are the quadrant, those below it the fraction of pi/2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from .evaluate import (
    FORMAT,
    INFINITY,
    NAN,
    Table,
    at_least,
    at_most,
    nearest,
    polynomial,
    product_error,
    quick_sum,
)
from .ir import Function, Value

# sin(r) = r + r*z * table with z = r*r, |r| <= 1.59: -27.0, -61.2
_SIN: Table = {
    "f32": (2.6007085e-06, -0.00019807286, 0.008333034, -0.16666658),
    "f64": (
        2.719842308267788e-15,
        -7.64287756282217e-13,
        1.6058935927796278e-10,
        -2.5052106812791914e-08,
        2.7557319210700308e-06,
        -0.00019841269841208448,
        0.0083333333333332,
        -0.16666666666666666,
    ),
}

# tan(r) = r + r*z * table with z = r*r, |r| <= 0.8: -28.9, -58.6
_TAN: Table = {
    "f32": (
        0.004672641,
        -0.00050923036,
        0.011305485,
        0.021102523,
        0.054094285,
        0.13332365,
        0.33333358,
    ),
    "f64": (
        1.110421571035627e-05,
        -3.0254630361410157e-05,
        6.095018919988977e-05,
        -4.06802769888325e-05,
        7.935900659133507e-05,
        7.67563990603575e-05,
        0.00024646627264333367,
        0.0005880863954690265,
        0.0014562049684447608,
        0.0035920779305246217,
        0.00886324017155845,
        0.021869488256964387,
        0.053968253978233446,
        0.13333333333315273,
        0.3333333333333345,
    ),
}

# pi/2 as a sum; all parts are positive, so that a zero keeps its sign.
_HALF_PI = {
    "f32": (1.5707963, 7.5497894e-08, 5.3903025e-15),
    "f64": (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32),
}
_MOST = {"f32": 2.0**17, "f64": 2.0**30}  # beyond it, see Note [huge arguments]
# The binary digits of 2/pi, after a word of zeros.
_TWO_OVER_PI = (
    0x00000000,
    0xA2F9836E,
    0x4E441529,
    0xFC2757D1,
    0xF534DDC0,
    0xDB629599,
    0x3C439041,
    0xFE5163AB,
    0xDEBBC561,
    0xB7246E3A,
    0x424DD2E0,
    0x06492EEA,
    0x09D1921C,
    0xFE1DEB1C,
    0xB129A73E,
    0xE88235F5,
    0x2EBB4484,
    0xE99C7026,
    0xB45F7E41,
    0x3991D639,
    0x835339F4,
    0x9C845F8B,
    0xBDF9283B,
    0x1FF897FF,
    0xDE05980F,
    0xEF2F118B,
    0x5A0A6D1F,
    0x6D367ECF,
    0x27CB09B7,
    0x4F463F66,
    0x9E5FEA2D,
    0x7527BAC7,
    0xEBE5F17B,
    0x3D0739F7,
    0x8A5292EA,
    0x6BFB5FB1,
    0x1F8D5D08,
    0x56033046,
    0xFC7B6BAB,
)


def sin(f: Function, x: Value) -> Value:
    """The sine: that of |x| - n*pi, with the signs of x and of n's parity."""
    a = f.call("abs", x)
    n, shifted = nearest(f, a, 1 / math.pi)
    usual = (_minus(f, a, n + n), f.bitcast(shifted, FORMAT[x.dtype].word))
    r, n = f.rare(a > _MOST[x.dtype], usual, lambda: _huge(f, a, 1, 1 << 62)[1:])
    return _signed_sine(f, r, (n << _SIGN[x.dtype]) ^ _sign(f, x))


def cos(f: Function, x: Value) -> Value:
    """The cosine: the sine of |x| - (n + 1/2)*pi, with the sign of n's parity turned."""
    a = f.call("abs", x)
    n, shifted = nearest(f, f.fma(a, 1 / math.pi, -0.5), 1.0)
    usual = (_minus(f, a, f.fma(n, 2.0, 1.0)), f.bitcast(shifted, FORMAT[x.dtype].word))
    r, n = f.rare(a > _MOST[x.dtype], usual, lambda: _huge(f, a, 1, 0)[1:])
    return _signed_sine(f, r, ~n << _SIGN[x.dtype])


def _signed_sine(f: Function, r: Value, sign: Value) -> Value:
    """The sine of |r| <= pi/2, its sign changed where the top bit of `sign` is set."""
    z = r * r
    sine = f.call("fused", r * z, polynomial(f, z, _SIN[r.dtype]), r)
    sine = at_least(f, at_most(f, sine, 1.0), -1.0)
    return f.bitcast(f.bitcast(sine, sign.dtype) ^ sign, r.dtype)


def tan(f: Function, x: Value) -> Value:
    """The tangent: that of r = |x| - n*pi/2, or -1/tan(r) for an odd n, with the sign of x.

    What rounding takes from r, from its tangent and from the quotient is added to each.
    """
    a = f.call("abs", x)
    n, shifted = nearest(f, a, 2 / math.pi)
    usual = (*_minus_fully(f, a, n), f.bitcast(shifted, FORMAT[x.dtype].word))
    low, r, n = f.rare(a > _MOST[x.dtype], usual, lambda: _huge(f, a, 2, 1 << 61))
    z = r * r
    low = f.fma(r * z, polynomial(f, z, _TAN[x.dtype]), f.fma(low, z, low))
    t, low = quick_sum(f, r, low)
    inverse = -1.0 / t
    inverse = f.fma(inverse, f.fma(inverse, low, f.call("fused", inverse, t, 1.0)), inverse)
    bits = f.bitcast(f.select((n & 1) == 0, t, inverse), n.dtype)
    return f.bitcast(bits ^ _sign(f, x), x.dtype)


_SIGN = {"f32": 31, "f64": 63}  # the place of the sign bit


def _sign(f: Function, x: Value) -> Value:
    """The sign bit alone."""
    return f.bitcast(x, FORMAT[x.dtype].word) & -(1 << _SIGN[x.dtype])


def _minus(f: Function, a: Value, n: Value) -> Value:
    """a - n*pi/2; see Note [reduction]."""
    first, second, third = _HALF_PI[a.dtype]
    r = f.call("fused", n, -second, f.call("fused", n, -first, a))
    return f.fma(n, -third, r)


def _minus_fully(f: Function, a: Value, n: Value) -> tuple[Value, Value]:
    """What rounding takes from a - n*pi/2, and that."""
    first, second, third = _HALF_PI[a.dtype]
    exact = f.call("fused", n, -first, a)
    product = n * second
    r = exact - product
    low = ((exact - r) - product) - product_error(f, n, second, product)
    low = f.fma(n, -third, low)
    total = r + low
    return low - (total - r), total


def _huge(f: Function, a: Value, bits: int, offset: int) -> tuple[Value, Value, Value]:
    """What is left of a large a >= 0 modulo pi/2, or pi for bits = 1, and how often it went in.

    The position in the period 2*pi is a number of 64 bits, to which `offset` is added; the top
    `bits` of the sum are the last result, and the rest, from the middle of its range, the others:
    what rounding takes from it, and that. See Note [huge arguments].
    """
    format = FORMAT[a.dtype]
    # Lanes that are not huge, or infinite, stay within the table.
    finite = f.select((a > _MOST[a.dtype]) & (a < INFINITY), a, 2 * _MOST[a.dtype])
    word = f.cast(f.bitcast(finite, format.word), "i64")
    mantissa = f.bitcast((word & ((1 << format.digits) - 1)) | (1 << format.digits), "u64")
    first = (word >> format.digits) + (30 - format.bias - format.digits)  # digit of the window
    count = 3 if a.dtype == "f32" else 6
    most = 2 * format.bias + 30 - format.bias - format.digits  # of the largest finite number
    table = _TWO_OVER_PI[: (most >> 5) + count + 1]
    words = [f.lookup(table, (first >> 5) + i, "u64") for i in range(count + 1)]
    shift = f.bitcast(first & 31, "u64")
    window = [(((u << 32) | v) << shift) >> 32 for u, v in pairwise(words)]
    if a.dtype == "f32":
        high = (mantissa * window[0] << 32) + mantissa * window[1] + (mantissa * window[2] >> 32)
        low = None
    else:
        digits = _product(f, mantissa, window)
        high, low = (digits[5] << 32) | digits[4], (digits[3] << 32) | digits[2]
    high = high + offset
    middle = f.bitcast((high << bits) >> bits, "i64") - (1 << (63 - bits))
    if not f.double:
        rest, r = _in_pairs(f, middle)
    elif low is None:
        single = f.cast(middle, "f64") * _UNIT
        r = f.cast(single, "f32")
        rest = f.cast(single - f.cast(r, "f64"), "f32")
    else:
        part = f.cast(middle, "f64")
        part, rest = quick_sum(
            f, part, f.cast(middle - f.cast(part, "i64"), "f64") + f.cast(low, "f64") * 2.0**-64
        )
        r = part * _UNIT
        rest = f.fma(part, _UNIT_LOW, rest * _UNIT) + product_error(f, part, _UNIT, r)
        r, rest = quick_sum(f, r, rest)
    quarters = f.cast(f.bitcast(high >> (64 - bits), "i64"), format.word)
    return rest, f.select(a < INFINITY, r, NAN), quarters


def _in_pairs(f: Function, middle: Value) -> tuple[Value, Value]:
    """What rounding takes from middle * pi/2 * 2**-62 in f32, and that, without f64."""
    part = f.cast(middle, "f32")
    less = f.cast(middle - f.cast(part, "i64"), "f32") * 2.0**-62
    part = part * 2.0**-62
    r = part * _QUARTER[0]
    rest = f.fma(
        less, _QUARTER[0], f.fma(part, _QUARTER[1], product_error(f, part, _QUARTER[0], r))
    )
    r, rest = quick_sum(f, r, rest)
    return rest, r


_QUARTER = (1.5707964, -4.371139e-08)  # pi/2 in f32 and what it lacks
_UNIT = math.pi / 2 * 2.0**-62
_UNIT_LOW = 6.123233995736766e-17 * 2.0**-62  # pi/2 - math.pi/2, in the same unit


def _product(f: Function, mantissa: Value, window: Sequence[Value]) -> list[Value]:
    """mantissa * window modulo 2**192 in digits of 32 bits, the lowest first."""
    mask = (1 << 32) - 1
    columns: list[list[Value]] = [[] for _ in range(len(window) + 2)]
    for i, factor in enumerate((mantissa & mask, mantissa >> 32)):
        for j, digit in enumerate(reversed(window)):
            product = factor * digit
            columns[i + j].append(product & mask)
            columns[i + j + 1].append(product >> 32)
    digits: list[Value] = []
    for i in range(len(window)):
        total = columns[i][0]
        for part in columns[i][1:]:
            total = total + part
        digits.append(total & mask)
        columns[i + 1].append(total >> 32)
    return digits
