"""Memory that is shared with other libraries by DLPack, as a capsule or by `__dlpack__`."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ..core.tensor import Tensor
from ..ops.create.from_data import from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """The numbers that DLPack has for kinds of devices, as `__dlpack_device__` tells them.

    >>> import undertow as ut
    >>> ut.ones(2).__dlpack_device__()[0] == ut.utils.dlpack.DLDeviceType.kDLCPU
    True
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16


def to_dlpack(tensor: Tensor) -> Any:
    """The memory of a tensor as a capsule, which one reader may take.

    >>> import undertow as ut
    >>> x = ut.zeros(2)
    >>> y = ut.from_dlpack(ut.utils.dlpack.to_dlpack(x))
    >>> y.add_(1)
    tensor([1., 1.])
    >>> x
    tensor([1., 1.])
    """
    protocol: Any = tensor
    return protocol.__dlpack__(max_version=(1, 0))
