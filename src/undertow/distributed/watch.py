"""Who of the others has failed, was lost or has left: told by the server, read where one waits."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from contextlib import suppress
from types import TracebackType
from typing import Any

from . import protocol

ADDRESS = "UNDERTOW_WATCH"  # host:port of the server, set by the launcher
GRACE = 0.5  # seconds for messages that a process sent before it left


class Watch:
    """Two connections to the server: one says how this process is, one hears of the others."""

    def __init__(self, host: str, port: int, rank: int) -> None:
        self.rank = rank
        self.failure: tuple[str, int, str] | None = None  # the first that is heard of
        self.left: dict[int, float] = {}  # when each was heard to have left
        self.closed = False
        self.failed = False  # this process itself
        self._own = protocol.Client(host, port)
        self._own.ask(b"hello", str(rank).encode())
        self._news = protocol.connect(host, port, 30.0)
        protocol.send(self._news, b"subscribe")
        threading.Thread(target=self._listen, name="undertow-watch", daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                kind, rank, text = (p.decode() for p in protocol.receive(self._news))
                self._hear(kind, int(rank), text)
        except (OSError, ConnectionError):
            if self.failure is None:
                self.failure = ("lost", -1, "")

    def _hear(self, kind: str, rank: int, text: str) -> None:
        if rank == self.rank or kind not in ("failed", "lost", "left"):
            return
        if kind == "left":
            self.left[rank] = time.monotonic()
        elif self.failure is None or (self.failure[0] == "lost" and self.failure[1] == rank):
            self.failure = (kind, rank, text)

    def report(self, text: str) -> None:
        """Tell the others why this process fails."""
        with suppress(OSError, ConnectionError):  # else they hear that the connection is lost
            self._own.ask(b"report", b"failed", str(self.rank).encode(), text.encode())

    def leave(self) -> None:
        """Tell the others that this process ends in peace."""
        self.closed = True
        with suppress(OSError, ConnectionError):
            self._own.ask(b"bye")


def told(failure: tuple[str, int, str]) -> str:
    """What a failure was, in words."""
    kind, rank, text = failure
    if rank < 0:
        return "the connection to the launcher, or to rank 0, is lost"
    if kind == "lost":
        return f"rank {rank} is gone: it was killed, or crashed{f' ({text})' if text else ''}"
    return f"rank {rank} failed:\n{_indented(text)}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines())


def install_hook(watch: Watch) -> None:
    """Report an exception that ends this process, before Python prints it."""
    before = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        if not watch.closed:
            watch.failed = True
            watch.report("".join(traceback.format_exception(kind, error, trace)))
        before(kind, error, trace)

    sys.excepthook = report
