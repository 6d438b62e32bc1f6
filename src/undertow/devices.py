"""Device names: where a tensor's elements live."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeAlias

from .errors import DeviceError, DeviceTypeError


class Device:
    """A device such as `ut.device("cpu")`; equal when type and index are equal.

    In a `with` block it is where new tensors are made.

    >>> device("cpu").type, device("cpu") == device("cpu")
    ('cpu', True)
    >>> import undertow as ut
    >>> with ut.device("reference"):
    ...     ut.ones(2)
    tensor([1., 1.], device='reference')
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any, index: Any = None) -> None:
        if isinstance(type, Device):
            type, index = type.type, type.index if index is None else index
        if not isinstance(type, str):
            raise DeviceTypeError(f"[device] expects a name such as 'cpu', got {type!r}")
        name, colon, number = type.partition(":")
        if colon:
            if index is not None or not number.isdigit():
                raise DeviceError(
                    f"[device] cannot read {type!r} (index {index}); write 'cpu' or 'cuda:0'"
                )
            index = int(number)
        if not name or not (index is None or (isinstance(index, int) and index >= 0)):
            raise DeviceError(
                f"[device] expects a name and an index of at least 0, got {type!r} and {index!r}"
            )
        self.type = name
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.type, self.index)

    def __enter__(self) -> Device:
        _defaults.set((*_defaults.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _defaults.set(_defaults.get()[:-1])


# Where new tensors are made in this context, innermost last; nothing means the CPU.
_defaults: ContextVar[tuple[Device, ...]] = ContextVar("undertow_devices", default=())
defaults = _defaults.get


def set_default_device(device: DeviceLike | None) -> None:
    """Make new tensors on `device` from here on; None is the CPU again.

    >>> import undertow as ut
    >>> ut.set_default_device("reference")
    >>> ut.zeros(1).device
    device(type='reference')
    >>> ut.set_default_device(None)
    """
    _defaults.set(() if device is None else (Device(device),))


def get_default_device() -> Device:
    """Where new tensors are made.

    >>> import undertow as ut
    >>> ut.get_default_device()
    device(type='cpu')
    """
    chosen = _defaults.get()
    return chosen[-1] if chosen else Device("cpu")


device = Device
DeviceLike: TypeAlias = Device | str  # what users may pass for a device
