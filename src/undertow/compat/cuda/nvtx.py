"""Marks for NVIDIA's profiler: there is none here, and marking is an error, as in torch."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import AbsentDeviceError

__all__ = ["mark", "range_pop", "range_push"]


def _absent(name: str) -> NoReturn:
    raise AbsentDeviceError(f"[cuda.nvtx.{name}] there is no CUDA device here to profile")


def range_push(msg: str) -> Any:
    """An error: there is no CUDA device."""
    _absent("range_push")


def range_pop() -> Any:
    """An error: there is no CUDA device."""
    _absent("range_pop")


def mark(msg: str) -> Any:
    """An error: there is no CUDA device."""
    _absent("mark")
