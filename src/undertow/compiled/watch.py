"""Python values that a recorded function has read: which they are, and whether they still are.

Note [watched values]
A program does not run the user's Python, so whatever that would read must be what it was. While a
call is recorded, `sys.setprofile` shows each function that runs. Of those that are not the
library's own, code tells the names of globals, of variables of outer functions and of attributes;
these are looked up in the function's globals, in its cells, in the objects that it was called with,
and in the objects that are found there. Numbers and strings are compared by value, lists and
dictionaries by their elements, everything else by identity. What has a state that cannot be
compared (a generator, a file, a random stream) is refused, and so is a call of a C function that is
not known to depend on its arguments alone. All this errs to one side: in doubt, eager code runs.
"""

from __future__ import annotations

import dis
import functools
import gc
import os
import re
import sys
import sysconfig
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextvars import ContextVar
from decimal import Decimal
from operator import is_
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GenericAlias,
    MethodType,
    ModuleType,
    UnionType,
)
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType
from ..nn.modules.calling import GLOBAL_CALLS
from ..nn.modules.module import Module
from ..optim.elementwise import Elementwise
from ..optim.lr_scheduler.scheduler import LRScheduler
from ..optim.optimizer import Optimizer

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = tuple({sysconfig.get_paths()[n] + os.sep for n in ("stdlib", "platstdlib")})
_SITE = tuple({sysconfig.get_paths()[n] + os.sep for n in ("purelib", "platlib")})
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_MOST = 256  # elements of one container
_DEEP = 6  # objects in objects
_MISSING = object()
SCALARS = (int, float, bool, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
_PLAIN = (*SCALARS, list, tuple, dict)
_SAFE = frozenset(
    [
        "abs",
        "all",
        "any",
        "ascii",
        "bin",
        "callable",
        "chr",
        "divmod",
        "format",
        "getattr",
        "hasattr",
        "hash",
        "hex",
        "id",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "max",
        "min",
        "next",
        "oct",
        "ord",
        "pow",
        "repr",
        "round",
        "sorted",
        "sum",
        "__build_class__",
    ]
)
_SAFE_MODULES = frozenset(
    [
        "math",
        "cmath",
        "_operator",
        "operator",
        "itertools",
        "_functools",
        "functools",
        "_collections",
        "_abc",
        "_struct",
        "_contextvars",
    ]
)
_SAFE_SELVES = (
    list,
    dict,
    tuple,
    str,
    bytes,
    set,
    frozenset,
    int,
    float,
    complex,
    range,
    slice,
    deque,
    OrderedDict,
    defaultdict,
    type,
    ModuleType,
)
_UNSAFE_MODULES = frozenset(
    [
        "random",
        "time",
        "datetime",
        "secrets",
        "uuid",
        "os",
        "sys",
        "io",
        "socket",
        "subprocess",
        "threading",
        "multiprocessing",
        "tempfile",
        "shutil",
        "pathlib",
        "select",
        "asyncio",
        "queue",
        "array",
        "mmap",
        "ctypes",
        "_ctypes",
    ]
)


_REMEMBERING = (type(functools.lru_cache(len)), weakref.ref, ContextVar)


_PACKAGE = f"{__name__.partition('.')[0]}."  # also of functions that the library writes itself
_CONSTANT = (
    object,
    range,
    slice,
    Decimal,
    re.Pattern,
    GenericAlias,
    UnionType,
    type(vars(Tensor)["_array"]),
    type(vars(FunctionType)["__code__"]),
    type(object.__init__),
    type(dict.get),
    type(vars(dict)["fromkeys"]),
)


# What depends on where memory is, and settings.
_UNASKED = frozenset(
    [
        "are_deterministic_algorithms_enabled",
        "get_deterministic_debug_mode",
        "get_float32_matmul_precision",
        "is_deterministic_algorithms_warn_only_enabled",
        "set_default_device",
        "set_default_dtype",
        "set_deterministic_debug_mode",
        "set_flush_denormal",
        "set_float32_matmul_precision",
        "set_num_threads",
        "use_deterministic_algorithms",
        "_base",
        "_is_view",
        "_version",
        "as_strided",
        "as_strided_",
        "data_ptr",
        "storage",
        "storage_offset",
        "untyped_storage",
    ]
)


_OF_GLOBALS = frozenset(
    [
        "LOAD_GLOBAL",
        "LOAD_NAME",
        "LOAD_FROM_DICT_OR_GLOBALS",  # annotations and aliases in a class, from 3.12 on
        "STORE_GLOBAL",
        "DELETE_GLOBAL",
    ]
)


class Unwatchable(Exception):
    """Why a value cannot be compared."""


def is_ours(code: CodeType) -> bool:
    """Whether code is the library's own."""
    return code.co_filename.startswith(HOME)


def _is_stdlib(name: str) -> bool:
    return name.startswith("<frozen") or (name.startswith(_STDLIB) and not name.startswith(_SITE))


def _is_tool(name: str) -> bool:
    """Whether a file is Python's or NumPy's: its functions act for whoever calls them."""
    return _is_stdlib(name) or name.startswith(_NUMPY)


def _for_us(frame: Any) -> bool:
    """Whether a frame acts for the library."""
    while frame is not None and _is_tool(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is None or frame.f_code.co_filename.startswith(HOME)


def line_of_user(depth: int = 1) -> str:
    """The innermost line that is not the library's own, as `file:line`."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(HOME) and not _is_stdlib(name):
            return f"{name.removeprefix(os.getcwd() + os.sep)}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


# What is to be seen of code, and whose it is if not the library's own.
_MODULE, _STEP, _USER, _TOOL, _WRITTEN = 1, 2, 4, 8, 16
_OTHERS = _USER | _TOOL | _WRITTEN


class Seen:
    """What ran while a call was recorded."""

    def __init__(self) -> None:
        # Of others, with their globals. Code is equal to that of the same lines in another file.
        self.codes: dict[tuple[CodeType, int], tuple[CodeType, dict[str, Any]]] = {}
        self.objects: dict[int, Any] = {}  # what their functions were called with
        self.modules: dict[int, Module] = {}
        self.refused: str | None = None
        self.all_attributes = False
        self._known: dict[tuple[int, int], tuple[CodeType, int]] = {}

    def profile(self, frame: Any, event: str, arg: Any) -> None:
        """For `sys.setprofile`, which calls it for whatever runs: most of it is the library's."""
        if event == "call":
            code = frame.f_code
            known = self._known.get((id(code), id(frame.f_globals)))
            kind = self._first(code, frame.f_globals) if known is None else known[1]
            if kind:
                self._call(frame, code, kind)
        elif event == "c_call" and self.refused is None:
            code = frame.f_code
            known = self._known.get((id(code), id(frame.f_globals)))
            if (known is None or known[1] & _OTHERS) and not _for_us(frame):
                self._c_call(frame, arg)

    def _first(self, code: CodeType, variables: dict[str, Any]) -> int:
        """What is to be seen of code: 0 for nothing."""
        kind = _MODULE if code.co_name in ("forward", "__call__") else 0
        if is_ours(code):
            kind |= _STEP if code.co_name == "step" else 0
        elif variables.get("__name__", "").startswith(_PACKAGE):  # C calls may be somebody's
            kind |= _WRITTEN | (_STEP if code.co_name == "step" else 0)
        elif _is_tool(code.co_filename):
            kind |= _TOOL
        else:
            kind |= _USER
            self.codes.setdefault((code, id(variables)), (code, variables))
        self._known[id(code), id(variables)] = code, kind
        return kind

    def _call(self, frame: Any, code: CodeType, kind: int) -> None:
        if kind & (_MODULE | _STEP):
            found = frame.f_locals.get("self")
            if kind & _MODULE and isinstance(found, Module):
                self.modules[id(found)] = found
            if kind & _STEP and isinstance(found, Optimizer) and not isinstance(found, Elementwise):
                self._refuse(f"{type(found).__name__} computes on the host")
        if kind & _USER:
            count = code.co_argcount + code.co_kwonlyargcount
            count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
            names = code.co_varnames[:count]
            if names:
                values = frame.f_locals
                for n in names:
                    value = values.get(n)
                    if value.__class__ not in _PLAIN and not isinstance(value, Tensor):
                        self._object(value)

    def _object(self, value: Any) -> None:
        """Note an object, as weakly as possible: see `forget`."""
        try:
            self.objects[id(value)] = weakref.ref(value)
        except TypeError:
            kind = value.__class__
            if hasattr(kind, "__slots__") and not isinstance(value, tuple):
                self.objects[id(value)] = lambda: value

    def _c_call(self, frame: Any, function: Any) -> None:
        owner = getattr(function, "__self__", None)
        if owner is None or isinstance(owner, ModuleType):
            module = getattr(function, "__module__", None) or ""
            if module == "builtins" and function.__name__ in _SAFE:
                if function is getattr:
                    self.all_attributes = True
                return
            if module in _SAFE_MODULES:
                return
            shown = f"{module}.{function.__name__}"
        else:
            if isinstance(owner, _SAFE_SELVES) or type(owner).__name__ in (
                "dict_items",
                "dict_keys",
                "dict_values",
                "generator",
            ):
                return
            shown = f"{type(owner).__name__}.{function.__name__}"
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        self._refuse(f"{shown}() is called inside, which a program would not do ({where})")

    def _refuse(self, why: str) -> None:
        if self.refused is None:
            self.refused = why

    def forget(self) -> None:
        """Let go of what was made inside: a later call has its own."""
        self.objects = {i: r for i, r in self.objects.items() if r() is not None}


class Watch:
    """Facts about the values that were seen; see Note [watched values]."""

    def __init__(self, seen: Seen, function: Any) -> None:
        self.refused: str | None = None
        self.facts: list[tuple[str, Any, Any, Any, str]] = []  # kind, container, key, value, name
        self.slow: list[tuple[str, Any, Any, Any, str]] = []
        self._done: set[Any] = set()
        self._classes: dict[int, type] = {}
        self.names: set[str] = set()
        self.names_of: dict[CodeType, list[str]] = {}
        self.all_attributes = seen.all_attributes
        for code, _ in seen.codes.values():
            self.names.update(code.co_names)
            for constant in code.co_consts:
                for word in constant if isinstance(constant, tuple) else (constant,):
                    if isinstance(word, str) and word.isidentifier():
                        self.names.add(word)
            if any(step.opname == "MATCH_CLASS" for step in dis.get_instructions(code)):
                self.all_attributes = True
            if "getattr" in code.co_names or "__dict__" in code.co_names:
                self.all_attributes = True
        try:
            for code, variables in seen.codes.values():
                self._code(code, variables)
            self._closures([code for code, _ in seen.codes.values() if code.co_freevars])
            for reference in seen.objects.values():
                if reference() is not None:
                    self._value(reference(), "an argument", 0)
            self._value(function, "the function", 0)
            for module in seen.modules.values():
                self._module(module)
        except Unwatchable as why:
            self.refused = str(why)
        for name in sorted(self.names & _UNASKED):
            self.refused = self.refused or f"{name} is used inside, which a program does not ask"
        hooks = tuple(GLOBAL_CALLS.values())
        self.facts.append(("map", GLOBAL_CALLS, tuple(GLOBAL_CALLS), hooks, "hooks of all modules"))

    # Finding --------------------------------------------------------------------------------
    def _code(self, code: CodeType, variables: dict[str, Any]) -> None:
        imports = False
        for step in dis.get_instructions(code):
            if step.opname in _OF_GLOBALS:
                name = str(step.argval)
                value = variables.get(name, _MISSING)
                self._item(variables, name, value, name, 0)
            elif step.opname == "IMPORT_NAME":
                imports = True
        if imports:
            for name in code.co_names:
                module = sys.modules.get(name)
                if module is not None:
                    self._value(module, name, 0)

    def _closures(self, codes: list[CodeType]) -> None:
        """The variables of outer functions, of all functions that have this code."""
        known = set(map(id, codes))
        for holder in gc.get_referrers(*codes) if codes else ():  # it looks at all objects
            if isinstance(holder, FunctionType) and id(holder.__code__) in known:
                self._function(holder, 0)

    def _function(self, function: FunctionType, depth: int) -> None:
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                value = _MISSING
            if id(cell) in self._done:
                continue
            self._done.add(id(cell))
            self.facts.append(("cell", cell, None, value, name))
            self._value(value, name, depth + 1)

    def _item(self, holder: dict[str, Any], key: Any, value: Any, name: str, depth: int) -> None:
        mark = (id(holder), key)
        if mark in self._done:
            return
        self._done.add(mark)
        self.facts.append(("item", holder, key, value, name))
        self._value(value, name, depth)

    def _value(self, value: Any, name: str, depth: int) -> None:
        """What is to be known of a value besides its identity, or itself if it is a number."""
        kind = value.__class__
        if kind in SCALARS or value is _MISSING or isinstance(value, (DType, Device)):
            return
        if id(value) in self._done:
            return
        self._done.add(id(value))
        self._keep.append(value)
        if isinstance(value, type):
            self._class(value, depth)
        elif isinstance(value, Tensor):
            self._tensor(value, name, self.facts)
        elif isinstance(value, functools.partial):
            self._value((value.func, value.args, value.keywords), name, depth)
        elif isinstance(value, ModuleType):
            self._python_module(value, name)
        elif isinstance(value, MethodType):
            self._value(value.__self__, name, depth)
            self._value(value.__func__, name, depth)
        elif isinstance(value, FunctionType):
            if not is_ours(value.__code__):
                self._code_of(value, name)
                self._value(value.__dict__, name, depth + 1)
                for default in (
                    *(value.__defaults__ or ()),
                    *(value.__kwdefaults__ or {}).values(),
                ):
                    self._value(default, name, depth + 1)
                self._function(value, depth)
        elif isinstance(value, BuiltinFunctionType):
            pass
        elif isinstance(value, (list, tuple, set, frozenset, deque)):
            self._sequence(value, name, depth)
        elif isinstance(value, dict):
            if len(value) > _MOST:
                raise Unwatchable(f"{name} has {len(value)} entries, too many to compare")
            self.facts.append(("map", value, tuple(value), tuple(value.values()), name))
            for key, v in value.items():
                self._value(v, f"{name}[{key!r}]", depth + 1)
        elif isinstance(value, Module):
            self._module(value)
            if not is_ours_class(kind):
                self._attributes(value, name, depth)
        elif isinstance(value, (Optimizer, LRScheduler)):
            self._training(value, name, depth)
        elif is_ours_class(kind):
            if kind.__name__ == "DataLoader":
                raise Unwatchable(f"{name} is a DataLoader, which changes as it is read")
            if kind.__name__ == "GradScaler" and self.names & {*vars(value)}:
                raise Unwatchable(f"{name} is a GradScaler, of which a private attribute is used")
        else:
            self._other(value, name, depth)

    def _other(self, value: Any, name: str, depth: int) -> None:
        """An object of somebody else's class."""
        kind = value.__class__
        if isinstance(value, np.ndarray):
            if value.nbytes > 4096 or kind is not np.ndarray or value.dtype.hasobject:
                raise Unwatchable(f"{name} is an array of NumPy's, too large to compare")
            self.facts.append(("array", value, None, value.copy(), name))
        elif kind.__module__ == "numpy" or kind in _CONSTANT or kind.__module__ == "operator":
            pass  # a scalar, a dtype, what cannot change
        elif isinstance(value, (property, staticmethod, classmethod)):
            pass  # the class that holds it is compared
        elif hasattr(kind, "__next__") or hasattr(kind, "read") or kind in _REMEMBERING:
            raise Unwatchable(f"{name} is a {kind.__name__}, which changes as it is read")
        elif kind.__module__.partition(".")[0] in _UNSAFE_MODULES:
            raise Unwatchable(f"{name} is a {kind.__module__}.{kind.__name__}")
        elif not hasattr(value, "__dict__") and not hasattr(kind, "__slots__"):
            raise Unwatchable(f"{name} is a {kind.__name__}, which cannot be looked into")
        else:
            self._attributes(value, name, depth)

    def _tensor(self, t: Tensor, name: str, facts: list[Any]) -> None:
        """Its memory, whether it wants a gradient, and what a user has hung onto it."""
        facts.append(("fields", t, ("_array", "_node"), (t._array, t._node), name))
        fields = getattr(t, "__dict__", None)
        if fields is not None:
            facts.append(("map", fields, tuple(fields), tuple(fields.values()), name))

    def _code_of(self, function: FunctionType, name: str) -> None:
        given = function.__code__, function.__defaults__, function.__kwdefaults__
        names = "__code__", "__defaults__", "__kwdefaults__"
        self.facts.append(("fields", function, names, given, name))

    _keep: list[Any]

    def __new__(cls, *given: Any) -> Watch:
        made = super().__new__(cls)
        made._keep = []
        return made

    def _sequence(self, value: Any, name: str, depth: int) -> None:
        if len(value) > _MOST:
            raise Unwatchable(f"{name} has {len(value)} elements, too many to compare")
        if not isinstance(value, (tuple, frozenset)):
            kind = "set" if isinstance(value, set) else "list"
            self.facts.append((kind, value, None, tuple(value), name))
        for i, v in enumerate(value):
            self._value(v, f"{name}[{i}]", depth + 1)

    def _attributes(self, value: Any, name: str, depth: int) -> None:
        if depth > _DEEP:
            raise Unwatchable(f"{name} is too deep in objects to be compared")
        fields = getattr(value, "__dict__", None)
        if isinstance(fields, dict):
            every = self.all_attributes or _from_stdlib(type(value))
            for key in self.names | set(fields) if every else self.names:
                found = fields.get(key, _MISSING)
                if isinstance(value, Module) and key in ("_parameters", "_buffers", "_modules"):
                    continue
                self._item(fields, key, found, f"{name}.{key}", depth + 1)
        self._class(type(value), depth)
        for cls in type(value).__mro__:
            for slot in getattr(cls, "__slots__", ()) if not is_ours_class(cls) else ():
                if slot in self.names or self.all_attributes:
                    found = getattr(value, slot, _MISSING)
                    self.facts.append(("attribute", value, slot, found, f"{name}.{slot}"))
                    self._value(found, f"{name}.{slot}", depth + 1)

    def _training(self, value: Any, name: str, depth: int) -> None:
        """What the user's code may read or set of an optimiser or schedule.

        Its own steps ask for rates and counts anew; these are only facts where code names them.
        """
        reads = self.names & _READING
        fields = vars(value)
        for key in list(fields):
            if key in ("optimizer", "_schedulers", "schedulers"):
                self._item(fields, key, fields[key], f"{name}.{key}", depth + 1)
            elif key == "param_groups":
                if self.all_attributes or "param_groups" in self.names or reads:
                    self._groups(fields[key], name)
            elif key == "state":
                if reads or "state" in self.names:
                    raise Unwatchable(f"{name} is an optimiser whose state is read or set inside")
            elif self.all_attributes or key in self.names or reads:
                self._item(fields, key, fields[key], f"{name}.{key}", depth + 1)
        if not is_ours_class(type(value)):
            self._class(type(value), depth)

    def _groups(self, groups: list[dict[str, Any]], name: str) -> None:
        self.facts.append(("list", groups, None, tuple(groups), f"{name}.param_groups"))
        for i, group in enumerate(groups):
            shown = f"{name}.param_groups[{i}]"
            self.facts.append(("map", group, tuple(group), tuple(group.values()), shown))
            params = group["params"]
            self.facts.append(("list", params, None, tuple(params), f"{shown}['params']"))

    def _class(self, kind: type, depth: int) -> None:
        """What a user's class holds under the names that were seen."""
        for cls in kind.__mro__:
            if cls.__module__ == "builtins" or is_ours_class(cls):
                continue
            if id(cls) not in self._classes:
                self._classes[id(cls)] = cls
                held = vars(cls)
                shown = f"an attribute of {cls.__name__}"
                self.facts.append(("map", held, tuple(held), tuple(held.values()), shown))
            for key in self.names & set(vars(cls)):
                held = vars(cls)[key]
                mark = (id(cls), key)
                if mark not in self._done:
                    self._done.add(mark)
                    if isinstance(held, FunctionType):
                        self._code_of(held, f"{cls.__name__}.{key}")
                    if held.__class__ not in SCALARS and not callable(held):
                        self._value(held, f"{cls.__name__}.{key}", depth + 1)

    def _python_module(self, module: ModuleType, name: str) -> None:
        first = module.__name__.partition(".")[0]
        if first == HOME.rstrip(os.sep).rpartition(os.sep)[2] or first == "torch":
            return
        if first in _UNSAFE_MODULES or module.__name__ in ("numpy.random",):
            used = [n for n in self.names if n in vars(module) and n not in ("path", "sep")]
            if used:
                raise Unwatchable(f"{module.__name__} is used ({', '.join(sorted(used)[:3])})")
            return
        fields = vars(module)
        stdlib = _is_stdlib(getattr(module, "__file__", None) or "<frozen")
        for key in self.names & set(fields):
            value = fields[key]
            if isinstance(value, ModuleType) and (stdlib or first == "numpy"):
                if value.__name__.partition(".")[0] in _UNSAFE_MODULES or (
                    value.__name__ == "numpy.random"
                ):
                    raise Unwatchable(f"{value.__name__} is used")
                continue
            if not stdlib and first != "numpy":
                self._item(fields, key, value, f"{name}.{key}", 1)

    def _module(self, module: Module) -> None:
        """A module's own attributes, which cannot change without the epoch."""
        mark = ("module", id(module))
        if mark in self._done:
            return
        self._done.add(mark)
        fields = module.__dict__
        shown = f"an attribute of {type(module).__name__}"
        self.slow.append(("map", fields, tuple(fields), tuple(fields.values()), shown))
        self._class(type(module), 0)
        hooks = fields.get("_hooks")
        if hooks is not None:
            for event, listed in vars(hooks).items():
                self.facts.append(("map", listed, tuple(listed), tuple(listed.values()), event))
                self.facts.append(("item", vars(hooks), event, listed, event))
        for key, value in fields.items():
            if value.__class__ is dict and key in ("_parameters", "_buffers", "_modules"):
                self.facts.append(("map", value, tuple(value), tuple(value.values()), key))
                for child in value.values():
                    if isinstance(child, Module):
                        self._module(child)
                    elif isinstance(child, Tensor):
                        self._tensor(child, key, self.slow)
            else:
                self.slow.append(("item", fields, key, value, f"{type(module).__name__}.{key}"))

    # Comparing ------------------------------------------------------------------------------
    def changed(self) -> str | None:
        """The name of a value that is another one now; None if there is none."""
        for fact in (*self.facts, *self.slow):
            if not holds(fact):
                return fact[4]
        return None

    def tester(self) -> Callable[[], bool]:
        """Whether nothing has changed that the epoch does not count, as a quick function."""
        scope: dict[str, Any] = {"holds": holds, "missing": _MISSING, "is_": is_}
        lines = ["def test():"]
        for i, (kind, holder, key, value, _) in enumerate(self.facts):
            scope[f"f{i}"] = self.facts[i]
            scope[f"h{i}"], scope[f"v{i}"] = holder, value
            if kind == "item":
                quick = f"h{i}.get({key!r}, missing) is v{i}"
            elif kind == "cell" and value is not _MISSING:
                quick = f"h{i}.cell_contents is v{i}"
            elif kind == "fields":
                quick = " and ".join([f"h{i}.{k} is v{i}[{j}]" for j, k in enumerate(key)])
            elif kind == "map" and not value:
                quick = f"not h{i}"
            elif kind == "map":
                scope[f"k{i}"] = list(key)
                quick = f"list(h{i}) == k{i} and all(map(is_, h{i}.values(), v{i}))"
                if not all(k.__class__ is str for k in key):
                    quick = "False"
            else:
                quick = "False"
            lines.append(f"    if not ({quick} or holds(f{i})): return False")
        lines.append("    return True")
        exec("\n".join(lines), scope)
        test: Callable[[], bool] = scope["test"]
        return test

    def slow_test(self) -> bool:
        """The rest."""
        return all(map(holds, self.slow))


_READING = frozenset(["get_last_lr", "get_lr", "state_dict", "load_state_dict", "add_param_group"])


def is_ours_class(kind: type) -> bool:
    """Whether a class is the library's own."""
    name = kind.__module__
    return name == "undertow" or name.startswith("undertow.")


def _from_stdlib(kind: type) -> bool:
    """Whether a class of Python's is in it, whose methods read attributes that no code names."""
    for cls in kind.__mro__:
        if cls.__module__ not in ("builtins", "abc", "typing", "enum", "collections.abc"):
            file = getattr(sys.modules.get(cls.__module__), "__file__", None)
            if file is not None and _is_stdlib(file):
                return True
    return False


def holds(fact: tuple[str, Any, Any, Any, str]) -> bool:
    """Whether a fact is still one."""
    kind, holder, key, value, _ = fact
    try:
        if kind == "item":
            return _same(holder.get(key, _MISSING), value)
        if kind == "cell":
            try:
                found = holder.cell_contents
            except ValueError:
                found = _MISSING
            return _same(found, value)
        if kind == "fields":
            return all(getattr(holder, k) is v for k, v in zip(key, value, strict=True))
        if kind == "attribute":
            return _same(getattr(holder, key, _MISSING), value)
        if kind == "list":
            return len(holder) == len(value) and _all_same(holder, value)
        if kind == "set":
            return len(holder) == len(value) and holder == set(value)
        if kind == "map":
            return (
                len(holder) == len(key)
                and _all_same(holder, key)
                and _all_same(holder.values(), value)
            )
        if kind == "array":
            return bool(holder.shape == value.shape and holder.tobytes() == value.tobytes())
    except Exception:
        return False
    return False


def _all_same(found: Any, values: Any) -> bool:
    return all(map(is_, found, values)) or all(map(_same, found, values))


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if a.__class__ is not b.__class__ or a.__class__ not in SCALARS:
        return a.__class__ is MethodType and a == b
    return repr(a) == repr(b) if a.__class__ is float else bool(a == b)
