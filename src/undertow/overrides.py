"""`undertow.overrides`: no class overrides functions here, and these say so."""

from __future__ import annotations

from typing import Any

from .core.tensor import Tensor

__all__ = [
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
]


def has_torch_function(relevant_args: Any) -> bool:
    """Whether an argument overrides functions by `__torch_function__`: that is not looked at.

    >>> import undertow as ut
    >>> ut.overrides.has_torch_function((ut.ones(2),))
    False
    """
    return False


def has_torch_function_unary(obj: Any) -> bool:
    """Whether an object overrides functions."""
    return False


def has_torch_function_variadic(*args: Any) -> bool:
    """Whether an argument overrides functions."""
    return False


def is_tensor_like(inp: Any) -> bool:
    """Whether an object can stand for a tensor: tensors can."""
    return isinstance(inp, Tensor)
