"""Scalar expressions over complex numbers as values of the loop IR: two real values for each.

Complex numbers lie in memory as pairs, real part first. What has no formula here (powers, inverse
functions) is left to the reference backend, and so are comparisons of size, which have no meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from .evaluate import INFINITY, NAN
from .expr import Expr
from .ir import Value
from .lower import Lowering, NotCompiled

PARTS = {"c64": "f32", "c128": "f64"}


class Pair(NamedTuple):
    """The two parts of a complex number."""

    re: Value
    im: Value


class ComplexLowering(Lowering):
    """Expressions some of whose arguments are pairs; real ones are the values that they were."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}  # of pairs alone, by primitive

    def value(self, expr: Expr) -> Any:
        """The expression's value, a Pair if it is complex."""
        found = self._visit(expr)
        if isinstance(found, complex):
            return self.pair(found)
        return found if isinstance(found, (Value, Pair)) else self._constant(found, self.dtype)

    def _identity(self, given: Any) -> Any:
        if isinstance(given, Pair):
            return id(given.re), id(given.im)
        return super()._identity(given)

    def _call(self, head: str, given: list[Any]) -> Any:
        if not any(isinstance(g, (Pair, complex)) for g in given):
            return super()._call(head, given)
        if head in _BY_PARTS:
            return _BY_PARTS[head](self, *given)
        if head not in self.functions:
            raise NotCompiled(f"{head} of complex numbers")
        return self.functions[head](self, *[self.pair(g) for g in given])

    def real(self, head: str, *given: Any) -> Value:
        """A primitive of real values."""
        return super()._call(head, list(given))

    def pair(self, given: Any) -> Pair:
        """Anything as a pair."""
        if isinstance(given, Pair):
            return given
        if isinstance(given, complex):
            return Pair(
                self._constant(given.real, self.dtype), self._constant(given.imag, self.dtype)
            )
        value = given if isinstance(given, Value) else self._constant(given, self.dtype)
        return Pair(value, self._constant(0.0, value.dtype))

    def _truth(self, given: Any) -> Value:
        if isinstance(given, Pair):
            return self.f.call("or", self.real("ne", given.re, 0), self.real("ne", given.im, 0))
        return super()._truth(given)


L = ComplexLowering


def _parts(head: str) -> Callable[..., Any]:
    """Sums and differences; a real operand has nothing to add to the imaginary part."""

    def run(c: L, a: Any, b: Any) -> Pair:
        if not isinstance(a, (Pair, complex)):
            (re, im), x = c.pair(b), a
            return Pair(c.real(head, x, re), im if head == "add" else c.real("neg", im))
        re, im = c.pair(a)
        if not isinstance(b, (Pair, complex)):
            return Pair(c.real(head, re, b), im)
        other = c.pair(b)
        return Pair(c.real(head, re, other.re), c.real(head, im, other.im))

    return run


def mul(c: L, a: Any, b: Any) -> Pair:
    if not isinstance(a, (Pair, complex)):
        a, b = b, a
    x, y = c.pair(a)
    if not isinstance(b, (Pair, complex)):
        return Pair(c.real("mul", x, b), c.real("mul", y, b))
    u, v = c.pair(b)
    f = c.f
    return Pair(f.fma(x, u, -(y * v)), f.fma(x, v, y * u))


def _div(c: L, a: Any, b: Any) -> Pair:
    if not isinstance(b, (Pair, complex)):
        x, y = c.pair(a)
        return Pair(c.real("div", x, b), c.real("div", y, b))
    # Smith's: by the larger part of the divisor, so that squares do not overflow.
    (x, y), (u, v) = c.pair(a), c.pair(b)
    f = c.f
    tall = f.call("abs", v) > f.call("abs", u)
    large, small = f.select(tall, v, u), f.select(tall, u, v)
    zero = c.real("eq", large, 0)
    ratio = f.select(zero, 0.0, small / large)
    over = f.fma(small, ratio, large)
    first, second = f.select(tall, y, x), f.select(tall, x, y)
    re = f.fma(second, ratio, first) / over
    im = f.fma(f.select(tall, y, -x), ratio, f.select(tall, -x, y)) / over
    return Pair(re, im)


def _where(c: L, condition: Any, yes: Any, no: Any) -> Pair:
    test = c._truth(condition)
    a, b = c.pair(yes), c.pair(no)
    return Pair(c.f.select(test, a.re, b.re), c.f.select(test, a.im, b.im))


def _abs(c: L, z: Pair) -> Value:
    return c.real("hypot", z.re, z.im)


