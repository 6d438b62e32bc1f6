"""Normalisation over features, groups of channels or neighbouring channels."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...shapes import Ints
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import new_parameter
from .module import Module
from .utils import _single


class _GainAndBias(Module):
    """A weight of ones and a bias of zeros, either of which may be absent."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", weight and bias)):
            made = new_parameter(*shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """A gain of 1, a bias of 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_GainAndBias):
    """The last dimensions with mean 0 and variance 1, times a gain plus a bias.

    >>> import undertow as ut
    >>> ut.nn.LayerNorm(2, elementwise_affine=False)(ut.tensor([[1.0, 3.0], [0.0, 8.0]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _single(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(_GainAndBias):
    """Groups of channels of (N, C, …) with mean 0 and variance 1, times a gain plus a bias.

    >>> import undertow as ut
    >>> ut.nn.GroupNorm(2, 4, affine=False)(ut.tensor([[1.0, 3.0, 0.0, 8.0]]))
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentError(
                f"[GroupNorm] num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make((num_channels,), affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The last dimensions divided by the root of the mean of their squares, times a gain.

    >>> import undertow as ut
    >>> ut.nn.RMSNorm(2, elementwise_affine=False)(ut.tensor([3.0, -3.0]))
    tensor([ 1., -1.])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _single(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        made = new_parameter(*shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """A gain of 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LocalResponseNorm(Module):
    """`x / (k + alpha · m)^beta`, where m is the mean square of `size` neighbouring channels.

    >>> import undertow as ut
    >>> ut.nn.LocalResponseNorm(1, alpha=1, beta=1)(ut.full((1, 1, 2), 2.0))
    tensor([[[0.4000, 0.4000]]])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images as Lua's torch had it: an even `size` loses a neighbour.

    >>> import undertow as ut
    >>> ut.nn.CrossMapLRN2d(1, alpha=1, beta=1)(ut.full((1, 1, 1, 2), 2.0))
    tensor([[[[0.4000, 0.4000]]]])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ShapeError(f"[CrossMapLRN2d] expects (N, C, H, W), got shape {input.shape}")
        width = self.size - 1 + self.size % 2
        alpha = self.alpha * width / self.size  # the sum of squares is divided by size
        return F.local_response_norm(input, width, alpha, self.beta, self.k)
