"""Other settings for a block, as `torch._dynamo.config.patch` makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


def patcher(settings: dict[str, Any]) -> Callable[..., AbstractContextManager[None]]:
    """The function `patch` of a module, given its globals.

    >>> from undertow._dynamo import config
    >>> with config.patch(cache_size_limit=64):
    ...     config.cache_size_limit
    64
    >>> config.cache_size_limit
    8
    """

    @contextmanager
    def patch(changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
        wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
        before = {name: settings[name] for name in wanted if name in settings}
        settings.update(wanted)
        try:
            yield
        finally:
            for name in wanted:
                settings.pop(name)
            settings.update(before)

    return patch
