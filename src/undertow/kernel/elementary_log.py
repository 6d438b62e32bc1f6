"""log and its relatives as values of the loop IR.

All take x apart into 2**k * (1 + q) with 1 + q between sqrt(1/2) and sqrt(2), where a polynomial
gives log(1 + q), and add k*log(2). Numbers that are not normal and positive are rare lanes.
"""

from __future__ import annotations

from .elementary_exp import LOG_2
from .evaluate import FORMAT, INFINITY, NAN, Table, polynomial
from .ir import Function, Value

# log(1 + q) = q + q*q * table, 1 + q in [sqrt(1/2), sqrt(2)]: -27.3, -59.3
_LOG: Table = {
    "f32": (-0.0763657, 0.12763463, -0.13160186, 0.14201425, -0.16623324, 0.20001246,
            -0.25000823, 0.3333333, -0.5),
    "f64": (-0.024279336442034304, 0.05697505722475434, -0.0627534974420531, 0.05415816232017218,
            -0.05326624483714175, 0.05817779329558698, -0.06269828724998797, 0.06675152255953032,
            -0.07141997489915008, 0.07691713901809982, -0.08333345899639678, 0.09090933544754691,
            -0.10000000378843317, 0.11111110514562458, -0.12499999982098643, 0.14285714293872698,
            -0.16666666666913663, 0.19999999999945803, -0.24999999999998923, 0.33333333333333454,
            -0.5),
}  # fmt: skip
_SQRT_HALF_BITS = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}


def _apart(f: Function, x: Value) -> tuple[Value, Value]:
    """k and q of a normal positive x = 2**k * (1 + q)."""
    format = FORMAT[x.dtype]
    low = _SQRT_HALF_BITS[x.dtype]
    above = f.bitcast(x, format.word) - low
    mantissa = f.bitcast((above & ((1 << format.digits) - 1)) + low, x.dtype)
    if x.dtype == "f32":
        k = f.cast(above >> format.digits, "f32")
    else:  # few machines convert 64 bits: set k, made positive, below the digits of 2**52
        biased = f.bitcast(above + (format.bias << format.digits), "u64") >> format.digits
        bits = biased | ((format.bias + format.digits) << format.digits)
        k = f.bitcast(bits, "f64") - (2.0**format.digits + format.bias)
    return k, mantissa - 1.0


def _normal(f: Function, x: Value) -> Value:
    """log of a normal positive x, with `extra` added to its exponent."""
    k, q = _apart(f, x)
    return _sum(f, k, q)


def _sum(f: Function, k: Value, q: Value) -> Value:
    """k*log(2) + log(1 + q)."""
    high, low = LOG_2[q.dtype]
    rest = f.fma(q * q, polynomial(f, q, _LOG[q.dtype]), k * low)
    return f.fma(k, high, q + rest)


def _is_odd(f: Function, x: Value) -> Value:
    """Whether x is not a normal positive number."""
    format = FORMAT[x.dtype]
    word = "u" + format.word[1:]
    first = 1 << format.digits
    above = f.bitcast(f.bitcast(x, format.word) - first, word)
    return above >= (2 * format.bias << format.digits)


def log(f: Function, x: Value) -> Value:
    """The natural logarithm."""
    usual = _normal(f, x)
    format = FORMAT[x.dtype]

    def odd() -> Value:
        up = 2.0 ** (format.digits + 1)
        k, q = _apart(f, x * up)
        subnormal = _sum(f, k - float(format.digits + 1), q)
        special = f.select(x == 0.0, -INFINITY, f.select(x > 0.0, x, NAN))
        return f.select((x > 0.0) & (x < format.tiny), subnormal, special)

    return f.rare(_is_odd(f, x), usual, odd)
