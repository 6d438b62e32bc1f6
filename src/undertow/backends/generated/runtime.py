"""What a device that runs generated text must bring: a runtime of eight functions and a dialect.

`GeneratedBackend` (backend.py) answers every form over a `Runtime`; the text of its kernels is
written by the runtime's `dialect` (dialect.py). Nothing else about the device is asked.

Note [bindings]
A kernel sees whole buffers, and where in them an array begins is a parameter. A buffer is given to
a kernel once, however many operands look at it: `bindings` says for each distinct buffer whether
the kernel writes to it, and `launch` is given those buffers in the same order.

A buffer may be larger than what a kernel can see, `max_binding` bytes. Then `launch` is given parts
of it, tuples (buffer, first byte, bytes) that begin at multiples of PART_STEP; those of one buffer
that is written are one and the same.

Note [words]
All parameters of a kernel (sizes, steps, offsets, numbers) are 32-bit words, one after the other,
a number of 64 bits as two words, the lower one first; then the words of `dialect.tail`.

Note [order]
Whatever a runtime is asked to do happens as if at once: a launch sees the results of those before
it, and an upload overtakes nothing. Only `download` and `synchronize` wait. Threads may call at
the same time; a runtime locks what it must.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...kernel.groups.products import Tile
from .dialect import Dialect

PART_STEP = 256  # bytes


@dataclass(frozen=True)
class Limits:
    """What a device can do; the defaults are those that WebGPU guarantees everywhere."""

    max_buffer: int = 256 << 20  # bytes of an allocation
    max_binding: int = 128 << 20  # bytes of it that a kernel can see
    max_bindings: int = 8  # distinct buffers of a kernel
    max_groups: int = 65535  # of a launch, in each dimension
    max_threads: int = 256  # of a group
    shared_bytes: int = 16384  # of a group
    float16: bool = False  # in buffers; computed in single precision anyway
    float64: bool = False
    int64: bool = True  # native, or written by the dialect as two words
    pairs: bool = False  # complex numbers, see Note [complex numbers on devices] in pairs.py
    tiles: tuple[Tile, ...] = (Tile(8, 8), Tile(4, 4))  # of products, the largest first


class Runtime(Protocol):
    """A device under a `GeneratedBackend`; see the notes."""

    @property
    def dialect(self) -> Dialect:
        """What writes its text."""

    @property
    def limits(self) -> Limits:
        """What it can do."""

    def alloc(self, nbytes: int) -> Any:
        """A buffer of at least so many bytes (a multiple of 8, not 0), uninitialised."""

    def free(self, buffer: Any) -> None:
        """A buffer that no array looks at any more; work that was launched may still use it.

        Called from finalizers, so at any moment and on any thread: it must not wait.
        """

    def upload(self, buffer: Any, offset: int, data: Any) -> None:
        """Write bytes (a contiguous NumPy array of uint8) into the buffer from `offset` on.

        The offset is a multiple of 4 unless the bytes are fewer than 4. The data may be changed by
        its owner as soon as this returns.
        """

    def download(self, buffer: Any, offset: int, nbytes: int) -> Any:
        """Bytes of the buffer as a fresh NumPy array of uint8, when all work before is done."""

    def compile(
        self, text: str, entry: str, bindings: tuple[bool, ...], group: int, words: int
    ) -> Any:
        """The kernel `entry` of a text of the dialect; see Note [bindings].

        `group` is the number of threads of a group, `words` how many parameters there are,
        including the tail. The same text is compiled once.
        """

    def launch(
        self, kernel: Any, buffers: Sequence[Any], params: bytes, groups: tuple[int, int, int]
    ) -> None:
        """Run a kernel over buffers, or parts of them, in the order of its bindings."""

    def synchronize(self) -> None:
        """Wait until everything that was launched is done."""
