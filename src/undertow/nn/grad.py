"""The gradients of convolutions as functions: of the input and of the weight, from the output's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.api import grad
from ..core.modes import enable_grad
from ..core.tensor import Tensor
from ..errors import ShapeError
from ..shapes import Ints
from . import functional as F

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _gradient(
    name: str,
    convolve: Callable[..., Tensor],
    given: tuple[Tensor, Tensor],
    wanted: int,
    cotangent: Tensor,
    steps: tuple[Any, ...],
) -> Tensor:
    """The gradient of one of (input, weight), which may be differentiated in turn."""
    with enable_grad():
        out = convolve(*given, None, *steps)
    if out.shape != cotangent.shape:
        raise ShapeError(
            f"[{name}] grad_output has shape {tuple(cotangent.shape)}; "
            f"the convolution gives {tuple(out.shape)}"
        )
    (found,) = grad(out, given[wanted], cotangent, create_graph=True)
    assert found is not None
    keep = cotangent.requires_grad or given[1 - wanted].requires_grad
    return found if keep else found.detach()


def _input(
    name: str,
    convolve: Callable[..., Tensor],
    size: Sequence[int],
    weight: Tensor,
    cotangent: Tensor,
    steps: tuple[Any, ...],
) -> Tensor:
    x = cotangent.new_zeros(tuple(size)).requires_grad_()
    return _gradient(name, convolve, (x, weight), 0, cotangent, steps)


def _weight(
    name: str,
    convolve: Callable[..., Tensor],
    x: Tensor,
    size: Sequence[int],
    cotangent: Tensor,
    steps: tuple[Any, ...],
) -> Tensor:
    weight = cotangent.new_zeros(tuple(size)).requires_grad_()
    return _gradient(name, convolve, (x, weight), 1, cotangent, steps)


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` by its input.

    >>> import undertow as ut
    >>> ut.nn.grad.conv1d_input((1, 1, 4), ut.ones(1, 1, 3), ut.ones(1, 1, 2))
    tensor([[[1., 2., 2., 1.]]])
    """
    steps = (stride, padding, dilation, groups)
    return _input("conv1d_input", F.conv1d, input_size, weight, grad_output, steps)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` by its weight.

    >>> import undertow as ut
    >>> ut.nn.grad.conv1d_weight(ut.arange(4.0).view(1, 1, 4), (1, 1, 3), ut.ones(1, 1, 2))
    tensor([[[1., 3., 5.]]])
    """
    steps = (stride, padding, dilation, groups)
    return _weight("conv1d_weight", F.conv1d, input, weight_size, grad_output, steps)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` by its input; see `conv1d_input`."""
    steps = (stride, padding, dilation, groups)
    return _input("conv2d_input", F.conv2d, input_size, weight, grad_output, steps)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` by its weight; see `conv1d_weight`."""
    steps = (stride, padding, dilation, groups)
    return _weight("conv2d_weight", F.conv2d, input, weight_size, grad_output, steps)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` by its input; see `conv1d_input`."""
    steps = (stride, padding, dilation, groups)
    return _input("conv3d_input", F.conv3d, input_size, weight, grad_output, steps)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` by its weight; see `conv1d_weight`."""
    steps = (stride, padding, dilation, groups)
    return _weight("conv3d_weight", F.conv3d, input, weight_size, grad_output, steps)
