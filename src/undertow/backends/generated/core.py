"""What every form of a generated backend stands on: a runtime, its memory, its plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...devices import Device
from ...kernel.lower import NotCompiled
from ..base import Backend
from ..strided import StridedArray, contiguous
from . import memory
from .launching import Launcher, Made, Plan
from .layouts import type_known
from .runtime import Runtime


class Core(Backend):
    """Memory, moves to and from the host, and plans."""

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
        found = type_known(dtype)
        if found == "f64" and not self.limits.float64:
            raise NotCompiled("float64, which this device has not")
        return found

    def plan(self, key: Any, make: Callable[..., Made], *given: Any) -> Plan:
        """See `Launcher.find`."""
        return self.launcher.find(key, make, *given)

    def together(
        self, arrays: Sequence[StridedArray], outs: Sequence[StridedArray] = (), fresh: int = 0
    ) -> Sequence[StridedArray]:
        """Inputs of a kernel, the smallest copied into one buffer where it could not see them all.

        It writes `outs`, and `fresh` arrays besides, which stay where they are.
        """
        written = {id(o.buffer) for o in outs}
        sizes: dict[int, int] = {}  # bytes of the inputs, by their buffers
        for a in arrays:
            if id(a.buffer) not in written:
                sizes[id(a.buffer)] = sizes.get(id(a.buffer), 0) + a.size * a.dtype.itemsize
        excess = len(sizes) + len(written) + fresh - self.limits.max_bindings
        if excess <= 0:
            return arrays
        if excess + 1 > len(sizes):
            raise NotCompiled(f"{len(written) + fresh} results, of {self.limits.max_bindings}")
        chosen = set(sorted(sizes, key=lambda b: sizes[b])[: excess + 1])
        moved = [a for a in arrays if id(a.buffer) in chosen]
        starts = [0]
        for a in moved:
            starts.append(starts[-1] + -(-a.size * a.dtype.itemsize // 8) * 8)
        room = self.empty((starts[-1],), np.dtype(np.uint8))
        copies: dict[int, StridedArray] = {}
        for a, start in zip(moved, starts, strict=False):
            copies[id(a)] = StridedArray(self, room.buffer, a.shape, a.dtype, None, start)
            self.assign(copies[id(a)], a)
        return [copies.get(id(a), a) for a in arrays]

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
