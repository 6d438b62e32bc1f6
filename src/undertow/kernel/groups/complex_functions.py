"""Functions of complex numbers for devices; the CPU takes NumPy's.

Note [branch cuts]
Inverse functions are W. Kahan's ("Branch cuts for complex elementary functions", 1987): by roots of
1 - z and 1 + z, whose imaginary parts keep the sign of a zero, which tells the side of a cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from ..complex_lower import ComplexLowering, Pair, exp, log, mul, sqrt
from ..evaluate import NAN
from ..ir import Value

C = ComplexLowering


def _scaled(z: Pair, by: float) -> Pair:
    return Pair(z.re * by, z.im * by)


def _expm1(c: C, z: Pair) -> Pair:
    half = c.real("sin", z.im * 0.5)
    grown = c.real("expm1", z.re)
    re = c.f.fma(grown, c.real("cos", z.im), half * half * -2.0)
    return Pair(re, (grown + 1.0) * c.real("sin", z.im))


def _tanh(c: C, z: Pair) -> Pair:
    f = c.f
    far = f.call("abs", z.re) > 20.0
    x = f.select(far, 0.0, z.re)
    tangent, s = c.real("tan", z.im), c.real("sinh", x)
    beta, rho = f.fma(tangent, tangent, 1.0), f.call("sqrt", f.fma(s, s, 1.0))
    under = f.fma(beta * s, s, 1.0)
    one = f.call("copysign", f.const(1.0, z.re.dtype), z.re)
    fallen = c.real("exp", f.call("abs", z.re) * -2.0) * 2.0 * c.real("sin", z.im * 2.0)
    return Pair(f.select(far, one, beta * rho * s / under), f.select(far, fallen, tangent / under))


def _roots(c: C, z: Pair) -> tuple[Pair, Pair]:
    """Of 1 - z and 1 + z."""
    return sqrt(c, Pair(1.0 - z.re, -z.im)), sqrt(c, Pair(z.re + 1.0, z.im))


def _acos(c: C, z: Pair) -> Pair:
    less, more = _roots(c, z)
    im = c.f.fma(more.re, less.im, -(more.im * less.re))
    return Pair(c.real("atan2", less.re, more.re) * 2.0, c.real("asinh", im))


def _asin(c: C, z: Pair) -> Pair:
    less, more = _roots(c, z)
    re = c.f.fma(less.re, more.re, -(less.im * more.im))
    im = c.f.fma(less.re, more.im, -(less.im * more.re))
    return Pair(c.real("atan2", z.re, re), c.real("asinh", im))


def _acosh(c: C, z: Pair) -> Pair:
    less, more = sqrt(c, Pair(z.re - 1.0, z.im)), sqrt(c, Pair(z.re + 1.0, z.im))
    re = c.f.fma(less.re, more.re, less.im * more.im)
    return Pair(c.real("asinh", re), c.real("atan2", less.im, more.re) * 2.0)


def _atanh(c: C, z: Pair) -> Pair:
    f = c.f
    x = f.call("abs", z.re)  # on the other side the logarithm would lose its digits
    less, square = 1.0 - x, z.im * z.im
    re = c.real("log1p", x * 4.0 / f.fma(less, less, square)) * 0.25
    im = c.real("atan2", z.im * 2.0, f.fma(less, x + 1.0, -square)) * 0.5
    return Pair(f.call("copysign", re, z.re), im)


def _turned(function: Callable[[C, Pair], Pair]) -> Callable[[C, Pair], Pair]:
    """f(i z) / i, which makes of each hyperbolic function its circular one, and back."""

    def run(c: C, z: Pair) -> Pair:
        found = function(c, Pair(-z.im, z.re))
        return Pair(found.im, -found.re)

    return run


def _pow(c: C, a: Pair, b: Pair) -> Pair:
    f = c.f
    nothing: Value = f.call("and", c.real("eq", a.re, 0), c.real("eq", a.im, 0))
    found = exp(c, mul(c, b, log(c, Pair(f.select(nothing, 1.0, a.re), a.im))))
    plain = f.call("and", c.real("eq", b.re, 0), c.real("eq", b.im, 0))
    above = f.select(b.re > 0.0, f.const(0.0, a.re.dtype), NAN)
    of_zero = f.select(plain, 1.0, above)
    other = f.select(plain, f.const(0.0, a.re.dtype), above)
    return Pair(f.select(nothing, of_zero, found.re), f.select(nothing, other, found.im))


class DeviceComplexLowering(ComplexLowering):
    """Expressions of pairs, with all functions that NumPy has."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {
        **ComplexLowering.functions,
        "exp2": lambda c, z: exp(c, _scaled(z, math.log(2))),
        "expm1": _expm1,
        "log2": lambda c, z: _scaled(log(c, z), 1 / math.log(2)),
        "log10": lambda c, z: _scaled(log(c, z), 1 / math.log(10)),
        "log1p": lambda c, z: log(c, Pair(z.re + 1.0, z.im)),
        "tanh": _tanh,
        "tan": _turned(_tanh),
        "acos": _acos,
        "asin": _asin,
        "asinh": _turned(_asin),
        "acosh": _acosh,
        "atanh": _atanh,
        "atan": _turned(_atanh),
        "pow": _pow,
    }