def exp(c: L, z: Pair) -> Pair:
    """C99's, also where exp of the real part alone would overflow, and at infinities."""
    f = c.f
    cos, sin = c.real("cos", z.im), c.real("sin", z.im)
    edge = 80.0 if z.re.dtype == "f32" else 700.0

    def product(size: Value, *factors: Value) -> tuple[Value, Value]:
        re, im = size * cos, size * sin
        for factor in factors:
            re, im = re * factor, im * factor
        return re, f.select(c.real("eq", z.im, 0), z.im, im)

    def far() -> tuple[Value, Value]:
        """In up to three steps, since the sine may be as small as exp is large."""
        rest, factors = z.re, []
        for _ in range(2):
            beyond = rest > edge
            factors.append(f.select(beyond, f.const(math.exp(edge), rest.dtype), 1.0))
            rest = f.select(beyond, rest - edge, rest)
        re, im = product(c.real("exp", rest), *factors)
        infinite = f.call("abs", z.re) == INFINITY
        limit = infinite & ~(f.call("abs", z.im) < INFINITY)  # of an angle that is not finite
        above = z.re > 0
        nothing = f.call("copysign", f.const(0.0, rest.dtype), z.im)
        found = f.select(above, z.re, 0.0), f.select(above, NAN, nothing)
        return f.select(limit, found[0], re), f.select(limit, found[1], im)

    near = f.call("abs", z.re) < edge
    return Pair(*f.rare(~near, product(c.real("exp", z.re)), far))


def log(c: L, z: Pair) -> Pair:
    """Near the unit circle by log1p, where the logarithm of the size has lost its digits."""
    f = c.f
    x, y = f.call("abs", z.re), f.call("abs", z.im)
    large, small = f.select(y > x, y, x), f.select(y > x, x, y)
    size = c.real("hypot", z.re, z.im)
    near = c.real("log1p", f.fma(small, small, (large - 1.0) * (large + 1.0))) * 0.5
    close = f.call("and", size > 0.5, size < 2.0)
    return Pair(f.select(close, near, c.real("log", size)), c.real("atan2", z.im, z.re))


def sqrt(c: L, z: Pair) -> Pair:
    f = c.f
    size = c.real("hypot", z.re, z.im)
    root = f.call("sqrt", f.call("abs", z.re) * 0.5 + size * 0.5)
    nothing = c.real("eq", root, 0)
    other = f.call("abs", z.im) / (f.select(nothing, 1.0, root) * 2.0)
    right = z.re >= 0.0
    re, im = f.select(right, root, other), f.select(right, other, root)
    return Pair(re, f.select(nothing, z.im, f.call("copysign", im, z.im)))


def _waves(first: str, second: str, turned: bool, minus: bool) -> Callable[..., Any]:
    """sin, cos, sinh and cosh: products of a wave of one part and a hyperbola of the other."""

    def run(c: L, z: Pair) -> Pair:
        wave, hyper = (z.im, z.re) if turned else (z.re, z.im)
        sine, cosine = c.real("sin", wave), c.real("cos", wave)
        grown, flat = c.real("sinh", hyper), c.real("cosh", hyper)
        by = {"sin": sine, "cos": cosine, "sinh": grown, "cosh": flat}
        swap = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh"}

        def product(one: str, other: str) -> Value:
            """Zero where a factor that is odd is, also times infinity and NaN, as in C99."""
            found = by[one] * by[other]
            for zero, factor in ((one, by[other]), (other, by[one])):
                if zero.startswith("sin"):
                    side = c.f.call("copysign", c.f.const(1.0, factor.dtype), factor)
                    found = c.f.select(c.real("eq", by[zero], 0), by[zero] * side, found)
            return found

        re, im = product(first, second), product(swap[first], swap[second])
        return Pair(re, -im if minus else im)

    return run


def _either(head: str, join: str) -> Callable[..., Any]:
    """A question about each part of each operand."""

    def run(c: L, *given: Pair) -> Value:
        re, im = (c.real(head, *[g[i] for g in given]) for i in (0, 1))
        return c.f.call(join, re, im)

    return run


# Those that look at what kind of numbers they get, and those of pairs alone.
_BY_PARTS: dict[str, Callable[..., Any]] = {
    "add": _parts("add"),
    "sub": _parts("sub"),
    "mul": mul,
    "div": _div,
    "where": _where,
    "logical_not": lambda c, a: ~c._truth(a),
    "logical_and": lambda c, a, b: c.f.call("and", c._truth(a), c._truth(b)),
    "logical_or": lambda c, a, b: c.f.call("or", c._truth(a), c._truth(b)),
    "logical_xor": lambda c, a, b: c.f.call("ne", c._truth(a), c._truth(b)),
}
ComplexLowering.functions |= {
    "neg": lambda c, z: Pair(-z.re, -z.im),
    "conj": lambda c, z: Pair(z.re, -z.im),
    "real": lambda c, z: z.re,
    "imag": lambda c, z: z.im,
    "abs": _abs,
    "angle": lambda c, z: c.real("atan2", z.im, z.re),
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "sin": _waves("sin", "cosh", False, False),
    "cos": _waves("cos", "cosh", False, True),
    "sinh": _waves("cos", "sinh", True, False),
    "cosh": _waves("cos", "cosh", True, False),
    "eq": _either("eq", "and"),
    "ne": _either("ne", "or"),
    "isnan": _either("isnan", "or"),
    "isinf": _either("isinf", "or"),
    "isfinite": _either("isfinite", "and"),
}
