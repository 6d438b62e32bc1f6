"""The modes of recording under torch's path, for programs that import them from here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..core.modes import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from ..core.tensor import Tensor, share

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


@contextmanager
def _unsafe_preserve_version_counter(tensors: Tensor | Iterable[Tensor]) -> Iterator[None]:
    """A block whose changes in place are not counted: gradients take the new values for the old.

    >>> import undertow as ut
    >>> x = ut.ones(2)
    >>> with ut.autograd._unsafe_preserve_version_counter(x):
    ...     _ = x.add_(1)
    >>> x._version
    0
    """
    versions = [share(t).version for t in ([tensors] if isinstance(tensors, Tensor) else tensors)]
    before = [version.value for version in versions]
    try:
        yield
    finally:
        for version, value in zip(versions, before, strict=True):
            version.value = value
