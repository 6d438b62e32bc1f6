"""Channels as pixels, and back."""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from .module import Module


class PixelShuffle(Module):
    """(…, C·r², H, W) as (…, C, H·r, W·r).

    >>> import undertow as ut
    >>> ut.nn.PixelShuffle(2)(ut.ones(1, 8, 3, 3)).shape
    (1, 2, 6, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(…, C, H·r, W·r) as (…, C·r², H, W).

    >>> import undertow as ut
    >>> ut.nn.PixelUnshuffle(2)(ut.ones(1, 2, 6, 6)).shape
    (1, 8, 3, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
