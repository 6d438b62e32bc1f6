"""The `reference` device: the same NumPy forms on arrays that no other backend can touch.

It exists so that "every device against the reference" and everything about several devices
(transfers, mixed-device errors, gradients that meet from two devices) can be run on any machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..devices import Device
from .base import Backend
from .reference import NumpyBackend


class BoxedArray:
    """An array of the reference device; only its backend looks inside."""

    __slots__ = ("host",)
    __array_ufunc__ = None  # NumPy must not compute on it by accident

    def __init__(self, host: Any) -> None:
        self.host = host

    @property
    def shape(self) -> tuple[int, ...]:
        return self.host.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.host.strides

    @property
    def dtype(self) -> Any:
        return self.host.dtype

    @property
    def size(self) -> int:
        return self.host.size

    @property
    def ndim(self) -> int:
        return self.host.ndim

    @property
    def itemsize(self) -> int:
        return self.host.itemsize

    @property
    def flags(self) -> Any:
        return self.host.flags


def unbox(value: Any) -> Any:
    """Boxes opened, also inside tuples and lists."""
    if isinstance(value, BoxedArray):
        return value.host
    if isinstance(value, (tuple, list)):
        return type(value)(unbox(v) for v in value)
    return value


def box(value: Any) -> Any:
    """Arrays boxed, also inside tuples."""
    if isinstance(value, np.ndarray):
        return BoxedArray(value)
    if isinstance(value, tuple):
        return tuple(box(v) for v in value)
    return value


_numpy = NumpyBackend(Device("reference"))


def _delegate(name: str) -> Any:
    form = getattr(_numpy, name)

    def run(self: Any, *args: Any) -> Any:
        return box(form(*map(unbox, args)))

    run.__name__ = name
    run.__doc__ = form.__doc__
    return run


_FORMS = {name: _delegate(name) for name in Backend.__abstractmethods__}
_FORMS["from_host"] = lambda self, array: BoxedArray(np.array(array))
_FORMS["to_host"] = lambda self, array: np.array(array.host)

BoxedBackend: Any = type(
    "BoxedBackend",
    (Backend,),
    {"__doc__": "Every form by NumPy on `BoxedArray`s.", "device": _numpy.device, **_FORMS},
)
