"""`torch._inductor`: torch's generator of kernels, which is not here; its settings are accepted."""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedError
from . import config

__all__ = ["compile", "config", "cudagraph_mark_step_begin", "list_mode_options", "list_options"]


def cudagraph_mark_step_begin() -> None:
    """Say that a step begins: there are no graphs of CUDA."""


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The settings of each mode of `compile`: there are none."""
    return {}


def list_options() -> list[str]:
    """The settings of `compile`: there are none."""
    return []


def compile(gm: Any, example_inputs: Any, options: Any = None) -> Any:
    """An error: there is no such compiler here."""
    raise UnsupportedError(
        "[_inductor.compile] graphs are not compiled here; call them as they are"
    )
