"""Marks for TorchScript that libraries take from torch's inner module; each leaves its function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from .jit import export, ignore, is_scripting, unused

__all__ = ["Final", "boolean_dispatch", "export", "ignore", "is_scripting", "unused"]
F = TypeVar("F", bound=Callable[..., Any])


def _copy_to_script_wrapper(fn: F) -> F:
    """The method itself."""
    return fn


_overload = _overload_method = _drop = _copy_to_script_wrapper


class _BroadcastingList:
    """`BroadcastingList2[int]`: a number, or as many numbers, in annotations."""

    def __getitem__(self, kind: Any) -> Any:
        return kind


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str | None = None,
    func_name: str | None = None,
) -> Callable[..., Any]:
    """A function that is one of two, by a flag among its arguments.

    >>> pick = boolean_dispatch("up", 1, False, lambda x, up=True: x + 1, lambda x, up=False: x)
    >>> pick(1), pick(1, True), pick(1, up=True)
    (1, 2, 2)
    """

    def chosen(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    chosen.__doc__ = if_true.__doc__ or if_false.__doc__
    chosen.__name__ = func_name or chosen.__name__
    return chosen
