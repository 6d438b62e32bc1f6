"""Which functions TorchScript has of its own: none."""

from __future__ import annotations

from typing import Any


def _find_builtin(fn: Any) -> None:
    """The operator behind a function: none."""


def _register_builtin(fn: Any, op: str) -> None:
    """Nothing is registered."""
