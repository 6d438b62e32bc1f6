"""Saved values: groups of variadic inputs, and tensors in the keeping of saved-tensor hooks."""

from __future__ import annotations

from typing import Any

from ..backends.registry import backend_of
from ..errors import GradientError, InplaceError, VersionError
from .modes import State, current, enter, leave
from .tensor import Tensor, share


class Group(tuple[Any, ...]):
    """Variadic inputs saved together; `_alias` sends the node to `Plan.unpack`."""

    _alias = True


class Packed:
    """A saved tensor in the keeping of saved-tensor hooks, which must give it back as it was."""

    __slots__ = ("backend", "counter", "meta", "unpack", "value", "version")
    _alias = True

    def __init__(self, t: Tensor, state: State) -> None:
        alone = t.detach()
        before = alone._version
        token = enter(state.but(grad=False, pack=None, unpack=None))
        try:
            self.value = state.pack(alone)  # type: ignore[misc]
        finally:
            leave(token)
        if alone._version != before:
            raise InplaceError(
                "[saved_tensors_hooks] pack changed the tensor of shape "
                f"{t.shape} in place; it is in use, so return a changed copy instead"
            )
        self.unpack = state.unpack
        self.backend = backend_of(t._array)
        self.meta = tuple(t._array.shape), t._array.dtype
        # Whatever comes back may still be the same memory; then a change since must be noticed.
        self.counter = share(t).version
        self.version = before

    def restore(self, name: str) -> Tensor:
        """The tensor as `unpack` returns it, checked; `name` is the node that asks."""
        state = current()
        token = enter(state.but(grad=False, pack=None, unpack=None))
        try:
            value: Any = self.unpack(self.value)  # type: ignore[misc]
        finally:
            leave(token)
        shape, dtype = self.meta
        if not isinstance(value, Tensor):
            raise GradientError(
                f"[{name}] unpack of saved_tensors_hooks returned a {type(value).__name__}; "
                "it must return the Tensor that pack was given"
            )
        array = value._array
        if array.shape != shape or array.dtype != dtype or backend_of(array) is not self.backend:
            raise GradientError(
                f"[{name}] unpack of saved_tensors_hooks returned a tensor of shape {value.shape}, "
                f"{value.dtype} on {value.device}; pack was given shape {shape}, "
                f"undertow.{dtype.name}, and its device must be the same"
            )
        same = value._alias is not None and value._alias.version is self.counter
        if same and value._version != self.version:
            raise VersionError(
                f"[{name}] a tensor of shape {shape} in the keeping of saved_tensors_hooks, saved "
                f"at version {self.version}, is now at version {value._version}: it was changed in "
                "place after the forward; clone it before, or copy it in pack"
            )
        return value


def members(value: Any) -> Any:
    """The tensors of a saved value."""
    return value if isinstance(value, Group) else (value,)
