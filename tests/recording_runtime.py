"""A runtime without a device: it records what a generated backend asks of it, and hands out zeros.

Every rule of a runtime's caller is checked on the way: distinct buffers, none of them freed, as
many words as the text wants, groups within the limits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from undertow.backends.generated.backend import GeneratedBackend
from undertow.backends.generated.dialect import Dialect
from undertow.backends.generated.runtime import PART_STEP, Limits
from undertow.devices import Device


class Memory:
    """A buffer that knows whether it was given back."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.freed = False


class Kernel(NamedTuple):
    """A compiled text."""

    text: str
    entry: str
    bindings: tuple[bool, ...]
    group: int
    words: int


class Launch(NamedTuple):
    """One launch; `params` are its words."""

    kernel: Kernel
    buffers: tuple[Memory, ...]
    params: list[int]
    groups: tuple[int, int, int]


class Recording:
    """See the module."""

    def __init__(self, **limits: Any) -> None:
        self.dialect = Dialect()
        self.limits = Limits(**limits)
        self.memory: list[Memory] = []
        self.kernels: list[Kernel] = []
        self.launches: list[Launch] = []
        self.uploads: list[tuple[Memory, int, int]] = []
        self.downloads: list[tuple[Memory, int, int]] = []

    @property
    def alive(self) -> int:
        """Buffers that are in use."""
        return sum(not m.freed for m in self.memory)

    def alloc(self, nbytes: int) -> Memory:
        assert nbytes > 0
        assert nbytes % 8 == 0
        self.memory.append(Memory(nbytes))
        return self.memory[-1]

    def free(self, buffer: Memory) -> None:
        assert not buffer.freed
        buffer.freed = True

    def upload(self, buffer: Memory, offset: int, data: Any) -> None:
        assert data.dtype == np.uint8
        assert data.flags.c_contiguous
        assert data.size % 4 == offset % 4 == 0
        assert offset + data.size <= buffer.nbytes
        self.uploads.append((buffer, offset, data.size))

    def download(self, buffer: Memory, offset: int, nbytes: int) -> Any:
        assert not buffer.freed
        assert offset % 8 == nbytes % 8 == 0
        assert offset + nbytes <= buffer.nbytes
        self.downloads.append((buffer, offset, nbytes))
        return np.zeros(nbytes, np.uint8)

    def compile(
        self, text: str, entry: str, bindings: tuple[bool, ...], group: int, words: int
    ) -> Kernel:
        assert entry in text
        assert all(k.text != text for k in self.kernels)
        assert len(bindings) <= self.limits.max_bindings
        assert group <= self.limits.max_threads
        self.kernels.append(Kernel(text, entry, bindings, group, words))
        return self.kernels[-1]

    def launch(
        self, kernel: Kernel, buffers: Any, params: bytes, groups: tuple[int, int, int]
    ) -> None:
        assert len(buffers) == len(kernel.bindings)
        parts = [b if isinstance(b, tuple) else (b, 0, b.nbytes) for b in buffers]
        for (b, start, nbytes), written in zip(parts, kernel.bindings, strict=True):
            assert not b.freed
            assert start % PART_STEP == 0
            assert start + nbytes <= b.nbytes
            assert nbytes <= self.limits.max_binding
            assert not written or sum(b is other for other, *_ in parts) == 1
        assert len({(id(b), *place) for b, *place in parts}) == len(parts)
        assert len(params) == 4 * kernel.words
        assert all(0 < n <= self.limits.max_groups for n in groups)
        words = np.frombuffer(params, np.int32).tolist()
        self.launches.append(Launch(kernel, tuple(buffers), words, groups))

    def synchronize(self) -> None:
        pass


def recording(**limits: Any) -> GeneratedBackend:
    """A backend over a fresh recording runtime."""
    return GeneratedBackend(Device("recording", 0), Recording(**limits))
