"""InceptionTime: inception modules over time, of Ismail Fawaz et al. (2020)."""

from __future__ import annotations

import math

from .. import nn
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..nn import functional as F
from .classifier import Chain, Classifier, Masked, convolution, masked, norm

_FILTERS = 32  # of the bottleneck and of each of the four branches
_WIDTH = 4 * _FILTERS
_KERNELS = (40, 20, 10)


class _Inception(Masked, nn.Module):
    """Convolutions of three widths behind a bottleneck, beside one behind a maximum."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        narrow = _FILTERS if inputs > 1 else inputs
        self.bottleneck = (
            convolution(inputs, narrow, 1, bias=False) if inputs > 1 else nn.Identity()
        )
        self.branches = nn.ModuleList(
            [convolution(narrow, _FILTERS, kernel, bias=False) for kernel in _KERNELS]
        )
        self.pool = nn.Sequential(
            nn.MaxPool1d(3, stride=1, padding=1), convolution(inputs, _FILTERS, 1, bias=False)
        )
        self.norm = norm(_WIDTH)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """All four branches, side by side."""
        thin = self.bottleneck(x)
        largest, narrow = self.pool
        highest = masked(largest(masked(x, valid, -math.inf)), valid)
        parts = [*(branch(thin) for branch in self.branches), narrow(highest)]
        return F.relu(self.norm(FUNCTIONS["cat"](parts, dim=1), valid))


class _Group(Masked, nn.Module):
    """Three inception modules around a shortcut."""

    def __init__(self, inputs: int, depth: int) -> None:
        super().__init__()
        widths = [inputs] + [_WIDTH] * (depth - 1)
        self.body = Chain(*[_Inception(width) for width in widths])
        self.shortcut = Chain(convolution(inputs, _WIDTH, 1, bias=False), norm(_WIDTH))

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """The ReLU of both ways' sum."""
        return F.relu(self.body(x, valid) + self.shortcut(x, valid))


class InceptionTime(Classifier):
    """Six inception modules with kernels of 40, 20 and 10, a shortcut over every three.

    One network of the ensemble of five in H. Ismail Fawaz et al., "InceptionTime: finding AlexNet
    for time series classification" (2020).

    >>> import undertow as ut
    >>> from undertow.models import InceptionTime
    >>> InceptionTime(in_channels=1, num_classes=5)(ut.zeros(2, 1, 60)).shape
    (2, 5)
    """

    def __init__(self, in_channels: int = 1, num_classes: int = 2) -> None:
        super().__init__(in_channels, num_classes, width=_WIDTH)
        self.body = Chain(_Group(in_channels, 3), _Group(_WIDTH, 3))
        self.begin()

    def features(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """128 channels."""
        found: Tensor = self.body(x, valid)
        return found
