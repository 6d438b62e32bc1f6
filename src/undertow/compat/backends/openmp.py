"""Whether OpenMP is used: it is not, kernels are our own."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether OpenMP is used.

    >>> import undertow as ut
    >>> ut.backends.openmp.is_available()
    False
    """
    return False
