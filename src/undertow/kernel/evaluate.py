"""Steps that the elementary functions share: polynomials, powers of two, exact sums and products.

Note [tables of coefficients]
Every table of the elementary_* modules was made for this library by tools/minimax.py, which prints
it with its error. Tables run from the highest power down. A comment states the function, the
interval and the polynomial's largest relative error, as a power of two, for f32 and f64.

Note [errors]
Errors are in units in the last place (ulp) of the exact result, the worst that
tests/kernel/test_elementary.py finds, on machines with fused multiply-add. Without it they grow
a little, never beyond 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .ir import Function, Operand, Value

Table = dict[str, tuple[float, ...]]


class Format(NamedTuple):
    """A floating type as bits."""

    word: str  # the signed integer of the same width
    digits: int  # of the fraction
    bias: int
    magic: float  # added to a small number, leaves its nearest whole number in the low bits
    tiny: float  # the smallest normal number


FORMAT = {
    "f32": Format("i32", 23, 127, 1.5 * 2.0**23, 2.0**-126),
    "f64": Format("i64", 52, 1023, 1.5 * 2.0**52, 2.0**-1022),
}
INFINITY = float("inf")
NAN = float("nan")


def polynomial(f: Function, x: Value, table: Sequence[float]) -> Value:
    """A polynomial; coefficients from the highest power down.

    By Horner's rule in x*x for the odd and the even powers apart, since one long chain of
    operations leaves the processor waiting for each; but for the last two steps, for accuracy.
    """
    if len(table) < 8:
        return _horner(f, x, table[0], table[1:])
    square = x * x
    above = table[:-2]
    first = _horner(f, square, above[0], above[2::2])
    second = _horner(f, square, above[1], above[3::2])
    joined = f.fma(x, first, second) if len(above) % 2 == 0 else f.fma(x, second, first)
    return _horner(f, x, joined, table[-2:])


def estrin(f: Function, x: Value, table: Sequence[float]) -> Value:
    """The same by Estrin's scheme: the shortest chain of operations, and the least accurate."""
    parts: list[Operand] = list(reversed(table))
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        alone = parts[len(parts) // 2 * 2 :]
        parts = [*[f.fma(x, high, low) for low, high in pairs], *alone]
        x = x * x
    return f.value(parts[0], x.dtype)


def _horner(f: Function, x: Value, result: Operand, table: Sequence[float]) -> Value:
    for c in table:
        result = f.fma(x, result, c)
    return f.value(result, x.dtype)


def at_most(f: Function, x: Value, bound: Operand) -> Value:
    """The smaller; NaN stays. One instruction, unlike `minimum`."""
    limit = f.value(bound, x.dtype)
    return f.select(limit < x, limit, x)


def at_least(f: Function, x: Value, bound: Operand) -> Value:
    """The larger; NaN stays."""
    limit = f.value(bound, x.dtype)
    return f.select(limit > x, limit, x)


def nearest(f: Function, x: Value, factor: float) -> tuple[Value, Value]:
    """The whole number n nearest to x * factor, and n + magic, which has it in its low bits."""
    magic = FORMAT[x.dtype].magic
    shifted = f.fma(x, factor, magic)
    return shifted - magic, shifted


def power_of_two(f: Function, shifted: Value) -> Value:
    """2**n, a normal number, from the n + magic of `nearest`."""
    format = FORMAT[shifted.dtype]
    bits = f.bitcast(shifted, format.word) << format.digits
    return f.bitcast(bits + (format.bias << format.digits), shifted.dtype)


def product_error(f: Function, a: Operand, b: Operand, product: Value) -> Value:
    """What rounding took from a * b, exactly."""
    return f.call("fused", a, b, -product)


def quick_sum(f: Function, a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and what rounding took from it, for |a| >= |b|."""
    total = a + b
    return total, b - (total - a)
