"""Modes that answer operators, and what helps classes that do; see `core/dispatching`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.modes import current, enter, leave
from ..core.overriding import Mode
from ..core.tensor import Tensor

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode(Mode):
    """A mode that answers every operator while it is entered; to be subclassed.

    While it answers it is off, so that it can call what it was asked for.

    >>> import undertow as ut
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = ut.ones(2)
    >>> with Names():
    ...     y = (x + 1).sum()
    aten.add.Tensor
    aten.sum.default
    """

    _field = "dispatch_modes"

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What it answers; a mode defines it."""
        raise NotImplementedError(f"[{type(self).__name__}] defines no __torch_dispatch__")

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it belongs to torch itself."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """The mode that answers with the operators themselves."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What `func` gives."""
        return func(*args, **(kwargs or {}))


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether such a mode is on."""
    return bool(current().dispatch_modes)


any_torch_dispatch_mode_on_stack = is_in_torch_dispatch_mode


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or None."""
    modes = current().dispatch_modes
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes that are on, outermost first."""
    return [*current().dispatch_modes]


@contextmanager
def _without(count: int) -> Iterator[tuple[Any, ...]]:
    state = current()
    kept = len(state.dispatch_modes) - count
    token = enter(state.but(dispatch_modes=state.dispatch_modes[:kept]))
    try:
        yield state.dispatch_modes[kept:]
    finally:
        leave(token)


@contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Any]:
    """Without the innermost mode, until the end of the block."""
    with _without(1) as (mode,):
        yield mode


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Without any mode, until the end of the block."""
    with _without(len(current().dispatch_modes)) as modes:
        yield [*modes]


# Classes that hold tensors --------------------------------------------------------------------
def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors can be taken apart and put together again."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is a tensor that can be taken apart and put together again.

    >>> import undertow as ut
    >>> is_traceable_wrapper_subclass(ut.ones(2))
    False
    """
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """The same kind of tensor of what `callback(name, inner)` gives for each that it holds."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = outer_size if outer_size is not None else t.size()
    stride = outer_stride if outer_stride is not None else t.stride()
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """`out`, or the argument itself of an operator that changes it, or writes into it.

    Views of wrappers share nothing that would be to correct here: a wrapper has no memory.
    """
    if kwargs and kwargs.get("out") is not None:
        return kwargs["out"]
    name = getattr(func, "_opname", "")
    in_place = name.endswith("_") and not name.endswith("__")
    return args[0] if in_place and isinstance(args[0], Tensor) else out
