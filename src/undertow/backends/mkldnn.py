"""Whether oneDNN is used: it is not, kernels are our own."""

from __future__ import annotations

__all__ = ["is_available", "enabled"]


enabled = False  # kept without effect


def is_available() -> bool:
    """Whether oneDNN is used.

    >>> import undertow as ut
    >>> ut.backends.mkldnn.is_available()
    False
    """
    return False
