"""`undertow.profiler`: marks in the program, which no profiler here collects.

`record_function` is accepted, since libraries mark their layers with it. `profile` is an error: it
would have to show times, and Python's own profilers do.
"""

from __future__ import annotations

import enum
from typing import Any

from ..core.modes import Switch
from ..errors import UnsupportedError

__path__: list[str] = []  # torch has modules below this one
__all__ = ["ProfilerActivity", "profile", "record_function"]


class ProfilerActivity(enum.Enum):
    """What a profiler could watch."""

    CPU = "cpu"
    CUDA = "cuda"


class record_function(Switch):
    """A block or function with a name, for a profiler; nothing else happens.

    >>> import undertow as ut
    >>> with ut.profiler.record_function("forward"):
    ...     y = ut.ones(2) * 2
    """

    __slots__ = ("name",)

    def __init__(self, name: str, args: str | None = None) -> None:
        super().__init__()
        self.name = name


class profile:
    """An error when it is made: there is no profiler here."""

    def export_chrome_trace(self, path: str) -> Any:
        """Nobody has such an object."""
        raise UnsupportedError("[export_chrome_trace] there is no profiler here")

    def key_averages(self, *args: Any, **kwargs: Any) -> Any:
        """Nobody has such an object."""
        raise UnsupportedError("[key_averages] there is no profiler here")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "[profile] there is no profiler here; use Python's cProfile, or perf for the kernels"
        )
