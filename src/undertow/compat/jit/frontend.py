"""TorchScript's reader of Python: its errors are here, and nothing reads."""

from __future__ import annotations

from typing import Any

from ._script import refuse


class FrontendError(Exception):
    """What TorchScript cannot read; nothing here reads."""


class NotSupportedError(FrontendError):
    """Python that TorchScript does not have."""


class UnsupportedNodeError(NotSupportedError):
    """Syntax that TorchScript does not have."""


def get_jit_def(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: there is no TorchScript."""
    refuse("frontend.get_jit_def")


def get_jit_class_def(cls: Any, self_name: Any) -> Any:
    """Refused: there is no TorchScript."""
    refuse("frontend.get_jit_class_def")
