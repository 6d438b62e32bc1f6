"""Modules without start values, for those that are loaded at once."""

from __future__ import annotations

import inspect
from typing import Any

from ..modules.module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module of that class on the `device` given, whose values are whatever its memory held.

    It is made on the device "meta", so that nothing is initialised.

    >>> import undertow as ut
    >>> ut.nn.utils.skip_init(ut.nn.Linear, 2, 1)
    Linear(in_features=2, out_features=1, bias=True)
    """
    kind: Any = module_cls
    if not isinstance(kind, type) or not issubclass(kind, Module):
        raise RuntimeError(f"Expected a Module; got {kind}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
