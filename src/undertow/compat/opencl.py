"""`undertow.opencl`: devices through OpenCL; see docs/opencl.md.

`pip install undertow[opencl]`, then `device="opencl"` or, of several devices, `"opencl:1"`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..backends import registry
from ..devices import Device, DeviceLike
from ..errors import AbsentDeviceError, DeviceError

__all__ = [
    "OpenClDevice",
    "device_count",
    "devices",
    "empty_cache",
    "is_available",
    "memory_allocated",
    "memory_reserved",
    "synchronize",
]


class OpenClDevice(NamedTuple):
    """What can be a device: its name here, and what the driver tells of it."""

    device: Device
    name: str
    platform: str
    driver: str
    memory: int  # bytes
    float64: bool


def devices() -> list[OpenClDevice]:
    """The OpenCL devices of this machine, GPUs first; none without the package pyopencl.

    >>> import undertow as ut
    >>> all(found.device.type == "opencl" for found in ut.opencl.devices())
    True
    """
    from ..backends.opencl.runtime import found

    try:
        there = found()
    except AbsentDeviceError:
        return []
    return [
        OpenClDevice(
            Device("opencl", i),
            d.name.strip(),
            d.platform.name.strip(),
            d.driver_version.strip(),
            int(d.global_mem_size),
            "cl_khr_fp64" in d.extensions,
        )
        for i, d in enumerate(there)
    ]


def is_available() -> bool:
    """Whether there is an OpenCL device, of which a driver in software is one.

    >>> import undertow as ut
    >>> ut.opencl.is_available() == (ut.opencl.device_count() > 0)
    True
    """
    return bool(devices())


def device_count() -> int:
    """How many OpenCL devices there are."""
    return len(devices())


def _backends(device: DeviceLike | None) -> list[Any]:
    """The backend of a device, or all that are running."""
    if device is not None:
        wanted = Device(device)
        if wanted.type != "opencl":
            raise DeviceError(f"[opencl] expects a device such as 'opencl:0', got {str(wanted)!r}")
        return [registry.backend_on(wanted)]
    found = {id(b): b for d, b in registry.running().items() if d.startswith("opencl")}
    return list(found.values())


def memory_allocated(device: DeviceLike | None = None) -> int:
    """Bytes of the buffers that tensors use, on a device or on all that are running.

    >>> import undertow as ut
    >>> ut.opencl.memory_allocated() <= ut.opencl.memory_reserved()
    True
    """
    return sum(b.runtime.memory.allocated for b in _backends(device))


def memory_reserved(device: DeviceLike | None = None) -> int:
    """Bytes of all buffers, also of those that are kept for reuse."""
    return sum(b.runtime.memory.reserved for b in _backends(device))


def empty_cache(device: DeviceLike | None = None) -> None:
    """Give buffers that no tensor uses back to the driver.

    >>> import undertow as ut
    >>> ut.opencl.empty_cache()
    """
    for backend in _backends(device):
        backend.runtime.memory.empty()


def synchronize(device: DeviceLike | None = None) -> None:
    """Wait until everything that was asked of a device, or of all that are running, is done.

    >>> import undertow as ut
    >>> ut.opencl.synchronize()
    """
    for backend in _backends(device):
        backend.synchronize()
