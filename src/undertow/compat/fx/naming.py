"""Names of functions, types and values as generated code writes them: `torch.nn.functional.relu`.

Graphs are read by people and programs that know torch, so the library is called `torch` in what is
printed, and generated code runs with that name bound to this package.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
from importlib import import_module
from typing import Any

from ...core.tensor import Tensor
from ...dtypes import DType

PACKAGE = __name__.partition(".")[0]
SHOWN = "torch"
# What torch's `nn.functional` takes from its C library, and prints with that name.
_NATIVE = frozenset(
    """
    avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot
    scaled_dot_product_attention softplus softshrink
    """.split()  # noqa: SIM905
)


def package() -> types.ModuleType:
    """The library itself."""
    return sys.modules[PACKAGE]


@functools.lru_cache(maxsize=1)
def load_native() -> None:
    """Let `torch._C._nn` be there for generated code."""
    import_module(f"{PACKAGE}.compat._C._nn")


@functools.lru_cache(maxsize=4096)
def _found_at(path: str) -> Any:
    """What stands at a dotted path below the library, or None."""
    found: Any = package()
    walked = PACKAGE
    for name in path.split(".") if path else ():
        walked = f"{walked}.{name}"
        step = getattr(found, name, None)
        if step is None and isinstance(found, types.ModuleType):
            try:
                step = import_module(walked)
            except ImportError:
                return None
        if step is None:
            return None
        found = step
    return found


def public_path(obj: Any) -> str | None:
    """Where the library keeps an object, as code writes it; None if that is nowhere."""
    module, name = getattr(obj, "__module__", None), getattr(obj, "__name__", None)
    if module is None and isinstance(obj, types.ModuleType):
        module, _, name = obj.__name__.rpartition(".")
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if module != PACKAGE and not module.startswith(f"{PACKAGE}."):
        return None
    below = module[len(PACKAGE) + 1 :].removeprefix("compat.")
    qualified = getattr(obj, "__qualname__", name)
    places = [("", name), (below, qualified), (below, name), ("nn.functional", name)]
    if qualified.startswith("Tensor.") or vars(Tensor).get(name) is obj:
        places.append(("Tensor", name))
    for place, last in places:
        if "<" in last:
            continue
        path = f"{place}.{last}" if place else last
        if _found_at(path) is obj:
            if place == "nn.functional" and name in _NATIVE:
                load_native()
                return f"{SHOWN}._C._nn.{name}"
            return f"{SHOWN}.{path}"
    return None


def qualified_name(func: Any) -> str:
    """The name of a function as code would write it: `torch.relu`, `len`, `my_module.helper`."""
    name = getattr(func, "__name__", None)
    if name is None:
        name = type(func).__name__
    if getattr(builtins, name, None) is func:
        return str(name)
    path = public_path(func)
    if path is not None:
        return path
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = getattr(func, "__module__", None)
    if module is None:
        raise RuntimeError(f"cannot find module for {func}")
    return f"{shown_module(module)}.{name}"


def shown_module(module: str) -> str:
    """The name of a module, with the library called `torch`."""
    if module == PACKAGE or module.startswith(f"{PACKAGE}."):
        return SHOWN + module[len(PACKAGE) :].removeprefix(".compat")
    return module


def type_name(obj: Any) -> str:
    """The name of a type, short of what goes without saying; of anything else its repr."""
    generic: Any = types.GenericAlias  # `list[int]` says that it is a type, too
    if isinstance(obj, type) and not isinstance(obj, generic):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return public_path(obj) or f"{shown_module(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace(f"{PACKAGE}.", f"{SHOWN}.")


def shown_target(target: Any) -> str:
    """What a node calls, for people: `operator.add`, `builtins.getattr`, `torch.relu`."""
    if isinstance(target, str):
        return target
    name, module = getattr(target, "__name__", None), getattr(target, "__module__", None)
    if name is not None and module == "builtins":
        return f"builtins.{name}"
    if name is not None and module == "_operator":
        return f"operator.{name}"
    return qualified_name(target)


def value_text(value: Any) -> str:
    """A constant as code writes it."""
    if isinstance(value, DType) or type(value).__module__ == f"{PACKAGE}.layouts":
        return repr(value).replace(f"{PACKAGE}.", f"{SHOWN}.")
    return repr(value)
