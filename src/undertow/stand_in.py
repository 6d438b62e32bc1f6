"""Undertow under another name: `sys.modules["torch"] = undertow`, and programs run unchanged.

Python would look for `torch.nn` in the folder of this package and run its files a second time
under that name, with a second `Tensor` that the first does not know. The finder here answers such
a name with the module that there is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_PACKAGE = __name__.partition(".")[0]


class SameModules(MetaPathFinder, Loader):
    """Finds the modules of this package for those who know the package by another name.

    >>> import sys
    >>> import undertow as ut
    >>> sys.modules["torch_stand_in"] = ut
    >>> import torch_stand_in.nn.functional as F
    >>> F is ut.nn.functional
    True
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module whose parent is one of ours under a name that is not ours."""
        if path is None or fullname.startswith(f"{_PACKAGE}."):
            return None
        parent, _, child = fullname.rpartition(".")
        home: str = getattr(sys.modules.get(parent), "__name__", "")
        if home.partition(".")[0] != _PACKAGE:
            return None
        found = find_spec(f"{home}.{child}")
        return found and ModuleSpec(fullname, self, origin=found.name)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that there is in the place of the empty one that was made."""
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        sys.modules[spec.name] = import_module(spec.origin)


sys.meta_path.insert(0, SameModules())
