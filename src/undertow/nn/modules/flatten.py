"""Layers that change the shape and nothing else."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...errors import DTypeError
from .module import Module


class Flatten(Module):
    """The dimensions from `start_dim` to `end_dim` as one.

    >>> import undertow as ut
    >>> ut.nn.Flatten()(ut.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """The dimension `dim` as several.

    >>> import undertow as ut
    >>> ut.nn.Unflatten(1, (3, 4))(ut.ones(2, 12)).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)) or not all(
            isinstance(n, int) for n in unflattened_size
        ):
            raise DTypeError(
                f"[Unflatten] unflattened_size must be a tuple of ints, got {unflattened_size!r}"
            )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
