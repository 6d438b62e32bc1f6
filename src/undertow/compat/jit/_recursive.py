"""TorchScript's way through a module's methods: nothing goes it."""

from __future__ import annotations

from typing import Any

from ._script import refuse


def create_script_module(nn_module: Any, stubs_fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: there is no TorchScript."""
    refuse("_recursive.create_script_module")


def wrap_cpp_module(cpp_module: Any) -> Any:
    """Refused: there is no TorchScript."""
    refuse("_recursive.wrap_cpp_module")


class _ConcreteTypeStore:
    """Types of scripted modules, of which there are none."""

    def __init__(self) -> None:
        self.type_store: dict[Any, Any] = {}
        self.methods_compiled: set[Any] = set()


concrete_type_store = _ConcreteTypeStore()
