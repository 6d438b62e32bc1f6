"""What goes before the bytes: a header that says which operation they belong to.

Note [headers]
Processes that call different collectives, or the same with different tensors, would wait for ever
or, worse, take each other's bytes. So the first message between two processes in an operation
begins with a header: which operation, the how many-th of its group, dtype, shape, root, label. Who
receives one that does not fit says so, with both sides' words. Few bytes travel in the same
message.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DistributedError
from .work import Pending, Steps

if TYPE_CHECKING:
    from .groups import ProcessGroup

KINDS = """
    all_reduce broadcast reduce all_gather reduce_scatter all_to_all gather scatter barrier send
""".split()  # noqa: SIM905
DTYPES = """
    float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128 uint16
    uint32 uint64 float8_e4m3fn float8_e5m2
""".split()  # noqa: SIM905
_SAME_SHAPE = ("all_reduce", "broadcast", "reduce")
_HEADER = struct.Struct("<IHBBBBHqqi6q")
_MAGIC = 0x55544F57
ROOM = 4096  # bytes of a first message
SIZE = _HEADER.size
FEW = ROOM - SIZE  # bytes that travel with the header
CHUNK = 1 << 22  # bytes of one message of many: 40 MB took 60 ms by 256 KB, 31 ms by 4 MB

# Streams of messages between two processes, which do not mix.
DATA, RESULTS, HEADS, BODIES = range(4)


@dataclass(slots=True)
class What:
    """An operation of a group, as its header and its errors tell it."""

    group: ProcessGroup
    kind: str
    number: int
    dtype: str
    shape: tuple[int, ...]
    op: int = 0
    root: int = -1
    label: str = ""
    tag: int = 0
    name: str = ""  # the function that the user called

    def __str__(self) -> str:
        text = described(self.kind, self.number, self.dtype, self.shape)
        return f"[{self.name or self.kind}] {text}{f' {self.label!r}' if self.label else ''}"

    # Messages -----------------------------------------------------------------------------------
    def tags(self, stream: int) -> int:
        """The tag of a stream of this group."""
        return (self.group.number << 16 | self.tag) << 2 | stream

    @property
    def mark(self) -> int:
        """Two bytes of the label, which others compare."""
        return zlib.crc32(self.label.encode()) & 0xFFFF

    def head(self, size: int) -> bytes:
        """The header of a message of so many bytes."""
        shape = self.shape[:6] + (0,) * (6 - len(self.shape))
        return _HEADER.pack(
            _MAGIC,
            self.group.number,
            KINDS.index(self.kind),
            self.op,
            DTYPES.index(self.dtype),
            len(self.shape),
            self.mark,
            self.number,
            size,
            self.root,
            *shape,
        )

    def send_head(self, peer: int, memory: Any, sent: Pending, stream: int = DATA) -> bool:
        """Begin a message with its header; whether the bytes went with it."""
        size = memory.size if memory is not None else 0
        few = size <= FEW
        first = self.head(size)
        if few and size:
            first += memory.tobytes()
        rank = self.group.ranks[peer]
        buffer = np.frombuffer(first, np.uint8)
        sent.add(self.group.wire.isend(buffer, rank, self.tags(stream)), rank)
        return few

    def send(self, peer: int, memory: Any, sent: Pending) -> None:
        """Begin to send bytes to a member of the group, after the header."""
        if not self.send_head(peer, memory, sent):
            self.send_chunks(peer, memory, sent, DATA)

    def send_chunks(self, peer: int, memory: Any, sent: Pending, stream: int) -> None:
        """Begin to send bytes without a header, in chunks."""
        rank, tag, wire = self.group.ranks[peer], self.tags(stream), self.group.wire
        for place in range(0, memory.size, CHUNK):
            sent.add(wire.isend(memory[place : place + CHUNK], rank, tag), rank)

    def receive_chunks(self, peer: int, memory: Any, came: Pending, stream: int) -> None:
        """Begin to receive bytes without a header, in chunks."""
        rank, tag, wire = self.group.ranks[peer], self.tags(stream), self.group.wire
        for place in range(0, memory.size, CHUNK):
            came.add(wire.irecv(memory[place : place + CHUNK], rank, tag), rank)

    def expect(self, peer: int, came: Pending) -> Any:
        """Begin to receive a header; the memory where it will be."""
        buffer = np.empty(ROOM, np.uint8)
        rank = self.group.ranks[peer]
        came.add(self.group.wire.irecv(buffer, rank, self.tags(DATA)), rank)
        return buffer

    def check(self, peer: int, buffer: Any, size: int) -> None:
        """Compare a header that came with what this process is doing."""
        read = _HEADER.unpack_from(buffer)
        magic, group, kind, op, dtype, ndim, mark, number, theirs, root, *dims = read
        rank = self.group.ranks[peer]
        if magic != _MAGIC:
            raise DistributedError(f"{self}: rank {rank} sent something that is no header")
        shape = tuple(dims[:ndim])
        same = (group, KINDS[kind], op, DTYPES[dtype], mark, number, root, theirs) == (
            *(self.group.number, self.kind, self.op, self.dtype, self.mark, self.number),
            *(self.root, size),
        )
        if same and (self.kind not in _SAME_SHAPE or shape == self.shape[:6]):
            return
        details = [
            f"{name} {mine} here, {other} there"
            for name, mine, other in (
                ("op", self.op, op),
                ("root", self.root, root),
                ("bytes for this rank", size, theirs),
            )
            if mine != other and KINDS[kind] == self.kind
        ]
        if mark != self.mark and KINDS[kind] == self.kind:
            details.append("its tensor has another label")
        raise DistributedError(
            f"{self}: rank {rank} is in {described(KINDS[kind], number, DTYPES[dtype], shape)}"
            f"{': ' + '; '.join(details) if details else ''}; every process of a group must call "
            "the same collectives, in the same order, with tensors that fit"
        )

    # Together -----------------------------------------------------------------------------------
    def exchange(self, outgoing: dict[int, Any], incoming: dict[int, Any]) -> Steps:
        """Send bytes to some members and receive from some, all at once."""
        sent, heads, bodies = Pending(), Pending(), Pending()
        buffers = {peer: self.expect(peer, heads) for peer in incoming}
        for peer, memory in outgoing.items():
            self.send(peer, memory, sent)
        yield heads
        for peer, memory in incoming.items():
            self.accept(peer, buffers[peer], memory, bodies)
        yield bodies + sent

    def accept(self, peer: int, buffer: Any, memory: Any, bodies: Pending) -> None:
        """Take the few bytes that came with a header, or begin to receive the many after it."""
        self.check(peer, buffer, memory.size)
        if memory.size <= FEW:
            memory[:] = buffer[SIZE : SIZE + memory.size]
        else:
            self.receive_chunks(peer, memory, bodies, DATA)

    def greet(self, size_for: dict[int, int], size_from: dict[int, int]) -> Steps:
        """Exchange headers only; the bytes that they announce follow."""
        sent, heads = Pending(), Pending()
        buffers = {peer: self.expect(peer, heads) for peer in size_from}
        for peer, size in size_for.items():
            rank = self.group.ranks[peer]
            buffer = np.frombuffer(self.head(size), np.uint8)
            sent.add(self.group.wire.isend(buffer, rank, self.tags(DATA)), rank)
        yield heads
        for peer, buffer in buffers.items():
            self.check(peer, buffer, size_from[peer])
        yield sent


def numbered(buffer: Any) -> tuple[int, int]:
    """The number of a message between two processes, and its sender within the group."""
    read = _HEADER.unpack_from(buffer)
    return read[7], read[9]


def described(kind: str, number: int, dtype: str, shape: tuple[int, ...]) -> str:
    """An operation in words: `all_reduce 16 of float32 (3, 4)`."""
    return f"{kind} {number}" + ("" if kind == "barrier" else f" of {dtype} {shape}")
