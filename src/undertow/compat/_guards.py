"""What torch's compiler knows of a program: nothing is compiled, so there is no context."""

from __future__ import annotations

from typing import Any


class TracingContext:
    """The compilation that is running: none."""

    @staticmethod
    def try_get() -> None:
        """It, or None."""

    @staticmethod
    def get() -> Any:
        """It; an error, since there is none."""
        raise RuntimeError("[TracingContext.get] nothing is being compiled")


class CompileContext(TracingContext):
    """The compilation that is running: none."""

    @staticmethod
    def current_compile_id() -> None:
        """Its number: none."""


def detect_fake_mode(inputs: Any = None) -> None:
    """The mode in which tensors are only shapes, if one is on: there is none."""


active_fake_mode = lambda: None
