"""The functions of the package, by torch's second path to them."""

from __future__ import annotations

from typing import Any

from ..core.register import FUNCTIONS


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
