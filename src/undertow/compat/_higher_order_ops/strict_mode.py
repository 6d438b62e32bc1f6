"""`strict_mode`: a function called as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["strict_mode"]


def strict_mode(callable: Callable[..., Any], operands: Any) -> Any:
    """`callable(*operands)`."""
    return callable(*operands)
