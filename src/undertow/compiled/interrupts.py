"""Signals that come while a program changes something, and are handled when it has done so.

A handler of Python's runs between two steps of Python's on the main thread, and may raise, as that
of Ctrl-C does. In the middle of a program it would leave parameters that have been changed beside
counts that have not. So signals are only noted there, and sent once more behind it.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

# What `signal` is made of, without its enums, which cost five times as much.
quick: Any = sys.modules.get("_signal", signal)
_SIGNALS = [
    int(getattr(signal, name)) for name in ("SIGALRM", "SIGTERM", "SIGINT") if hasattr(signal, name)
]


class Deferred:
    """`with Deferred():` no handler runs inside; on other threads none does anyway.

    >>> came = []
    >>> before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    >>> with Deferred():
    ...     signal.raise_signal(signal.SIGINT)
    ...     print(came)
    []
    >>> came == [signal.SIGINT]
    True
    >>> _ = signal.signal(signal.SIGINT, before)
    """

    __slots__ = ("_before", "_came")

    def __enter__(self) -> None:
        self._came: list[int] = []
        self._before: list[tuple[int, Any]] = []
        try:
            for number in _SIGNALS:
                handler = quick.getsignal(number)
                if callable(handler):
                    self._before.append((number, handler))
                    quick.signal(number, self._note)
        except ValueError:  # this is not the main thread
            self._before.clear()
        except BaseException:  # a signal came before it was to be noted
            self._restore()
            raise

    def _note(self, number: int, frame: Any) -> None:
        self._came.append(number)

    def _restore(self) -> None:
        if self._before:
            number, handler = self._before.pop()
            try:
                quick.signal(number, handler)
            finally:
                self._restore()

    def __exit__(self, *_: object) -> None:
        handlers = dict(self._before)
        try:
            self._restore()
        finally:
            self._handle(handlers)

    def _handle(self, handlers: dict[int, Any]) -> None:
        """Call the handlers: to send a signal again would wake an event loop twice."""
        if self._came:
            number = self._came.pop(0)
            try:
                handlers[number](number, sys._getframe())
            finally:
                self._handle(handlers)
