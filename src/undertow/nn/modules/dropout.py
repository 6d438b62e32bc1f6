"""Layers that drop elements or channels at random while training."""

from __future__ import annotations

from ...core.tensor import Tensor
from ...errors import ArgumentError
from .. import functional as F
from .module import Module


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(
                f"[{type(self).__name__}] dropout probability has to be between 0 and 1, got {p}"
            )
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training each element becomes zero with probability `p`; the others grow to make up.

    >>> import undertow as ut
    >>> ut.nn.Dropout(0.2).eval()(ut.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """In training whole channels of (N, C, L) or (C, L) become zero.

    >>> import undertow as ut
    >>> ut.nn.Dropout1d(1.0)(ut.ones(1, 2))
    tensor([[0., 0.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """In training whole channels of (N, C, H, W) become zero.

    >>> import undertow as ut
    >>> ut.nn.Dropout2d(1.0)(ut.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """In training whole channels of (N, C, D, H, W) or (C, D, H, W) become zero.

    >>> import undertow as ut
    >>> ut.nn.Dropout3d(1.0)(ut.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for SELU networks: it keeps the mean and the variance of standard normal input.

    >>> import undertow as ut
    >>> ut.nn.AlphaDropout(0.2).eval()(ut.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels.

    >>> import undertow as ut
    >>> ut.nn.FeatureAlphaDropout(0.2).eval()(ut.ones(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
