"""What a reduction keeps while it runs over its elements, and how two of those combine.

Note [short and long sums]
A few elements, RUN of a row in lanes or GROUP of a column, are summed in their own precision, and
these short sums in float64. So the error does not grow with the number of elements; it is that of
summing in pairs, or better, at the cost of neither.
"""

from __future__ import annotations

import math
from typing import Any

from .complex_lower import PARTS, Pair
from .ir import FLOATS, INTEGERS, Function, Value
from .lower import NotCompiled

Kept = tuple[Value, ...]
LAST = 2**31 - 1  # behind every index
POSITIONS = ("argmax", "argmin", "first_max", "first_min")


class Accumulator:
    """Values of some types; `inits` are neutral in `combine`, which is associative.

    Of a few elements values of the types `short` are kept, of all of them `types`.
    """

    types: tuple[str, ...]
    short: tuple[str, ...]

    def __init__(self, f: Function, types: tuple[str, ...], short: tuple[str, ...] = ()) -> None:
        self.f = f
        self.types = types
        self.short = short or types

    def inits(self, types: tuple[str, ...]) -> Kept:
        """What is kept of no elements."""
        raise NotImplementedError

    def element(self, x: Value) -> Kept:
        """What is kept of one element."""
        return (self.f.cast(x, self.short[0]),)

    def combine(self, *both: Value) -> Kept:
        """What is kept of some elements and others: given as one, then the other."""
        raise NotImplementedError

    def lengthen(self, kept: Kept) -> Kept:
        """What is kept of a few elements as if they were many."""
        return tuple([self.f.cast(v, t) for v, t in zip(kept, self.types, strict=True)])

    def results(self, kept: Kept, count: Value) -> Kept:
        """What `count` elements are reduced to."""
        return kept


class Folded(Accumulator):
    """One value and one operation: sums, products, and what integers and booleans have."""

    def __init__(self, f: Function, op: str, types: tuple[str, str], neutral: float) -> None:
        super().__init__(f, types[1:], types[:1])
        self.op = op
        self.neutral = neutral

    def inits(self, types: tuple[str, ...]) -> Kept:
        return (self.f.const(self.neutral, types[0]),)

    def combine(self, *both: Value) -> Kept:
        return (self.f.call(self.op, *both),)


class Mean(Folded):
    """A sum that is divided in the end."""

    def results(self, kept: Kept, count: Value) -> Kept:
        return (kept[0] / self.f.cast(count, kept[0].dtype),)


class ComplexSum(Accumulator):
    """The sums of both parts, or their means."""

    def __init__(self, f: Function, dtype: str, mean: bool) -> None:
        super().__init__(f, ("f64", "f64"), (PARTS[dtype],) * 2)
        self.mean = mean

    def inits(self, types: tuple[str, ...]) -> Kept:
        return tuple([self.f.const(-0.0, t) for t in types])

    def element(self, x: Any) -> Kept:
        return tuple([self.f.cast(part, t) for part, t in zip(x, self.short, strict=True)])

    def combine(self, *both: Value) -> Kept:
        return both[0] + both[2], both[1] + both[3]

    def results(self, kept: Kept, count: Value) -> Any:
        if self.mean:
            number = self.f.cast(count, "f64")
            kept = kept[0] / number, kept[1] / number
        return (Pair(*kept),)


class Extreme(Accumulator):
    """The largest or smallest number; NaN before any other."""

    def __init__(self, f: Function, largest: bool, dtype: str) -> None:
        super().__init__(f, (dtype,))
        self.largest = largest

    def inits(self, types: tuple[str, ...]) -> Kept:
        return (self.f.const(-math.inf if self.largest else math.inf, types[0]),)

    def combine(self, *both: Value) -> Kept:
        # A comparison with NaN is false: the first choice keeps a NaN at the left, the second takes
        # one from the right. On x86 that is one instruction and one for the NaN.
        left, right = both
        better = self.f.select(right > left if self.largest else right < left, right, left)
        return (self.f.select(right == right, better, right),)


