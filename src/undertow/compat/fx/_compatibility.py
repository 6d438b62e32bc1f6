"""Marks of how stable a name is, which change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that leaves what it marks as it is."""
    return lambda fn: fn
