"""The backend of `device="webgpu"`: the generated forms over WebGPU's runtime."""

from __future__ import annotations

import warnings

from ...devices import Device
from ...errors import UnsupportedError
from ..generated.backend import GeneratedBackend
from .runtime import WebGpuRuntime


class HostPolicy:
    """Whether what the device cannot do may be done by the host; `ut.webgpu.allow_host` sets it."""

    allowed = False
    warned: set[str] = set()  # noqa: RUF012


class WebGpuBackend(GeneratedBackend):
    """All forms from the loop IR, as WGSL."""

    runtime: WebGpuRuntime

    def to_the_host(self, form: str, reason: str) -> None:
        """An error, unless the host is allowed: then a warning, once for each form."""
        if not HostPolicy.allowed:
            raise UnsupportedError(
                f"[{form}] {self.device} cannot do this: {reason}; use float32 or integers, move "
                'the tensors with .to("cpu"), or let the host do it with ut.webgpu.allow_host(True)'
            )
        super().to_the_host(form, reason)  # counted
        if form not in HostPolicy.warned:
            HostPolicy.warned.add(form)
            warnings.warn(
                f"[{form}] runs on the host, since {self.device} cannot do it: {reason}",
                stacklevel=3,
            )


def make_backend(device: Device) -> WebGpuBackend:
    """The backend of "webgpu" or "webgpu:1", which is started here."""
    index = device.index or 0
    return WebGpuBackend(Device(device.type, index), WebGpuRuntime(index))
