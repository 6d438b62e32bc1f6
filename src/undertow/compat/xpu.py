"""`undertow.xpu`: says honestly that there is no XPU device; see `undertow.cuda`."""

from .absent_device import AbsentDevice

__path__: list[str] = []  # torch has modules below this one
__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "synchronize",
]

_device = AbsentDevice("xpu", "XPU")
device_count = _device.device_count
empty_cache = _device.empty_cache
is_available = _device.is_available
is_initialized = _device.is_initialized
manual_seed = manual_seed_all = _device.manual_seed
seed = _device.seed
synchronize = _device.synchronize
