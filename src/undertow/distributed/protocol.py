"""The server that processes of one program share: keys with values, and who has failed or left.

It uses nothing but Python's library, since `keeper.py` runs it without importing the package.
A message is a list of byte strings. Each connection has a thread of the server to itself.

Note [who wakes whom]
  - A request that waits for keys (`wait`) is woken by every change of a key, by its own deadline,
    and by `close`. If its client is gone, its thread ends at that deadline.
  - A subscriber waits for the next event: woken by `report`, by a connection that breaks, and by
    `close`.
  - A client waits for its answer: sent by the thread of its connection; if the server dies, the
    socket breaks and the client has a ConnectionError.
  - A link that is cut, or a machine that is gone, breaks connections after `SILENCE` seconds.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from contextlib import suppress

_SIZE = struct.Struct("<Q")
SILENCE = float(os.environ.get("UNDERTOW_SILENCE", "30"))  # seconds


def packed(*parts: bytes) -> bytes:
    """Byte strings as one."""
    return b"".join(struct.pack("<I", len(p)) + p for p in parts)


def unpacked(body: bytes) -> list[bytes]:
    """The byte strings that were packed."""
    parts, place = [], 0
    while place < len(body):
        (length,) = struct.unpack_from("<I", body, place)
        parts.append(body[place + 4 : place + 4 + length])
        place += 4 + length
    return parts


def send(connection: socket.socket, *parts: bytes) -> None:
    """Send one message."""
    body = packed(*parts)
    connection.sendall(_SIZE.pack(len(body)) + body)


def receive(connection: socket.socket) -> list[bytes]:
    """The next message; a ConnectionError if there will be none."""
    (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
    return unpacked(_exactly(connection, size))


def _exactly(connection: socket.socket, size: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < size:
        chunk = connection.recv(min(size - len(chunks), 1 << 20))
        if not chunk:
            raise ConnectionError("the other side has closed the connection")
        chunks += chunk
    return bytes(chunks)


def connect(host: str, port: int, timeout: float) -> socket.socket:
    """A connection to a server that may not be there yet."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            made = socket.create_connection((host, port), timeout=max(1.0, timeout))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
            continue
        made.settimeout(None)
        prepare(made)
        return made


def prepare(connection: socket.socket) -> None:
    """Send at once, and break after `SILENCE` seconds in which the other machine says nothing."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sixth = max(1, round(SILENCE / 6))
    options = {
        "TCP_KEEPIDLE": 2 * sixth,
        "TCP_KEEPINTVL": sixth,
        "TCP_KEEPCNT": 4,
        "TCP_USER_TIMEOUT": 6000 * sixth,  # for what was sent and not acknowledged
    }
    for name, value in options.items():
        if hasattr(socket, name):  # Linux has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Values:
    """Keys and values, for several threads."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.changed = threading.Condition()
        self.closed = False

    def answer(self, command: bytes, parts: list[bytes]) -> list[bytes]:
        """Answer a request, and wake who waits for it."""
        with self.changed:
            answer = self.change(command, parts)
            if command in (b"set", b"add", b"append", b"swap"):
                self.changed.notify_all()
            return answer

    def change(self, command: bytes, parts: list[bytes]) -> list[bytes]:
        """Answer a request; `changed` is held."""
        values = self.values
        if command == b"set":
            values[parts[0]] = parts[1]
        elif command == b"add":
            total = int(values.get(parts[0], b"0")) + int(parts[1])
            values[parts[0]] = str(total).encode()
            return [values[parts[0]]]
        elif command == b"append":
            values[parts[0]] = values.get(parts[0], b"") + parts[1]
        elif command == b"swap":  # key, expected, wanted
            key, expected, wanted = parts
            if values.get(key, b"") == expected:
                values[key] = wanted
            return [values.get(key, expected)]
        elif command == b"delete":
            return [b"1" if values.pop(parts[0], None) is not None else b"0"]
        elif command == b"wait":  # seconds, keys; the values, or nothing
            deadline = time.monotonic() + float(parts[0])
            while not all(key in values for key in parts[1:]):
                left = deadline - time.monotonic()
                if left <= 0 or self.closed or not self.changed.wait(left):
                    break
            return self.change(b"read", parts[1:])
        elif command == b"read":  # the values of keys, or nothing
            return [values[key] for key in parts] if all(key in values for key in parts) else []
        elif command == b"check":
            return [b"1" if all(key in values for key in parts) else b"0"]
        elif command == b"count":
            return [str(len(values)).encode()]
        elif command == b"keys":
            return sorted(values)
        return [b"ok"]


class Server:
    """Keys and values, and the events of the processes that are connected.

    An event is (kind, rank, text): "failed" with a traceback, "lost" when a connection that had
    said `hello` broke, "left" when it said `bye`.
    """

    def __init__(self, host: str = "", port: int = 0) -> None:
        self.store = Values()
        self.events: list[tuple[str, int, str]] = []
        self.changed = threading.Condition()
        self.closed = False
        self.listener = socket.create_server((host, port), backlog=512)
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, name="undertow-store", daemon=True).start()

    def close(self) -> None:
        """Wake everybody who waits, and take no more connections."""
        with self.changed, self.store.changed:
            self.closed = self.store.closed = True
            self.changed.notify_all()
            self.store.changed.notify_all()
        with suppress(OSError):  # wakes who accepts, which close alone does not
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def report(self, kind: str, rank: int, text: str = "") -> None:
        """Tell subscribers what has become of a process."""
        with self.changed:
            self.events.append((kind, rank, text))
            self.changed.notify_all()

    def _accept(self) -> None:
        while not self.closed:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            prepare(connection)
            args = (connection,)
            threading.Thread(
                target=self._serve, args=args, name="undertow-client", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        rank = None
        try:
            while True:
                command, *parts = receive(connection)
                if command == b"hello":
                    rank = int(parts[0])
                elif command == b"bye":
                    if rank is not None:
                        self.report("left", rank)
                    rank = None
                elif command == b"subscribe":
                    self._publish(connection)
                    return
                send(connection, *self._answer(command, parts))
        except (OSError, ConnectionError):
            if rank is not None:
                self.report("lost", rank)
        finally:
            connection.close()

    def _publish(self, connection: socket.socket) -> None:
        told = 0
        while True:
            with self.changed:
                while len(self.events) == told and not self.closed:
                    self.changed.wait()
                if self.closed:
                    return
                news, told = self.events[told:], len(self.events)
            for kind, rank, text in news:
                send(connection, kind.encode(), str(rank).encode(), text.encode())

    def _answer(self, command: bytes, parts: list[bytes]) -> list[bytes]:
        if command == b"report":
            self.report(parts[0].decode(), int(parts[1]), parts[2].decode())
        return self.store.answer(command, parts)


class Client:
    """One connection to a server; threads take turns."""

    def __init__(self, host: str, port: int, timeout: float = 30.0) -> None:
        self.connection = connect(host, port, timeout)
        self.lock = threading.Lock()

    def ask(self, *parts: bytes) -> list[bytes]:
        """Send a request, and wait for its answer."""
        with self.lock:
            send(self.connection, *parts)
            return receive(self.connection)

    def close(self) -> None:
        """Break the connection."""
        self.connection.close()


def address() -> str:
    """A name under which other processes find this machine: local if it has no other."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "127.0.0.1"
    return name


def parsed(text: str) -> tuple[str, int]:
    """Host and port of `host:port`."""
    host, _, port = text.rpartition(":")
    return host, int(port)
