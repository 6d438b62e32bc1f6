"""Convolutions with fewer multiplications: Cook and Toom's matrices, for any device.

Note [fewer products]
m outputs of a kernel of r taps, stride 1, are the coefficients of a product of polynomials, which
is known from its values at n = m + r - 1 points:

    y = A ((G w) * (B x))        A: m × n,  G: n × r,  B: n × n

with one multiplication for each point instead of m · r. Over channels each point is a matrix
product. The points are small numbers and infinity, so that the matrices are cheap and the rounding
errors small; see `docs/inside_convolution.md` for what they are. In two dimensions the matrices act
along both, and there are as many points as pairs. The gradient of a weight is the same form with
the cotangent's tiles of m as kernels and r outputs: A and G change their sizes, B stays.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import NamedTuple

Matrix = tuple[tuple[float, ...], ...]
POINTS = tuple(Fraction(p) for p in ("0", "1", "-1", "2", "-1/2", "-2", "1/2"))


class Transforms(NamedTuple):
    """The matrices of m outputs and r taps."""

    outputs: Matrix  # A
    taps: Matrix  # G
    inputs: Matrix  # B


@functools.cache
def transforms(m: int, r: int) -> Transforms:
    """The matrices for m outputs of r taps; exact, as far as floats can hold them.

    >>> A, G, B = transforms(2, 3)
    >>> A
    ((1.0, 1.0, 1.0, 0.0), (0.0, 1.0, -1.0, 1.0))
    >>> G
    ((-1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
    >>> B
    ((-1.0, 0.0, 1.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 1.0, 0.0), (0.0, -1.0, 0.0, 1.0))
    """
    n = m + r - 1
    if min(m, r) == 1:  # a plain sum, or a plain product: nothing is transformed
        same = _floats([[Fraction(i == j) for j in range(n)] for i in range(n)])
        ones = (1.0,) * n
        return Transforms((ones,), same, same) if m == 1 else Transforms(same, ((1.0,),) * n, same)
    points = POINTS[: n - 1]
    others = [[q for q in points if q != p] for p in points]
    outputs = [[p**i for p in points] + [Fraction(i == m - 1)] for i in range(m)]
    taps = [
        [p**i / _value(rest, p) for i in range(r)] for p, rest in zip(points, others, strict=True)
    ]
    taps.append([Fraction(i == r - 1) for i in range(r)])
    inputs = [[*_coefficients(rest), Fraction(0)] for rest in others]
    inputs.append(_coefficients(points))
    return Transforms(_floats(outputs), _floats(taps), _floats(inputs))


def _coefficients(roots: tuple[Fraction, ...] | list[Fraction]) -> list[Fraction]:
    """Those of the polynomial with the roots, the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [a - root * b for a, b in zip(shifted, [*found, Fraction(0)], strict=True)]
    return found


def _value(roots: list[Fraction], at: Fraction) -> Fraction:
    product = Fraction(1)
    for root in roots:
        product *= at - root
    return product


def _floats(rows: list[list[Fraction]]) -> Matrix:
    return tuple(tuple(float(x) for x in row) for row in rows)
