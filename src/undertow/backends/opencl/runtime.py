"""The runtime of one OpenCL device: memory, kernels, and a queue that runs in order.

Note [waiting launches]
Launches wait until something is read or there are many of them. Then all kernels that are new are
compiled at once: a compiler takes long to start. What waits holds its buffers. An upload goes
into the queue at once, so where it would overtake a launch that waits, the launches go first.
"""

from __future__ import annotations

import functools
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...errors import AbsentDeviceError, DeviceError, OutOfMemoryError
from ..generated.allocator import Allocator, Buffer
from ..generated.dialect import Dialect
from ..generated.runtime import Limits

MOST = 64  # launches that wait
MOST_BYTES = (1 << 31) - 512  # of a buffer: kernels count elements in 31 bits
POINTER = 8  # bytes of an argument that is a buffer

_runtimes: weakref.WeakSet[OpenClRuntime] = weakref.WeakSet()


def library() -> Any:
    """The package pyopencl."""
    try:
        import pyopencl
    except ImportError as error:
        raise AbsentDeviceError(
            "[opencl] needs the package pyopencl: pip install undertow[opencl]"
        ) from error
    return pyopencl


@functools.cache
def found() -> tuple[Any, ...]:
    """All OpenCL devices of this machine, GPUs first, in the order of their indices."""
    cl = library()
    # PoCL 3.1's own choice destroys memory in kernels with barriers.
    os.environ.setdefault("POCL_WORK_GROUP_METHOD", "loops")
    try:
        devices = [d for p in cl.get_platforms() for d in p.get_devices()]
    except cl.Error:  # the loader finds no driver
        devices = []
    return tuple(sorted(devices, key=lambda d: not d.type & cl.device_type.GPU))


class Kernel:
    """A kernel's text, and what was compiled of it when it was first run."""

    __slots__ = ("built", "entry", "group", "text")

    def __init__(self, text: str, entry: str, group: int) -> None:
        self.text = text
        self.entry = entry
        self.group = group
        self.built: Any = None


