"""Settings of oneDNN, which is not here: they are kept and have no effect, kernels are our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "allow_tf32",
    "conv",
    "deterministic",
    "enabled",
    "flags",
    "fp32_precision",
    "is_available",
    "matmul",
    "rnn",
    "set_flags",
]

_NAMES = ("enabled", "deterministic", "allow_tf32", "fp32_precision")
enabled = False
deterministic = False
allow_tf32: bool | None = None
fp32_precision = "none"


class _Products:
    """How precise one kind of products in float32 is asked to be."""

    def __init__(self) -> None:
        self.fp32_precision = "none"


matmul, conv, rnn = _Products(), _Products(), _Products()


def is_available() -> bool:
    """Whether oneDNN is used.

    >>> import undertow as ut
    >>> ut.backends.mkldnn.is_available()
    False
    """
    return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Set what is not None; what was set before."""
    before = tuple(globals()[name] for name in _NAMES)
    given = (_enabled, _deterministic, _allow_tf32, _fp32_precision)
    globals().update((k, v) for k, v in zip(_NAMES, given, strict=True) if v is not None)
    return before


@contextmanager
def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool | None = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """A block with other settings, which have no effect."""
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        globals().update(zip(_NAMES, before, strict=True))