class Position(Accumulator):
    """The largest or smallest element and its index, the first of several; NaN before any other.

    The index behind every other, that of no element, stays only where all elements are the type's
    extreme: then the first is meant. The results are `both`, or the index.
    """

    def __init__(self, f: Function, largest: bool, dtype: str, both: bool) -> None:
        super().__init__(f, (dtype, "i32"))
        self.largest = largest
        self.both = both
        self.floating = dtype in FLOATS
        self.extreme = accumulator(f, "max" if largest else "min", dtype)

    def inits(self, types: tuple[str, ...]) -> Kept:
        return *self.extreme.inits(types[:1]), self.f.const(LAST, "i32")

    def combine(self, *both: Value) -> Kept:
        value, index, other, place = both
        take = other > value if self.largest else other < value
        tie = other == value
        if self.floating:
            nan, other_nan = value != value, other != other
            take = take | (other_nan & ~nan)
            tie = tie | (other_nan & nan)
        return self._choose(take | (tie & (place < index)), *both)

    def better(self, value: Value, other: Value) -> Value:
        """Whether an element behind those before takes their place."""
        if not self.floating:
            return other > value if self.largest else other < value
        worse = other <= value if self.largest else other >= value
        return ~worse & (value == value)

    def join(self, *both: Value) -> Kept:
        """`combine` with such an element."""
        return self._choose(self.better(both[0], both[2]), *both)

    def _choose(self, take: Value, *both: Value) -> Kept:
        value, index, other, place = both
        return self.f.select(take, other, value), self.f.select(take, place, index)

    def hit(self, x: Value, extreme: Value) -> Value:
        """Whether an element is the extreme of those among which it is."""
        if not self.floating:
            return x == extreme
        return self.f.select(extreme == extreme, x == extreme, x != x)

    def results(self, kept: Kept, count: Value) -> Kept:
        place = self.f.cast(self.f.select(kept[1] == LAST, 0, kept[1]), "i64")
        return (kept[0], place) if self.both else (place,)


class Squares(Accumulator):
    """Squared deviations from the mean, from sums of deviations from something near it.

    Note [shifted squares]
    With deviations d from any number, the sum over (x - mean)² is that over d² less (that over
    d)² / n. The difference loses digits in proportion to n (mean - that number)² / the result. With
    the mean itself, rounded, it loses none. An element will do for float32: even if it is so far
    out that it makes the whole variance, n roundings of float64 are left, far below float32's.
    """

    def __init__(self, f: Function, dtype: str) -> None:
        super().__init__(f, (dtype, dtype))

    def inits(self, types: tuple[str, ...]) -> Kept:
        return self.f.const(-0.0, types[0]), self.f.const(-0.0, types[1])

    def element(self, x: Value) -> Kept:
        return x, x * x

    def combine(self, *both: Value) -> Kept:
        return both[0] + both[2], both[1] + both[3]

    def results(self, kept: Kept, count: Value) -> Kept:
        total = kept[1] - kept[0] * kept[0] / self.f.cast(count, kept[0].dtype)
        return (self.f.select(total < 0, 0, total),)


def accumulator(f: Function, kind: str, dtype: str) -> Accumulator:
    """What reduces elements of the type `dtype` by the form's `kind`."""
    if dtype in PARTS:
        if kind not in ("sum", "mean"):
            raise NotCompiled(f"{kind} of complex numbers")
        return ComplexSum(f, dtype, kind == "mean")
    if kind == "squares":
        return Squares(f, wide(f, dtype))
    if kind in POSITIONS:
        kept = "u8" if dtype == "bool" else dtype
        return Position(f, "max" in kind, kept, both=kind.startswith("first"))
    if kind in ("any", "all") or dtype == "bool":
        either = kind in ("any", "sum", "max")
        return Folded(f, "or" if either else "and", ("bool", "bool"), not either)
    long = wide(f, dtype)
    if kind == "prod":  # short ones could overflow where the whole does not
        return Folded(f, "mul", (long, long), 1)
    if kind in ("sum", "mean"):
        return (Mean if kind == "mean" else Folded)(f, "add", (dtype, long), -0.0)
    if dtype in FLOATS:
        return Extreme(f, kind == "max", dtype)
    low, high = bounds(dtype)
    if kind == "max":
        return Folded(f, "maximum", (dtype, dtype), low)
    return Folded(f, "minimum", (dtype, dtype), high)


def wide(f: Function, dtype: str) -> str:
    """The type in which many elements are summed: float64 where the device has it."""
    return "f64" if f.double and dtype in FLOATS else dtype


def kept_types(kind: str, dtype: str, double: bool = True) -> tuple[str, ...]:
    """The types of the values that are kept for the same.

    >>> kept_types("argmax", "f32")
    ('f32', 'i32')
    """
    return accumulator(Function("", double=double), kind, dtype).types


def bounds(dtype: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    assert dtype in INTEGERS
    bits = int(dtype[1:])
    low = 0 if dtype[0] == "u" else -(1 << (bits - 1))
    return low, low + (1 << bits) - 1
