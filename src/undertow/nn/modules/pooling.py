"""Layers that take one value of each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...shapes import Ints
from .. import functional as F
from .module import Module
from .utils import _ntuple, _single

Sizes = int | Sequence[int | None] | None


# The largest element -----------------------------------------------------------------------------
class _MaxPoolNd(Module):
    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of signals.

    >>> import undertow as ut
    >>> ut.nn.MaxPool1d(2)(ut.tensor([[1.0, 2.0, 4.0, 3.0]]))
    tensor([[2., 4.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of images.

    >>> import undertow as ut
    >>> ut.nn.MaxPool2d(2, return_indices=True)(ut.tensor([[[1.0, 2.0], [4.0, 3.0]]]))
    (tensor([[[4.]]]), tensor([[[2]]]))
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of volumes.

    >>> import undertow as ut
    >>> ut.nn.MaxPool3d(2)(ut.ones(1, 4, 4, 4)).shape
    (1, 2, 2, 2)
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class _MaxUnpoolNd(Module):
    _dims: ClassVar[int]

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        for_all = _ntuple(self._dims)
        self.kernel_size = for_all(kernel_size)
        self.stride = for_all(kernel_size if stride is None else stride)
        self.padding = for_all(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Zeros, with the input at the places where `MaxPool1d` found it.

    >>> import undertow as ut
    >>> ut.nn.MaxUnpool1d(2)(ut.tensor([[2.0, 4.0]]), ut.tensor([[1, 2]]))
    tensor([[0., 2., 4., 0.]])
    """

    _dims = 1

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d(_MaxUnpoolNd):
    """Zeros, with the input at the places where `MaxPool2d` found it.

    >>> import undertow as ut
    >>> ut.nn.MaxUnpool2d(2)(ut.tensor([[[4.0]]]), ut.tensor([[[2]]]))
    tensor([[[0., 0.],
             [4., 0.]]])
    """

    _dims = 2

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d(_MaxUnpoolNd):
    """Zeros, with the input at the places where `MaxPool3d` found it.

    >>> import undertow as ut
    >>> pool = ut.nn.MaxPool3d(2, return_indices=True)
    >>> ut.nn.MaxUnpool3d(2)(*pool(ut.ones(1, 4, 4, 4))).shape
    (1, 4, 4, 4)
    """

    _dims = 3

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


# The mean ----------------------------------------------------------------------------------------
class _AvgPoolNd(Module):
    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of signals.

    >>> import undertow as ut
    >>> ut.nn.AvgPool1d(2)(ut.tensor([[1.0, 2.0, 4.0, 3.0]]))
    tensor([[1.5000, 3.5000]])
    """

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolDivided(_AvgPoolNd):
    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override


class AvgPool2d(_AvgPoolDivided):
    """The mean of each window of images; `divisor_override` takes the place of its size.

    >>> import undertow as ut
    >>> ut.nn.AvgPool2d(2)(ut.tensor([[[1.0, 2.0], [4.0, 3.0]]]))
    tensor([[[2.5000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(_AvgPoolDivided):
    """The mean of each window of volumes.

    >>> import undertow as ut
    >>> ut.nn.AvgPool3d(2)(ut.ones(1, 4, 4, 4)).shape
    (1, 2, 2, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


# The root of a sum of powers ---------------------------------------------------------------------
class _LPPoolNd(Module):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Ints,
        stride: Ints | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The root `(Σ xᵖ)^(1/p)` of each window of signals, for p = `norm_type`.

    >>> import undertow as ut
    >>> ut.nn.LPPool1d(2, 2)(ut.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """The root `(Σ xᵖ)^(1/p)` of each window of images.

    >>> import undertow as ut
    >>> ut.nn.LPPool2d(1, 2)(ut.ones(1, 2, 2))
    tensor([[[4.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """The root `(Σ xᵖ)^(1/p)` of each window of volumes.

    >>> import undertow as ut
    >>> ut.nn.LPPool3d(1, 2)(ut.ones(1, 2, 2, 2))
    tensor([[[[8.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


# To a given size ---------------------------------------------------------------------------------
class _AdaptivePoolNd(Module):
    output_size: Any

    def __init__(self, output_size: Sizes) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePoolNd):
    """The means of `output_size` windows that cover signals.

    >>> import undertow as ut
    >>> ut.nn.AdaptiveAvgPool1d(1)(ut.tensor([[1.0, 2.0, 6.0]]))
    tensor([[3.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePoolNd):
    """The means of windows that cover images, as many as `output_size`; None keeps a size.

    >>> import undertow as ut
    >>> ut.nn.AdaptiveAvgPool2d((1, None))(ut.ones(1, 3, 4, 5)).shape
    (1, 3, 1, 5)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePoolNd):
    """The means of windows that cover volumes.

    >>> import undertow as ut
    >>> ut.nn.AdaptiveAvgPool3d(2)(ut.ones(1, 3, 4, 5)).shape
    (1, 2, 2, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    def __init__(self, output_size: Sizes, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest elements of `output_size` windows that cover signals.

    >>> import undertow as ut
    >>> ut.nn.AdaptiveMaxPool1d(1)(ut.tensor([[1.0, 2.0, 6.0]]))
    tensor([[6.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest elements of windows that cover images.

    >>> import undertow as ut
    >>> ut.nn.AdaptiveMaxPool2d(2)(ut.ones(1, 3, 4, 5)).shape
    (1, 3, 2, 2)
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest elements of windows that cover volumes.

    >>> import undertow as ut
    >>> ut.nn.AdaptiveMaxPool3d(2)(ut.ones(1, 3, 4, 5)).shape
    (1, 2, 2, 2)
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


# At random places --------------------------------------------------------------------------------
class _FractionalMaxPoolNd(Module):
    _dims: ClassVar[int]
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, for_all = type(self).__name__, _ntuple(self._dims)
        self.kernel_size = for_all(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else for_all(output_size)
        self.output_ratio = None if output_ratio is None else for_all(output_ratio)
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(
                f"[{name}] takes either an output_size or an output_ratio, got {output_size} and "
                f"{output_ratio}"
            )
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ArgumentError(
                f"[{name}] output_ratio must be between 0 and 1, got {output_ratio}"
            )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The largest elements of windows at random places of images.

    >>> import undertow as ut
    >>> ut.nn.FractionalMaxPool2d(2, output_ratio=0.5)(ut.ones(1, 3, 8, 6)).shape
    (1, 3, 4, 3)
    """

    _dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The largest elements of windows at random places of volumes.

    >>> import undertow as ut
    >>> ut.nn.FractionalMaxPool3d(2, output_size=2)(ut.ones(1, 3, 5, 5, 5)).shape
    (1, 3, 2, 2, 2)
    """

    _dims = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )
