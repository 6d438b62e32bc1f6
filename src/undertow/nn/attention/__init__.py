"""Which kernel of attention may run, where torch has several; here there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from ...compat.on_demand import on_demand
from ...errors import ArgumentError
from . import bias as bias

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False
# What `backends.cuda` shows and sets; attention has one kernel here, whatever is allowed.
ALLOWED = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}
__getattr__ = on_demand(globals(), {n: n for n in ("experimental", "flex_attention", "varlen")})


class SDPBackend(IntEnum):
    """The kernels of attention that torch knows by name.

    >>> import undertow as ut
    >>> ut.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | list[SDPBackend], set_priority: bool = False
) -> Iterator[dict[str, object]]:
    """A block in which torch would choose among `backends`; kept, and without effect here.

    The choice can be read in `backends.cuda` (`flash_sdp_enabled` …) while the block lasts.

    >>> import undertow as ut
    >>> from undertow.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
    ...     ut.backends.cuda.mem_efficient_sdp_enabled()
    False
    """
    chosen: object = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, list) or not all(isinstance(b, SDPBackend) for b in chosen):
        raise ArgumentError(
            f"[sdpa_kernel] expects an SDPBackend or a list of them, got {backends!r}"
        )
    with allowing(
        flash=SDPBackend.FLASH_ATTENTION in chosen,
        math=SDPBackend.MATH in chosen,
        mem_efficient=SDPBackend.EFFICIENT_ATTENTION in chosen,
        cudnn=SDPBackend.CUDNN_ATTENTION in chosen,
    ):
        yield {}


@contextmanager
def allowing(**kernels: bool) -> Iterator[None]:
    """A block in which `backends.cuda` shows other settings."""
    before = dict(ALLOWED)
    ALLOWED.update(kernels)
    try:
        yield
    finally:
        ALLOWED.update(before)
