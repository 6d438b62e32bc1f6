"""The memory of a device that runs generated text: blocks that are given back by themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import OutOfMemoryError
from ..strided import StridedArray, contiguous
from .launching import Launcher
from .runtime import Runtime

_UNIT = 8  # bytes, of which every buffer has a multiple


class Block:
    """A buffer of the runtime's, freed when the last array that looks at it is gone."""

    __slots__ = ("__weakref__", "_runtime", "memory", "nbytes")

    def __init__(self, runtime: Runtime, memory: Any, nbytes: int) -> None:
        self.memory = memory
        self.nbytes = nbytes
        self._runtime = runtime

    @property
    def whole(self) -> Any:
        """The runtime's buffer, for moves to and from the host."""
        return self.memory

    def __del__(self) -> None:
        self._runtime.free(self.memory)


class LargeBlock(Block):
    """A buffer of which a kernel sees only parts; see Note [large arrays] in large.py."""

    __slots__ = ("_whole",)

    def __init__(self, runtime: Runtime, memory: Any, nbytes: int) -> None:
        self._whole = memory
        self.nbytes = nbytes
        self._runtime = runtime

    @property
    def whole(self) -> Any:
        return self._whole

    @property
    def memory(self) -> Any:
        """What a launch takes: there is none."""
        raise TooLarge(self.nbytes)

    def __del__(self) -> None:
        self._runtime.free(self._whole)


class TooLarge(Exception):
    """So many bytes are more than a kernel sees of one buffer."""


def block(runtime: Runtime, nbytes: int) -> Block:
    """Uninitialised memory for so many bytes."""
    return Block(runtime, runtime.alloc((nbytes + _UNIT - 1) & -_UNIT or _UNIT), nbytes)


def empty(backend: Any, launcher: Launcher, shape: tuple[int, ...], dtype: Any) -> StridedArray:
    """An uninitialised array."""
    nbytes = math.prod(shape) * dtype.itemsize
    limits = launcher.limits
    if nbytes > limits.max_buffer:
        raise OutOfMemoryError(
            f"[{backend.device}] an array of shape {shape} has {nbytes} bytes, and a buffer here "
            f"has at most {limits.max_buffer}; cut it into smaller ones{backend.more_memory}"
        )
    if nbytes > limits.max_binding:
        memory = launcher.runtime.alloc((nbytes + _UNIT - 1) & -_UNIT)
        made: Block = LargeBlock(launcher.runtime, memory, nbytes)
    else:
        made = block(launcher.runtime, nbytes)
    return StridedArray(backend, made, shape, dtype)


def upload(launcher: Launcher, target: StridedArray, host: Any) -> None:
    """Write a NumPy array into fresh memory."""
    if not host.size:
        return
    data = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
    if data.size % 4:
        data = np.concatenate((data, np.zeros(-data.size % 4, np.uint8)))
    launcher.stats["uploads"] += 1
    launcher.runtime.upload(target.buffer.whole, 0, data)


def download(launcher: Launcher, x: StridedArray) -> Any:
    """Dense row-major elements as a fresh NumPy array."""
    if not x.size:
        return np.empty(x.shape, x.dtype)
    assert contiguous(x.shape, x.strides, x.dtype.itemsize)
    nbytes = x.size * x.dtype.itemsize
    start = x.offset // _UNIT * _UNIT
    skip = x.offset - start
    launcher.stats["downloads"] += 1
    data = launcher.runtime.download(x.buffer.whole, start, -(-(skip + nbytes) // _UNIT) * _UNIT)
    return data[skip : skip + nbytes].view(x.dtype).reshape(x.shape)
