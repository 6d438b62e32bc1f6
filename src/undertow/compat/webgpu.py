"""`undertow.webgpu`: GPUs through WebGPU (Vulkan, Metal, DX12); see docs/webgpu.md.

`pip install undertow[webgpu]`, then `device="webgpu"` or, of several adapters, `"webgpu:1"`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..backends import registry
from ..devices import Device, DeviceLike
from ..errors import AbsentDeviceError, ArgumentError, DeviceError
from ..shapes import as_int

__all__ = [
    "Adapter",
    "allow_host",
    "device_count",
    "devices",
    "empty_cache",
    "is_available",
    "memory_allocated",
    "memory_reserved",
    "set_memory_budget",
    "stats",
    "synchronize",
]


class Adapter(NamedTuple):
    """What can be a device: its name here, and what the driver tells of it."""

    device: Device
    name: str
    kind: str  # DiscreteGPU, IntegratedGPU, CPU …
    api: str  # Vulkan, Metal or D3D12
    driver: str
    features: tuple[str, ...]
    limits: dict[str, int]

    def __repr__(self) -> str:
        told = ", ".join([repr(str(self.device)), repr(self.name), self.kind, self.api])
        return f"Adapter({told}, {len(self.features)} features)"


def devices() -> list[Adapter]:
    """The adapters of this machine, the fastest kind first; none without the package wgpu.

    >>> import undertow as ut
    >>> all(adapter.device.type == "webgpu" for adapter in ut.webgpu.devices())
    True
    """
    from ..backends.webgpu.adapters import adapters

    try:
        found = adapters()
    except AbsentDeviceError:
        return []
    return [
        Adapter(
            Device("webgpu", i),
            a.info["device"],
            a.info["adapter_type"],
            a.info["backend_type"],
            a.info["description"],
            tuple(sorted(a.features)),
            dict(a.limits),
        )
        for i, a in enumerate(found)
    ]


def is_available() -> bool:
    """Whether there is an adapter; one of kind "CPU" is a driver in software.

    >>> import undertow as ut
    >>> ut.webgpu.is_available() == (ut.webgpu.device_count() > 0)
    True
    """
    return bool(devices())


def device_count() -> int:
    """How many adapters there are."""
    return len(devices())


def allow_host(allowed: bool = True) -> None:
    """Let the host do what a device cannot, float64 and complex numbers; it warns once per form.

    Without it that is an error, so that no training moves its tensors back and forth unseen.

    >>> import undertow as ut
    >>> ut.webgpu.allow_host(True)
    >>> ut.webgpu.allow_host(False)
    """
    from ..backends.webgpu.backend import WebGpuBackend

    WebGpuBackend.allow_host = "warn" if allowed else False


def _backends(device: DeviceLike | None) -> list[Any]:
    """The backend of a device, or all that are running."""
    if device is not None:
        wanted = Device(device)
        if wanted.type != "webgpu":
            raise DeviceError(f"[webgpu] expects a device such as 'webgpu:0', got {str(wanted)!r}")
        return [registry.backend_on(wanted)]
    found = {id(b): b for d, b in registry.running().items() if d.startswith("webgpu")}
    return list(found.values())


def memory_allocated(device: DeviceLike | None = None) -> int:
    """Bytes of the buffers that tensors use, on a device or on all that are running.

    >>> import undertow as ut
    >>> ut.webgpu.memory_allocated() <= ut.webgpu.memory_reserved()
    True
    """
    return sum(b.runtime.memory.allocated for b in _backends(device))


def memory_reserved(device: DeviceLike | None = None) -> int:
    """Bytes of all buffers, also of those that are kept for reuse."""
    return sum(b.runtime.memory.reserved for b in _backends(device))


def set_memory_budget(nbytes: int, device: DeviceLike | None = None) -> None:
    """Reserve at most so many bytes on a device; half of the machine's memory unless this is set.

    WebGPU does not tell how much memory a device has, and some drivers never refuse.
    """
    if as_int("webgpu.set_memory_budget", "nbytes", nbytes) <= 0:
        raise ArgumentError(f"[webgpu.set_memory_budget] expects more than 0 bytes, got {nbytes}")
    for backend in _backends("webgpu" if device is None else device):
        backend.runtime.memory.budget = nbytes


def empty_cache(device: DeviceLike | None = None) -> None:
    """Give buffers that no tensor uses back to the device.

    >>> import undertow as ut
    >>> ut.webgpu.empty_cache()
    """
    for backend in _backends(device):
        backend.runtime.memory.empty()


def synchronize(device: DeviceLike | None = None) -> None:
    """Wait until everything that was asked of a device, or of all that are running, is done.

    >>> import undertow as ut
    >>> ut.webgpu.synchronize()
    """
    for backend in _backends(device):
        backend.runtime.synchronize()


def stats(device: DeviceLike | None = None) -> dict[str, int]:
    """Counts since the start: launches, submissions, read-backs, uploads, and what was created.

    >>> import undertow as ut
    >>> sorted(ut.webgpu.stats())  # doctest: +ELLIPSIS
    ['bind_groups', 'buffers', 'host', 'launches', 'pipelines', 'readbacks', ...]
    """
    names = [
        "launches",
        "submissions",
        "readbacks",
        "uploads",
        "pipelines",
        "bind_groups",
        "buffers",
        "host",
    ]
    total = dict.fromkeys(names, 0)
    for backend in _backends(device):
        for name, count in backend.runtime.stats().items():
            total[name] += count
        total["host"] += backend.stats.get("host", 0)
    return total
