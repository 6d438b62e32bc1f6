"""Ctrl-C that comes when nobody could raise it, later."""

from __future__ import annotations

import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any


@contextmanager
def late_interrupts(delay: float = 0.0) -> Iterator[None]:
    """Ctrl-C takes effect when this is over; with a delay, also when whatever calls this is.

    In a hook of fork, or in `__del__`, Python would print the KeyboardInterrupt and go on.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[Any] = []
    signal.signal(signal.SIGINT, lambda *given: arrived.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived and delay:
            # Windows' kill would end the process.
            again = partial(os.kill, os.getpid(), signal.SIGINT)
            interrupt = interrupt_main if sys.platform == "win32" else again
            threading.Timer(delay, interrupt).start()
        elif arrived:
            handler(*arrived[0])
