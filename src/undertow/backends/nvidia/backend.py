"""The backend of `device="cuda"`: the generated forms over the runtime of a card."""

from __future__ import annotations

from ...devices import Device
from ..generated.backend import GeneratedBackend
from .runtime import CudaRuntime


class CudaBackend(GeneratedBackend):
    """All forms from the loop IR, as CUDA C."""

    runtime: CudaRuntime


def make_backend(device: Device) -> CudaBackend:
    """The backend of "cuda", which is the first card, or of "cuda:1"."""
    index = device.index or 0
    return CudaBackend(Device(device.type, index), CudaRuntime(index))
