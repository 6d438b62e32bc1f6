"""Elementary functions as values of the loop IR, for vectors of any width, to 2 ulp."""

from __future__ import annotations

from collections.abc import Callable

from .ir import Function, Value


def isnan(f: Function, x: Value) -> Value:
    """Whether x is NaN."""
    return x != x


# By the name of the scalar primitive; floating arguments, all of one type.
FUNCTIONS: dict[str, Callable[..., Value]] = {"isnan": isnan}
# The same for integers.
INTEGER_FUNCTIONS: dict[str, Callable[..., Value]] = {}
