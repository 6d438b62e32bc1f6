"""The runtime of a WebGPU device: memory, kernels, and work that is recorded and sent in batches.

Note [batches]
A launch is recorded in a command buffer; the device is told of it with the whole batch: when
somebody reads results, when there are many launches, or on `synchronize`. The parameters of a
batch lie in one page, which is written before the batch is sent; since a queue does everything in
order, the same page serves the next batch. An upload into memory that the open batch uses sends the
batch first.

Note [kept objects]
Pipelines are kept by their text, and bind groups by the buffers that they bind. As buffers are
reused, the steps of a training use the same ones again and again, and nothing is created.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import DeviceError, OutOfMemoryError
from ..debug import listing, wanted
from .adapters import choose, library, start
from .memory import Allocator, Buffer
from .raw import recorder
from .wgsl import Wgsl

SLOT = 256  # bytes: where parameters in the page may begin
PAGE = 1024 * SLOT
BATCH = 512  # launches
_BATCH = "a batch of launches"
BIND_GROUPS = 1 << 14  # kept

_runtimes: weakref.WeakSet[WebGpuRuntime] = weakref.WeakSet()


class Kernel(NamedTuple):
    """A compiled kernel."""

    entry: str
    pipeline: Any
    handle: Any  # of the pipeline, as the recorder takes it
    layout: Any  # of its bind groups
    slot: int  # bytes of its parameters in the page


class WebGpuRuntime:
    """See the notes, and `backends/generated/runtime.py` for what is asked of a runtime."""

    def __init__(self, index: int = 0) -> None:
        self.adapter = choose(index)
        self.device, self.limits = start(self.adapter)
        self.dialect = Wgsl()
        wgpu = library()
        self._errors: tuple[type[Exception], ...] = (wgpu.GPUError, RuntimeError)
        self._usage = wgpu.BufferUsage
        self._recorder = recorder(wgpu.version_info)
        self._lock = threading.RLock()
        self._lost = ""  # why the device cannot be used any more
        largest = self.limits.max_buffer // 256 * 256
        self.memory = Allocator(self._create, self._release, largest)
        self._page = bytearray(PAGE)
        self._parameters = self.device.create_buffer(
            size=PAGE, usage=self._usage.UNIFORM | self._usage.COPY_DST
        )
        self._kernels: dict[tuple[Any, ...], Kernel] = {}
        self._layouts: dict[tuple[Any, ...], Any] = {}
        self._groups: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self._staging: dict[int, Any] = {}  # for reading, by size
        self._encoder: Any = None
        self._pass: Any = None
        self._pass_handle: Any = None
        self._end = 0  # of the page's used part
        self._pending = 0
        self._batch = 0
        self._counts = dict.fromkeys(
            ("launches", "submissions", "readbacks", "uploads", "pipelines", "bind_groups"), 0
        )
        self._most = 1 if "webgpu" in wanted() else BATCH
        self._mark = self.memory.alloc(4)
        _runtimes.add(self)

    # Memory -----------------------------------------------------------------------------------
    def alloc(self, nbytes: int) -> Buffer:
        return self.memory.alloc(nbytes)

    def free(self, buffer: Buffer) -> None:
        self.memory.free(buffer)

    def upload(self, buffer: Buffer, offset: int, data: Any) -> None:
        nbytes = data.nbytes
        if not nbytes:
            return
        low, high = offset // 4 * 4, -(-(offset + nbytes) // 4) * 4
        if high - low != nbytes:  # a queue writes whole words
            words = np.zeros(high - low, np.uint8)
            if offset or nbytes < 4:  # else the bytes behind belong to nobody
                words[:] = self.download(buffer, low, high - low)
            words[offset - low : offset - low + nbytes] = data.reshape(-1).view(np.uint8)
            data = words
        with self._lock:
            self._check()
            if buffer.batch == self._batch:
                self.submit()
            self._counts["uploads"] += 1
            self._guarded("upload", self.device.queue.write_buffer, buffer.gpu, low, data)

    def download(self, buffer: Buffer, offset: int, nbytes: int) -> Any:
        if not nbytes:
            return np.empty(0, np.uint8)
        low, high = offset // 4 * 4, -(-(offset + nbytes) // 4) * 4
        with self._lock:
            self._check()
            self._counts["readbacks"] += 1
            words = self._guarded("download", self._read, buffer, low, high - low)
        return words[offset - low : offset - low + nbytes]

    def _read(self, buffer: Buffer, offset: int, nbytes: int) -> Any:
        size = max(1 << (nbytes - 1).bit_length(), 256)
        staging = self._staging.pop(size, None)
        if staging is None:
            usage = self._usage.COPY_DST | self._usage.MAP_READ
            staging = self.device.create_buffer(size=size, usage=usage)
        self._end_pass()
        encoder = self._encoder or self.device.create_command_encoder()
        encoder.copy_buffer_to_buffer(buffer.gpu, offset, staging, 0, nbytes)
        self._encoder = encoder
        self.submit()
        staging.map_sync("READ_NOSYNC", 0, nbytes)
        words = np.frombuffer(staging.read_mapped(0, nbytes), np.uint8)
        staging.unmap()
        if size <= 1 << 24:
            self._staging[size] = staging
        return words

    def _create(self, nbytes: int) -> Any:
        with self._lock:
            self._check()
            usage = self._usage.STORAGE | self._usage.COPY_DST | self._usage.COPY_SRC
            try:
                return self.device.create_buffer(size=nbytes, usage=usage)
            except self._errors as error:
                if "memory" not in str(error).lower():
                    raise self._failure("alloc", error) from error
                raise OutOfMemoryError(
                    f"[webgpu] the device has no memory for {nbytes} bytes more beside the "
                    f"{self.memory.reserved} that are reserved: {error}"
                ) from error

    def _release(self, buffers: list[Buffer]) -> None:
        """Forget buffers, and the bind groups that hold them."""
        gone = set(map(id, buffers))
        with self._lock:
            if self._lost:
                return
            self.submit()
            for key in [k for k in self._groups if any(id(_whole(b)) in gone for b in k[1:])]:
                del self._groups[key]

    # Kernels ----------------------------------------------------------------------------------
    def compile(
        self, text: str, entry: str, bindings: tuple[bool, ...], group: int, words: int
    ) -> Kernel:
        key = (text, entry)
        found = self._kernels.get(key)
        if found is None:
            with self._lock:
                self._check()
                found = self._kernels.get(key)
                if found is None:
                    args = text, entry, tuple(bindings), words
                    found = self._kernels[key] = self._guarded(entry, self._compile, *args)
        return found

    def _compile(self, text: str, entry: str, bindings: tuple[bool, ...], words: int) -> Kernel:
        listing("wgsl", entry, text)
        slot = -(-max(words, 4) * 4 // SLOT) * SLOT
        layout = self._layout(bindings, slot)
        module = self.device.create_shader_module(code=text)
        pipeline = self.device.create_compute_pipeline(
            layout=self.device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": module, "entry_point": entry},
        )
        self._counts["pipelines"] += 1
        return Kernel(entry, pipeline, self._recorder.handle(pipeline), layout, slot)

    def _layout(self, bindings: tuple[bool, ...], slot: int) -> Any:
        found = self._layouts.get((bindings, slot))
        if found is None:
            kinds: list[dict[str, Any]] = [
                {"type": "storage" if written else "read-only-storage"} for written in bindings
            ]
            kinds.append({"type": "uniform", "has_dynamic_offset": True, "min_binding_size": slot})
            found = self._layouts[bindings, slot] = self.device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": library().ShaderStage.COMPUTE, "buffer": kind}
                    for i, kind in enumerate(kinds)
                ]
            )
        return found

    def _bind(self, key: tuple[Any, ...], kernel: Kernel, buffers: Sequence[Any]) -> Any:
        if len(self._groups) >= BIND_GROUPS:
            self.submit()
            self._groups.clear()
        parts: list[dict[str, Any]] = []
        for b in buffers:
            whole, start, nbytes = b if b.__class__ is tuple else (b, 0, b.nbytes)
            parts.append({"buffer": whole.gpu, "offset": start, "size": nbytes})
        parts.append({"buffer": self._parameters, "offset": 0, "size": kernel.slot})
        group = self.device.create_bind_group(
            layout=kernel.layout,
            entries=[{"binding": i, "resource": part} for i, part in enumerate(parts)],
        )
        found = self._groups[key] = (group, self._recorder.handle(group))
        self._counts["bind_groups"] += 1
        return found

    # Work -------------------------------------------------------------------------------------
    def launch(
        self, kernel: Kernel, buffers: Sequence[Any], params: bytes, groups: tuple[int, int, int]
    ) -> None:
        most = self.limits.max_groups
        if groups[0] > most or groups[1] > most or groups[2] > most:
            raise DeviceError(
                f"[webgpu] {kernel.entry} wants {groups} groups; the device runs at most {most} in "
                "each dimension"
            )
        with self._lock:
            if self._lost:
                self._check()
            key = (kernel.layout, *buffers)
            found = self._groups.get(key)
            if found is None:
                found = self._guarded(kernel.entry, self._bind, key, kernel, buffers)
            if self._end + kernel.slot > PAGE:
                self.submit()
            if self._pass is None:
                self._begin()
            at = self._end
            self._page[at : at + len(params)] = params
            self._end = at + kernel.slot
            self._recorder.dispatch(self._pass_handle, kernel.handle, found[1], at, groups)
            for b in buffers:
                if b.__class__ is tuple:  # a part
                    b = b[0]
                b.batch = self._batch
            self._pending += 1
            if self._pending >= self._most:
                self.submit(kernel.entry if self._most == 1 else _BATCH)

    def _begin(self) -> None:
        if self._encoder is None:
            self._encoder = self.device.create_command_encoder()
        self._pass = self._encoder.begin_compute_pass()
        self._pass_handle = self._recorder.handle(self._pass)

    def _end_pass(self) -> None:
        if self._pass is not None:
            self._pass.end()
            self._pass = self._pass_handle = None

    def submit(self, what: str = _BATCH) -> None:
        """Send what is recorded."""
        with self._lock:
            if self._encoder is None:
                return
            self._check()
            encoder = self._encoder
            end, launches = self._end, self._pending
            try:
                self._guarded(what, self._send, encoder, end)
            finally:
                self._encoder = self._pass = self._pass_handle = None
                self._end = self._pending = 0
                self._batch += 1
            self._counts["submissions"] += 1
            self._counts["launches"] += launches

    def _send(self, encoder: Any, end: int) -> None:
        self._end_pass()
        commands = encoder.finish()
        if end:
            self.device.queue.write_buffer(self._parameters, 0, self._page, 0, end)
        self.device.queue.submit([commands])

    def synchronize(self) -> None:
        with self._lock:
            self._check()
            # Reading a word waits for all before it; wgpu 0.32's own way to wait is broken.
            self._guarded("synchronize", self._read, self._mark, 0, 4)

    def texts(self) -> list[str]:
        """The WGSL of all kernels that were compiled."""
        return [text for text, _ in self._kernels]

    def stats(self) -> dict[str, int]:
        """Counts since the start; launches that wait in the open batch are among them."""
        found = {**self._counts, "buffers": self.memory.created}
        found["launches"] += self._pending
        return found

    # What can go wrong ------------------------------------------------------------------------
    def _check(self) -> None:
        if self._lost:
            raise DeviceError(f"[webgpu] {self._lost}")

    def _guarded(self, what: str, call: Any, *args: Any) -> Any:
        """A call of wgpu whose errors say what was done."""
        try:
            return call(*args)
        except self._errors as error:
            if isinstance(error, (DeviceError, OutOfMemoryError)):
                raise
            raise self._failure(what, error) from error

    def _failure(self, what: str, error: Exception) -> DeviceError:
        if "lost" in str(error).lower():
            self._lost = (
                f"the device is lost, and with it the tensors that were on it ({error}); start the "
                "program again, or go on with device='cpu'"
            )
            return DeviceError(f"[webgpu] {self._lost}")
        hint = "; UNDERTOW_DEBUG=webgpu runs op by op, and names the one"
        if self._most == 1 or what != _BATCH:
            hint = ""
        return DeviceError(f"[webgpu] {what} failed: {error}{hint}")

    def forked(self) -> None:
        """This is a child of the process that started the device, which is not there any more."""
        self._lost = (
            "a device that was started before a fork cannot be used in the child, where its driver "
            "has no threads; start processes with multiprocessing's method 'spawn'"
        )
        self._lock = threading.RLock()  # perhaps held by a thread that is not here


def _whole(b: Any) -> Buffer:
    """The buffer of which a part is bound."""
    found: Buffer = b[0] if b.__class__ is tuple else b
    return found


def _after_fork() -> None:
    for runtime in list(_runtimes):
        runtime.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
