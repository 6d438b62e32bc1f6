"""The backend of `device="opencl"`: the generated forms over OpenCL's runtime."""

from __future__ import annotations

from ...devices import Device
from ..generated.backend import GeneratedBackend
from .runtime import OpenClRuntime


class OpenClBackend(GeneratedBackend):
    """All forms from the loop IR, as OpenCL C."""

    runtime: OpenClRuntime


def make_backend(device: Device) -> OpenClBackend:
    """The backend of "opencl", which is the first device, or of "opencl:1"."""
    index = device.index or 0
    return OpenClBackend(Device(device.type, index), OpenClRuntime(index))
