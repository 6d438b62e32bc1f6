"""The runtime of one card: memory, kernels, launches with one block of arguments, streams."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import struct
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DeviceError
from ..cpu.codegen.cache import from_environment
from ..generated.allocator import Allocator, Buffer
from ..generated.runtime import Limits
from .dialect import Cuda
from .driver import OLD_DRIVER, Driver, card_name, compiled, compiler_version, driver, require_card

# Of CUdevice_attribute.
SHARED, MAJOR, MINOR, PROCESSORS, CLOCK = 8, 75, 76, 16, 13
MEMORY_CLOCK, MEMORY_BITS, SINGLE_TO_DOUBLE = 36, 37, 87
LANES = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}  # of single precision; 128 if not here
MOST_ARGUMENTS = 4096  # bytes of a launch

_runtimes: weakref.WeakSet[CudaRuntime] = weakref.WeakSet()


class Config(ctypes.Structure):
    """CUlaunchConfig: groups, threads, the group's memory of a launch, and its stream."""

    _fields_ = (
        ("groups", ctypes.c_uint * 3),
        ("threads", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


class Kernel:
    """A compiled kernel, and one block of arguments for its launches, which the driver copies."""

    __slots__ = (
        "at",
        "block",
        "config",
        "extra",
        "function",
        "groups",
        "pack",
        "params",
        "stream",
        "tail",
    )

    def __init__(self, function: int, group: int, buffers: int, words: int) -> None:
        self.function = ctypes.c_void_p(function)
        addresses = struct.Struct(f"<{buffers}Q")
        self.pack = addresses.pack_into
        size = ctypes.c_size_t(addresses.size + 4 * max(words, 1))
        self.block = ctypes.create_string_buffer(size.value)
        self.tail = memoryview(self.block).cast("B")[addresses.size :]
        # [1, block, 2, size, 0], whose parts must live as long as it.
        where = ctypes.addressof(self.block), ctypes.addressof(size)
        self.extra = (ctypes.c_void_p * 5)(1, where[0], 2, where[1], 0), size
        self.config = Config(threads=(group, 1, 1))
        self.at = ctypes.byref(self.config)
        self.params, self.groups, self.stream = b"", (0, 0, 0), 0  # what stands in it


class CudaRuntime:
    """See `backends/generated/runtime.py` for what is asked of a runtime."""

    def __init__(self, index: int = 0) -> None:
        require_card(index)
        self.driver: Driver = driver()
        self.index = index
        self.dialect = Cuda()
        made, number = self.driver.made, self.driver.attribute
        self.device = made("cuDeviceGet", ctypes.c_int, index)
        self.capability = (number(self.device, MAJOR), number(self.device, MINOR))
        self.total = int(made("cuDeviceTotalMem_v2", ctypes.c_size_t, self.device))
        self._context = made("cuDevicePrimaryCtxRetain", ctypes.c_void_p, self.device)
        self._here = threading.local()  # which threads have the context, and their streams
        self._lock = threading.RLock()
        self._lost = ""
        direct = os.environ.get("UNDERTOW_CUDA_ALLOCATOR") == "direct"
        call = self.driver.call
        self.memory = Allocator(
            "cuda",
            lambda size: made("cuMemAlloc_v2", ctypes.c_void_p, size),
            lambda address: call("cuMemFree_v2", address),
            self.total,
            direct,
        )
        self._disk = from_environment()[0]
        self.limits = Limits(
            max_buffer=self.total // 512 * 512,
            max_binding=(1 << 31) - 512,  # kernels count elements in 31 bits
            max_bindings=32,
            max_groups=65535,
            max_threads=256,
            shared_bytes=number(self.device, SHARED),
            float16=True,
            float64=True,
            int64=True,
            pairs=True,
        )
        # Without types: a call of three pointers is converted more quickly.
        self._launch = self.driver.library["cuLaunchKernelEx"]
        _runtimes.add(self)

    # What there is ----------------------------------------------------------------------------
    def described(self) -> dict[str, str]:
        """What to put into a report of a problem."""
        version = int(self.driver.made("cuDriverGetVersion", ctypes.c_int))
        return {
            "card": f"{card_name(self.index)}, sm_{self.capability[0]}{self.capability[1]}, "
            f"{self.driver.attribute(self.device, PROCESSORS)} processors, "
            f"{self.total / 1e9:.1f} GB",
            "driver": f"{version // 1000}.{version % 1000 // 10}",
            "compiler": f"NVRTC {compiler_version()}",
        }

    def peaks(self) -> dict[str, float]:
        """The most bytes, and operations on floats, of a second, by the card's own numbers."""
        number = functools.partial(self.driver.attribute, self.device)
        lanes = LANES.get(self.capability, 128) * number(PROCESSORS)
        single = 2.0 * lanes * number(CLOCK) * 1e3  # a product and a sum; clocks are in kHz
        double = single / max(number(SINGLE_TO_DOUBLE), 1)
        moved = 2.0 * number(MEMORY_CLOCK) * 1e3 * number(MEMORY_BITS) / 8  # twice in a cycle
        return {"bandwidth": moved, "float32": single, "float16": single, "float64": double}

    # Where a thread works ---------------------------------------------------------------------
    @property
    def stream(self) -> int:
        """The stream of this thread's work; 0 is the default one."""
        if not getattr(self._here, "context", False):
            self.enter()
        return int(self._here.stream)

    @stream.setter
    def stream(self, handle: int) -> None:
        self.enter()
        self._here.stream = handle

    def enter(self) -> None:
        """Make this card the driver's current one on this thread."""
        if self._lost:
            raise DeviceError(f"[cuda] {self._lost}")
        self.driver.call("cuCtxSetCurrent", self._context)
        # Cards of one thread take turns: who enters is the one, the others must enter again.
        for other in _runtimes:
            other._here.context = other is self
        if not hasattr(self._here, "stream"):
            self._here.stream = 0

    # Memory -----------------------------------------------------------------------------------
    def alloc(self, nbytes: int) -> Buffer:
        return self.memory.alloc(nbytes, self.stream)

    def free(self, buffer: Buffer) -> None:
        self.memory.free(buffer)

    def upload(self, buffer: Buffer, offset: int, data: Any) -> None:
        # From pageable memory the driver copies before it returns.
        where, source = buffer.handle + offset, data.ctypes.data
        stream = self.stream
        self.driver.call("cuMemcpyHtoDAsync_v2", where, source, data.nbytes, stream)

    def download(self, buffer: Buffer, offset: int, nbytes: int) -> Any:
        out = np.empty(nbytes, np.uint8)
        stream, where = self.stream, buffer.handle + offset
        self.driver.call("cuMemcpyDtoHAsync_v2", out.ctypes.data, where, nbytes, stream)
        self.driver.call("cuStreamSynchronize", stream)
        return out

    # Kernels ----------------------------------------------------------------------------------
    def compile(
        self, text: str, entry: str, bindings: tuple[bool, ...], group: int, words: int
    ) -> Kernel:
        if 8 * len(bindings) + 4 * words > MOST_ARGUMENTS:
            raise DeviceError(f"[cuda] {entry} has more than {MOST_ARGUMENTS} bytes of arguments")
        with self._lock:
            self.enter()
            try:
                module = self._module(text, entry, "compute")
            except DeviceError as error:
                if getattr(error, "code", 0) != OLD_DRIVER:
                    raise
                module = self._module(text, entry, "sm")  # NVRTC is newer than the driver
            made = self.driver.made
            function = made("cuModuleGetFunction", ctypes.c_void_p, module, entry.encode())
        return Kernel(function, group, len(bindings), words)

    def _module(self, text: str, entry: str, kind: str) -> Any:
        arch = f"{kind}_{self.capability[0]}{self.capability[1]}"
        key = hashlib.blake2b(f"cuda {arch}\n{text}".encode(), digest_size=20).hexdigest()
        code = self._disk.get(key) if self._disk else None
        if code is None:
            code = compiled(text, entry, arch)
            if self._disk:
                self._disk.put(key, code)
        return self.driver.made("cuModuleLoadData", ctypes.c_void_p, code)

    def launch(
        self, kernel: Kernel, buffers: Sequence[Any], params: bytes, groups: tuple[int, int, int]
    ) -> None:
        here = self._here
        with self._lock:
            if not getattr(here, "context", False):
                self.enter()
            try:
                kernel.pack(kernel.block, 0, *[b.handle for b in buffers])
            except AttributeError:  # parts of buffers
                pairs = [b if b.__class__ is tuple else (b, 0) for b in buffers]
                kernel.pack(kernel.block, 0, *[b[0].handle + b[1] for b in pairs])
            if params is not kernel.params:  # of most launches they are those of the plan
                kernel.tail[: len(params)] = params
                kernel.params = params
            if groups != kernel.groups or here.stream != kernel.stream:
                kernel.config.groups[:] = groups
                kernel.config.stream = here.stream
                kernel.groups, kernel.stream = groups, here.stream
            code = self._launch(kernel.at, kernel.function, None, kernel.extra[0])
        if code:
            raise self.driver.error("cuLaunchKernelEx", code)

    def synchronize(self) -> None:
        self.enter()
        self.driver.call("cuCtxSynchronize")

    def forked(self) -> None:
        """This is a child of the process that started the card."""
        self._lost = (
            "a card that was used before a fork cannot be used in the child; start processes with "
            "multiprocessing's method 'spawn'"
        )
        self._here = threading.local()
        self.memory.free = lambda buffer: None  # type: ignore[method-assign]


def _after_fork() -> None:
    for runtime in list(_runtimes):
        runtime.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
