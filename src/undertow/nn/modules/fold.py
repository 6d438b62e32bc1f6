"""Windows of images as columns, and back."""

from __future__ import annotations

from ...core.tensor import Tensor
from ...shapes import Ints
from .. import functional as F
from .module import Module


class Fold(Module):
    """Columns as `Unfold` lays them out, added up where their windows were.

    >>> import undertow as ut
    >>> ut.nn.Fold((2, 3), (2, 2))(ut.ones(1, 4, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """

    def __init__(
        self,
        output_size: Ints,
        kernel_size: Ints,
        dilation: Ints = 1,
        padding: Ints = 0,
        stride: Ints = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Every window of images, laid out as a column.

    >>> import undertow as ut
    >>> ut.nn.Unfold((2, 2))(ut.ones(1, 3, 5, 5)).shape
    (1, 12, 16)
    """

    def __init__(
        self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
