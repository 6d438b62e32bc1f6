"""Saved values: groups of variadic inputs, and tensors in the keeping of saved-tensor hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.registry import backend_of
from ..errors import DTypeError, GradientError, InplaceError, VersionError
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
        alone = t._same()
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
            raise DTypeError(
                f"[{name}] unpack of saved_tensors_hooks returned a {type(value).__name__}; "
                "it must return the Tensor that pack was given"
            )
        array = value._array
        elsewhere = backend_of(array).base is not self.backend.base
        if array.shape != shape or array.dtype != dtype or elsewhere:
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


class SavedTensor:
    """One saved tensor of a node, as `node._raw_saved_self`: to give it hooks of its own.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x.exp()
    >>> y.grad_fn._raw_saved_result.register_hooks(lambda t: t.tolist(), ut.tensor)
    >>> y.sum().backward()
    >>> bool((x.grad == y).all())
    True
    """

    _read: Callable[[], Any]
    _write: Callable[[Any], None]
    unpack: Callable[[], Tensor]

    def __init__(self) -> None:
        raise GradientError(
            "[SavedTensor] is made by nodes only; ask one for it: y.grad_fn._raw_saved_self"
        )

    @classmethod
    def of(
        cls, read: Callable[[], Any], write: Callable[[Any], None], unpack: Callable[[], Tensor]
    ) -> SavedTensor:
        """The tensor that `read` finds; `write` puts another value in its place."""
        made = object.__new__(cls)
        made._read, made._write, made.unpack = read, write, unpack
        return made

    @property
    def data(self) -> Any:
        """What is kept: the tensor, or what the hook made of it."""
        value = self._read()
        return value.value if isinstance(value, Packed) else value

    @property
    def unpack_hook(self) -> Any:
        """The hook that gives the tensor back, or None."""
        value = self._read()
        return value.unpack if isinstance(value, Packed) else None

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Keep what `pack_hook` makes of the tensor, from which `unpack_hook` makes it again."""
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise DTypeError(f"[register_hooks] a hook is callable, got {type(hook).__name__}")
        value = self._read()
        if value is None:
            raise GradientError("[register_hooks] nothing was saved here, it is None")
        if isinstance(value, Packed):
            raise GradientError("[register_hooks] this saved tensor has hooks already")
        self._write(Packed(value, current().but(pack=pack_hook, unpack=unpack_hook)))


def raw_saved(node: Any, place: int) -> Any:
    """The saved tensor at a place of a node of an op, or a tuple of those of a group."""
    plan = node.plan

    def one(member: int | None) -> SavedTensor:
        def read() -> Any:
            if node.saved is None:
                raise node.freed()
            value = node.saved[place]
            return value if member is None else value[member]

        def write(packed: Any) -> None:
            saved = list(node.saved)
            if member is None:
                saved[place] = packed
            else:
                group = list(saved[place])
                group[member] = packed
                saved[place] = Group(group)
            node.saved = tuple(saved)

        def unpack() -> Any:
            value = plan.unpack(node, node.saved)[place]
            return value if member is None else value[member]

        return SavedTensor.of(read, write, unpack)

    if node.saved is None:
        raise node.freed()
    value = node.saved[place]
    return tuple(one(i) for i in range(len(value))) if isinstance(value, Group) else one(None)


def members(value: Any) -> Any:
    """The tensors of a saved value."""
    return value if isinstance(value, Group) else (value,)
