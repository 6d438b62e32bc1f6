"""Memory formats, which do not exist here: accepted, and nothing changes."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def convert_conv2d_weight_memory_format(module: T, memory_format: Any) -> T:
    """The module as it is: a kernel picks the order of its weights by itself.

    >>> import undertow as ut
    >>> conv = ut.nn.Conv2d(3, 8, 3)
    >>> ut.nn.utils.convert_conv2d_weight_memory_format(conv, ut.channels_last) is conv
    True
    """
    return module


def convert_conv3d_weight_memory_format(module: T, memory_format: Any) -> T:
    """The module as it is: a kernel picks the order of its weights by itself.

    >>> import undertow as ut
    >>> conv = ut.nn.Conv3d(3, 8, 3)
    >>> ut.nn.utils.convert_conv3d_weight_memory_format(conv, ut.channels_last_3d) is conv
    True
    """
    return module
