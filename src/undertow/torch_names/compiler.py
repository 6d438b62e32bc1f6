"""`undertow.compiler`: there is no compiler of whole functions, so nothing is ever compiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.modes import Switch
from ..core.tensor import Tensor
from ..errors import UnsupportedError
from ..ops.from_data import from_numpy
from ..settings import compile
from ..utils._pytree import tree_map_only

__path__: list[str] = []  # torch has modules below this one
__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

F = TypeVar("F", bound=Callable[..., Any])


def is_compiling() -> bool:
    """Whether a function is being compiled: never.

    >>> import undertow as ut
    >>> ut.compiler.is_compiling()
    False
    """
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, **more: Any) -> Any:
    """The function itself: nothing is compiled."""
    return (lambda fn: fn) if fn is None else fn


def allow_in_graph(fn: F) -> F:
    """The function itself: nothing is compiled."""
    return fn


assume_constant_result = nested_compile_region = allow_in_graph


def substitute_in_graph(original_fn: Any, **options: Any) -> Callable[[F], F]:
    """A mark of what would be compiled in the place of a function: the substitute itself."""
    return lambda fn: fn


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as one of tensors.

    >>> import undertow as ut
    >>> import numpy as np
    >>> ut.compiler.wrap_numpy(np.square)(ut.tensor([1.0, 3.0]))
    tensor([1., 9.])
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = tree_map_only(Tensor, Tensor.numpy, (args, kwargs))
        found = fn(*given[0], **given[1])
        return tree_map_only(lambda x: type(x).__name__ == "ndarray", from_numpy, found)

    return wrapped


class set_stance(Switch):
    """How functions would be compiled from here on, or in a block: they are not."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        super().__init__()


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Nothing: nothing was compiled."""
    return False


def get_default_backend() -> str:
    """The name of the compiler: functions run as they are."""
    return "eager"


def set_default_backend(backend: Any) -> None:
    """Choose a compiler; an error for all but "eager"."""
    if backend != "eager":
        raise UnsupportedError(
            f"[compiler.set_default_backend] functions run as they are, which is 'eager'; got "
            f"{backend!r}"
        )


def reset() -> None:
    """Nothing: nothing was compiled."""


cudagraph_mark_step_begin = reset


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The compilers that there are: none."""
    return []
