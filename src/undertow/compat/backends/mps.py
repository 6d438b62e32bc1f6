"""Whether Apple's Metal is used: it is not, kernels are our own."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer"]


def is_available() -> bool:
    """Whether Apple's Metal is used.

    >>> import undertow as ut
    >>> ut.backends.mps.is_available()
    False
    """
    return False


def is_built() -> bool:
    """Whether the library was built for it."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether a system is here that has it."""
    return False
