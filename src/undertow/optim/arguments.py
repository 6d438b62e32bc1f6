"""What the arguments of optimisers are held against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.tensor import Tensor
from ..dtypes import DType, float32, float64, get_default_dtype
from ..errors import ArgumentError, DTypeError
from ..ops.create.creation import full

_WORDS = {"lr": "learning rate", "eps": "epsilon value"}


def not_negative(owner: str, **values: Any) -> None:
    """Raise unless all of these options are at least 0; one may be a Tensor of one element."""
    for name, value in values.items():
        what = _WORDS.get(name, f"{name} value")
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ArgumentError(f"[{owner}] Tensor {name} must be 1-element, got {value.shape}")
        try:
            fine = bool(value >= 0)
        except TypeError:
            raise DTypeError(
                f"[{owner}] {name} must be a number, got {type(value).__name__} {value!r}"
            ) from None
        if not fine:
            raise ArgumentError(f"[{owner}] Invalid {what}: {value}; it must be at least 0")


def check_betas(owner: str, betas: Any) -> None:
    """Raise unless both are in [0, 1)."""
    if len(betas) != 2:
        raise ArgumentError(f"[{owner}] betas must be two numbers, got {betas!r}")
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ArgumentError(
                f"[{owner}] Invalid beta parameter at index {i}: {beta}; it must be in [0, 1)"
            )


def check_ways(owner: str, foreach: Any, fused: Any, differentiable: bool) -> None:
    """Raise where torch does, though there is one way here: everything is fused."""
    if fused and differentiable:
        raise ArgumentError(f"[{owner}] `fused` does not support `differentiable`")
    if fused and foreach:
        raise ArgumentError(f"[{owner}] `fused` and `foreach` cannot be `True` together")


def scalar_dtype() -> DType:
    """The dtype of the numbers that are kept with a parameter, such as the number of steps."""
    return float64 if get_default_dtype() is float64 else float32


def as_scalars(kept: dict[str, Any], names: Iterable[str]) -> None:
    """Make tensors of the plain numbers that files of old keep with a parameter."""
    for name in names:
        if name in kept and not isinstance(kept[name], Tensor):
            kept[name] = full((), float(kept[name]), dtype=scalar_dtype())
