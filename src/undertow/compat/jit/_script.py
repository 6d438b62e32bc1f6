"""`script`, which leaves functions and modules as they are, and the files that do not exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeVar

from ...errors import UnsupportedError
from ...nn.modules.module import Module

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=Module)


def refuse(name: str) -> NoReturn:
    """Say that there is no TorchScript, and what to do instead."""
    raise UnsupportedError(
        f"[jit.{name}] there is no TorchScript here; call the function or module itself, and "
        "export a model with undertow.onnx or its state_dict with ut.save"
    )


class ScriptFunction:
    """What `trace` makes of a function: a callable that is no module."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        self.name = self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        self.__doc__ = fn.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fn(*args, **kwargs)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Refused: there are no files of TorchScript."""
        refuse("save")


class _Scripted(type):
    """The class of ScriptModule, of which a module that `script` was given is an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is ScriptModule and "original_name" in getattr(instance, "__dict__", ())


class ScriptModule(Module, metaclass=_Scripted):
    """The base of traced modules, to which scripted ones belong as well."""

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Refused: there are no files of TorchScript."""
        refuse("save")

    def save_to_buffer(self, *args: Any, **kwargs: Any) -> bytes:
        """Refused: there are no files of TorchScript."""
        refuse("save")

    @property
    def original_name(self) -> str:
        """The name of the class that this was made of."""
        return type(self).__name__


class RecursiveScriptModule(ScriptModule):
    """No module is one: the class is here to be asked for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("RecursiveScriptModule")


class Attribute(NamedTuple):
    """A value and the type that TorchScript would be told of; a module keeps it as it is."""

    value: Any
    type: Any


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """A function, class or module itself, which computes the same; a module learns its old name.

    >>> import undertow as ut
    >>> @ut.jit.script
    ... def double(x):
    ...     return x + x
    >>> double(ut.ones(2))
    tensor([2., 2.])
    >>> ut.jit.script(ut.nn.ReLU()).original_name
    'ReLU'
    """
    if not callable(obj):
        refuse("script")
    if isinstance(obj, Module) and not isinstance(obj, ScriptModule):
        obj.__dict__.setdefault("original_name", type(obj).__name__)
    return obj


def script_method(fn: F) -> F:
    """The method itself, which would be compiled with its module."""
    return fn


def interface(obj: F) -> F:
    """The class itself."""
    return obj


def freeze(
    mod: M,
    preserved_attrs: Any = None,
    optimize_numerics: bool = True,
    preserve_parameters: bool = False,
) -> M:
    """The module itself, which must be in evaluation mode as in torch."""
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    return mod


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None
) -> None:
    """Nothing changes."""


def optimize_for_inference(mod: M, other_methods: Any = None) -> M:
    """The module itself."""
    return mod


def export_opnames(m: Any) -> list[str]:
    """Refused: there is no TorchScript."""
    refuse("export_opnames")


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Refused: there are no files of TorchScript."""
    refuse("save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, **kwargs: Any) -> Any:
    """Refused: there are no files of TorchScript."""
    refuse("load")
