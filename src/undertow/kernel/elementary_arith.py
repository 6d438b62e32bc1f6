"""Remainders, signs, predicates and the integer primitives, with NumPy's exact results."""

from __future__ import annotations

import math

from .evaluate import FORMAT, INFINITY, NAN
from .ir import SIGNED, WIDTH, Function, Value


# Predicates and choices ------------------------------------------------------------------------
def isnan(f: Function, x: Value) -> Value:
    """Whether x is NaN."""
    return x != x


def isinf(f: Function, x: Value) -> Value:
    """Whether x is infinite."""
    return f.call("abs", x) == INFINITY


def isfinite(f: Function, x: Value) -> Value:
    """Whether x is neither infinite nor NaN."""
    return f.call("abs", x) < INFINITY


def signbit(f: Function, x: Value) -> Value:
    """Whether x is negative, -0.0 too."""
    return f.bitcast(x, FORMAT[x.dtype].word) < 0


def sign(f: Function, x: Value) -> Value:
    """-1, 0 or 1; NaN stays."""
    zero = f.const(0, x.dtype)
    result = f.select(x > 0, f.const(1, x.dtype), zero)
    if x.dtype in SIGNED or x.dtype in FORMAT:
        result = f.select(x < 0, -1, result)
    return f.select(x != x, x, result) if x.dtype in FORMAT else result


def fmax(f: Function, a: Value, b: Value) -> Value:
    """The larger; of a number and NaN the number."""
    return f.select((a >= b) | (b != b), a, b)


def fmin(f: Function, a: Value, b: Value) -> Value:
    """The smaller; of a number and NaN the number."""
    return f.select((a <= b) | (b != b), a, b)


def angle(f: Function, x: Value) -> Value:
    """The argument of a real number: 0, or pi for a negative one; NaN stays."""
    zero = f.const(0.0, x.dtype)
    return f.select(x != x, x, f.select(signbit(f, x), math.pi, zero))


# Remainders of floating numbers ------------------------------------------------------------------
def fmod(f: Function, x: Value, y: Value) -> Value:
    """The exact remainder of the truncated quotient, with the sign of x.

    The quotient of a = |x| by b = |y|, if it is not too large, is rounded to its whole part or one
    more, and a - quotient*b is exact. Rare lanes divide by b * 2**e first, as often as they must.
    """
    a, b = f.call("abs", x), f.call("abs", y)
    if not f.double:  # what stands in for a fused multiply-add loses digits of very small numbers
        small, one = a < 2.0**-60, f.const(1.0, x.dtype)
        up, down = f.select(small, 2.0**60, one), f.select(small, 2.0**-60, one)
        return f.call("copysign", _fmod(f, a * up, b * up) * down, x)
    return f.call("copysign", _fmod(f, a, b), x)


def _fmod(f: Function, a: Value, b: Value) -> Value:
    """The remainder of a, b >= 0."""
    most = 2.0 ** FORMAT[a.dtype].digits
    ratio = a / b
    usual = f.select(a < b, a, _remainder(f, a, b, ratio))
    unusual = ~((ratio < most) & (a < _HUGE[a.dtype]))
    return f.rare(unusual, usual, lambda: _long_division(f, a, b))


# Beyond it, what stands in for a fused multiply-add would overflow.
_HUGE = {"f32": 2.0**127, "f64": 2.0**900}


def _remainder(f: Function, a: Value, b: Value, ratio: Value) -> Value:
    """a modulo b from a quotient that is right to rounding."""
    rest = f.call("fused", -f.call("trunc", ratio), b, a)
    return f.select(rest < 0.0, rest + b, rest)


