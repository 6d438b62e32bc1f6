"""Elementary functions as values of the loop IR, for vectors of any width, to 2 ulp."""

from __future__ import annotations

from collections.abc import Callable

from .elementary_exp import cosh, exp, exp2, expm1, sinh, tanh
from .elementary_log import acosh, asinh, atanh, log, log1p, log2, log10
from .elementary_trig import cos, sin, tan
from .ir import Function, Value


def isnan(f: Function, x: Value) -> Value:
    """Whether x is NaN."""
    return x != x


# By the name of the scalar primitive; floating arguments, all of one type.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "isnan": isnan,
    "exp": exp, "exp2": exp2, "expm1": expm1, "sinh": sinh, "cosh": cosh, "tanh": tanh,
    "log": log, "log2": log2, "log10": log10, "log1p": log1p,
    "asinh": asinh, "acosh": acosh, "atanh": atanh,
    "sin": sin, "cos": cos, "tan": tan,
}  # fmt: skip
# The same for integers.
INTEGER_FUNCTIONS: dict[str, Callable[..., Value]] = {}
