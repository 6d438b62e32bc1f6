"""What a device cannot compute: an error that names the fix, or, if allowed, the host.

A form raises `NotCompiled` where no kernel can be written for its operands: for float64 on a device
that has none, some functions of complex numbers, and integer powers that must refuse negative
exponents.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ...devices import Device
from ...errors import DTypeError, OutOfMemoryError
from ...kernel.lower import NotCompiled
from ..base import Backend
from ..reference import NumpyBackend
from ..strided import StridedArray
from .memory import TooLarge
from .pairs import FORMS as PAIRS
from .pairs import Paired

_numpy = NumpyBackend(Device("cpu"))


def with_host(
    form: str, method: Callable[..., Any], cut: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The method of a form that goes to the host where there is no kernel.

    Arrays that no kernel sees as a whole are given to `cut`, see cutting.py.
    """

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return method(self, *args, **kwargs)
            except TooLarge:
                if cut is None:
                    raise
            return cut(self, functools.partial(method, self), *args, **kwargs)
        except Paired as paired:  # see Note [complex numbers on devices] in pairs.py
            reason: NotCompiled = paired
            try:
                if form in PAIRS:
                    return PAIRS[form](self, *args, **kwargs)
            except NotCompiled as error:
                reason = error
            return on_host(self, form, reason, args, kwargs)
        except NotCompiled as error:
            return on_host(self, form, error, args, kwargs)
        except TooLarge as error:
            most = self.limits.max_binding
            what = f"an array of {error.args[0]} bytes, of which kernels see {most} at once"
            if self.allow_host:
                return on_host(self, form, NotCompiled(what), args, kwargs)
            raise OutOfMemoryError(
                f"[{form}] cannot be cut into pieces on {self.device}: {what}, given "
                f"{_shapes(args)}; cut it into smaller ones{self.more_memory}"
            ) from None

    return run


def _shapes(args: Any) -> str:
    """The shapes of a form's operands."""
    found = [
        str(a.shape) if isinstance(a, StridedArray) else _shapes(a)
        for a in args
        if isinstance(a, (StridedArray, tuple, list))
    ]
    return ", ".join(filter(None, found))


def refuse(k: Any, form: str, reason: NotCompiled) -> NoReturn:
    """The error of what the device cannot compute."""
    raise DTypeError(
        f"[{form}] no kernel on {k.device}: {reason}; convert to float32 or int64, move the "
        f"tensors by .to('cpu'), or let the host compute it: {k.host_switch}"
    ) from None


def on_host(
    k: Any, form: str, reason: NotCompiled, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A form by NumPy, if that is allowed; what it writes is brought back."""
    if not k.allow_host:
        refuse(k, form, reason)
    k.stats["host"] += 1
    told = (form, str(reason))
    if told not in k.told:
        k.told.add(told)
        if k.allow_host == "warn":
            warnings.warn(
                f"[{form}] computed on the host, not on {k.device}: {reason}", stacklevel=2
            )
    hosts: dict[int, tuple[StridedArray, Any]] = {}

    def opened(value: Any) -> Any:
        if isinstance(value, StridedArray):
            return hosts.setdefault(id(value), (value, k.to_host(value)))[1]
        if isinstance(value, (tuple, list)):
            return type(value)([opened(v) for v in value])
        return value

    given = [opened(a) for a in args]
    named = {name: opened(a) for name, a in kwargs.items()}
    before = {at: host.copy() for at, (_, host) in hosts.items()}
    token = _numpy.begin()
    try:
        found = getattr(_numpy, form)(*given, **named)
    finally:
        _numpy.end(token)
    for at, (array, host) in hosts.items():
        if host.tobytes() != before[at].tobytes():
            k.assign(array, k.from_host(host))
    return _closed(k, found, {id(host): array for array, host in hosts.values()})


def _closed(k: Backend, value: Any, known: dict[int, StridedArray]) -> Any:
    """Results on the device; those that were written into are the arrays themselves."""
    if isinstance(value, np.ndarray):
        return known[id(value)] if id(value) in known else k.from_host(value)
    if isinstance(value, (tuple, list)):
        return tuple([_closed(k, v, known) for v in value])
    return value
