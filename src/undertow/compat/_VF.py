"""The functions of the package, by torch's second path to them."""

from __future__ import annotations

from typing import Any

from ..core.register import FUNCTIONS


def unique_dim(
    self: Any,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Any, Any, Any]:
    """`unique` along a dimension: values, places and counts, whatever is asked for."""
    found: tuple[Any, Any, Any] = FUNCTIONS["unique"](self, sorted, True, True, dim)
    return found


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
