"""`undertow.compiler`: what programs ask of `compile`, under torch's names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..compiled.function import compile, reset
from ..core.modes import Switch
from ..core.recording import RECORDERS, recorder
from ..core.tensor import Tensor
from ..errors import UnsupportedError
from ..nn.modules.module import Module
from ..ops.create.from_data import from_numpy
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
    """Whether code runs that differs from eager code: never, since eager calls are recorded.

    >>> import undertow as ut
    >>> ut.compiler.is_compiling()
    False
    """
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, **more: Any) -> Any:
    """A function that is never a part of a program: who calls it inside of one runs eagerly."""
    if fn is None:
        return lambda fn: disable(fn)
    if not callable(fn) or isinstance(fn, (type, Module)):
        return fn

    @functools.wraps(fn)
    def outside(*args: Any, **kwargs: Any) -> Any:
        if RECORDERS and recorder() is not None:
            recorder().refuse(f"{getattr(fn, '__name__', 'a function')} is disabled for programs")
        return fn(*args, **kwargs)

    return outside


def allow_in_graph(fn: F) -> F:
    """The function itself: whatever runs inside of a compiled function is a part of it."""
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
    """Accepted: how functions are compiled is said where they are."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        super().__init__()


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Accepted without effect: there is one process."""
    return False


def get_default_backend() -> str:
    """The name of the compiler that `compile` is: this library's own."""
    return "undertow"


def set_default_backend(backend: Any) -> None:
    """Choose a compiler; an error for all but "undertow", and "inductor", which stands for it."""
    if backend not in ("undertow", "inductor"):
        raise UnsupportedError(
            f"[compiler.set_default_backend] there is one compiler, 'undertow'; got {backend!r}"
        )


def cudagraph_mark_step_begin() -> None:
    """Nothing: no result of a program is ever overwritten by its next call."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The compilers that there are."""
    return ["undertow"]
