"""Convolutions that take `in_channels` from their first input."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...shapes import Ints
from ..parameter import UninitializedParameter
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _Conv,
    _ConvNd,
    _ConvTransposeNd,
)
from .lazy import LazyModuleMixin


class _LazyConvNd(LazyModuleMixin, _ConvNd):
    """What both kinds share: made with no channels at all, and given them by the first input."""

    def _wait_for_input(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Nothing, until there is an input."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Make the parameters for such an input."""
        name = type(self).__name__
        lead = input.ndim - self._dims
        if lead not in (1, 2):
            raise ShapeError(
                f"[{name}] expects an input of {self._dims + 1} or {self._dims + 2} dimensions, "
                f"got shape {input.shape}"
            )
        channels = input.shape[lead - 1]
        if self.has_uninitialized_params():
            if channels % self.groups:
                raise ArgumentError(
                    f"[{name}] in_channels must be divisible by groups, got {channels} and "
                    f"{self.groups}"
                )
            self.in_channels = channels
            self.weight.materialize(self._weight_shape())  # type: ignore[attr-defined]
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))  # type: ignore[attr-defined]
            self.reset_parameters()
        elif self.in_channels == 0:  # loaded from a state_dict
            self.in_channels = channels


class _LazyConv(_LazyConvNd, _Conv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: str | Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._wait_for_input(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvNd, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._wait_for_input(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that takes `in_channels` from its first input.

    >>> import undertow as ut
    >>> layer = ut.nn.LazyConv1d(8, 3)
    >>> layer(ut.ones(2, 5, 9)).shape, layer.in_channels
    ((2, 8, 7), 5)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that takes `in_channels` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyConv2d(8, 3)(ut.ones(2, 5, 9, 9)).shape
    (2, 8, 7, 7)
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that takes `in_channels` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyConv3d(2, 3)(ut.ones(1, 2, 4, 4, 4)).shape
    (1, 2, 2, 2, 2)
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that takes `in_channels` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyConvTranspose1d(8, 3)(ut.ones(2, 5, 9)).shape
    (2, 8, 11)
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that takes `in_channels` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyConvTranspose2d(8, 3)(ut.ones(2, 5, 9, 9)).shape
    (2, 8, 11, 11)
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that takes `in_channels` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyConvTranspose3d(2, 3)(ut.ones(1, 2, 4, 4, 4)).shape
    (1, 2, 6, 6, 6)
    """

    cls_to_become = ConvTranspose3d
