"""The `reference` device: the same NumPy forms on arrays that have what the contract has, no more.

It exists so that "every device against the reference" and everything about several devices
(transfers, mixed-device errors, gradients that meet from two devices) can be run on any machine,
and so that code above `backends/` that asks an array for anything of NumPy's fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..devices import Device
from .base import Backend
from .holders import getrefcount
from .memory import owns
from .reference import NumpyBackend


class BoxedArray:
    """An array of the reference device; only its backend looks inside."""

    __slots__ = ("__weakref__", "_host", "backend")
    __array_ufunc__ = None  # NumPy must not compute on it by accident

    def __init__(self, host: Any, backend: Backend) -> None:
        self._host = host
        self.backend = backend

    @property
    def shape(self) -> tuple[int, ...]:
        return self._host.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._host.strides

    @property
    def dtype(self) -> Any:
        return self._host.dtype

    @property
    def size(self) -> int:
        return self._host.size


_numpy = NumpyBackend(Device("reference"))


def unbox(value: Any) -> Any:
    """Boxes opened, also inside tuples and lists."""
    if isinstance(value, BoxedArray):
        return value._host
    if isinstance(value, (tuple, list)):
        return type(value)(unbox(v) for v in value)
    return value


def _delegate(name: str) -> Any:
    form = getattr(_numpy, name)

    def run(self: BoxedBackend, *args: Any) -> Any:
        return self._box(form(*map(unbox, args)))

    run.__name__ = name
    run.__doc__ = form.__doc__
    return run


class BoxedBackend(Backend):
    """Every form of `NumpyBackend` on boxed arrays."""

    def _box(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return BoxedArray(value, self)
        if isinstance(value, (tuple, list)):
            return tuple(self._box(v) for v in value)
        return value

    def from_host(self, array: Any) -> Any:
        return BoxedArray(np.array(array), self)

    def to_host(self, array: Any) -> Any:
        return np.array(array._host)

    def table(self, make: Any, *args: Any) -> Any:
        found = super().table(make, *args)
        found._host.setflags(write=False)
        return found

    def owned(self, holder: list[Any], i: int) -> bool:
        if getrefcount(holder[i]) > 2 or getrefcount(holder[i]._host) > 2:
            return False
        return owns(holder[i]._host)


_OWN = (
    "from_host",
    "to_host",
    "run",
    "owned",
    "prepare",
    "direct",
    "require",
    "within",
    "table",
    "transfer",
    "convolution",
    "lift",
    "whole",
)
for _name, _form in vars(Backend).items():
    if not _name.startswith("_") and callable(_form) and _name not in _OWN:
        setattr(BoxedBackend, _name, _delegate(_name))
BoxedBackend.__abstractmethods__ = frozenset()
