"""`device="abacus"`: a device that answers the twelve forms that it must, and nothing else.

Its memory are blocks of bytes that only it can read, its processor is NumPy. Views, convolution,
attention, pooling, indexing by arrays, random numbers and the rest come from Undertow's defaults.
A device of your own replaces the bodies below by what your hardware does; see docs/devices.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.backends.base import Backend
from undertow.backends.reference import NumpyBackend
from undertow.backends.strided import StridedArray
from undertow.devices import Device
from undertow.errors import OutOfMemoryError

__all__ = ["Abacus"]

_processor = NumpyBackend(Device("abacus"))


class Block:
    """Some bytes of the device's memory."""

    __slots__ = ("__weakref__", "_bytes", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self._bytes = np.empty(nbytes, np.uint8)
        self.nbytes = nbytes


def _opened(x: Any) -> Any:
    """What the processor sees of an array: an ndarray in the device's memory."""
    if isinstance(x, StridedArray):
        memory = x.buffer._bytes
        return np.ndarray(x.shape, x.dtype, memory, x.offset if x.size else 0, x.strides)
    return x


class Abacus(Backend):
    """One abacus; each index has one of its own."""

    def __init__(self, device: Device) -> None:
        super().__init__(Device(device.type, device.index or 0))

    def _stored(self, host: Any) -> StridedArray:
        """A NumPy array, copied into fresh memory of the device."""
        out = self.empty(host.shape, host.dtype)
        _opened(out)[...] = host
        return out

    # The processor warns of infinities and NaN unless it is told not to.
    begin = staticmethod(_processor.begin)
    end = staticmethod(_processor.end)

    # Memory -----------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...], dtype: Any) -> StridedArray:
        dtype = np.dtype(dtype)
        nbytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        try:
            block = Block(max(nbytes, dtype.itemsize))
        except MemoryError:
            raise OutOfMemoryError(
                f"[{self.device}] no memory for {nbytes} bytes, an array of shape {shape}"
            ) from None
        return StridedArray(self, block, tuple(shape), dtype)

    def from_host(self, array: Any) -> StridedArray:
        return self._stored(np.asarray(array))

    def to_host(self, array: StridedArray) -> Any:
        return np.array(_opened(array))

    def assign(self, target: StridedArray, source: StridedArray) -> None:
        _processor.assign(_opened(target), _opened(source))

    # Computation ------------------------------------------------------------------------------
    def maps(self, exprs: Any, operands: Any, dtypes: Any, outs: Any = None) -> Any:
        found = _processor.maps(exprs, [_opened(o) for o in operands], dtypes)
        if outs is None:
            return [self._stored(value) for value in found]
        for out, value in zip(outs, found, strict=True):
            _opened(out)[...] = value
        return outs

    def reduce(self, kind: str, x: StridedArray, dims: tuple[int, ...], keepdim: bool) -> Any:
        found = _processor.reduce(kind, _opened(x), dims, keepdim)
        if isinstance(found, tuple):
            return tuple(self._stored(part) for part in found)
        return self._stored(found)

    def scan(self, kind: str, x: StridedArray, dim: int) -> Any:
        found = _processor.scan(kind, _opened(x), dim)
        if isinstance(found, tuple):
            return tuple(self._stored(part) for part in found)
        return self._stored(found)

    def gather(self, x: StridedArray, dim: int, index: StridedArray) -> StridedArray:
        return self._stored(_processor.gather(_opened(x), dim, _opened(index)))

    def scatter(
        self,
        kind: str,
        x: StridedArray,
        dim: int,
        index: StridedArray,
        source: StridedArray,
        inplace: bool = False,
    ) -> StridedArray:
        out = x if inplace else self.copy(x)
        _processor.scatter(kind, _opened(out), dim, _opened(index), _opened(source), True)
        return out

    def matmul(self, a: StridedArray, b: StridedArray, bias: Any = None) -> StridedArray:
        return self._stored(_processor.matmul(_opened(a), _opened(b), _opened(bias)))

    def sort(
        self, x: StridedArray, dim: int, descending: bool, count: int | None = None
    ) -> tuple[StridedArray, StridedArray]:
        values, order = _processor.sort(_opened(x), dim, descending, count)
        return self._stored(values), self._stored(order)

    def nonzero(self, x: StridedArray) -> StridedArray:
        return self._stored(_processor.nonzero(_opened(x)))
