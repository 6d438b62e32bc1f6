"""`undertow.cuda`: NVIDIA's cards under torch's names; without one it says so honestly.

Without a card, what asks, answers (`is_available`, `device_count`, memory in use), so that programs
take the CPU; what seeds or empties has nothing to do and does nothing; what needs a device raises
`AbsentDeviceError`. With one, present.py answers.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NoReturn

from ...backends.registry import is_present, running
from ...core.tensor import Tensor
from ...errors import AbsentDeviceError, OutOfMemoryError
from ...shapes import as_int
from . import amp, jiterator, nvtx, present

__all__ = [
    "BoolTensor",
    "ByteTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "amp",
    "jiterator",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
]

default_generators: tuple[Any, ...] = ()


def absent(name: str) -> NoReturn:
    """Raise for what needs a device."""
    raise AbsentDeviceError(
        f"[cuda.{name}] there is no CUDA device here; ask cuda.is_available() first and use 'cpu'"
    )


# Questions ------------------------------------------------------------------------------------
def is_available() -> bool:
    """Whether there is a CUDA device: NVIDIA's driver and a card, or what a package brings.

    >>> import undertow as ut
    >>> "cuda" if ut.cuda.is_available() else "cpu"
    'cpu'
    """
    return is_present("cuda")


def device_count() -> int:
    """How many CUDA devices there are."""
    from ...backends.nvidia import driver

    return driver.device_count() or int(is_available())


def is_initialized() -> bool:
    """Whether CUDA is in use."""
    return any(name.startswith("cuda") for name in running())


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the CUDA device has bfloat16: in memory, computed in single precision."""
    return including_emulation and device_count() > 0


def is_tf32_supported() -> bool:
    """Whether the CUDA device has TF32."""
    return False


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph is being captured."""
    return False


def get_arch_list() -> list[str]:
    """The CUDA architectures that the library was built for."""
    return []


def memory_allocated(device: Any = None) -> int:
    """Bytes of CUDA memory in use."""
    return present.memory(device, "allocated")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes of CUDA memory that were in use."""
    return present.memory(device, "peak")


def memory_reserved(device: Any = None) -> int:
    """Bytes of CUDA memory in use or kept for later."""
    return present.memory(device, "reserved")


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes of CUDA memory that were kept."""
    return present.memory(device, "peak_reserved")


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Statistics of CUDA memory: none without a card in use."""
    if present.started(device) is None:
        return {}
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Statistics of CUDA memory as text."""
    if not is_available():
        return "There is no CUDA device here."
    return "\n".join(f"{name}: {number}" for name, number in memory_stats(device).items())


def get_rng_state_all() -> list[Tensor]:
    """The state of every CUDA device's generator: there are none."""
    return []


# Nothing to do --------------------------------------------------------------------------------
def empty_cache() -> None:
    """Give CUDA memory that nobody uses back to the driver."""
    for index in range(device_count()):
        runtime = present.started(index)
        if runtime is not None:
            runtime.enter()
            runtime.memory.empty()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Count the peak from what is in use now."""
    runtime = present.started(device)
    if runtime is not None:
        runtime.memory.reset_peak()


reset_max_memory_allocated = reset_peak_memory_stats


def manual_seed(seed: int) -> None:
    """Nothing but a check of `seed`: there is no CUDA generator; `ut.manual_seed` seeds ours."""
    as_int("cuda.manual_seed", "seed", seed)


def manual_seed_all(seed: int) -> None:
    """Nothing but a check of `seed`: there is no CUDA generator; `ut.manual_seed` seeds ours."""
    as_int("cuda.manual_seed_all", "seed", seed)


def seed() -> None:
    """Nothing: there is no CUDA generator."""


def seed_all() -> None:
    """Nothing: there is no CUDA generator."""


def set_rng_state_all(new_states: Any) -> None:
    """Nothing for no states; more than that has no device to go to."""
    if list(new_states):
        absent("set_rng_state_all")


# What needs a device --------------------------------------------------------------------------
def init() -> None:
    """Start the first CUDA device."""
    if not is_available():
        absent("init")
    present.runtime_of("init")


def current_device() -> int:
    """The number of the card that "cuda" means: the first."""
    if not is_available():
        absent("current_device")
    return 0


def set_device(device: Any) -> None:
    """Choose the card that "cuda" means: only the first can be."""
    if not is_available():
        absent("set_device")
    present.set_device(device)


def get_device_name(device: Any = None) -> str:
    """The name of a card."""
    if not is_available():
        absent("get_device_name")
    return str(present.properties(device).name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The architecture of a card: (9, 0) for sm_90."""
    if not is_available():
        absent("get_device_capability")
    found = present.properties(device)
    return found.major, found.minor


