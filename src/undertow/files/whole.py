"""Modules, optimisers and other objects saved whole, as torch does: by the names of their classes.

A file names classes and functions, and what it names is looked up, made and called when it is read.
So only `ut.load(..., weights_only=False)` does that, for names of torch's that stand for modules,
optimisers, schedulers, datasets and functions of `nn.functional` of this library, and for what the
user has allowed. Everything else is refused, as in any other file.
"""

from __future__ import annotations

import copyreg
import functools
import importlib
import sys
from collections import defaultdict
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ..errors import FileError
from ..nn.modules.module import Module
from ..nn.modules.state import hooks_as_torchs
from .safe_globals import allowed_modules, allowed_names

_PACKAGE = __name__.partition(".")[0]
# Where torch publishes classes and functions, those that files name first.
_SPACES = ("nn", "nn.functional", "optim", "optim.lr_scheduler", "utils.data", "")
# What the pickles of such objects are made of, besides them.
_PLAIN: dict[str, Any] = {
    "builtins.dict": dict,
    "builtins.float": float,
    "builtins.int": int,
    "builtins.list": list,
    "builtins.object": object,
    "builtins.slice": slice,
    "builtins.str": str,
    "builtins.tuple": tuple,
    "collections.defaultdict": defaultdict,
    "copyreg._reconstructor": copyreg._reconstructor,  # type: ignore[attr-defined]
    "functools.partial": functools.partial,
}
_MISSING = object()
# Of what such objects are, and where these classes stand.
_KINDS = {
    "nn": ("Module",),
    "optim": ("Optimizer",),
    "optim.lr_scheduler": ("LRScheduler",),
    "utils.data": ("Dataset", "Sampler"),
}


# Reading -----------------------------------------------------------------------------------------
class Trusted(dict[str, Any]):
    """What a file may name with `weights_only=False`, looked up when it does."""

    def __init__(self) -> None:
        super().__init__(allowed_names())
        self._modules = allowed_modules()

    def __contains__(self, name: Any) -> bool:
        if not super().__contains__(name):
            found = self._find(name)
            if found is _MISSING:
                return False
            self[name] = found
        return True

    def _find(self, name: str) -> Any:
        if name in _PLAIN:
            return _PLAIN[name]
        home, _, last = name.rpartition(".")
        if home.split(".")[0] in ("torch", _PACKAGE):
            return _ours(home.partition(".")[2], last)
        if any(home == m or home.startswith(f"{m}.") for m in self._modules):
            try:
                found = getattr(importlib.import_module(home), last, _MISSING)
            except ImportError as error:
                raise FileError(f"[load] the file asks for {name}: {error}") from error
            return found if isinstance(found, (type, FunctionType)) else _MISSING
        return _MISSING


def _ours(home: str, name: str) -> Any:
    """What this library has for a name of torch's, if files may name it."""
    for space in (home, *_SPACES):
        try:
            module = importlib.import_module(f"{_PACKAGE}.{space}" if space else _PACKAGE)
            found = getattr(module, name, _MISSING)
        except (ImportError, AttributeError):
            continue
        if _is_whole_class(found) or _is_functional(found):
            return found
    return _MISSING


def _is_functional(thing: Any) -> bool:
    functional = sys.modules.get(f"{_PACKAGE}.nn.functional")
    name = getattr(thing, "__name__", "")
    return isinstance(thing, FunctionType) and getattr(functional, name, None) is thing


def _kinds() -> tuple[type, ...]:
    """Those classes; where a module is not loaded, there is no object of its classes."""
    rooms = {f"{_PACKAGE}.{room}": names for room, names in _KINDS.items()}
    loaded = [(sys.modules[room], names) for room, names in rooms.items() if room in sys.modules]
    return tuple([getattr(module, name) for module, names in loaded for name in names])


def _is_whole_class(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, _kinds())


# Writing -----------------------------------------------------------------------------------------
def is_named(obj: Any) -> bool:
    """Whether an object is written by its name alone."""
    return isinstance(obj, (type, FunctionType, BuiltinFunctionType))


def words(obj: Any) -> tuple[str, str]:
    """Module and name of a class or function in a pickle of protocol 2, as torch knows it."""
    home, name = getattr(obj, "__module__", None) or "", getattr(obj, "__qualname__", "")
    if home.partition(".")[0] == _PACKAGE:
        for space in _SPACES:
            module = importlib.import_module(f"{_PACKAGE}.{space}" if space else _PACKAGE)
            if getattr(module, name, None) is obj:
                return (f"torch.{space}" if space else "torch"), name
        return "torch" + home.removeprefix(_PACKAGE).removeprefix(".compat"), name
    if getattr(sys.modules.get(home), name, None) is not obj:
        raise FileError(
            f"[save] {home}.{name} cannot be found by its name; define it at the top of a module, "
            "or save the state_dict()"
        )
    return {"builtins": "__builtin__", "copyreg": "copy_reg"}.get(home, home), name


def reduced(obj: Any) -> tuple[Any, ...]:
    """How an object is made again: as `__reduce_ex__`, with the state that torch's has."""
    found = obj.__reduce_ex__(2)
    if isinstance(found, str):
        return (found,)
    call, args, state, *items = (*found, None, None, None)[:5]
    if isinstance(obj, Module) and isinstance(state, dict):
        state = dict(state)
        state.pop("_hooks", None)
        state |= hooks_as_torchs(obj)
        if "_all_weights" in state:  # a recurrent layer
            state["_flat_weights_names"] = [n for layer in state["_all_weights"] for n in layer]
            state["_flat_weights"] = [getattr(obj, n) for n in state["_flat_weights_names"]]
    return call, args, state, *items
