"""Marks and calls of `torch.distributed.rpc`; without other processes each is an error."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...errors import UnsupportedError


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that needs other processes: an error when it is called."""

    @functools.wraps(func)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            f"[{func.__name__}] processes do not call each other here; work with one process"
        )

    return refuse


@_require_initialized
def _all_gather(obj: Any, worker_names: Any = None, timeout: float = -1) -> Any:
    """What every process has: an error, since there is one."""
