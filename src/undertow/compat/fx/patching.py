"""Functions and methods replaced while a trace runs, and put back behind it."""

from __future__ import annotations

import builtins
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from .node import map_aggregate
from .proxy import Proxy

# Which globals are leaves of every trace, by (id of the globals, name); see `wrap`.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_MISSING = object()


class _Patcher:
    """What was replaced, in the order in which that was done."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, Any]] = []  # where, name, before, now
        self._visited: set[int] = set()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True
    ) -> None:
        """Replace a global; a builtin is put before the global that there is not."""
        before = frame_dict.get(name, _MISSING)
        if getattr(before, "__fx_already_patched", False):
            return
        new_fn.__fx_already_patched = deduplicate
        self._do(frame_dict, name, before, new_fn)

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a method of a class."""
        before = getattr(cls, name)
        if getattr(before, "__fx_already_patched", False):
            return
        new_fn.__fx_already_patched = deduplicate
        self._do(cls, name, before, new_fn)

    def _do(self, where: Any, name: str, before: Any, now: Any) -> None:
        self._undo.append((where, name, before, now))
        _put(where, name, now)

    def visit_once(self, thing: Any) -> bool:
        """Whether it is the first time that one asks for `thing`."""
        new = id(thing) not in self._visited
        self._visited.add(id(thing))
        return new

    def revert_all_patches(self) -> None:
        """Put everything back, for now."""
        for where, name, before, _ in reversed(self._undo):
            _put(where, name, before)

    def reapply_all_patches(self) -> None:
        """Replace everything again."""
        for where, name, _, now in self._undo:
            _put(where, name, now)


def _put(where: Any, name: str, value: Any) -> None:
    if isinstance(where, dict):
        if value is _MISSING:
            where.pop(name, None)
        else:
            where[name] = value
    else:
        setattr(where, name, value)


_current: _Patcher | None = None


@contextlib.contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    """A patcher whose work is undone at the end."""
    global _current
    before, _current = _current, _Patcher()
    mine = _current
    try:
        yield mine
    finally:
        mine.revert_all_patches()
        _current = before


@contextlib.contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Everything as it was before the trace that runs, if one does."""
    mine = _current
    if mine is not None:
        mine.revert_all_patches()
    try:
        yield
    finally:
        if mine is not None:
            mine.reapply_all_patches()


def _find_proxy(*objects_to_search: Any) -> Proxy | None:
    """A proxy in nested containers, if there is one."""
    found: list[Proxy] = []
    map_aggregate(objects_to_search, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[-1] if found else None


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is recorded when it is called with a proxy."""

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        recorded = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        recorded.node.meta["is_wrapped"] = True
        return recorded

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """A method that is recorded when it is called with a proxy."""
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Replace everything that `wrap` was asked for."""
    for (_, name), frame_dict in list(_wrapped_fns_to_patch.items()):
        function = frame_dict[name] if name in frame_dict else getattr(builtins, name)
        patcher.patch(frame_dict, name, _create_wrapped_func(function))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Replace the functions of `autowrap_modules` among some globals."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _create_wrapped_func(value))
