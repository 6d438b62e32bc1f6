"""`undertow.cpu`: the CPU where programs expect a device's module."""

from __future__ import annotations

from typing import Any

from . import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "is_initialized", "synchronize"]


def is_available() -> bool:
    """Whether there is a CPU.

    >>> import undertow as ut
    >>> ut.cpu.is_available(), ut.cpu.device_count()
    (True, 1)
    """
    return True


def is_initialized() -> bool:
    """Whether it is in use."""
    return True


def device_count() -> int:
    """One: all cores together."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Nothing: an operation has ended when it returns."""
