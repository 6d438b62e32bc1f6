"""Tensors that are only a shape: tensors of the device `meta` do what torch's fake ones do.

A FakeTensor says that it is on the CPU while it has no elements. There is none here: the mode
refuses, and `is_fake` is never true.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...errors import UnsupportedError

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


class UnsupportedFakeTensorException(RuntimeError):
    """Something that tensors without elements cannot do."""


class DynamicOutputShapeException(RuntimeError):
    """A shape that depends on elements."""


class DataDependentOutputException(RuntimeError):
    """A value that depends on elements."""


class FakeTensor(Tensor):
    """No tensor is one: make tensors with `device="meta"` to follow shapes."""

    def __new__(cls, *args: Any, **kwargs: Any) -> FakeTensor:
        raise UnsupportedError(
            '[FakeTensor] tensors without elements are those of the device "meta" here'
        )


class FakeTensorMode:
    """An error when it is made: follow shapes on the device `meta`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "[FakeTensorMode] tensors without elements are those of the device meta here; run in "
            'ut.device("meta"), or make tensors with device="meta"'
        )


def is_fake(x: object) -> bool:
    """Whether a tensor is one of torch's fake ones: none is.

    >>> import undertow as ut
    >>> is_fake(ut.empty(2, device="meta"))
    False
    """
    return False


def maybe_get_fake_mode(t: object) -> None:
    """The mode of a fake tensor: none."""


def unset_fake_temporarily() -> Any:
    """A block without such a mode: as ever."""
    from contextlib import nullcontext

    return nullcontext()
