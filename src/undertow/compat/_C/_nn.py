"""The parser of arguments of `Module.to`, and functions that torch keeps here."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...devices import Device
from ...dtypes import DType
from ...nn import functional


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> tuple[Device | None, DType | None, bool, Any]:
    """Device, dtype, non_blocking and memory format out of the arguments of `to`.

    >>> import undertow as ut
    >>> _parse_to("cpu", ut.float64)
    (device(type='cpu'), undertow.float64, False, None)
    """
    for given in args:
        if isinstance(given, Tensor):
            device, dtype = given.device, given.dtype
        elif isinstance(given, DType):
            dtype = given
        elif isinstance(given, bool):
            non_blocking = given
        elif given is not None:
            device = given
    return None if device is None else Device(device), dtype, non_blocking, memory_format


def __getattr__(name: str) -> Any:
    return getattr(functional, name)
