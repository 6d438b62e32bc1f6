"""Further forms of functions of nn.functional: with indices, random slopes, under old names."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

from ...core.register import FUNCTIONAL, FUNCTIONS, alias, function
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...shapes import Ints
from ..elementwise.activation import _leaky_relu, _published_inplace
from ..random.random import rand
from ..shape.movement import permute
from .convolution import conv1d
from .resampling import interpolate

alias("channel_shuffle", "native_channel_shuffle")
FUNCTIONAL["native_channel_shuffle"] = FUNCTIONS["native_channel_shuffle"]


# Pooling, always with indices -----------------------------------------------------------------
def _with_indices(name: str, example: str) -> None:
    """Publish `name_with_indices`: what `name` gives with `return_indices=True`."""
    pool = FUNCTIONAL[name]
    signature = inspect.signature(pool).replace(return_annotation="tuple[Tensor, Tensor]")

    def pooled(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        given = signature.bind(*args, **kwargs)
        given.arguments["return_indices"] = True
        found: tuple[Tensor, Tensor] = pool(*given.args, **given.kwargs)
        return found

    pooled.__doc__ = f"""`{name}(…, return_indices=True)`: the largest elements and where they are.

    >>> import undertow as ut
    >>> x = ut.tensor([[[[1.0, 5.0, 2.0, 4.0]]]])
    >>> {example}
    """
    pooled.__signature__ = signature  # type: ignore[attr-defined]
    function(name=f"{name}_with_indices", top=False, method=False, functional=True)(pooled)


_row = "(x[0], 2)\n    (tensor([[[5., 4.]]]), tensor([[[1, 3]]]))"
_F = "ut.nn.functional."
for _name, _example in {
    "max_pool1d": f"{_F}max_pool1d_with_indices{_row}",
    "max_pool2d": f"{_F}max_pool2d_with_indices(x, (1, 2))[1]\n    tensor([[[[1, 3]]]])",
    "max_pool3d": f"{_F}max_pool3d_with_indices(x, (1, 1, 2))[1]\n    tensor([[[[1, 3]]]])",
    "adaptive_max_pool1d": f"{_F}adaptive_max_pool1d_with_indices{_row}",
    "adaptive_max_pool2d": f"{_F}adaptive_max_pool2d_with_indices(x, 1)[1]\n    tensor([[[[1]]]])",
    "adaptive_max_pool3d": f"{_F}adaptive_max_pool3d_with_indices(x, 1)[1]\n    tensor([[[[1]]]])",
    "fractional_max_pool2d": (
        f"{_F}fractional_max_pool2d_with_indices(x, 1, (1, 4))[1]\n    tensor([[[[0, 1, 2, 3]]]])"
    ),
    "fractional_max_pool3d": (
        f"{_F}fractional_max_pool3d_with_indices(x, 1, (1, 1, 4))[1].flatten()\n"
        "    tensor([0, 1, 2, 3])"
    ),
}.items():
    _with_indices(_name, _example)


# Resizing under its old names -----------------------------------------------------------------
@function(top=False, method=False, functional=True)
def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its old name.

    >>> import undertow as ut
    >>> ut.nn.functional.upsample(ut.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@function(top=False, method=False, functional=True)
def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` with mode "nearest", under its old name.

    >>> import undertow as ut
    >>> ut.nn.functional.upsample_nearest(ut.tensor([[[1.0, 2.0]]]), 4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


@function(top=False, method=False, functional=True)
def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` with mode "bilinear" and `align_corners=True`, under its old name.

    >>> import undertow as ut
    >>> ut.nn.functional.upsample_bilinear(ut.tensor([[[[1.0, 3.0]]]]), (1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


# A leaky ReLU of chance -----------------------------------------------------------------------
def _rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Tensor:
    if not lower <= upper:
        raise ArgumentError(f"[rrelu] lower {lower} must not exceed upper {upper}")
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise ArgumentError(f"[rrelu] lower and upper must be finite, got {lower} and {upper}")
    slope: Any = (lower + upper) / 2
    if training:
        slope = rand(input.shape, dtype=input.dtype, device=input.device)
        slope = slope * (upper - lower) + lower
    return _leaky_relu(input, slope)


rrelu_ = _published_inplace(
    _rrelu,
    "rrelu",
    "ut.nn.functional.rrelu_(x, 0.5, 0.5)\n    tensor([-0.5000,  2.0000])",
    top=True,
)


@function(method=False, functional=True)
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`leaky_relu` whose slope is drawn between `lower` and `upper` for each element.

    Without `training` the slope is their mean.

    >>> import undertow as ut
    >>> ut.nn.functional.rrelu(ut.tensor([-4.0, 2.0]), 0.25, 0.75)
    tensor([-2.,  2.])
    """
    return (rrelu_ if inplace else _rrelu)(input, lower, upper, training)


@function(method=False, functional=True)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of (time, batch, channels) with a weight (width, channels in, channels out).

    >>> import undertow as ut
    >>> ut.conv_tbc(ut.ones(4, 1, 2), ut.ones(3, 2, 1), ut.zeros(1)).flatten()
    tensor([6., 6.])
    """
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise ShapeError(
            f"[conv_tbc] expects input (time, batch, in), weight (width, in, out) and bias (out), "
            f"got shapes {input.shape}, {weight.shape} and {bias.shape}"
        )
    out = conv1d(permute(input, (1, 2, 0)), permute(weight, (2, 1, 0)), bias, padding=pad)
    return permute(out, (2, 0, 1))
