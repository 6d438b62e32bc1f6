"""`undertow.compiler`: there is no compiler of whole functions, so nothing is ever compiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .settings import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]

F = TypeVar("F", bound=Callable[..., Any])


def is_compiling() -> bool:
    """Whether a function is being compiled: never.

    >>> import undertow as ut
    >>> ut.compiler.is_compiling()
    False
    """
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, **more: Any) -> Any:
    """The function itself: nothing is compiled."""
    return (lambda fn: fn) if fn is None else fn


def allow_in_graph(fn: F) -> F:
    """The function itself: nothing is compiled."""
    return fn


assume_constant_result = allow_in_graph


def reset() -> None:
    """Nothing: nothing was compiled."""


cudagraph_mark_step_begin = reset


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The compilers that there are: none."""
    return []
