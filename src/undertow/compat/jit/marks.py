"""Marks of functions for TorchScript: they leave a function as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def export(fn: F) -> F:
    """The function itself, which would be compiled with its module."""
    return fn


def unused(fn: F) -> F:
    """The function itself, which would not be compiled."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself, which would not be compiled; also `ignore(drop=True)`.

    >>> import undertow as ut
    >>> @ut.jit.ignore
    ... def one():
    ...     return 1
    >>> one()
    1
    """
    return drop if callable(drop) else lambda fn: fn


def _drop(fn: F) -> F:
    """The function itself."""
    return fn


def script_if_tracing(fn: F) -> F:
    """The function itself: a trace here goes through it."""
    return fn


def _overload(func: F) -> F:
    """One of several signatures, of which the function that is defined last is called."""
    return func


def _overload_method(func: F) -> F:
    """One of several signatures of a method, of which the last definition is called."""
    return func


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value itself."""
    return the_value
