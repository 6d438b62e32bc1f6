"""Modules without start values, for those that are loaded at once."""

from __future__ import annotations

import inspect
from typing import Any

from ..modules.module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module of that class on the `device` given; its values are not worth anything.

    torch spares the work of the initialisation by its meta device. Here it is done, so that the
    values are defined.

    >>> import undertow as ut
    >>> ut.nn.utils.skip_init(ut.nn.Linear, 2, 1)
    Linear(in_features=2, out_features=1, bias=True)
    """
    kind: Any = module_cls
    if not isinstance(kind, type) or not issubclass(kind, Module):
        raise RuntimeError(f"Expected a Module; got {kind}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    return module_cls(*args, **kwargs)
