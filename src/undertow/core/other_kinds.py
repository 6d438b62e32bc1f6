"""Tensors of other kinds (sparse, masked): they answer the functions that are called with them.

Nothing is asked of them until a function has failed, so dense tensors never pay for them. So it is
with classes that are no Tensors and have a `__torch_function__`, see Note [overriding].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import DTypeError, GradientError, UnsupportedError


class OtherKind:
    """The base of what holds Tensors and is none: `ut.abs(x)` becomes `x.abs()`."""

    __slots__ = ()

    def _answer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function `name` gives for these arguments, of which this is one."""
        method = getattr(type(self), name, None)
        if method is None or not args or args[0] is not self:
            raise UnsupportedError(f"[{name}] is not defined for a {type(self).__name__}")
        return method(*args, **kwargs)

    def _differentiated(self, op: str) -> Any:
        """The Tensor whose place in the graph is that of this."""
        raise GradientError(f"[{op}] expects Tensors, got a {type(self).__name__}")

    def _gradient(self, values: Any) -> Any:
        """The gradient of this, given that of what is differentiated."""
        raise NotImplementedError

    def _seed(self, gradient: Any) -> Any:
        """The gradient of what is differentiated, given that of this."""
        raise NotImplementedError

    def _receive(self, op: str, found: Any) -> Any:
        """Take what a function gave that was called with this for `out`."""
        raise DTypeError(f"[{op}] out must be a Tensor, got {type(self).__name__}")


class Overrider(OtherKind):
    """Stands for arguments that answer functions by `__torch_function__`; see `core/overriding`."""

    __slots__ = ()

    met: Callable[[Any], bool]  # whether a value is of such a class, and nobody knew that
    answer_of: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]

    def _answer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return Overrider.answer_of(name, args, kwargs)


class NotDense(DTypeError):
    """An elementwise function met another kind, which is to answer it."""

    def __init__(self, kind: OtherKind) -> None:
        super().__init__(f"{type(kind).__name__} is no Tensor")
        self.kind = kind


def other_kind(values: Iterable[Any], depth: int = 64) -> OtherKind | None:
    """The first of another kind among arguments, or in lists of them, nested as tensors may be."""
    for value in values:
        if isinstance(value, OtherKind):
            return value
        if isinstance(value, (list, tuple)):
            found = other_kind(value, depth - 1) if depth else None
            if found is not None:
                return found
        elif Overrider.met(value):
            return Overrider()
    return None
