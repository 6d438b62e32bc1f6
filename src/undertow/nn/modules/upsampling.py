"""Signals, images and volumes in another size."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.tensor import Tensor
from ...shapes import Ints
from .. import functional as F
from .module import Module


class Upsample(Module):
    """(N, C, …) in another size, or larger by a factor; `mode` as in `F.interpolate`.

    >>> import undertow as ut
    >>> ut.nn.Upsample(scale_factor=2)(ut.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None
        if isinstance(scale_factor, Sequence):
            self.scale_factor = tuple([float(factor) for factor in scale_factor])
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        by_factor = self.scale_factor is not None
        how = f"scale_factor={self.scale_factor!r}" if by_factor else f"size={self.size!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images in another size, each pixel that of the nearest one.

    >>> import undertow as ut
    >>> ut.nn.UpsamplingNearest2d(scale_factor=2)(ut.ones(1, 1, 2, 2)).shape
    (1, 1, 4, 4)
    """

    def __init__(
        self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images in another size, straight lines between the pixels and the corners kept.

    >>> import undertow as ut
    >>> ut.nn.UpsamplingBilinear2d(size=(1, 3))(ut.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(
        self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
