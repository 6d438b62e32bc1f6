"""What a reduction keeps while it runs over its elements, and how two of those combine.

Floating sums and products are kept in float64 whatever the elements are: converting costs less than
the memory that the elements come from, and the result is then right to its last digit but one.
"""

from __future__ import annotations

import math

from .ir import FLOATS, INTEGERS, Function, Value

Kept = tuple[Value, ...]
LAST = 2**31 - 1  # behind every index


class Accumulator:
    """Values of some types; `inits` are neutral in `combine`, which is associative."""

    types: tuple[str, ...]
    indexed = False  # whether elements come with their index

    def __init__(self, f: Function) -> None:
        self.f = f

    def inits(self) -> Kept:
        """What is kept of no elements."""
        raise NotImplementedError

    def element(self, x: Value, index: Value | None) -> Kept:
        """What is kept of one element."""
        return (x,)

    def combine(self, *both: Value) -> Kept:
        """What is kept of some elements and others: given as one, then the other."""
        raise NotImplementedError

    def join(self, *both: Value) -> Kept:
        """The same for one more element, whose index is larger than those before."""
        return self.combine(*both)

    def result(self, kept: Kept, count: Value) -> Value:
        """The reduced value of `count` elements."""
        return kept[0]


class Folded(Accumulator):
    """One value and one operation: sums, products, and what integers and booleans have."""

    def __init__(self, f: Function, op: str, dtype: str, neutral: float, mean: bool) -> None:
        super().__init__(f)
        self.types = (dtype,)
        self.op = op
        self.neutral = neutral
        self.mean = mean

    def inits(self) -> Kept:
        return (self.f.const(self.neutral, self.types[0]),)

    def element(self, x: Value, index: Value | None) -> Kept:
        return (self.f.cast(x, self.types[0]),)

    def combine(self, *both: Value) -> Kept:
        return (self.f.call(self.op, *both),)

    def result(self, kept: Kept, count: Value) -> Value:
        return kept[0] / self.f.cast(count, "f64") if self.mean else kept[0]


class Extreme(Accumulator):
    """The largest or smallest number; NaN before any other."""

    def __init__(self, f: Function, largest: bool, dtype: str) -> None:
        super().__init__(f)
        self.types = (dtype,)
        self.largest = largest

    def inits(self) -> Kept:
        return (self.f.const(-math.inf if self.largest else math.inf, self.types[0]),)

    def combine(self, *both: Value) -> Kept:
        # A comparison with NaN is false: the first choice keeps a NaN at the left, the second takes
        # one from the right. On x86 that is one instruction and one for the NaN.
        left, right = both
        better = self.f.select(right > left if self.largest else right < left, right, left)
        return (self.f.select(right == right, better, right),)


class Position(Accumulator):
    """The largest or smallest element and its index, the first of several; NaN before any other.

    The index behind every other, that of no element, stays only where all elements are the type's
    extreme: then the first is meant.
    """

    indexed = True

    def __init__(self, f: Function, largest: bool, dtype: str) -> None:
        super().__init__(f)
        self.floating = dtype in FLOATS
        self.types = (dtype, "i32")
        self.largest = largest

    def inits(self) -> Kept:
        dtype = self.types[0]
        worst = (-math.inf if self.largest else math.inf) if self.floating else (
            bounds(dtype)[0 if self.largest else 1]
        )  # fmt: skip
        return self.f.const(worst, dtype), self.f.const(LAST, "i32")

    def element(self, x: Value, index: Value | None) -> Kept:
        assert index is not None
        return self.f.cast(x, self.types[0]), self.f.cast(index, "i32")

    def _choose(self, take: Value, *both: Value) -> Kept:
        value, index, other, place = both
        return self.f.select(take, other, value), self.f.select(take, place, index)

    def combine(self, *both: Value) -> Kept:
        value, index, other, place = both
        take = other > value if self.largest else other < value
        tie = other == value
        if self.floating:
            nan, other_nan = value != value, other != other
            take = take | (other_nan & ~nan)
            tie = tie | (other_nan & nan)
        return self._choose(take | (tie & (place < index)), *both)

    def join(self, *both: Value) -> Kept:
        value, _, other, _ = both
        if not self.floating:
            return self._choose(other > value if self.largest else other < value, *both)
        worse = other <= value if self.largest else other >= value
        return self._choose(~worse & (value == value), *both)

    def result(self, kept: Kept, count: Value) -> Value:
        return self.f.cast(self.f.select(kept[1] == LAST, 0, kept[1]), "i64")


class Squares(Accumulator):
    """Squared deviations from the mean, from sums of deviations from something near it.

    Note [shifted squares]
    With deviations d from any number, the sum over (x - mean)² is that over d² less (that over
    d)² / n. The difference loses digits in proportion to n (mean - that number)² / the result. With
    the mean itself, rounded, it loses none. An element will do for float32: even if it is so far
    out that it makes the whole variance, n roundings of float64 are left, far below float32's.
    """

    types = ("f64", "f64")

    def inits(self) -> Kept:
        return self.f.const(-0.0, "f64"), self.f.const(-0.0, "f64")

    def element(self, x: Value, index: Value | None) -> Kept:
        return x, x * x

    def combine(self, *both: Value) -> Kept:
        return both[0] + both[2], both[1] + both[3]

    def result(self, kept: Kept, count: Value) -> Value:
        total = kept[1] - kept[0] * kept[0] / self.f.cast(count, "f64")
        return self.f.select(total < 0, 0, total)


def accumulator(f: Function, kind: str, dtype: str) -> Accumulator:
    """What reduces elements of the type `dtype` by the form's `kind`."""
    if kind == "squares":
        return Squares(f)
    if kind in ("argmax", "argmin"):
        return Position(f, kind == "argmax", "u8" if dtype == "bool" else dtype)
    if kind in ("any", "all") or dtype == "bool":
        either = kind in ("any", "sum", "max")
        return Folded(f, "or" if either else "and", "bool", not either, False)
    if kind in ("sum", "prod", "mean"):
        wide = "f64" if dtype in FLOATS else dtype
        product = kind == "prod"
        return Folded(f, "mul" if product else "add", wide, 1 if product else -0.0, kind == "mean")
    if dtype in FLOATS:
        return Extreme(f, kind == "max", dtype)
    low, high = bounds(dtype)
    if kind == "max":
        return Folded(f, "maximum", dtype, low, False)
    return Folded(f, "minimum", dtype, high, False)


def kept_types(kind: str, dtype: str) -> tuple[str, ...]:
    """The types of the values that are kept for the same.

    >>> kept_types("argmax", "f32")
    ('f32', 'i32')
    """
    return accumulator(Function(""), kind, dtype).types


def bounds(dtype: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    assert dtype in INTEGERS
    bits = int(dtype[1:])
    low = 0 if dtype[0] == "u" else -(1 << (bits - 1))
    return low, low + (1 << bits) - 1
