"""`DataParallel`: a module over several devices, of which there is one here."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, DTypeError
from ..modules.module import Module

__all__ = ["DataParallel"]


class Wrapper(Module):
    """A module that calls another, which is found as `module`, also in the state_dict."""

    module: Module

    def __init__(self, module: Module, device_ids: Any = None) -> None:
        super().__init__()
        name = type(self).__name__
        if not isinstance(module, Module):
            raise DTypeError(f"[{name}] wraps a Module, got {type(module).__name__}")
        if device_ids and len(device_ids) > 1:
            raise ArgumentError(f"[{name}] there is one device here, got device_ids {device_ids}")
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*args, **kwargs)


class DataParallel(Wrapper):
    """A module over several devices: over the one that there is, it is the module itself.

    >>> import undertow as ut
    >>> model = ut.nn.DataParallel(ut.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__(module, device_ids)
        self.dim = dim
