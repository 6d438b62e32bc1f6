"""What optimisers of torch's libraries ask before they go through lists of tensors."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType

TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]
_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices where one launch changes many tensors."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Devices where a step of an optimiser is one launch."""
    return ["cpu", "cuda"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[Device, DType], tuple[TensorListList, Indices]]:
    """Lists of tensors in parts that have one device and dtype each, by the first list."""
    first = next(tensors for tensors in tensorlistlist if tensors)
    found: dict[Any, tuple[TensorListList, Indices]] = {}
    for i, t in enumerate(first):
        assert t is not None
        key = (t.device, t.dtype)
        if key not in found:
            found[key] = ([[] for _ in tensorlistlist], [])
        lists, indices = found[key]
        for part, tensors in zip(lists, tensorlistlist, strict=True):
            if tensors:
                part.append(tensors[i])
        if with_indices:
            indices.append(i)
    return found


def _device_has_foreach_support(device: Any) -> bool:
    return Device(device).type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: Any) -> bool:
    return _device_has_foreach_support(device) and all(
        type(t) in _foreach_supported_types for t in tensors
    )
