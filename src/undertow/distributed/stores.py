"""Keys and values that processes share: in a server, in a file, in this process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from ..errors import ArgumentError, DistNetworkError, DistStoreError, UnsupportedError
from . import protocol
from .work import seconds

_WAIT = timedelta(seconds=300)


class Store:
    """Keys with values of bytes; a subclass answers one request at a time."""

    def __init__(self) -> None:
        self._timeout = _WAIT

    def _ask(self, *parts: bytes) -> list[bytes]:
        raise UnsupportedError("[Store] is a base class; use TCPStore, FileStore or HashStore")

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Let `get` and `wait` wait so long."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Give a key a value."""
        self._ask(b"set", key.encode(), _bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key, which is waited for."""
        return self._wait([key], self._timeout)[0]

    def add(self, key: str, amount: int) -> int:
        """Add to the number that a key has, 0 at first; the sum."""
        return int(self._ask(b"add", key.encode(), str(amount).encode())[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Add bytes to the end of a value."""
        self._ask(b"append", key.encode(), _bytes(value))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Give a key a value if it has the expected one ('' : none); what it has then."""
        parts = key.encode(), _bytes(expected), _bytes(desired)
        return self._ask(b"swap", *parts)[0]

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all of these keys have values."""
        return self._ask(b"check", *(k.encode() for k in keys)) == [b"1"]

    def wait(self, keys: Sequence[str], timeout: Any = None) -> None:
        """Wait until all of these keys have values."""
        self._wait(keys, timeout or self._timeout)

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        return self._ask(b"delete", key.encode()) == [b"1"]

    def num_keys(self) -> int:
        """How many keys have values."""
        return int(self._ask(b"count")[0])

    def list_keys(self) -> list[str]:
        """The keys that have values."""
        return [k.decode() for k in self._ask(b"keys")]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return self._wait(keys, self._timeout)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Give several keys values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether there are `append` and `multi_get`."""
        return True

    def _wait(self, keys: Sequence[str], timeout: Any) -> list[bytes]:
        limit = seconds(timeout) or 0.0
        found = self._ask(b"wait", str(limit).encode(), *(k.encode() for k in keys))
        if len(found) != len(keys):
            lacking = [k for k in keys if not self.check([k])]
            raise DistStoreError(
                f"[{type(self).__name__}] nobody has set {', '.join(map(repr, lacking))} in "
                f"{limit:g} s"
            )
        return found


class HashStore(Store):
    """Keys and values of this process, for its threads.

    >>> store = HashStore()
    >>> store.set("colour", "blue")
    >>> store.get("colour"), store.add("count", 2), store.add("count", 3)
    (b'blue', 2, 5)
    """

    def __init__(self) -> None:
        super().__init__()
        self._values = protocol.Values()

    def _ask(self, *parts: bytes) -> list[bytes]:
        return self._values.answer(parts[0], list(parts[1:]))


class TCPStore(Store):
    """Keys and values in a server, which one of the processes is."""

    def __init__(
        self,
        host_name: str,
        port: int = 0,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _WAIT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        if master_listen_fd is not None:
            raise UnsupportedError("[TCPStore] cannot take a socket over; give a port")
        self._timeout = timeout
        self._server = None
        if is_master:
            try:
                self._server = protocol.Server(port=port)
            except OSError as error:
                raise DistNetworkError(f"[TCPStore] port {port} cannot be had: {error}") from error
            port = self._server.port
        self.host, self.port = host_name, port
        try:
            self._client = protocol.Client(host_name, port, seconds(timeout) or 0.0)
        except OSError as error:
            raise DistNetworkError(
                f"[TCPStore] no server answers at {host_name}:{port}: {error}"
            ) from error
        if world_size is not None and world_size > 0 and wait_for_workers:
            come = self.add("undertow/workers", 1)
            if come % world_size == 0:
                self.set(f"undertow/complete/{come // world_size}", b"1")
            self.wait([f"undertow/complete/{-(-come // world_size)}"])

    def _ask(self, *parts: bytes) -> list[bytes]:
        try:
            return self._client.ask(*parts)
        except (OSError, ConnectionError) as error:
            raise DistNetworkError(
                f"[TCPStore] the server at {self.host}:{self.port} is gone: {error}"
            ) from error

    def __del__(self) -> None:
        for part in ("_client", "_server"):
            made = getattr(self, part, None)
            if made is not None:
                made.close()

    def clone(self) -> TCPStore:
        """A second connection to the server."""
        return TCPStore(self.host, self.port, timeout=self._timeout)


class FileStore(Store):
    """Keys and values in a file that all processes can reach."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        if find_spec("fcntl") is None:
            raise UnsupportedError(
                "[FileStore] this system has no locks of files as POSIX knows them; take a TCPStore"
            )
        self.path = os.fspath(file_name)
        self._lock = threading.Lock()
        open(self.path, "ab").close()

    @contextmanager
    def _locked(self) -> Any:
        import fcntl

        with self._lock, open(self.path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield file
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def _ask(self, *parts: bytes) -> list[bytes]:
        command, *rest = parts
        if command == b"wait":
            return self._poll(float(rest[0]), rest[1:])
        with self._locked() as file:
            values = protocol.Values()
            items = protocol.unpacked(file.read())
            values.values = dict(zip(items[::2], items[1::2], strict=True))
            answer = values.change(command, rest)
            file.seek(0)
            file.write(protocol.packed(*(x for pair in values.values.items() for x in pair)))
            file.truncate()
        return answer

    def _poll(self, limit: float, keys: list[bytes]) -> list[bytes]:
        deadline = time.monotonic() + limit
        while True:
            found = self._ask(b"read", *keys)
            if len(found) == len(keys) or time.monotonic() > deadline:
                return found
            time.sleep(0.01)


class PrefixStore(Store):
    """A store whose keys begin with a prefix, in another."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix, self.underlying_store = prefix, store
        self._timeout = store.timeout

    def _ask(self, *parts: bytes) -> list[bytes]:
        command, *rest = parts
        before = f"{self.prefix}/".encode()
        if command == b"wait":
            rest[1:] = [before + k for k in rest[1:]]
        elif command == b"check":
            rest = [before + k for k in rest]
        elif command == b"keys":
            found = self.underlying_store._ask(command)
            return [k[len(before) :] for k in found if k.startswith(before)]
        elif rest:
            rest[0] = before + rest[0]
        return self.underlying_store._ask(command, *rest)


def _bytes(value: str | bytes) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, (bytes, bytearray)):
        raise ArgumentError(f"[Store] values are text or bytes, got {type(value).__name__}")
    return bytes(value)
