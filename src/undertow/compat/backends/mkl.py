"""Whether Intel's MKL is used: it is not, kernels are our own."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether Intel's MKL is used.

    >>> import undertow as ut
    >>> ut.backends.mkl.is_available()
    False
    """
    return False
