"""What torch's `_utils` has that libraries use: flat tensors, elements, indices of devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType
from ..errors import ArgumentError
from ..files.rebuilding import _parameter, _tensor_v2
from ..ops.shape.joining import cat
from ..utils.data._utils.failure import ExceptionWrapper

__all__ = ["ExceptionWrapper", "classproperty"]
_rebuild_tensor_v2, _rebuild_parameter = _tensor_v2, _parameter


def _element_size(dtype: DType) -> int:
    """How many bytes an element takes.

    >>> import undertow as ut
    >>> _element_size(ut.float64)
    8
    """
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device: given as one, or in `"cuda:1"`."""
    if isinstance(device, int):
        return device
    found = None if device is None else Device(device)
    if found is not None and found.index is not None:
        return found.index
    if optional or (allow_cpu and found is not None and found.type == "cpu"):
        return -1 if found is not None and found.type == "cpu" else 0
    raise ArgumentError(f"[_get_device_index] a device with a number is wanted, got {device!r}")


def _get_available_device_type() -> None:
    """The kind of device beside the CPU that torch knows by itself: none is here."""


def _is_privateuse1_backend_available() -> bool:
    """Whether there is a device under torch's name for a user's own: such devices have names."""
    return False


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """All elements one after the other.

    >>> import undertow as ut
    >>> flat = _flatten_dense_tensors([ut.ones(1, 2), ut.zeros(1)])
    >>> flat, _unflatten_dense_tensors(flat, [ut.ones(1, 2), ut.zeros(1)])
    (tensor([1., 1., 0.]), (tensor([[1., 1.]]), tensor([0.])))
    """
    return cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The parts of a flat tensor in the shapes of others."""
    like = list(tensors)
    parts = flat.split([t.numel() for t in like])
    return tuple(part.view(t.shape) for part, t in zip(parts, like, strict=True))


class classproperty:
    """A property of a class."""

    def __init__(self, fget: Any) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.fget(owner)
