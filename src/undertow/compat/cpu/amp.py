"""`autocast` for the CPU, its old place."""

from __future__ import annotations

from ...amp import autocast_mode, grad_scaler
from ...dtypes import DType, bfloat16

__path__: list[str] = []  # torch has modules below this one
__all__ = ["GradScaler", "autocast"]


class autocast(autocast_mode.autocast):
    """`ut.autocast("cpu", …)`.

    >>> import undertow as ut
    >>> with ut.cpu.amp.autocast():
    ...     (ut.ones(2, 2) @ ut.ones(2, 2)).dtype
    undertow.bfloat16
    """

    __slots__ = ()

    def __init__(
        self, enabled: bool = True, dtype: DType = bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`ut.amp.GradScaler("cpu", …)`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
