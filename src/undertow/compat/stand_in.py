"""Undertow under another name: programs that import `torch` run unchanged.

Two ways lead here. `sys.modules["torch"] = undertow` makes the package itself answer to the name.
The package `torch` of `as_torch`, which `undertow adopt` installs and `undertow run` puts on the
path, is a module of its own with the names of this package and torch's version (`stand_in_for`).

In both, Python would look for `torch.nn` in the folder of the package and run its files a second
time under that name, with a second `Tensor` that the first does not know. The finder here answers
such a name with the module that there is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from .on_demand import on_demand

_PACKAGE = __name__.partition(".")[0]
# The folder with the package `torch` and its metadata, as on a path or in site-packages.
FOLDER = Path(__file__).parent / "as_torch"
VERSION = "2.13.0+undertow"
_REFUSALS = f"{_PACKAGE}.compat.refusals"
# Rooms that torch has as well, so that programs look for its names there.
_SHARED = set(
    """
    amp autograd backends compat distributed distributions func nested nn onnx optim sparse utils
    """.split()  # noqa: SIM905
)


class OpenEnded(SourceFileLoader):
    """Runs a module, which then has the names that torch has there, too: see `compat`."""

    def exec_module(self, module: ModuleType) -> None:
        """Run it, and let it look for what it does not have."""
        super().exec_module(module)
        module.__dict__.setdefault("__getattr__", on_demand(module.__dict__, {}))


def _open_ended(spec: ModuleSpec | None) -> ModuleSpec | None:
    """The spec of a module with source code, open-ended where torch has such a room."""
    if spec is not None and type(spec.loader) is SourceFileLoader:
        room = spec.name.split(".")[1]
        if room in _SHARED:
            spec.loader = OpenEnded(spec.name, spec.loader.path)
    return spec


class SameModules(MetaPathFinder, Loader):
    """Finds the modules of this package for those who know the package by another name.

    >>> import sys
    >>> import undertow as ut
    >>> sys.modules["torch_stand_in"] = ut
    >>> import torch_stand_in.nn.functional as F
    >>> F is ut.nn.functional
    True
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # of packages that `stand_in_for` made

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module whose parent is one of ours under a name that is not its own."""
        if path is None:
            return None
        parent, _, child = fullname.rpartition(".")
        home: str = getattr(sys.modules.get(parent), "__name__", "")
        home = self.names.get(parent, home)
        if home.partition(".")[0] != _PACKAGE:
            return None
        if home == parent:
            return _open_ended(PathFinder.find_spec(fullname, path, target))
        found = find_spec(f"{home}.{child}")
        return found and ModuleSpec(fullname, self, origin=found.name)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that there is in the place of the empty one that was made."""
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        sys.modules[spec.name] = import_module(spec.origin)


class TorchNames(SameModules):
    """Finds modules of torch's that are in no room: in `compat`, or by their names only.

    >>> import undertow.compiler
    >>> undertow.compiler.__name__
    'undertow.compat.compiler'
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of this package that has no file in its room."""
        if not fullname.startswith(f"{_PACKAGE}.") or fullname.startswith(_REFUSALS):
            return None
        refusals = import_module(_REFUSALS)
        wanted = refusals.torch_path(fullname)
        if fullname == f"{_PACKAGE}.{wanted}" and refusals.stands_here(wanted):
            return ModuleSpec(fullname, self, origin=f"{_PACKAGE}.compat.{wanted}")
        return ModuleSpec(fullname, self, is_package=True) if wanted in refusals.table() else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that there is in its place, or fill it with names."""
        if module.__spec__ is not None and module.__spec__.origin is not None:
            super().exec_module(module)
        else:
            import_module(_REFUSALS).fill(module)


def stand_in_for(name: str) -> None:
    """Fill the module `name`, which is being imported, with the names here and torch's version.

    It is a module of its own, so that `undertow.__version__` stays what it is; everything else is
    the same object under both names.
    """
    package, module = import_module(_PACKAGE), sys.modules[name]
    versions = import_module(f"{_PACKAGE}.compat.torch_version")
    _FINDER.names[name] = _PACKAGE
    version = _numbers(f"{name}.version", import_module(f"{_PACKAGE}.version"))
    own = {
        "__version__": versions.TorchVersion(VERSION),
        "version": version,
        "__getattr__": _later(module),
    }
    kept = {n: v for n, v in vars(package).items() if not n.startswith("__") or n == "__all__"}
    vars(module).update(kept, **own, __dir__=package.__dir__)


def _later(module: ModuleType) -> Any:
    """The `__getattr__` of a stand-in: names that the package loads on demand, kept once found."""
    package = sys.modules[_PACKAGE]

    def __getattr__(name: str) -> Any:
        if name.startswith("__") and name not in package._LAZY:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        try:
            found = getattr(package, name)
        except AttributeError:
            said = f"module {module.__name__!r} has no attribute {name!r}"
            raise AttributeError(said, name=name, obj=module) from None
        setattr(module, name, found)
        return found

    return __getattr__


def _numbers(name: str, ours: ModuleType) -> ModuleType:
    """The module `torch.version`: as ours, but with torch's version."""
    made = ModuleType(name, ours.__doc__)
    vars(made).update({n: v for n, v in vars(ours).items() if n == "__all__" or n[:2] != "__"})
    made.__spec__ = ModuleSpec(name, None, origin=ours.__name__)
    vars(made).update(__version__=VERSION, __file__=ours.__file__)
    sys.modules[name] = made
    return made


_FINDER = SameModules()
sys.meta_path.insert(0, _FINDER)
sys.meta_path.append(TorchNames())
