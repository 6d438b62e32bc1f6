"""Ctrl-C as a wish: whoever computes looks at it where stopping is easy."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class Stop:
    """Whether somebody has asked for an end."""

    asked: bool = False


@contextmanager
def stopping() -> Iterator[Stop]:
    """Inside, the first Ctrl-C (or SIGTERM) sets `asked`; a second one does what it always does."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: Any) -> None:
        stop.asked = True
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        restore()
