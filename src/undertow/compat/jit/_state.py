"""Settings and probes of TorchScript: nothing is ever scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def is_scripting() -> bool:
    """Whether a function is being scripted: never.

    >>> import undertow as ut
    >>> ut.jit.is_scripting()
    False
    """
    return False


@contextmanager
def optimized_execution(should_optimize: bool = True) -> Iterator[None]:
    """Nothing changes."""
    yield


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Nothing is fused; the strategy before: none."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Nothing changes."""


def onednn_fusion_enabled() -> bool:
    """Whether oneDNN fuses: it is not used."""
    return False


class _Done:
    """The result of `fork`, which has run already."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """What the function returned."""
        return self._value

    value = wait

    def done(self) -> bool:
        """Always."""
        return True


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function now; `wait` gives what it returned, as in torch outside of TorchScript.

    >>> import undertow as ut
    >>> ut.jit.wait(ut.jit.fork(ut.add, ut.ones(2), 1))
    tensor([2., 2.])
    """
    return _Done(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """What a function that `fork` called returned."""
    return future.wait()
