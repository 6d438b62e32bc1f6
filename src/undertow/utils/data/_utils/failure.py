"""An exception of a worker, as it travels to the process that asked for a batch."""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any, NoReturn


class _Verbatim(str):
    """A message that KeyError, which shows the repr of its argument, shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception that is being handled: its type, its traceback as text, and where it was.

    >>> try:
    ...     raise ValueError("odd sample")
    ... except ValueError:
    ...     caught = ExceptionWrapper(where="in DataLoader worker process 0")
    >>> try:
    ...     caught.reraise()
    ... except ValueError as error:
    ...     print(str(error).splitlines()[0], "...", str(error).splitlines()[-1])
    Caught ValueError in DataLoader worker process 0. ... ValueError: odd sample
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        # Not the exception itself, whose traceback holds the frames and all that they hold.
        exc_info = exc_info or sys.exc_info()
        self.exc_type: Any = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def sendable(self) -> ExceptionWrapper:
        """Itself, as a RuntimeError if the other process could not read its type."""
        try:
            pickle.loads(pickle.dumps(self.exc_type))
        except Exception:
            self.where = f"({self.exc_type.__name__}) {self.where}"
            self.exc_type = RuntimeError
        return self

    def reraise(self) -> NoReturn:
        """Raise an exception of the same type whose message has the traceback in it."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = _Verbatim(message)
        elif getattr(self.exc_type, "message", None):
            # Some exceptions take their text by that name alone.
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:  # it takes other arguments
            raise RuntimeError(message) from None
        try:
            raise exception
        finally:
            del exception  # or its traceback, a cycle, keeps the loader's workers for long
