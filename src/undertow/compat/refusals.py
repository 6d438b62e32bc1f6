"""What torch has and Undertow has not: names that can be imported, and refuse when called.

Libraries import hundreds of names that they hardly ever call. names.txt lists the public names of
torch by module (tools/torch_modules.py writes it); here each becomes a function or a class that
says, when it is called, that it is not there. Exceptions, enumerations and plain values are what
they are in torch. A name that stands at several paths is one object, and where Undertow has it at
one of them, that is it.
"""

from __future__ import annotations

import enum
from ast import literal_eval
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ..errors import UnsupportedError

_PACKAGE = __name__.partition(".")[0]
_HERE = __name__.rpartition(".")[0]
_FOLDER = Path(__file__).parent

# What to do instead, by the beginning of the path; the first that fits is said.
_ADVICE = {
    "distributed": "docs/distributed.md tells what processes can do together",
    "nn.parallel": "work with one process",
    "cuda": "ask cuda.is_available() first",
    "xpu": "ask xpu.is_available() first",
    "mtia": "ask mtia.is_available() first",
    "mps": "ask mps.is_available() first",
    "jit": "call the function or module itself",
    "export": "export a model with undertow.onnx",
    "onnx": "export a model with undertow.onnx.export",
    "quantization": "keep floating point",
    "ao": "keep floating point",
    "utils.cpp_extension": "write it in Python with undertow.library.custom_op",
    "package": "keep a state_dict with undertow.save",
}


class Listed(NamedTuple):
    """What names.txt says of a name."""

    kind: str
    home: str  # the path of the module where it stands
    name: str  # what it is called there
    rest: str  # the literal of a value, the members of an enumeration


@cache
def table() -> dict[str, dict[str, Listed]]:
    """The public names of torch by module, out of names.txt.

    >>> table()["futures"]["collect_all"].kind
    'function'
    """
    found: dict[str, dict[str, Listed]] = {}
    path, names = "", {}
    for line in (_FOLDER / "names.txt").read_text().splitlines():
        if line.startswith("["):
            path = line[1:-1].replace("torch", "", 1) if line == "[torch]" else line[1:-1]
            names = found[path] = {}
            continue
        if not line.startswith(" "):
            head, _, line = line.partition(":")
            kind, _, home = head.partition(" ")
            home = path if not home else "" if home == "torch" else home
        for entry in line.split():
            name, _, rest = entry.partition("(" if kind == "enum" else "=")
            renamed = rest if rest and kind not in ("value", "enum") else name
            names[name] = Listed(kind, home, renamed, rest.rstrip(")"))
    return found


def is_refusal(thing: Any) -> bool:
    """Whether something is a name only.

    >>> import undertow as ut
    >>> is_refusal(ut.monitor.Stat), is_refusal(ut.add)
    (True, False)
    """
    return isinstance(thing, _Namesake) or "__refused__" in getattr(thing, "__dict__", ())


def has_module(path: str) -> bool:
    """Whether torch has a module at a path, by names.txt, or this folder has one."""
    return path in table() or (_FOLDER / path.replace(".", "/")).is_dir() or stands_here(path)


def stands_here(path: str) -> bool:
    """Whether this folder has a module for a path of torch's."""
    place = _FOLDER / path.replace(".", "/")
    return place.with_name(f"{place.name}.py").is_file() or (place / "__init__.py").is_file()


def torch_path(module: str) -> str:
    """The path in torch of a module of this package, by its name."""
    for prefix in (_HERE, _PACKAGE):
        if module == prefix or module.startswith(f"{prefix}."):
            return module[len(prefix) + 1 :]
    return module


def find(module: str, name: str) -> Any:
    """A name that a module has in torch and not here: a submodule, a refusal, or a plain value."""
    path = torch_path(module)
    inner = f"{path}.{name}".removeprefix(".")
    listed = None if name.startswith("__") else table().get(path, {}).get(name)
    if listed is None:
        if module == _PACKAGE and name == "torch":  # torch imports itself, and some rely on it
            return import_module(_PACKAGE)
        if not name.startswith("__") and has_module(inner):
            return import_module(f"{module}.{name}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if listed.kind == "value":
        return literal_eval(listed.rest)
    if (listed.home, listed.name) == (path, name):
        return _made(*listed)
    real = import_module(f"{_PACKAGE}.{listed.home}".rstrip("."))
    try:
        return getattr(real, listed.name)
    except AttributeError:  # a room that does not look here
        return _made(*table()[listed.home][listed.name])


@cache
def _made(kind: str, home: str, name: str, rest: str) -> Any:
    """The one object that stands for a name."""
    path = f"{home}.{name}".removeprefix(".")
    where = f"{_PACKAGE}.{home}".rstrip(".")
    advice = next((a for p, a in _ADVICE.items() if f"{path}.".startswith(f"{p}.")), "")
    message = f"[{path}] Undertow has this name of torch's so that libraries can be imported, "
    message += f"and not what it does; {advice or 'docs/coverage.md tells what there is'}"

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(message)

    if kind == "enum":
        return enum.Enum(name, rest.split(","), module=where)
    about = {"__module__": where, "__qualname__": name, "__doc__": message, "__refused__": True}
    if kind == "error":
        return type(name, (RuntimeError,), about)
    if path.endswith(".is_available"):
        return _is_available
    if kind != "function":
        kept = {"__init__": refuse, "__class_getitem__": classmethod(lambda cls, _: cls)}
        return type(name, (), {**about, **kept})
    refuse.__name__ = name
    refuse.__dict__["__refused__"] = True
    refuse.__module__, refuse.__qualname__, refuse.__doc__ = where, name, message
    return refuse


def _is_available(*args: Any, **kwargs: Any) -> bool:
    """Whether there is what a module of torch's is about: where its names refuse, there is not.

    >>> import undertow as ut
    >>> ut.mtia.is_available()
    False
    """
    return False


class _Namesake(ModuleType):
    """A module under whose name its package has a function, which the import has covered."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        package, _, name = self.__name__.rpartition(".")
        return find(package, name)(*args, **kwargs)


def fill(module: ModuleType) -> None:
    """Give an empty module the names of torch's at its path."""
    package, _, own = torch_path(module.__name__).rpartition(".")
    if own in table().get(package, {}):
        module.__class__ = _Namesake
    names = table()[torch_path(module.__name__)]
    module.__doc__ = f"`{torch_path(module.__name__)}` of torch: see {__name__}."
    module.__dict__["__all__"] = sorted(n for n in names if not n.startswith("_"))
    module.__dict__["__dir__"] = lambda: sorted({*vars(module), *names})

    def __getattr__(name: str) -> Any:
        found = module.__dict__[name] = find(module.__name__, name)
        return found

    module.__dict__["__getattr__"] = __getattr__
