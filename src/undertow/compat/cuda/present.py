"""What `undertow.cuda` answers where there is a card: its memory, streams and events."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from ...backends.nvidia.driver import card_name
from ...backends.registry import backend_on, running
from ...devices import Device
from ...errors import DeviceError, UnsupportedError

_HANDLE = ctypes.c_void_p
_TIMED, _UNTIMED, _NON_BLOCKING = 0, 2, 1  # flags of the driver


def index_of(name: str, device: Any) -> int:
    """The number of a card, of None, a number, a name or a device."""
    if device is None:
        return 0
    if isinstance(device, int):
        return device
    found = Device(device)
    if found.type != "cuda":
        raise DeviceError(f"[cuda.{name}] expects a CUDA device, got {str(found)!r}")
    return found.index or 0


def runtime_of(name: str, device: Any = None) -> Any:
    """The runtime of a card, which is started if it was not."""
    backend: Any = backend_on(Device("cuda", index_of(name, device)))
    return backend.runtime


def started(device: Any = None) -> Any:
    """The runtime of a card if it is in use, else None."""
    backend: Any = running().get(f"cuda:{index_of('memory', device)}")
    return getattr(backend, "runtime", None)


def synchronize(device: Any = None) -> None:
    """Wait for all work of a card, and for its checks."""
    backend: Any = backend_on(Device("cuda", index_of("synchronize", device)))
    backend.synchronize()


def properties(device: Any = None) -> SimpleNamespace:
    """What the driver tells of a card, under torch's names."""
    runtime = runtime_of("get_device_properties", device)
    major, minor = runtime.capability
    return SimpleNamespace(
        name=card_name(runtime.index),
        major=major,
        minor=minor,
        total_memory=runtime.total,
        multi_processor_count=runtime.driver.attribute(runtime.device, 16),
    )


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free, and all bytes, of a card."""
    runtime = runtime_of("mem_get_info", device)
    runtime.enter()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    runtime.driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def memory(device: Any, what: str) -> int:
    """A number of the allocator; 0 for a card that is not in use."""
    runtime = started(device)
    if runtime is None:
        return 0
    runtime.enter()
    return int(getattr(runtime.memory, what))


def set_device(device: Any) -> None:
    """The first card is the current one; others are named."""
    index = index_of("set_device", device)
    if index > 0:
        raise UnsupportedError(
            f"[cuda.set_device] 'cuda' is always the first card; write device='cuda:{index}'"
        )


class _Handle:
    """Something of the driver's, given back with the last who knows it."""

    _destroy = ""

    def __init__(self, runtime: Any, handle: int) -> None:
        self.runtime, self.handle = runtime, handle
        self.device = Device("cuda", runtime.index)

    def call(self, name: str, *args: Any) -> None:
        self.runtime.enter()
        self.runtime.driver.call(name, *args)

    def ready(self, name: str) -> bool:
        self.runtime.enter()
        code = self.runtime.driver.raw[name](self.handle)
        if code not in (0, 600):
            raise self.runtime.driver.error(name, code)
        return bool(code == 0)

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            with contextlib.suppress(DeviceError):  # after a fork, or an error of the card
                self.call(self._destroy, self.handle)


class CudaStream(_Handle):
    """A stream: work on it is done in order, beside that of other streams."""

    _destroy = "cuStreamDestroy_v2"

    def __del__(self) -> None:
        # Its blocks may go to a new stream with the same handle, so its work must be done.
        with contextlib.suppress(DeviceError):
            self.synchronize()
        super().__del__()

    @classmethod
    def make(cls, device: Any, priority: int) -> CudaStream:
        """A new stream."""
        runtime = runtime_of("Stream", device)
        runtime.enter()
        made = runtime.driver.made
        return cls(
            runtime, made("cuStreamCreateWithPriority", _HANDLE, _NON_BLOCKING, priority) or 0
        )

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return self.handle

    def synchronize(self) -> None:
        """Wait for the stream's work."""
        self.call("cuStreamSynchronize", self.handle)

    def query(self) -> bool:
        """Whether the stream's work is done."""
        return self.ready("cuStreamQuery")

    def record_event(self, event: Any = None) -> Any:
        """An event behind the work that was launched so far."""
        event = event or CudaEvent.make(False)
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Work from here on waits for an event."""
        if event.handle:
            self.call("cuStreamWaitEvent", self.handle, event.handle, 0)

    def wait_stream(self, stream: Any) -> None:
        """Work from here on waits for that of another stream so far."""
        self.wait_event(stream.record_event())


class CudaEvent(_Handle):
    """A point in a stream's work."""

    _destroy = "cuEventDestroy_v2"

    @classmethod
    def make(cls, enable_timing: bool, device: Any = None) -> CudaEvent:
        """A new event."""
        runtime = runtime_of("Event", device)
        runtime.enter()
        flags = _TIMED if enable_timing else _UNTIMED
        made = cls(runtime, runtime.driver.made("cuEventCreate", _HANDLE, flags))
        made.timed = enable_timing
        return made

    timed = False

    def record(self, stream: Any = None) -> None:
        """Put the event behind the work of a stream so far."""
        self.call("cuEventRecord", self.handle, stream.handle if stream else self.runtime.stream)

    def wait(self, stream: Any = None) -> None:
        """Work of a stream from here on waits for the event."""
        where = stream.handle if stream else self.runtime.stream
        self.call("cuStreamWaitEvent", where, self.handle, 0)

    def query(self) -> bool:
        """Whether the work before the event is done."""
        return self.ready("cuEventQuery")

    def synchronize(self) -> None:
        """Wait for the event."""
        self.call("cuEventSynchronize", self.handle)

    def elapsed_time(self, end: CudaEvent) -> float:
        """Milliseconds from this event to another; both were made with enable_timing=True."""
        if not (self.timed and end.timed):
            raise DeviceError("[cuda.Event] elapsed_time needs events with enable_timing=True")
        self.runtime.enter()
        made = self.runtime.driver.made
        return float(made("cuEventElapsedTime_v2", ctypes.c_float, self.handle, end.handle))


def current_stream(device: Any = None) -> CudaStream:
    """The stream of this thread's work."""
    runtime = runtime_of("current_stream", device)
    return _Borrowed(runtime, runtime.stream)


def default_stream(device: Any = None) -> CudaStream:
    """The stream in which work is done if none was chosen."""
    return _Borrowed(runtime_of("default_stream", device), 0)


class _Borrowed(CudaStream):
    """A stream that somebody else gives back."""

    def __del__(self) -> None:
        return None


@contextlib.contextmanager
def on_stream(stream: CudaStream) -> Iterator[None]:
    """A block whose work is done on a stream."""
    runtime = stream.runtime
    before = runtime.stream
    runtime.stream = stream.handle
    try:
        yield
    finally:
        runtime.stream = before
