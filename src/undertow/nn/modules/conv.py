"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...shapes import Ints
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import new_parameter
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share: the geometry, the parameters and how they start."""

    _dims: ClassVar[int]
    transposed: bool
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints,
        padding: str | Ints,
        dilation: Ints,
        transposed: bool,
        output_padding: Ints,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for_all = _ntuple(self._dims)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = for_all(kernel_size)
        self.stride = for_all(stride)
        self.padding = padding if isinstance(padding, str) else for_all(padding)
        self.dilation = for_all(dilation)
        self.transposed = transposed
        self.output_padding = for_all(output_padding)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        self._reversed_padding_repeated_twice = self._both_sides()
        self.weight = new_parameter(*self._weight_shape(), device=device, dtype=dtype)
        if bias:
            self.bias = new_parameter(out_channels, device=device, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(self) -> None:
        name = type(self).__name__
        if self.groups <= 0:
            raise ArgumentError(f"[{name}] groups must be a positive integer, got {self.groups}")
        for what, channels in (("in", self.in_channels), ("out", self.out_channels)):
            if channels % self.groups:
                raise ArgumentError(
                    f"[{name}] {what}_channels must be divisible by groups, got {channels} and "
                    f"{self.groups}"
                )
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ArgumentError(
                    f"[{name}] padding must be a number, 'same' or 'valid', got {self.padding!r}"
                )
            if self.padding == "same" and any(s != 1 for s in self.stride):
                raise ArgumentError(
                    f"[{name}] padding='same' is not supported for strided convolutions, got "
                    f"stride={self.stride}"
                )
        if self.padding_mode not in _MODES:
            raise ArgumentError(
                f"[{name}] padding_mode must be one of {', '.join(_MODES)}, got "
                f"{self.padding_mode!r}"
            )

    def _both_sides(self) -> Sequence[int]:
        """The padding as `F.pad` wants it: (low, high) of the last dimension first."""
        if self.padding == "valid":
            return [0, 0] * self._dims
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [side for t in reversed(totals) for side in (t // 2, t - t // 2)]
        assert not isinstance(self.padding, str)
        return _reverse_repeat_tuple(self.padding, 2)

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return first, second // self.groups, *self.kernel_size

    def reset_parameters(self) -> None:
        """Uniform values within 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}"]
        parts += [f"kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_ConvNd):
    """A convolution of any number of dimensions."""

    def __init__(
        self,
        in_channels: int,
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
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            False,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with a weight of one's own: what a subclass calls in its forward."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Correlates signals (N, C, L) with `out_channels` learned kernels.

    `padding` is a number, "same" or "valid"; `padding_mode` tells what stands there.

    >>> import undertow as ut
    >>> ut.nn.Conv1d(3, 8, 5, padding="same")(ut.ones(2, 3, 20)).shape
    (2, 8, 20)
    """

    _dims = 1

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.conv1d(
            input,
            weight,
            bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
            padding_mode=self.padding_mode,
        )


class Conv2d(_Conv):
    """Correlates images (N, C, H, W) with `out_channels` learned kernels; see `Conv1d`.

    >>> import undertow as ut
    >>> layer = ut.nn.Conv2d(3, 8, 3, stride=2, padding=(1, 0), padding_mode="reflect")
    >>> layer(ut.ones(2, 3, 9, 9)).shape
    (2, 8, 5, 4)
    """

    _dims = 2

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.conv2d(
            input,
            weight,
            bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
            padding_mode=self.padding_mode,
        )


class Conv3d(_Conv):
    """Correlates volumes (N, C, D, H, W) with `out_channels` learned kernels; see `Conv1d`.

    >>> import undertow as ut
    >>> ut.nn.Conv3d(1, 2, 3)(ut.ones(1, 1, 5, 5, 5)).shape
    (1, 2, 3, 3, 3)
    """

    _dims = 3

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.conv3d(
            input,
            weight,
            bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
            padding_mode=self.padding_mode,
        )


# Transposed --------------------------------------------------------------------------------------
class _ConvTransposeNd(_ConvNd):
    """A transposed convolution of any number of dimensions."""

    padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
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
        if padding_mode != "zeros":
            raise ArgumentError(
                f'[{type(self).__name__}] only "zeros" padding mode is supported, got '
                f"{padding_mode!r}"
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            True,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What makes the output as large as asked for: several inputs have the same output."""
        if output_size is None:
            return self.output_padding
        name, dims = type(self).__name__, self._dims
        lead = input.ndim - dims
        wanted = tuple(output_size)[lead if len(output_size) == input.ndim else 0 :]
        if len(wanted) != dims:
            raise ShapeError(
                f"[{name}] output_size has {dims} or {lead + dims} elements for an input of "
                f"{input.ndim} dimensions, got {len(output_size)}"
            )
        smallest = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[lead:],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
        ]
        more = tuple([n - low for n, low in zip(wanted, smallest, strict=True)])
        if any(not 0 <= m < s for m, s in zip(more, self.stride, strict=True)):
            largest = [low + s - 1 for low, s in zip(smallest, self.stride, strict=True)]
            raise ShapeError(
                f"[{name}] requested an output size of {wanted}, but valid sizes range from "
                f"{smallest} to {largest} (for an input of {input.shape[lead:]})"
            )
        return more


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of `Conv1d`: every input element adds the kernel to the output around it.

    >>> import undertow as ut
    >>> layer = ut.nn.ConvTranspose1d(3, 8, 5, stride=2)
    >>> layer(ut.ones(2, 3, 10)).shape, layer(ut.ones(2, 3, 10), output_size=[24]).shape
    ((2, 8, 23), (2, 8, 24))
    """

    _dims = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of `Conv2d`; see `ConvTranspose1d`.

    >>> import undertow as ut
    >>> ut.nn.ConvTranspose2d(3, 8, 3, stride=2, padding=1)(ut.ones(2, 3, 5, 5)).shape
    (2, 8, 9, 9)
    """

    _dims = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of `Conv3d`; see `ConvTranspose1d`.

    >>> import undertow as ut
    >>> ut.nn.ConvTranspose3d(1, 2, 3)(ut.ones(1, 1, 3, 3, 3)).shape
    (1, 2, 5, 5, 5)
    """

    _dims = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose3d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
