"""Minimax polynomials for the elementary functions of undertow.kernel: how the tables were made.

`fit` finds the polynomial whose largest weighted error on an interval is least (Remez' exchange
algorithm, in 60 digits) and rounds its coefficients to the precision that evaluates it: one after
the other from the one of the lowest power up, fitting those that are left again each time, so that
later ones make up for the rounding of earlier ones.

    python tools/minimax.py            prints every table with the error bound of its polynomial
    python tools/minimax.py exp_f32    prints one

It needs mpmath.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence

import mpmath as mp

mp.mp.dps = 60
_ROUNDS = 12
_TINY = mp.mpf(10) ** -6  # instead of 0, where many of the functions below are 0/0
Real = Callable[[mp.mpf], mp.mpf]


def rounded(x: mp.mpf, bits: int) -> mp.mpf:
    """`x` as the nearest number of so many bits."""
    if x == 0:
        return mp.mpf(0)
    mantissa, exponent = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def least_squares(
    rows: list[list[mp.mpf]], right: list[mp.mpf], weights: list[mp.mpf]
) -> list[mp.mpf]:
    """The c of least sum of weights * (rows @ c - right)**2, by the normal equations."""
    m = len(rows[0])
    weighted = [[w * v for v in row] for row, w in zip(rows, weights, strict=True)]
    columns, wide = list(zip(*rows, strict=True)), list(zip(*weighted, strict=True))
    normal = mp.matrix(m, m)
    for i in range(m):
        for j in range(i, m):
            normal[i, j] = normal[j, i] = mp.fdot(wide[i], columns[j])
    return list(mp.lu_solve(normal, mp.matrix([mp.fdot(w, right) for w in wide])))


def fit(
    g: Real,
    weight: Real,
    low: float,
    high: float,
    powers: Sequence[int],
    bits: int,
    fixed: dict[int, float] | None = None,
) -> tuple[list[mp.mpf], mp.mpf]:
    """Rounded coefficients for `powers`, and the largest weighted error.

    `fixed` gives coefficients that are not free.
    """
    a, b = mp.mpf(low), mp.mpf(high)
    found = {p: mp.mpf(c) for p, c in (fixed or {}).items()}
    free = [p for p in powers if p not in found]
    n = 12 * len(powers)
    nodes = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (2 * j + 1) / (2 * n)) for j in range(n)]
    scale = [weight(x) for x in nodes]
    rows = [[w * x**p for p in free] for x, w in zip(nodes, scale, strict=True)]
    right = [
        w * (g(x) - sum(c * x**p for p, c in found.items()))
        for x, w in zip(nodes, scale, strict=True)
    ]
    lawson = [mp.mpf(1)] * n
    for _ in range(_ROUNDS):
        c = least_squares(rows, right, lawson)
        errors = [abs(mp.fdot(row, c) - y) for row, y in zip(rows, right, strict=True)]
        lawson = [v * e for v, e in zip(lawson, errors, strict=True)]
        total = sum(lawson) / n
        lawson = [v / total for v in lawson]
    while free:
        c = least_squares(rows, right, lawson)
        value = found[free[0]] = rounded(c[0], bits)
        right = [y - value * row[0] for row, y in zip(rows, right, strict=True)]
        rows = [row[1:] for row in rows]
        free = free[1:]
    grid = [a + (b - a) * (j + _TINY) / 2000 for j in range(2001)]
    error = max(abs(weight(x) * (sum(c * x**p for p, c in found.items()) - g(x))) for x in grid)
    return [found[p] for p in powers], error


def text(x: mp.mpf, bits: int) -> str:
    """The shortest decimal that reads back as `x`."""
    if bits > 24:
        return repr(float(x))
    for digits in range(1, 12):
        short = f"{float(x):.{digits}g}"
        if struct.pack("f", float(short)) == struct.pack("f", float(x)):
            return repr(float(short))
    return repr(float(x))


def horner_table(powers: Sequence[int], c: Sequence[mp.mpf], bits: int) -> str:
    """The coefficients from the highest power down."""
    return ", ".join(text(v, bits) for _, v in sorted(zip(powers, c, strict=True), reverse=True))


LN2 = mp.log(2)
TABLES: dict[str, Callable[[], tuple[Sequence[int], tuple[list[mp.mpf], mp.mpf], int]]] = {}


def table(
    name: str,
    g: Real,
    weight: Real,
    low: float,
    high: float,
    powers: Sequence[int],
    bits: int,
    fixed: dict[int, float] | None = None,
) -> None:
    """Register a table to be printed under `name`."""
    TABLES[name] = lambda: (powers, fit(g, weight, low, high, powers, bits, fixed), bits)


def both(
    name: str,
    g: Real,
    weight: Real,
    low: float,
    high: float,
    single: Sequence[int],
    double: Sequence[int],
    fixed: dict[int, float] | None = None,
) -> None:
    """The tables of `name` for f32 and f64, of the given powers."""
    table(f"{name}_f32", g, weight, low, high, single, 24, fixed)
    table(f"{name}_f64", g, weight, low, high, double, 53, fixed)


# exp(r) = 1 + r + r*r * q(r), relative to exp(r); |r| slightly beyond log(2)/2.
both(
    "exp",
    lambda r: mp.expm1(r) / r if r else mp.mpf(1),
    lambda r: r / mp.exp(r),
    -0.3470,
    0.3470,
    range(7 - 1),
    range(12 - 1),
    {0: 1.0},
)
both(
    "expm1",
    lambda r: (mp.expm1(r) - r) / r**2,
    lambda r: r**2 / mp.expm1(r),
    -0.3470,
    0.3470,
    range(5),
    range(11),
    {0: 0.5},
)
both(
    "exp2",
    lambda r: mp.expm1(r * LN2) / r,
    lambda r: r / mp.power(2, r),
    -0.5001,
    0.5001,
    range(6),
    range(11),
)
# tanh(x) = x + x*z * table in powers of z = x*x, up to 0.55; beyond it from exp(2r) = table.
table(
    "tanh_f32",
    lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)),
    0,
    0.3027,
    range(4),
    24,
)
table(
    "exp_twice_f32",
    lambda r: mp.exp(2 * r),
    lambda r: mp.exp(-2 * r),
    -0.1735,
    0.1735,
    range(6),
    24,
    {0: 1.0},
)
# log(1 + f) = f + f*f * q(f), relative to log(1 + f); 1 + f from sqrt(1/2) to sqrt(2).
both(
    "log",
    lambda f: (mp.log1p(f) - f) / f**2,
    lambda f: f**2 / mp.log1p(f),
    mp.sqrt(0.5) - 1,
    mp.sqrt(2) - 1,
    range(9),
    range(20),
    {0: -0.5},
)


# log2(1 + q) = q*log2(e) + q*q * table, and log10 likewise; relative.
both(
    "log2",
    lambda q: (mp.log1p(q) - q) / q**2 / LN2,
    lambda q: LN2 * q**2 / mp.log1p(q),
    mp.sqrt(0.5) - 1,
    mp.sqrt(2) - 1,
    range(9),
    range(20),
)
both(
    "log10",
    lambda q: (mp.log1p(q) - q) / q**2 / mp.log(10),
    lambda q: mp.log(10) * q**2 / mp.log1p(q),
    mp.sqrt(0.5) - 1,
    mp.sqrt(2) - 1,
    range(9),
    range(20),
)
# Functions of r in powers of z = r*r. cosh(r) = 1 + z * table, sinh(r) = r + r*z * table.
both("cosh", lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, lambda z: z, 0, 0.121, range(3), range(5))
both(
    "sinh",
    lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    lambda z: z,
    0,
    0.121,
    range(2),
    range(5),
)
# sin(r) = r + r*z * table, |r| <= pi/2 and somewhat more.
both(
    "sin",
    lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)),
    0,
    2.53,
    range(4),
    range(8),
)
# tan(r) = r + r*z * table, |r| <= pi/4 and somewhat more.
both(
    "tan",
    lambda z: (mp.tan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    lambda z: z * mp.sqrt(z) / mp.tan(mp.sqrt(z)),
    0,
    0.65,
    range(7),
    range(15),
)
# atan(t) = t + t*z * table, |t| <= 0.55.
both(
    "atan",
    lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)),
    0,
    0.3026,
    range(6),
    range(14),
)
# asin(t) = t + t*z * table, |t| <= 1/2.
both(
    "asin",
    lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    lambda z: z * mp.sqrt(z) / mp.asin(mp.sqrt(z)),
    0,
    0.25,
    range(5),
    range(12),
)
# -log(1 - erf(a)) = a + a * table, relative to erf(a), up to where it rounds to 1.
table(
    "erf_f32",
    lambda a: -mp.log(mp.erfc(a)) / a - 1,
    lambda a: a * mp.erfc(a) / mp.erf(a),
    0,
    3.93,
    range(9),
    24,
)
table(
    "erf_f64",
    lambda a: -mp.log(mp.erfc(a)) / a - 1,
    lambda a: a * mp.erfc(a) / mp.erf(a),
    0,
    5.93,
    range(24),
    53,
)
# log2(1 - erf(a)) = a * table, of which the absolute error of 1 - erf(a) counts.
table(
    "erfc_f32",
    lambda a: mp.log(mp.erfc(a), 2) / a,
    lambda a: a * mp.erfc(a) * LN2,
    0,
    3.93,
    range(8),
    24,
)
# pow of f32 is computed in f64. log2(1 + q) = q * table, 2**r = table, as above.
table(
    "pow_log2_f64",
    lambda q: mp.log1p(q) / q / LN2,
    lambda q: LN2 * q / mp.log1p(q),
    mp.sqrt(0.5) - 1,
    mp.sqrt(2) - 1,
    range(15),
    53,
)
table(
    "pow_exp2_f64",
    lambda r: mp.power(2, r),
    lambda r: mp.power(2, -r),
    -0.5001,
    0.5001,
    range(8),
    53,
)
# pow of f64: log(1 + q) = q - q*q/2 + q**3 * table, |q| <= 2**-7, relative to q.
table(
    "pow_log_f64",
    lambda q: (mp.log1p(q) - q + q**2 / 2) / q**3,
    lambda q: q**2,
    -0.0079,
    0.0079,
    range(7),
    53,
)


def main(names: Sequence[str]) -> None:
    """Print the named tables, or all."""
    for name in names or TABLES:
        powers, (c, error), bits = TABLES[name]()
        print(f"{name}: error 2**{float(mp.log(error, 2)):.1f}")
        print("   ", horner_table(powers, c, bits))


if __name__ == "__main__":
    main(sys.argv[1:])
