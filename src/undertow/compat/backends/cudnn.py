"""Settings of cuDNN, which is not here: they are kept and have no effect.

Convolutions give the same numbers every time, whatever `deterministic` and `benchmark` say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__path__: list[str] = []  # torch has modules below this one
__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "version",
]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether cuDNN is here.

    >>> import undertow as ut
    >>> ut.backends.cudnn.benchmark = True  # accepted: there is nothing that it changes
    >>> ut.backends.cudnn.is_available(), ut.backends.cudnn.version()
    (False, None)
    >>> ut.backends.cudnn.benchmark = False
    """
    return False


def version() -> int | None:
    """The version of cuDNN: None."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN would take a tensor."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """A block with other settings, which have no effect."""
    given = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    before = {name: globals()[name] for name in given}
    globals().update(given)
    try:
        yield
    finally:
        globals().update(before)
