"""The backend of `device="webgpu"`: the generated forms over WebGPU's runtime."""

from __future__ import annotations

from ...devices import Device
from ..generated.backend import GeneratedBackend
from .runtime import WebGpuRuntime


class WebGpuBackend(GeneratedBackend):
    """All forms from the loop IR, as WGSL; `ut.webgpu.allow_host` sets `allow_host`."""

    runtime: WebGpuRuntime
    host_switch = "ut.webgpu.allow_host(True)"
    more_memory = ", or ask for the adapter's own limits with UNDERTOW_WEBGPU_LIMITS=adapter"


def make_backend(device: Device) -> WebGpuBackend:
    """The backend of "webgpu" or "webgpu:1", which is started here."""
    index = device.index or 0
    return WebGpuBackend(Device(device.type, index), WebGpuRuntime(index))
