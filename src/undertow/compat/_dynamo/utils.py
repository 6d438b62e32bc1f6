"""Questions about torch's compiler."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)  # nothing is counted


def is_compile_supported(device_type: Any) -> bool:
    """Whether functions can be compiled for a device: no.

    >>> is_compile_supported("cpu")
    False
    """
    return False


def is_parameter_freezing() -> bool:
    """Whether parameters are constants of a compiled function: no."""
    return False
