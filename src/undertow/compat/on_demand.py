"""Names of a package that are loaded when somebody asks for them, so that importing it is quick.

Note [imports of threads]
Who imports `nn.modules.module` locks that module and then waits for `nn`; who imports `nn` locks it
and then waits for its modules. If two threads do so at once, Python gives one of them a module that
is half done. So rooms that import parts of `nn` import it whole first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def on_demand(package: dict[str, Any], homes: dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, given its globals and the module where each name stands.

    A module of the same name as what it is asked for is meant itself, also one that is in no list
    and has a file here. Names that only torch has are looked for in `compat`.
    """
    here = package["__name__"]

    def has_file(name: str) -> bool:
        places = [os.path.join(folder, name) for folder in package.get("__path__", ())]
        return any(os.path.exists(f"{p}.py") or os.path.isdir(p) for p in places)

    def __getattr__(name: str) -> Any:
        if name not in homes and name.startswith("__"):
            raise AttributeError(f"module {here!r} has no attribute {name!r}")
        if name in homes:
            module = import_module(f".{homes[name]}", here)
            found = module if name == homes[name] else getattr(module, name)
        elif has_file(name):
            found = import_module(f".{name}", here)
        else:
            found = import_module(f"{_PACKAGE}.compat.refusals").find(here, name)
        package[name] = found
        return found

    return __getattr__