def _long_division(f: Function, a: Value, b: Value) -> Value:
    """a modulo b for any a and b >= 0."""
    dtype = a.dtype
    format = FORMAT[dtype]
    step = format.digits - 2  # bits of the quotient at a time
    down, up = (2.0**-100, 2.0**100) if dtype == "f64" else (1.0, 1.0)
    valid = (b > 0.0) & (a < INFINITY)
    rest = f.state(f.select(valid, a, 0.0), combine=lambda u, v: v)
    exponent_b = _exponent(f, b)
    with f.loop((2 * format.bias + format.digits) // step + 2):
        (left,) = rest.get()
        with f.branch(f.call("any", left >= b)):
            excess = f.cast(_exponent(f, left) - exponent_b - step, dtype)
            excess = f.select(excess > 0.0, excess, 0.0)
            limit = float(2 * format.bias)
            divisor = f.call("scale", b, f.select(excess < limit, excess, limit))
            large = left > _HUGE[dtype]
            one = f.const(1.0, dtype)
            shrink, grow = f.select(large, down, one), f.select(large, up, one)
            u, v = left * shrink, divisor * shrink
            reduced = _remainder(f, u, v, u / v) * grow
            rest.set(f.select(left >= b, reduced, left))
    (result,) = rest.get()
    result = f.select(a < b, a, result)
    return f.select(valid & (b == b), result, NAN)


def _exponent(f: Function, x: Value) -> Value:
    """The binary exponent of x > 0, up to a constant, also of a subnormal one."""
    format = FORMAT[x.dtype]
    small = x < format.tiny
    bits = f.bitcast(f.select(small, x * 2.0**60, x), format.word) >> format.digits
    return bits - f.select(small, f.const(60, format.word), 0)


def mod(f: Function, x: Value, y: Value) -> Value:
    """The remainder with the sign of y, as Python's %."""
    rest = fmod(f, x, y)
    other = f.call("ne", y < 0.0, rest < 0.0)
    zero = f.call("copysign", f.const(0.0, x.dtype), y)
    return f.select(rest != 0.0, f.select(other, rest + y, rest), zero)


def floor_div(f: Function, x: Value, y: Value) -> Value:
    """The floor of the exact quotient, as Python's //; see NumPy's divmod."""
    rest = fmod(f, x, y)
    other = (rest != 0.0) & f.call("ne", y < 0.0, rest < 0.0)
    whole = (x - rest) / y
    whole = f.select(other, whole - 1.0, whole)
    floor = f.call("floor", whole)
    floor = f.select(whole - floor > 0.5, floor + 1.0, floor)
    quotient = x / y
    zero = f.call("copysign", f.const(0.0, x.dtype), quotient)
    return f.select(y == 0.0, quotient, f.select(whole != 0.0, floor, zero))


# Integers ----------------------------------------------------------------------------------------
def _divide(f: Function, a: Value, b: Value) -> tuple[Value, Value]:
    """The truncated quotient and its remainder; 0 and 0 for b = 0, and nothing traps.

    No machine divides vectors of integers, so up to 32 bits they are divided as floating numbers
    that hold them exactly.
    """
    dtype = a.dtype
    careful = b == 0
    if dtype in SIGNED:
        careful = careful | (b == -1)  # the least number divided by -1 overflows
    divisor = f.select(careful, 1, b)
    if WIDTH[dtype] == 8 or not f.double:
        quotient = f.call("div", a, divisor)
    else:
        wide = "f32" if WIDTH[dtype] < 4 else "f64"
        quotient = f.cast(f.cast(a, wide) / f.cast(divisor, wide), dtype)
    rest = a - quotient * divisor
    if dtype in SIGNED:
        quotient = f.select(b == -1, -a, quotient)
    zero = f.const(0, dtype)
    return f.select(b == 0, zero, quotient), f.select(careful, zero, rest)


def int_floor_div(f: Function, a: Value, b: Value) -> Value:
    """The floor of the quotient; 0 for b = 0."""
    quotient, rest = _divide(f, a, b)
    if a.dtype not in SIGNED:
        return quotient
    return f.select((rest != 0) & ((rest ^ b) < 0), quotient - 1, quotient)


def int_mod(f: Function, a: Value, b: Value) -> Value:
    """The remainder with the sign of b; 0 for b = 0."""
    _, rest = _divide(f, a, b)
    if a.dtype not in SIGNED:
        return rest
    return f.select((rest != 0) & ((rest ^ b) < 0), rest + b, rest)


def int_fmod(f: Function, a: Value, b: Value) -> Value:
    """The remainder with the sign of a; 0 for b = 0."""
    return _divide(f, a, b)[1]


def int_power(f: Function, a: Value, b: Value) -> Value:
    """a**b for b >= 0, wrapping around, by squaring; the caller checks a signed exponent."""
    if b.op == "const":
        return _constant_power(f, a, int(b.args[0]))
    one = f.const(1, a.dtype)
    state = f.state(one, a, b, combine=lambda *v: v[3:])
    with f.loop(8 * WIDTH[a.dtype]):
        result, square, left = state.get()
        with f.branch(f.call("any", left != 0)):
            odd = (left & 1) != 0
            state.set(f.select(odd, result * square, result), square * square, left >> 1)
    return state.get()[0]


def _constant_power(f: Function, a: Value, exponent: int) -> Value:
    result: Value | None = None
    while exponent:
        if exponent & 1:
            result = a if result is None else result * a
        exponent >>= 1
        if exponent:
            a = a * a
    return f.const(1, a.dtype) if result is None else result


def shift_left(f: Function, a: Value, b: Value) -> Value:
    """a * 2**b, wrapping around; 0 if b is not within the width."""
    within, count = _shift_count(f, b)
    return f.select(within, a << count, 0)


def shift_right(f: Function, a: Value, b: Value) -> Value:
    """The floor of a / 2**b; 0, or -1 for negative a, if b is not within the width."""
    within, count = _shift_count(f, b)
    if a.dtype in SIGNED:
        return a >> f.select(within, count, 8 * WIDTH[a.dtype] - 1)
    return f.select(within, a >> count, 0)


def _shift_count(f: Function, b: Value) -> tuple[Value, Value]:
    bits = 8 * WIDTH[b.dtype]
    within = b < bits if b.dtype not in SIGNED else (b >= 0) & (b < bits)
    return within, f.select(within, b, 0)


def int_signbit(f: Function, x: Value) -> Value:
    """Whether x is negative."""
    return x < 0


def int_isfinite(f: Function, x: Value) -> Value:
    """True."""
    return x == x
