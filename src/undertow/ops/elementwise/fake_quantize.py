"""Numbers as a quantised network would see them, with the gradients that training needs."""

from __future__ import annotations

from typing import Any

from ...core.modes import no_grad
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...shapes import wrap_dim
from .comparison import where


def _quantized(x: Tensor, scale: Any, zero_point: Any, low: int, high: int) -> Tensor:
    """The nearest number of the grid; the gradient is that of x where the grid has not ended."""
    with no_grad():
        x, own = x.detach(), x
        if isinstance(scale, Tensor):
            scale = scale.detach()
        steps = (x.to(scale.dtype) if isinstance(scale, Tensor) else x) * (1 / scale)
        steps = steps.round() + zero_point
        seen = ((steps.clamp(low, high) - zero_point) * scale).to(x.dtype)
    inside = (steps >= low) & (steps <= high)
    own = where(inside, own, 0.0)
    return seen + (own - own.detach())


def _check_range(op: str, low: int, high: int) -> None:
    if low > high:
        raise ArgumentError(f"[{op}] quant_min {low} must not be above quant_max {high}")


@function(method=False)
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """The multiples of `scale` nearest to the elements, from `quant_min` to `quant_max` of them.

    `zero_point` is the step that stands for 0. The gradient is that of the input where a step is
    within the range, else zero (torch's straight-through rule). A NaN stays one, which torch makes
    the smallest number.

    >>> import undertow as ut
    >>> ut.fake_quantize_per_tensor_affine(ut.tensor([0.26, -0.1, 9.0]), 0.1, 0, 0, 7)
    tensor([0.3000, 0.0000, 0.7000])
    """
    _check_range("fake_quantize_per_tensor_affine", quant_min, quant_max)
    return _quantized(input, scale, zero_point, quant_min, quant_max)


@function(method=False)
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of `axis`.

    >>> import undertow as ut
    >>> x, scale, zero = ut.full((2, 1), 0.26), ut.tensor([0.1, 0.5]), ut.tensor([0, 0])
    >>> ut.fake_quantize_per_channel_affine(x, scale, zero, 0, -8, 7).flatten()
    tensor([0.3000, 0.5000])
    """
    op = "fake_quantize_per_channel_affine"
    _check_range(op, quant_min, quant_max)
    axis = wrap_dim(op, axis, input.ndim)
    for name, given in (("scale", scale), ("zero_point", zero_point)):
        if given.shape != input.shape[axis : axis + 1]:
            raise ShapeError(
                f"[{op}] {name} must have one element for each of the {input.shape[axis]} indices "
                f"of dimension {axis}, got shape {given.shape}"
            )
    shape = [1] * input.ndim
    shape[axis] = -1
    scales, zeros = scale.reshape(shape), zero_point.reshape(shape)
    return _quantized(input, scales, zeros, quant_min, quant_max)
