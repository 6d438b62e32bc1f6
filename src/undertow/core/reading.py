"""Who is told when a program reads the elements of a tensor: a trace, which cannot follow that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Empty as a rule, so that reading asks for nothing else.
READERS: list[Callable[[Any], None]] = []


def tell(t: Any) -> None:
    """Tell everybody that the elements of `t` are read; None: that random numbers are drawn."""
    for reader in list(READERS):
        reader(t)
