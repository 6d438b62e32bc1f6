"""Elementary functions as values of the loop IR, for vectors of any width, to 2 ulp."""

from __future__ import annotations

from collections.abc import Callable

from .elementary_exp import exp, exp2, tanh
from .elementary_log import log
from .ir import Function, Value


def isnan(f: Function, x: Value) -> Value:
    """Whether x is NaN."""
    return x != x


# By the name of the scalar primitive; floating arguments, all of one type.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "isnan": isnan, "exp": exp, "exp2": exp2, "tanh": tanh, "log": log,
}  # fmt: skip
# The same for integers.
INTEGER_FUNCTIONS: dict[str, Callable[..., Value]] = {}
