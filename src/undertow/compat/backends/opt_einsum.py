"""Settings of opt_einsum, which is not used: `einsum` finds the order of products by itself."""

from __future__ import annotations

__all__ = ["enabled", "is_available", "strategy"]

enabled = False  # kept without effect
strategy: str | None = None


def is_available() -> bool:
    """Whether opt_einsum is used.

    >>> import undertow as ut
    >>> ut.backends.opt_einsum.is_available()
    False
    """
    return False
