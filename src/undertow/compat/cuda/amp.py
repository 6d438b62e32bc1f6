"""`autocast` and `GradScaler` for "cuda", their old place: without such a device they are off."""

from __future__ import annotations

import functools

from ...amp import autocast_mode, grad_scaler
from ...dtypes import DType, float16

__path__: list[str] = []  # torch has modules below this one
__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

custom_fwd = functools.partial(autocast_mode.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(autocast_mode.custom_bwd, device_type="cuda")


class autocast(autocast_mode.autocast):
    """`ut.autocast("cuda", …)`, which warns and does nothing where there is no such device."""

    __slots__ = ()

    def __init__(
        self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`ut.amp.GradScaler("cuda", …)`, which warns and does nothing without such a device."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
