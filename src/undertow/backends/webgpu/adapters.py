"""Which adapters there are, and a device of one of them, started when it is first needed."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

from ...errors import AbsentDeviceError, DeviceError
from ...kernel.groups.products import Tile
from ..generated.runtime import Limits

# What WebGPU guarantees everywhere: kernels are written for these unless more is asked for.
DEFAULT_LIMITS = {
    "max-buffer-size": 256 << 20,
    "max-storage-buffer-binding-size": 128 << 20,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffer-binding-size": 64 << 10,
    "max-compute-workgroups-per-dimension": 65535,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroup-storage-size": 16 << 10,
    "max-dynamic-uniform-buffers-per-pipeline-layout": 8,
    "min-uniform-buffer-offset-alignment": 256,
    "min-storage-buffer-offset-alignment": 256,
}
# A driver in software computes as many threads at once as a vector has lanes, but each of their
# loads by itself, which takes as long as thirty multiplications: sums may rather leave registers.
SOFTWARE_TILES = (Tile(16, 16, depth=8), *Limits.tiles)
_ORDER = ("DiscreteGPU", "IntegratedGPU", "Unknown", "CPU")  # the best one is "webgpu:0"


def library() -> Any:
    """The package wgpu."""
    try:
        import wgpu
    except ImportError as error:
        raise AbsentDeviceError(
            "[webgpu] needs the package wgpu: pip install undertow[webgpu]"
        ) from error
    return wgpu


def adapters() -> list[Any]:
    """The adapters of this machine, the fastest kind first."""
    if _started_in.setdefault("process", os.getpid()) != os.getpid():
        raise DeviceError(
            "[webgpu] wgpu was started before this process was forked, and hangs in the child; "
            "start processes with multiprocessing's method 'spawn'"
        )
    return _enumerated()


_started_in: dict[str, int] = {}


@cache
def _enumerated() -> list[Any]:
    wgpu = library()
    try:  # OpenGL is never chosen, starts slowly and writes to the terminal
        from wgpu.backends.wgpu_native.extras import set_instance_extras

        native = {"darwin": ["Metal"], "win32": ["Vulkan", "DX12"]}.get(sys.platform, ["Vulkan"])
        set_instance_extras(backends=native)
    except (ImportError, KeyError, RuntimeError, TypeError):
        pass  # another version, or the program has started wgpu itself
    found = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] != "OpenGL"]
    return sorted(found, key=lambda a: _rank(a.info["adapter_type"]))


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else _ORDER.index("Unknown")


def choose(index: int) -> Any:
    """The adapter of "webgpu:index"."""
    found = adapters()
    if not found:
        raise AbsentDeviceError(
            "[webgpu] there is no adapter here; install a Vulkan driver, such as Debian's "
            "mesa-vulkan-drivers, which also has a software one"
        )
    if index >= len(found):
        names = ", ".join(f"'webgpu:{i}' ({a.info['device']})" for i, a in enumerate(found))
        raise DeviceError(f"[webgpu] there is no 'webgpu:{index}'; there are {names}")
    return found[index]


def start(adapter: Any) -> tuple[Any, Limits]:
    """A device of the adapter, and what it can do."""
    own = os.environ.get("UNDERTOW_WEBGPU_LIMITS", "default")
    if own not in ("default", "adapter"):
        raise DeviceError(f"[webgpu] UNDERTOW_WEBGPU_LIMITS is 'default' or 'adapter', got {own!r}")
    required = {
        name: adapter.limits[name] if own == "adapter" else value
        for name, value in DEFAULT_LIMITS.items()
    }
    device = adapter.request_device_sync(required_limits=required)
    has = device.limits
    return device, Limits(
        max_buffer=has["max-buffer-size"],
        max_binding=has["max-storage-buffer-binding-size"],
        max_bindings=has["max-storage-buffers-per-shader-stage"],
        max_groups=has["max-compute-workgroups-per-dimension"],
        max_threads=min(
            has["max-compute-invocations-per-workgroup"], has["max-compute-workgroup-size-x"]
        ),
        shared_bytes=has["max-compute-workgroup-storage-size"],
        float16=True,  # packed in words, converted by our own text
        float64=False,
        int64=True,
        tiles=SOFTWARE_TILES if adapter.info["adapter_type"] == "CPU" else Limits.tiles,
    )
