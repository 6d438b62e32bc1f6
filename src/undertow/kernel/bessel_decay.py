"""Modified Bessel functions of the second kind, orders 0 and 1, as scalar expressions.

Up to 1 their series, with -log(x e**gamma / 2) I(x), whose parts do not cancel there; beyond,
exp(-x) / sqrt(x) times a quotient by 1/x. Infinite at zero, NaN below. tools/special_tables.py made
the coefficients.
"""

from __future__ import annotations

from math import inf, nan

from . import special_tables as tables
from .expr import Expr, call, polynomial, where

_LOG = -0.11593151565841245  # log(e**gamma / 2)


def k0(x: Expr, scaled: bool = False) -> Expr:
    """K0, or exp(x) K0. Worst error 2.2 ulp in float64, 2.3 in float32."""
    square = x * x
    log = call("log", x) + _LOG
    near = square * polynomial(square, tables.K0) - log * polynomial(square, tables.K_I0)
    return _joined(x, near, 1.1875, tables.K0_FAR, tables.K0_FAR_Q, scaled)


def k1(x: Expr, scaled: bool = False) -> Expr:
    """K1, or exp(x) K1. Worst error 2.5 ulp in float64, 2.5 in float32."""
    square = x * x
    log = call("log", x) + _LOG
    grown = log * polynomial(square, tables.K_I1) + polynomial(square, tables.K1)
    return _joined(x, 1.0 / x + x * grown, 1.4375, tables.K1_FAR, tables.K1_FAR_Q, scaled)


def _joined(
    x: Expr,
    near: Expr,
    offset: float,
    above: tuple[float, ...],
    below: tuple[float, ...],
    scaled: bool,
) -> Expr:
    w = 1.0 / x
    quotient = call("div", polynomial(w, above), polynomial(w, below))
    far = (offset + quotient) * call("sqrt", w)
    if scaled:
        near = near * call("exp", x)
    else:
        far = far * call("exp", -x)
    value = where(x <= 1.0, near, far)
    return where(x < 0.0, nan, where(call("eq", x, 0.0), inf, value))
