"""Which backend runs which array, and which devices there are."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..devices import Device, defaults
from ..errors import ArgumentError, DeviceError
from .base import Backend
from .boxed import BoxedBackend
from .cpu.backend import CpuBackend
from .memory import keep_memory
from .meta import MetaBackend

GROUP = "undertow.backends"  # the entry points of packages that bring a device

keep_memory()
CPU = CpuBackend(Device("cpu"))
_makers: dict[str, Callable[[Device], Backend]] = {"meta": MetaBackend, "reference": BoxedBackend}
_running: dict[str, Backend] = {"cpu": CPU, "cpu:0": CPU}  # by the device's name
# The one special case: an ndarray does not know its backend. Hot places look here by themselves,
# `OF_CLASS.get(array.__class__) or array.backend`.
OF_CLASS: dict[type, Backend] = {np.ndarray: CPU}


def backend_of(array: Any) -> Backend:
    """The backend whose array this is."""
    return OF_CLASS.get(array.__class__) or array.backend


def register_backend(type: str, make: Callable[[Device], Backend]) -> None:
    """Bring a device: `make(device)` is called when a tensor of that type is first wanted.

    Each index ("npu:0", "npu:1") gets a backend of its own; "npu" is "npu:0" if there is one.
    A package does this by itself with an entry point of the group `undertow.backends`, whose name
    is the device type and whose object is `make`. See docs/devices.md.

    >>> import undertow as ut
    >>> from undertow.backends.boxed import BoxedBackend
    >>> ut.register_backend("toy", BoxedBackend)
    >>> ut.ones(2, device="toy")
    tensor([1., 1.], device='toy')
    """
    if not str(type).isidentifier():
        raise ArgumentError(f"[register_backend] a device type is a plain word, got {type!r}")
    if type == "cpu" or _makers.get(type, make) is not make:
        raise ArgumentError(f"[register_backend] there is a device {type!r} already")
    if not callable(make):
        raise ArgumentError(f"[register_backend] make must be callable, got {make!r}")
    _makers[type] = make


def backend_on(device: Device | str | None) -> Backend:
    """The backend of a device; None means the default one, the CPU unless it was set."""
    if device is None:
        chosen = defaults()
        if not chosen:
            return CPU
        device = chosen[-1]
    if device.__class__ is Device:
        wanted: Any = device
    else:
        wanted = Device(device)
    found = _running.get(wanted.type if wanted.index is None else str(wanted))
    if found is None:
        make = _makers.get(wanted.type) or _installed(wanted.type)
        if make is None or wanted.type == "cpu":
            if wanted.type == "cuda":
                from .nvidia.driver import require_card

                require_card()  # says why there is none
            raise DeviceError(
                f"[device] there is no device {str(wanted)!r} here; the devices are "
                f"{', '.join(map(str, devices()))}, and 'webgpu' or 'opencl' for a GPU "
                "(docs/webgpu.md, docs/opencl.md)"
            )
        found = make(wanted)
        if not isinstance(found, Backend):
            raise DeviceError(f"[device] {wanted.type!r} made {found!r}, which is no Backend")
        found = _running.setdefault(str(found.device), found)
        _running[str(wanted)] = found
    return found


def running() -> dict[str, Backend]:
    """The backends that were started, by the names they were asked for with."""
    return dict(_running)


def _installed(type: str) -> Callable[[Device], Backend] | None:
    """What an installed package brings for a device type; WebGPU, OpenCL and CUDA are ours."""
    if type == "webgpu":
        from .webgpu.backend import make_backend

        return make_backend
    if type == "opencl":
        from .opencl.backend import make_backend as make_opencl

        return make_opencl
    if type == "cuda" and _has_cuda():
        from .nvidia.backend import make_backend as make_cuda

        return make_cuda
    from importlib import metadata  # as slow to import as all that is ours together

    for entry in metadata.entry_points(group=GROUP, name=type):
        make: Callable[[Device], Backend] = entry.load()
        _makers[type] = make
        return make
    return None


def is_present(type: str) -> bool:
    """Whether there are devices of a type: ours, registered, or brought by a package."""
    if type in ("cpu", "webgpu", "opencl") or type in _makers or type in packaged():
        return True
    return type == "cuda" and _has_cuda()


def _has_cuda() -> bool:
    """Whether NVIDIA's driver is here and sees a card."""
    from .nvidia.driver import device_count

    return device_count() > 0


def packaged() -> list[str]:
    """The device types that installed packages bring."""
    return list(_packaged_on(tuple(sys.path)))


@functools.cache
def _packaged_on(path: tuple[str, ...]) -> tuple[str, ...]:
    # Reading what is installed takes many milliseconds, and programs ask in every step.
    from importlib import metadata

    return tuple(sorted({entry.name for entry in metadata.entry_points(group=GROUP)}))


def devices() -> list[Device]:
    """The devices that are running or can be asked for, the CPU first."""
    running = {str(b.device): b.device for b in _running.values()}
    others = [Device(t) for t in sorted({*_makers, *packaged()}) if t not in running]
    return [*running.values(), *others]
