"""`device="opencl"`: any OpenCL device, as a runtime under Undertow's generated kernels.

Everything that is particular to OpenCL stands here: how memory is had, how text is compiled and how
a kernel is started. The forms, and the text of the kernels, are Undertow's; see docs/devices.md.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyopencl as cl

from undertow.backends.generated.backend import GeneratedBackend
from undertow.backends.generated.dialect import Dialect
from undertow.backends.generated.runtime import Limits
from undertow.devices import Device
from undertow.errors import DeviceError, OutOfMemoryError

__all__ = ["OpenCL", "devices", "make_backend"]


def devices() -> list[Any]:
    """All OpenCL devices of this machine, in the order of their indices."""
    try:
        return [d for p in cl.get_platforms() for d in p.get_devices()]
    except cl.Error as error:
        raise DeviceError(f"[opencl] no platform: {error}; install a driver such as PoCL") from None


class Buffer:
    """A buffer of the device, with its size in bytes."""

    __slots__ = ("handle", "nbytes")

    def __init__(self, handle: Any, nbytes: int) -> None:
        self.handle = handle
        self.nbytes = nbytes


class OpenCL:
    """One device with one queue, which runs in order."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.dialect = Dialect()
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.lock = threading.Lock()  # a kernel's arguments are set one after the other
        largest = int(device.max_mem_alloc_size)
        self.limits = Limits(
            max_buffer=largest,
            max_binding=largest,
            max_bindings=32,
            max_groups=65535,
            max_threads=min(256, int(device.max_work_group_size)),
            shared_bytes=int(device.local_mem_size),
            float16=True,
            float64="cl_khr_fp64" in device.extensions,
            int64=True,
        )

    def alloc(self, nbytes: int) -> Buffer:
        try:
            return Buffer(cl.Buffer(self.context, cl.mem_flags.READ_WRITE, nbytes), nbytes)
        except cl.MemoryError as error:
            raise OutOfMemoryError(f"[opencl] no memory for {nbytes} bytes: {error}") from None

    def free(self, buffer: Buffer) -> None:
        buffer.handle.release()  # OpenCL keeps it as long as a kernel uses it

    def upload(self, buffer: Buffer, offset: int, data: Any) -> None:
        cl.enqueue_copy(self.queue, buffer.handle, data, dst_offset=offset, is_blocking=True)

    def download(self, buffer: Buffer, offset: int, nbytes: int) -> Any:
        out = np.empty(nbytes, np.uint8)
        cl.enqueue_copy(self.queue, out, buffer.handle, src_offset=offset, is_blocking=True)
        return out

    def compile(
        self, text: str, entry: str, bindings: tuple[bool, ...], group: int, words: int
    ) -> Any:
        options = ["-cl-fp32-correctly-rounded-divide-sqrt"]
        with_options = options if self._rounds() else []
        program = cl.Program(self.context, text).build(with_options)
        return cl.Kernel(program, entry), group

    def launch(
        self, kernel: Any, buffers: Any, params: bytes, groups: tuple[int, int, int]
    ) -> None:
        function, group = kernel
        with self.lock:
            for i, buffer in enumerate(buffers):
                function.set_arg(i, buffer.handle)
            function.set_arg(len(buffers), params or bytes(4))
            threads = (groups[0] * group, groups[1], groups[2])
            cl.enqueue_nd_range_kernel(self.queue, function, threads, (group, 1, 1))

    def synchronize(self) -> None:
        self.queue.finish()

    def _rounds(self) -> bool:
        rounded = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return bool(self.device.single_fp_config & rounded)


def make_backend(device: Device) -> GeneratedBackend:
    """The backend of "opencl" or "opencl:1"."""
    found = devices()
    index = device.index or 0
    if index >= len(found):
        raise DeviceError(
            f"[device] there is no OpenCL device {index}; there are {len(found)}: "
            f"{', '.join(d.name for d in found) or 'install a driver such as PoCL'}"
        )
    return GeneratedBackend(Device(device.type, index), OpenCL(found[index]))
