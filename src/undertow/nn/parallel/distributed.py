"""Wrappers that spread a module over processes and devices, of which there is one here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ArgumentError, DTypeError
from ..modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]


class _Wrapper(Module):
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


class DataParallel(_Wrapper):
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


class DistributedDataParallel(_Wrapper):
    """A module over several processes: in the one that there is, gradients are complete.

    >>> import undertow as ut
    >>> model = ut.nn.parallel.DistributedDataParallel(ut.nn.Linear(2, 1))
    >>> model.module
    Linear(in_features=2, out_features=1, bias=True)
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(module, device_ids)
        if not any(p.requires_grad for p in module.parameters()):
            raise ArgumentError(
                "[DistributedDataParallel] no parameter of the module requires a gradient, so "
                "there is nothing to bring together; use the module itself"
            )
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients are not brought together: they never are."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A block in which processes may have uneven inputs: there is one."""
        yield
