"""`device="sample_opencl"`: how a package brings a device that runs generated text.

This is the smallest runtime: it keeps no memory, and compiles each kernel by itself. The forms, and
the text of the kernels, are Undertow's; see docs/devices.md. `device="opencl"` of Undertow is
the one to compute with.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pyopencl as cl

from undertow.backends.generated.backend import GeneratedBackend
from undertow.backends.generated.dialect import Dialect
from undertow.backends.generated.runtime import Limits
from undertow.devices import Device
from undertow.errors import DeviceError, OutOfMemoryError

__all__ = ["Sample", "make_backend"]


class Sample:
    """One device with one queue, which runs in order."""

    def __init__(self, device: Any) -> None:
        self.dialect = Dialect()
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.lock = threading.Lock()  # of a kernel's arguments
        largest = min(int(device.max_mem_alloc_size), (1 << 31) - 512)
        self.limits = Limits(
            max_buffer=largest,
            max_binding=largest,
            max_bindings=32,
            max_threads=min(256, int(device.max_work_group_size)),
            shared_bytes=int(device.local_mem_size),
            float16=True,
            float64="cl_khr_fp64" in device.extensions,
        )

    def alloc(self, nbytes: int) -> Any:
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, nbytes)
        except cl.MemoryError as error:
            raise OutOfMemoryError(f"[sample_opencl] {nbytes} bytes: {error}") from None

    def free(self, buffer: Any) -> None:
        buffer.release()  # which work in the queue outlives

    def upload(self, buffer: Any, offset: int, data: Any) -> None:
        cl.enqueue_copy(self.queue, buffer, data, dst_offset=offset, is_blocking=True)

    def download(self, buffer: Any, offset: int, nbytes: int) -> Any:
        out = np.empty(nbytes, np.uint8)
        cl.enqueue_copy(self.queue, out, buffer, src_offset=offset, is_blocking=True)
        return out

    def compile(
        self, text: str, entry: str, bindings: tuple[bool, ...], group: int, words: int
    ) -> tuple[Any, int]:
        with warnings.catch_warnings():  # a compiler that says anything is no error
            warnings.simplefilter("ignore", cl.CompilerWarning)
            return cl.Kernel(cl.Program(self.context, text).build(), entry), group

    def launch(
        self, kernel: Any, buffers: Any, params: bytes, groups: tuple[int, int, int]
    ) -> None:
        program, group = kernel
        with self.lock:
            program.set_args(*buffers, params or bytes(4))
            threads = (groups[0] * group, groups[1], groups[2])
            cl.enqueue_nd_range_kernel(self.queue, program, threads, (group, 1, 1))

    def synchronize(self) -> None:
        self.queue.finish()


def make_backend(device: Device) -> GeneratedBackend:
    """The backend of "sample_opencl" or "sample_opencl:1"."""
    found = [d for p in cl.get_platforms() for d in p.get_devices()]
    index = device.index or 0
    if index >= len(found):
        raise DeviceError(f"[device] there is no OpenCL device {index}; there are {len(found)}")
    return GeneratedBackend(Device(device.type, index), Sample(found[index]))