class OpenClRuntime:
    """See `backends/generated/runtime.py` for what is asked of a runtime."""

    def __init__(self, index: int = 0) -> None:
        cl, devices = library(), found()
        if index >= len(devices):
            named = ", ".join(d.name for d in devices)
            raise DeviceError(
                f"[opencl] there is no OpenCL device {index}; there are {len(devices)}"
                + (f": {named}" if named else ", install a driver such as PoCL")
            )
        self._cl = cl
        self.device = device = devices[index]
        self.dialect = Dialect()
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context)
        self._waiting: list[tuple[Kernel, list[Any], bytes, tuple[int, int, int]]] = []
        self._lock = threading.RLock()
        self._lost = ""
        rounded = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        exact = ["-cl-fp32-correctly-rounded-divide-sqrt"]
        self._options = exact if device.single_fp_config & rounded else []
        largest = min(int(device.max_mem_alloc_size), MOST_BYTES) // 512 * 512
        self.memory = Allocator("opencl", self._create, self._release, largest)
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
            pairs=True,
        )
        _runtimes.add(self)

    def described(self) -> dict[str, str]:
        """What to put into a report of a problem."""
        d = self.device
        return {
            "card": f"{d.name.strip()}, {d.max_compute_units} units, "
            f"{d.global_mem_size / 1e9:.1f} GB",
            "driver": f"{d.platform.name.strip()}, {d.version.strip()}, {d.driver_version.strip()}",
        }

    def _failed(self, what: str, error: Exception) -> NoReturn:
        """Raise an error of the driver as one of ours."""
        if isinstance(error, self._cl.MemoryError):
            raise OutOfMemoryError(f"[opencl] {what}: {error}") from None
        raise DeviceError(f"[opencl] {what} failed: {error}") from None

    # Memory -----------------------------------------------------------------------------------
    def _create(self, nbytes: int) -> Any:
        try:
            return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, nbytes)
        except self._cl.Error as error:
            self._failed(f"no memory for {nbytes} bytes", error)

    def _release(self, handle: Any) -> None:
        self.flush()  # what waits may use it; what is in the queue holds it
        handle.release()

    def alloc(self, nbytes: int) -> Buffer:
        if self._lost:
            raise DeviceError(f"[opencl] {self._lost}")
        return self.memory.alloc(nbytes)

    def free(self, buffer: Buffer) -> None:
        self.memory.free(buffer)

    def upload(self, buffer: Buffer, offset: int, data: Any) -> None:
        with self._lock:
            if any(buffer.handle is h for _, handles, _, _ in self._waiting for h in handles):
                self.flush()
            copy = functools.partial(self._cl.enqueue_copy, self._queue, is_blocking=True)
            try:
                copy(buffer.handle, data, dst_offset=offset)
            except self._cl.Error as error:
                self._failed("upload", error)

    def download(self, buffer: Buffer, offset: int, nbytes: int) -> Any:
        out = np.empty(nbytes, np.uint8)
        with self._lock:
            self.flush()
            copy = functools.partial(self._cl.enqueue_copy, self._queue, is_blocking=True)
            try:
                copy(out, buffer.handle, src_offset=offset)
            except self._cl.Error as error:
                self._failed("download", error)
        return out

    # Kernels ----------------------------------------------------------------------------------
    def compile(
        self, text: str, entry: str, bindings: tuple[bool, ...], group: int, words: int
    ) -> Kernel:
        size = POINTER * len(bindings) + 4 * max(words, 1)
        if size > self.device.max_parameter_size:
            raise DeviceError(
                f"[opencl] {entry} has {size} bytes of arguments, and this device takes "
                f"{self.device.max_parameter_size}"
            )
        return Kernel(text, entry, group)

    def launch(
        self, kernel: Kernel, buffers: Sequence[Any], params: bytes, groups: tuple[int, int, int]
    ) -> None:
        with self._lock:
            self._waiting.append((kernel, [b.handle for b in buffers], params or bytes(4), groups))
            if len(self._waiting) >= MOST:
                self.flush()

    def flush(self) -> None:
        """Compile what is new, and start what waits."""
        if self._lost:
            raise DeviceError(f"[opencl] {self._lost}")
        with self._lock:
            waiting, started = self._waiting, 0
            if not waiting:
                return
            self._build({k.entry: k for k, *_ in waiting if k.built is None})
            start = self._cl.enqueue_nd_range_kernel
            try:
                for kernel, handles, params, groups in waiting[:]:
                    threads = (groups[0] * kernel.group, groups[1], groups[2])
                    try:
                        kernel.built.set_args(*handles, params)
                        start(self._queue, kernel.built, threads, (kernel.group, 1, 1))
                    except self._cl.Error as error:
                        self._failed(kernel.entry, error)
                    started += 1
            finally:  # after an interrupt or an error the others go on waiting
                del waiting[:started]
            self._queue.flush()

    def _build(self, new: dict[str, Kernel]) -> None:
        if not new:
            return
        text = "\n".join(k.text for k in new.values())
        with warnings.catch_warnings():  # a compiler that says anything is no error
            warnings.simplefilter("ignore", self._cl.CompilerWarning)
            try:
                program = self._cl.Program(self._context, text).build(self._options)
            except self._cl.Error as error:
                self._failed(f"the compiler, on {', '.join(new)},", error)
        for entry, kernel in new.items():
            kernel.built = self._cl.Kernel(program, entry)

    def synchronize(self) -> None:
        self.flush()
        try:
            self._queue.finish()
        except self._cl.Error as error:
            self._failed("work", error)

    def forked(self) -> None:
        """This is a child of the process that started the device."""
        self._lost = (
            "a device that was used before a fork cannot be used in the child; start processes "
            "with multiprocessing's method 'spawn'"
        )
        self._lock = threading.RLock()
        self._waiting = []
        self.memory.free = lambda buffer: None  # type: ignore[method-assign]


def _after_fork() -> None:
    for runtime in list(_runtimes):
        runtime.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
