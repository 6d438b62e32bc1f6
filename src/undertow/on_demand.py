"""Names of a package that are loaded when somebody asks for them, so that importing it is quick."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_demand(package: dict[str, Any], homes: dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, given its globals and the module where each name stands.

    A module of the same name as what it is asked for is meant itself.
    """
    here = package["__name__"]

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {here!r} has no attribute {name!r}")
        module = import_module(f".{homes[name]}", here)
        found = package[name] = module if name == homes[name] else getattr(module, name)
        return found

    return __getattr__
