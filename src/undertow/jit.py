"""`undertow.jit`: marks of functions for TorchScript, which does not exist here.

A mark leaves a function as it is, and so does `script`, which programs write above small functions
that they want to be quick. Asking for the script of a module, a trace or a scripted file is an
error: a program that wants one would otherwise find out when it saves or loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from .errors import UnsupportedError
from .nn.modules.module import Module

__all__ = [
    "Final",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "export",
    "final",
    "freeze",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "unused",
]

from typing import Final

F = TypeVar("F", bound=Callable[..., Any])
final = Final


def is_scripting() -> bool:
    """Whether a function is being scripted: never.

    >>> import undertow as ut
    >>> ut.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Whether a function is being traced: never."""
    return False


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


def script_if_tracing(fn: F) -> F:
    """The function itself: nothing is ever traced."""
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value itself."""
    return the_value


def _refuse(name: str) -> NoReturn:
    raise UnsupportedError(
        f"[jit.{name}] there is no TorchScript here; call the function or module itself, and "
        "export a model with undertow.onnx or its state_dict with ut.save"
    )


class ScriptModule(Module):
    """No module is one: the class is here to be asked for."""

    def __init__(self) -> None:
        _refuse("ScriptModule")


class TracerWarning(Warning):
    """What a trace warns of; nothing here does."""


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """A function or a class itself, which computes the same; of a module it is an error.

    >>> import undertow as ut
    >>> @ut.jit.script
    ... def double(x):
    ...     return x + x
    >>> double(ut.ones(2))
    tensor([2., 2.])
    """
    if isinstance(obj, Module) or not callable(obj):
        _refuse("script")
    return obj


def script_method(fn: F) -> F:
    """The method itself, which would be compiled with its module."""
    return fn


def trace(func: Any, *args: Any, **kwargs: Any) -> Any:
    """An error: there is no TorchScript."""
    _refuse("trace")


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """An error: there is no TorchScript."""
    _refuse("freeze")


def optimize_for_inference(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """An error: there is no TorchScript."""
    _refuse("optimize_for_inference")


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """An error: there is no TorchScript."""
    _refuse("save")


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """An error: there is no TorchScript."""
    _refuse("load")


isinstance = isinstance
