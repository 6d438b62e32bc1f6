"""Memory formats, which do not exist here: accepted, and nothing changes."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def convert_conv2d_weight_memory_format(module: T, memory_format: Any) -> T:
    """The module as it is: a kernel picks the order of its weights by itself."""
    return module


def convert_conv3d_weight_memory_format(module: T, memory_format: Any) -> T:
    """The module as it is: a kernel picks the order of its weights by itself."""
    return module
