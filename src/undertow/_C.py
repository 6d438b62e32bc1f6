"""Questions about tracing that programs ask torch's internals, answered: nothing ever traces."""

from __future__ import annotations


def _get_tracing_state() -> None:
    """The trace that is being recorded: none."""


def _is_tracing() -> bool:
    """Whether a function is being traced: never."""
    return False


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted."""
