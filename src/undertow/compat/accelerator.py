"""`undertow.accelerator`: the device besides the CPU that a package brings, if there is one."""

from __future__ import annotations

from typing import Any

from ..backends.registry import packaged
from ..devices import Device
from ..errors import AbsentDeviceError

__path__: list[str] = []  # torch has modules below this one
__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "is_available",
    "set_device_index",
    "synchronize",
]


def is_available() -> bool:
    """Whether an installed package brings a device.

    >>> import undertow as ut
    >>> device = ut.accelerator.current_accelerator() if ut.accelerator.is_available() else "cpu"
    """
    return bool(packaged())


def device_count() -> int:
    """How many device types packages bring."""
    return len(packaged())


def current_accelerator(check_available: bool = False) -> Device | None:
    """The device that a package brings, or None."""
    found = packaged()
    return Device(found[0]) if found else None


def current_device_index() -> int:
    """The number of the device in use; without one, an error."""
    _check("current_device_index")
    return 0


def set_device_index(device: Any) -> None:
    """Nothing for the one device that there is; without one, an error."""
    _check("set_device_index")


def synchronize(device: Any = None) -> None:
    """Nothing, since every operation has ended when it returns; without a device, an error."""
    _check("synchronize")


def _check(name: str) -> None:
    if not is_available():
        raise AbsentDeviceError(
            f"[accelerator.{name}] there is no device besides the CPU; ask "
            "accelerator.is_available() first"
        )
