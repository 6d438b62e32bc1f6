"""`custom_op`: an operator from a function with annotations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...autograd.graph import increment_version
from ...core.tensor import Tensor
from ...errors import ArgumentError
from .._ops import EXPLICIT, define, make_rule
from ..schemas import infer_schema

__all__ = ["CustomOpDef", "custom_op"]

Function = Callable[..., Any]


def custom_op(
    name: str,
    fn: Function | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Iterable[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a function an operator: `ops.lib.name`, with a schema out of its annotations.

    It may do what it likes, with NumPy for one; it has no derivative until `register_autograd`.

    >>> import undertow as ut
    >>> import numpy as np
    >>> @ut.library.custom_op("example_custom::sinus", mutates_args=())
    ... def sinus(x: ut.Tensor) -> ut.Tensor:
    ...     return ut.from_numpy(np.sin(x.detach().numpy()))
    >>> ut.ops.example_custom.sinus(ut.tensor([0.0]))
    tensor([0.])
    """

    def make(fn: Function) -> CustomOpDef:
        inferred = schema or infer_schema(fn, mutates_args=mutates_args)
        return CustomOpDef(name, inferred, fn, device_types, tags=tags or ())

    return make if fn is None else make(fn)


class CustomOpDef:
    """An operator that `custom_op` made: call it, or register more for it."""

    def __init__(
        self, name: str, schema: str, fn: Function, device_types: Any = None, *, tags: Any = ()
    ) -> None:
        self._qualname, self._schema, self._init_fn = name, schema, fn
        self._namespace, _, self._name = name.partition("::")
        self._opoverload = define(name, schema, strict=True, tags=tags)
        self._off: set[str] = set()
        functools.update_wrapper(self, fn, updated=())
        if self._opoverload._schema.is_mutable and not self._opoverload._schema.returns:
            self._opoverload.kernels["Meta"] = lambda *args, **kwargs: None
        self.register_kernel(device_types, fn)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    @property
    def tags(self) -> tuple[Any, ...]:
        """Its tags."""
        return self._opoverload.tags

    def register_kernel(self, device_types: Any, fn: Function | None = None, /) -> Any:
        """Another function for device types: "cuda", ("cpu", "xpu"), None for all."""

        def register(fn: Function) -> Function:
            wanted = [device_types] if isinstance(device_types, str) else device_types
            for device in wanted or [""]:
                self._opoverload.kernels[device.upper() or EXPLICIT] = self._watched(fn, device)
            return fn

        return register if fn is None else register(fn)

    def _watched(self, fn: Function, device: str) -> Function:
        """The function, with what it changes marked as changed."""
        schema = self._opoverload._schema

        @functools.wraps(fn)
        def kernel(*args: Any, **kwargs: Any) -> Any:
            if device in self._off:
                return self._init_fn(*args, **kwargs)
            changed = [
                (t, t._version)
                for a, value in zip(schema.arguments, [*args, *kwargs.values()], strict=True)
                if a.is_write
                for t in (value if isinstance(value, (list, tuple)) else [value])
                if isinstance(t, Tensor)
            ]
            result = fn(*args, **kwargs)
            for tensor, before in changed:
                if tensor._version == before:  # it was written behind our back, through NumPy
                    increment_version(tensor)
            return result

        return kernel

    def register_fake(self, fn: Function, /) -> Function:
        """What it returns for tensors without elements."""
        self._opoverload.kernels["Meta"] = fn
        return fn

    register_abstract = register_fake

    def register_autograd(
        self, backward: Function, /, *, setup_context: Function | None = None
    ) -> None:
        """Its derivative: see `library.register_autograd`."""
        if self._opoverload._schema.is_mutable:
            raise ArgumentError(
                f"[register_autograd] {self._qualname} changes its arguments and can have no "
                "derivative; return new tensors"
            )
        self._opoverload.rule = make_rule(self._opoverload, backward, setup_context)

    def register_vmap(self, func: Function | None = None, /) -> Any:
        """Accepted: `func.vmap` needs no rule."""
        return (lambda fn: fn) if func is None else func

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """See `library.register_torch_dispatch`."""
        from . import register_torch_dispatch

        return register_torch_dispatch(self._opoverload, torch_dispatch_class, fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """See `library.register_autocast`."""
        from . import register_autocast

        register_autocast(self._opoverload, device_type, cast_inputs)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A block in which a device's own kernel runs, or the function that came first."""
        before = set(self._off)
        (self._off.discard if enabled else self._off.add)(device_type)
        try:
            yield
        finally:
            self._off = before
