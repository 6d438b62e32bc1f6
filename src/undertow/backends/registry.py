"""Which backend runs which array, and which devices there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..devices import Device
from ..errors import DeviceError
from .base import Backend
from .boxed import BoxedArray, BoxedBackend
from .cpu.backend import CpuBackend
from .memory import keep_memory

keep_memory()
CPU = CpuBackend(Device("cpu"))
_by_array: dict[type, Backend] = {np.ndarray: CPU, BoxedArray: BoxedBackend()}
_by_device: dict[str, Backend] = {str(b.device): b for b in _by_array.values()}


def backend_of(array: Any) -> Backend:
    """The backend whose array this is."""
    return _by_array[array.__class__]


def backend_on(device: Device | str | None) -> Backend:
    """The backend of a device; None means the CPU."""
    if device is None:
        return CPU
    name = str(Device(device))
    found = _by_device.get("cpu" if name == "cpu:0" else name)
    if found is None:
        raise DeviceError(
            f"[device] there is no device {name!r} here; the devices are {', '.join(_by_device)}"
        )
    return found


def devices() -> list[Device]:
    """All devices of this process, the CPU first."""
    return [backend.device for backend in _by_device.values()]
