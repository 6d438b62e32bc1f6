"""Switches that classes of tensors use in their own `__torch_dispatch__`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.overriding import DisableTorchDispatch

__all__ = ["all_same_mode", "no_dispatch"]


@contextmanager
def no_dispatch() -> Iterator[None]:
    """A block in which nobody is asked for a `__torch_dispatch__`."""
    with DisableTorchDispatch():
        yield


def all_same_mode(modes: Any) -> bool:
    """Whether all of these are one and the same."""
    return all(mode is modes[0] for mode in modes)
