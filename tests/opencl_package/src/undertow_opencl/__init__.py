"""`device="opencl"`: any OpenCL device, as a runtime under Undertow's generated kernels.

Everything that is particular to OpenCL stands here: how memory is had, how text is compiled and how
a kernel is started. The forms, and the text of the kernels, are Undertow's; see docs/devices.md.
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

__all__ = ["OpenCL", "devices", "make_backend"]

MOST = 64  # launches that wait


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


class Kernel:
    """A kernel's text, and what was compiled of it when it was first run."""

    __slots__ = ("built", "entry", "group", "text")

    def __init__(self, text: str, entry: str, group: int) -> None:
        self.text = text
        self.entry = entry
        self.group = group
        self.built: Any = None


class OpenCL:
    """One device with one queue, which runs in order.

    Launches wait until something is read or there are many of them. Then all kernels that are new
    are compiled at once: a compiler takes long to start.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self.dialect = Dialect()
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.waiting: list[tuple[Kernel, list[Any], bytes, tuple[int, int, int]]] = []
        self.lock = threading.RLock()
        rounded = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        exact = ["-cl-fp32-correctly-rounded-divide-sqrt"]
        self.options = exact if device.single_fp_config & rounded else []
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

    # Memory -----------------------------------------------------------------------------------
    def alloc(self, nbytes: int) -> Buffer:
        try:
            return Buffer(cl.Buffer(self.context, cl.mem_flags.READ_WRITE, nbytes), nbytes)
        except cl.MemoryError as error:
            raise OutOfMemoryError(f"[opencl] no memory for {nbytes} bytes: {error}") from None

    def free(self, buffer: Buffer) -> None:
        buffer.handle = None  # launches that wait hold it

    def upload(self, buffer: Buffer, offset: int, data: Any) -> None:
        with self.lock:
            if any(buffer.handle is h for _, handles, _, _ in self.waiting for h in handles):
                self.flush()
            cl.enqueue_copy(self.queue, buffer.handle, data, dst_offset=offset, is_blocking=True)

    def download(self, buffer: Buffer, offset: int, nbytes: int) -> Any:
        out = np.empty(nbytes, np.uint8)
        with self.lock:
            self.flush()
            cl.enqueue_copy(self.queue, out, buffer.handle, src_offset=offset, is_blocking=True)
        return out

    # Kernels ----------------------------------------------------------------------------------
    def compile(
        self, text: str, entry: str, bindings: tuple[bool, ...], group: int, words: int
    ) -> Kernel:
        return Kernel(text, entry, group)

    def launch(
        self, kernel: Kernel, buffers: Any, params: bytes, groups: tuple[int, int, int]
    ) -> None:
        with self.lock:
            self.waiting.append((kernel, [b.handle for b in buffers], params or bytes(4), groups))
            if len(self.waiting) >= MOST:
                self.flush()

    def flush(self) -> None:
        """Compile what is new, and start what waits."""
        with self.lock:
            waiting, self.waiting = self.waiting, []
            new = {k.entry: k for k, *_ in waiting if k.built is None}
            if new:
                text = "\n".join(k.text for k in new.values())
                with warnings.catch_warnings():  # a compiler that says anything is no error
                    warnings.simplefilter("ignore", cl.CompilerWarning)
                    program = cl.Program(self.context, text).build(self.options)
                for entry, kernel in new.items():
                    kernel.built = cl.Kernel(program, entry)
            for kernel, handles, params, groups in waiting:
                kernel.built.set_args(*handles, params)
                threads = (groups[0] * kernel.group, groups[1], groups[2])
                cl.enqueue_nd_range_kernel(self.queue, kernel.built, threads, (kernel.group, 1, 1))
            self.queue.flush()

    def synchronize(self) -> None:
        self.flush()
        self.queue.finish()


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