def get_device_properties(device: Any = None) -> Any:
    """Name, architecture, memory and processors of a card."""
    if not is_available():
        absent("get_device_properties")
    return present.properties(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free, and all bytes, of a card."""
    if not is_available():
        absent("mem_get_info")
    return present.mem_get_info(device)


def synchronize(device: Any = None) -> None:
    """Wait until all work of a card is done."""
    if not is_available():
        absent("synchronize")
    present.synchronize(device)


def ipc_collect() -> None:
    """An error: there is no CUDA device."""
    absent("ipc_collect")


def initial_seed() -> int:
    """An error: there is no CUDA device."""
    absent("initial_seed")


def get_rng_state(device: Any = "cuda") -> Tensor:
    """An error: there is no CUDA device."""
    absent("get_rng_state")


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """An error: there is no CUDA device."""
    absent("set_rng_state")


def current_stream(device: Any = None) -> Any:
    """The stream of this thread's work."""
    if not is_available():
        absent("current_stream")
    return present.current_stream(device)


def default_stream(device: Any = None) -> Any:
    """The stream of work for which none was chosen."""
    if not is_available():
        absent("default_stream")
    return present.default_stream(device)


class _CudaTensor(type):
    """`cuda.FloatTensor` and its kin: types that no tensor has, and that make none."""

    def __instancecheck__(cls, value: object) -> bool:
        return False

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        absent(cls.__name__)


class BoolTensor(metaclass=_CudaTensor):
    """No tensor is one; called, it is an error."""


class ByteTensor(metaclass=_CudaTensor):
    """No tensor is one; called, it is an error."""


class DoubleTensor(metaclass=_CudaTensor):
    """No tensor is one; called, it is an error."""


class FloatTensor(metaclass=_CudaTensor):
    """No tensor is one; called, it is an error."""


class HalfTensor(metaclass=_CudaTensor):
    """No tensor is one; called, it is an error."""


class IntTensor(metaclass=_CudaTensor):
    """No tensor is one; called, it is an error."""


class LongTensor(metaclass=_CudaTensor):
    """No tensor is one; called, it is an error."""


class _NeedsDevice:
    """What cannot be made without a device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        absent(type(self).__name__)


class Stream(_NeedsDevice):
    """A stream of a card; an error when it is made and there is none."""

    def __new__(cls, device: Any = None, priority: int = 0) -> Any:
        if not is_available():
            absent("Stream")
        return present.CudaStream.make(device, priority)


class Event(_NeedsDevice):
    """An event of a card; an error when it is made and there is none."""

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Any:
        if not is_available():
            absent("Event")
        return present.CudaEvent.make(enable_timing)


class CUDAGraph(_NeedsDevice):
    """An error when it is made: graphs are not captured."""


class _Nowhere:
    """A block on a device that may be None or negative, which is no device."""

    def __init__(self, device: Any) -> None:
        if device is None or device == -1:
            return
        if not is_available():
            absent(type(self).__name__)
        present.set_device(device)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class device(_Nowhere):
    """A block that uses a CUDA device; `device(None)` and `device(-1)` do nothing."""


class device_of(_Nowhere):
    """A block that uses the CUDA device of a tensor; a tensor of another device changes nothing."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(None)


class stream(_Nowhere):
    """A block whose work is done on a CUDA stream; `stream(None)` does nothing."""

    def __init__(self, stream: Any) -> None:
        if stream is not None and not is_available():
            absent("stream")
        self._block = present.on_stream(stream) if stream is not None else nullcontext()

    def __enter__(self) -> None:
        self._block.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._block.__exit__(None, None, None)
