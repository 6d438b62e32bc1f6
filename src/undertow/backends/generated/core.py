"""What every form of a generated backend stands on: a runtime, its memory, its plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...devices import Device
from ...kernel.lower import NotCompiled
from ..base import Backend
from ..strided import StridedArray, contiguous
from . import memory
from .launching import Launcher, Made, Plan
from .layouts import type_known
from .pairs import Paired, real_of
from .runtime import Runtime


class Core(Backend):
    """Memory, moves to and from the host, and plans."""

    more_memory = ""  # what a user can do for larger arrays

    def __init__(self, device: Device, runtime: Runtime) -> None:
        super().__init__(device)
        self.runtime = runtime
        self.launcher = Launcher(runtime)
        self.limits = runtime.limits

    @property
    def stats(self) -> dict[str, int]:
        """How many launches, compiled kernels, uploads, downloads, and forms run on the host."""
        return self.launcher.stats

    def type_of(self, dtype: Any) -> str:
        """The loop IR's name of a dtype that this device can compute with."""
        if dtype.kind == "c" and self.limits.pairs:
            self.type_of(real_of(dtype))
            raise Paired(dtype.name)
        found = type_known(dtype)
        if found == "f64" and not self.limits.float64:
            raise NotCompiled("float64, which this device has not")
        return found

    def plan(self, key: Any, make: Callable[..., Made], *given: Any) -> Plan:
        """See `Launcher.find`."""
        return self.launcher.find(key, make, *given)

    # Memory -----------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...], dtype: Any) -> StridedArray:
        return memory.empty(self, self.launcher, tuple(shape), np.dtype(dtype))

    def from_host(self, array: Any) -> StridedArray:
        array = np.asarray(array)
        out = self.empty(array.shape, array.dtype)
        memory.upload(self.launcher, out, array)
        return out

    def to_host(self, array: StridedArray) -> Any:
        if not contiguous(array.shape, array.strides, array.dtype.itemsize):
            array = self.copy(array)
        return memory.download(self.launcher, array)

    def synchronize(self) -> None:
        """Wait until everything that was launched is done."""
        self.runtime.synchronize()
