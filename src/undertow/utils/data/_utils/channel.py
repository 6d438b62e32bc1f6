"""Whole messages, with file descriptors, over one end of a pair of sockets."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

_HEAD = struct.Struct("<QI")  # bytes of the message, descriptors that come with it
_CHUNK = 1 << 18
_DESCRIPTORS = 64  # in one go
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Message(NamedTuple):
    """What arrived; the descriptors are the receiver's, to use and to close."""

    content: bytes
    descriptors: list[int]


class Channel:
    """One end of a pair of sockets.

    One that waits has `send` and `receive`; one that never does has `post` and `arrived`.

    >>> one, other = socket.socketpair()
    >>> ours, theirs = Channel(one, waits=False), Channel(other)
    >>> ours.post(b"first")
    >>> ours.post(b"second")
    >>> theirs.receive().content, theirs.receive().content
    (b'first', b'second')
    >>> ours.close()
    >>> theirs.receive()
    Traceback (most recent call last):
    EOFError: the other end is closed
    >>> theirs.close()
    """

    def __init__(self, end: socket.socket, waits: bool = True) -> None:
        end.setblocking(waits)
        self.socket = end
        self.ended = False  # whether the other end is closed, and everything from there has arrived
        self._out: deque[memoryview] = deque()
        self._in = bytearray()
        self._descriptors: deque[int] = deque()

    # Waiting, for a worker --------------------------------------------------------------------
    def send(self, content: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a message; waits until the other end has room, OSError if it is closed."""
        whole = memoryview(_HEAD.pack(len(content), len(descriptors)) + content)
        sent = 0
        if descriptors:
            # Some descriptors with each byte of the header, since a call takes only so many.
            for i in range(0, len(descriptors), _DESCRIPTORS):
                some = descriptors[i : i + _DESCRIPTORS]
                sent += socket.send_fds(self.socket, [whole[sent : sent + 1]], some)
        self.socket.sendall(whole[sent:])

    def receive(self) -> Message:
        """The next message; waits for it, EOFError if there will be none."""
        while (found := self._whole()) is None:
            if not self._read():
                raise EOFError("the other end is closed")
        return found

    # Never waiting, for who has several workers -----------------------------------------------
    def post(self, content: bytes) -> None:
        """Send a message, now or when `flush` finds room."""
        self._out.append(memoryview(_HEAD.pack(len(content), 0) + content))
        self.flush()

    def flush(self) -> None:
        """Send as much of what was posted as the other end has room for."""
        try:
            while self._out:
                rest = self._out[0]
                sent = self.socket.send(rest)
                if sent == len(rest):
                    self._out.popleft()
                else:
                    self._out[0] = rest[sent:]
        except BlockingIOError:
            pass
        except ConnectionError:  # nobody reads it any more; `arrived` finds the end
            self._out.clear()

    @property
    def waiting(self) -> bool:
        """Whether something that was posted has not been sent."""
        return bool(self._out)

    def arrived(self) -> list[Message]:
        """The messages that have arrived since; sets `ended` at the end."""
        found = []
        try:
            while self._read():
                while (message := self._whole()) is not None:
                    found.append(message)
            self.ended = True
        except BlockingIOError:
            pass
        except ConnectionError:
            self.ended = True
        return found

    def close(self) -> None:
        """End the connection: the other end notices, even if a third process has this one as well.

        (The child of a fork has all sockets of its parent.)
        """
        with contextlib.suppress(OSError):  # the other end was first
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())

    def _read(self) -> bool:
        """Read some bytes; False at the end."""
        if hasattr(socket, "recv_fds"):
            chunk, descriptors, _, _ = socket.recv_fds(
                self.socket, _CHUNK, _DESCRIPTORS, _CLOSE_ON_EXEC
            )
            self._descriptors.extend(descriptors)
        else:
            chunk = self.socket.recv(_CHUNK)
        self._in += chunk
        return bool(chunk)

    def _whole(self) -> Message | None:
        """The first message of what was read, if all of it is there."""
        if len(self._in) < _HEAD.size:
            return None
        size, count = _HEAD.unpack_from(self._in)
        end = _HEAD.size + size
        if len(self._in) < end:
            return None
        if len(self._descriptors) < count:  # the kernel drops those that do not fit
            raise RuntimeError(
                "[DataLoader] this process has too many open files for another batch; keep fewer "
                "batches, or raise the limit (ulimit -n)"
            )
        content = bytes(self._in[_HEAD.size : end])
        del self._in[:end]
        return Message(content, [self._descriptors.popleft() for _ in range(count)])
