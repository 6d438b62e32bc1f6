"""`undertow.cuda`: says honestly that there is no CUDA device, so that programs take the CPU.

What asks, answers (`is_available`, `device_count`, memory in use); what seeds or empties has
nothing to do and does nothing; what needs a device raises `AbsentDeviceError`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ...backends.registry import is_present
from ...core.tensor import Tensor
from ...errors import AbsentDeviceError, OutOfMemoryError
from ...shapes import as_int
from . import amp, jiterator, nvtx

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
    """Whether there is a CUDA device: only if a package brings one.

    >>> import undertow as ut
    >>> "cuda" if ut.cuda.is_available() else "cpu"
    'cpu'
    """
    return is_present("cuda")


def device_count() -> int:
    """How many CUDA devices there are."""
    return int(is_available())


def is_initialized() -> bool:
    """Whether CUDA is in use."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the CUDA device has bfloat16."""
    return False


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
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes of CUDA memory that were in use."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """Bytes of CUDA memory kept for later."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes of CUDA memory that were kept."""
    return 0


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Statistics of CUDA memory: none."""
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Statistics of CUDA memory as text."""
    return "There is no CUDA device here."


def get_rng_state_all() -> list[Tensor]:
    """The state of every CUDA device's generator: there are none."""
    return []


# Nothing to do --------------------------------------------------------------------------------
def empty_cache() -> None:
    """Nothing: there is no CUDA memory to give back."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing: the peak is 0 already."""


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
    """An error: there is no CUDA device."""
    absent("init")


def current_device() -> int:
    """An error: there is no CUDA device."""
    absent("current_device")


def set_device(device: Any) -> None:
    """An error: there is no CUDA device."""
    absent("set_device")


def get_device_name(device: Any = None) -> str:
    """An error: there is no CUDA device."""
    absent("get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """An error: there is no CUDA device."""
    absent("get_device_capability")


def get_device_properties(device: Any = None) -> Any:
    """An error: there is no CUDA device."""
    absent("get_device_properties")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """An error: there is no CUDA device."""
    absent("mem_get_info")


def synchronize(device: Any = None) -> None:
    """An error: there is no CUDA device."""
    absent("synchronize")


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
    """An error: there is no CUDA device."""
    absent("current_stream")


def default_stream(device: Any = None) -> Any:
    """An error: there is no CUDA device."""
    absent("default_stream")


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
    """An error when it is made: there is no CUDA device."""


class Event(_NeedsDevice):
    """An error when it is made: there is no CUDA device."""


class CUDAGraph(_NeedsDevice):
    """An error when it is made: there is no CUDA device."""


class _Nowhere:
    """A block on a device that may be None or negative, which is no device."""

    def __init__(self, device: Any) -> None:
        if device is not None and device != -1:
            absent(type(self).__name__)

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
    """A block that uses a CUDA stream; `stream(None)` does nothing."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
