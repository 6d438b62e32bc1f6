"""Functions that torch has at its top with arguments by position: `torch.layer_norm` and its kin.

They are those of `nn.functional`, with the arguments in torch's other order and reductions and
modes as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.modes import Switch
from ...core.register import FUNCTIONAL, function
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import ArgumentError
from ...shapes import Ints

_MODES = ("bilinear", "nearest", "bicubic")
_BORDERS = ("zeros", "border", "reflection")


def word_of(op: str, what: str, words: tuple[str, ...], number: int) -> str:
    """What a number stands for."""
    if number not in range(len(words)):
        known = ", ".join(f"{i} ({word})" for i, word in enumerate(words))
        raise ArgumentError(f"[{op}] {what} must be {known}, got {number!r}")
    return words[number]


@function(method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """`nn.functional.layer_norm`.

    >>> import undertow as ut
    >>> ut.layer_norm(ut.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    found: Tensor = FUNCTIONAL["layer_norm"](input, normalized_shape, weight, bias, eps)
    return found


@function(method=False)
def rms_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`nn.functional.rms_norm`.

    >>> import undertow as ut
    >>> ut.rms_norm(ut.tensor([1.0, 7.0]), (2,))
    tensor([0.2000, 1.4000])
    """
    found: Tensor = FUNCTIONAL["rms_norm"](input, normalized_shape, weight, eps)
    return found


@function(method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.group_norm`.

    >>> import undertow as ut
    >>> ut.group_norm(ut.tensor([[1.0, 3.0, 5.0, 9.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    found: Tensor = FUNCTIONAL["group_norm"](input, num_groups, weight, bias, eps)
    return found


@function(method=False)
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.batch_norm`, with weight and bias before the running statistics.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0], [3.0]])
    >>> ut.batch_norm(x, None, None, None, None, True, 0.1, 0.0, False)
    tensor([[-1.],
            [ 1.]])
    """
    found: Tensor = FUNCTIONAL["batch_norm"](
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    return found


@function(method=False)
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.instance_norm`, with weight and bias before the running statistics.

    >>> import undertow as ut
    >>> x = ut.tensor([[[1.0, 3.0]]])
    >>> ut.instance_norm(x, None, None, None, None, True, 0.1, 0.0, False)
    tensor([[[-1.,  1.]]])
    """
    found: Tensor = FUNCTIONAL["instance_norm"](
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )
    return found


@function(method=False)
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`.

    >>> import undertow as ut
    >>> ut.dropout(ut.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    found: Tensor = FUNCTIONAL["dropout"](input, p, train)
    return found


@function(method=False)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.alpha_dropout`.

    >>> import undertow as ut
    >>> ut.alpha_dropout(ut.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    found: Tensor = FUNCTIONAL["alpha_dropout"](input, p, train)
    return found


@function(method=False)
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.feature_alpha_dropout`.

    >>> import undertow as ut
    >>> ut.feature_alpha_dropout(ut.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    found: Tensor = FUNCTIONAL["feature_alpha_dropout"](input, p, train)
    return found


@function(method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Whole channels of (N, C, …) are set to zero: `nn.functional.dropout2d` of any size.

    >>> import undertow as ut
    >>> ut.feature_dropout(ut.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    if input.ndim < 2:
        raise ArgumentError(f"[feature_dropout] needs (N, C, …), got shape {input.shape}")
    if not train or not p:
        return input
    kept: Tensor = FUNCTIONAL["dropout"](input.new_ones(input.shape[:2]), p, True)
    return input * kept.reshape(*kept.shape, *[1] * (input.ndim - 2))


@function(method=False)
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """`nn.functional.embedding`, with the table first; a negative `padding_idx` is none.

    >>> import undertow as ut
    >>> ut.embedding(ut.tensor([[1.0], [2.0]]), ut.tensor([1]))
    tensor([[2.]])
    """
    found: Tensor = FUNCTIONAL["embedding"](
        indices,
        weight,
        None if padding_idx < 0 else padding_idx,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )
    return found


@function(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    """`nn.functional.adaptive_max_pool1d` with the positions.

    >>> import undertow as ut
    >>> ut.adaptive_max_pool1d(ut.tensor([[1.0, 5.0, 2.0]]), 1)
    (tensor([[5.]]), tensor([[1]]))
    """
    found: tuple[Tensor, Tensor] = FUNCTIONAL["adaptive_max_pool1d"](input, output_size, True)
    return found


@function(method=False)
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """`nn.functional.max_pool1d` with the positions.

    >>> import undertow as ut
    >>> ut.max_pool1d_with_indices(ut.tensor([[1.0, 5.0, 2.0]]), 3)
    (tensor([[5.]]), tensor([[1]]))
    """
    found: tuple[Tensor, Tensor] = FUNCTIONAL["max_pool1d"](
        input, kernel_size, stride or None, padding, dilation, ceil_mode, True
    )
    return found


@function(method=False)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`.

    >>> import undertow as ut
    >>> ut.affine_grid_generator(
    ...     ut.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 1), True
    ... )
    tensor([[[[0., 0.]]]])
    """
    found: Tensor = FUNCTIONAL["affine_grid"](theta, size, align_corners)
    return found


@function(method=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Number = 0) -> Tensor:
    """`nn.functional.pad` with a constant.

    >>> import undertow as ut
    >>> ut.constant_pad_nd(ut.ones(2), (1, 0), 5)
    tensor([5., 1., 1.])
    """
    found: Tensor = FUNCTIONAL["pad"](input, pad, "constant", value)
    return found


@function(method=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample`; modes are numbers, in the order of their names there.

    >>> import undertow as ut
    >>> ut.grid_sampler(ut.ones(1, 1, 1, 2), ut.zeros(1, 1, 1, 2), 0, 0, True).flatten()
    tensor([1.])
    """
    found: Tensor = FUNCTIONAL["grid_sample"](
        input,
        grid,
        word_of("grid_sampler", "interpolation_mode", _MODES, interpolation_mode),
        word_of("grid_sampler", "padding_mode", _BORDERS, padding_mode),
        align_corners,
    )
    return found


@function(method=False)
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` of images; modes are numbers, in the order of their names there.

    >>> import undertow as ut
    >>> ut.grid_sampler_2d(ut.ones(1, 1, 1, 2), ut.zeros(1, 1, 1, 2), 0, 0, True).flatten()
    tensor([1.])
    """
    found: Tensor = FUNCTIONAL["grid_sample"](
        input,
        grid,
        word_of("grid_sampler_2d", "interpolation_mode", _MODES, interpolation_mode),
        word_of("grid_sampler_2d", "padding_mode", _BORDERS, padding_mode),
        align_corners,
    )
    return found


@function(method=False)
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` of volumes; modes are numbers, in the order of their names there.

    >>> import undertow as ut
    >>> ut.grid_sampler_3d(ut.ones(1, 1, 2, 2, 3), ut.zeros(1, 1, 1, 1, 3), 0, 0, True).flatten()
    tensor([1.])
    """
    found: Tensor = FUNCTIONAL["grid_sample"](
        input,
        grid,
        word_of("grid_sampler_3d", "interpolation_mode", _MODES, interpolation_mode),
        word_of("grid_sampler_3d", "padding_mode", _BORDERS, padding_mode),
        align_corners,
    )
    return found


@function(method=False)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor:
    """`conv1d`, `conv2d`, `conv3d` or their transposes, by the dimensions of the weight.

    >>> import undertow as ut
    >>> ut.convolution(ut.ones(1, 1, 4), ut.ones(1, 1, 3), None, [1], [0], [1], False, [0], 1)
    tensor([[[3., 3.]]])
    """
    dims = weight.ndim - 2
    if dims not in (1, 2, 3):
        raise ArgumentError(
            f"[convolution] weight must have 3, 4 or 5 dimensions, got shape {weight.shape}"
        )
    more: tuple[Any, ...] = (groups, dilation)
    if transposed:
        more = (output_padding, *more)
    else:
        more = more[::-1]
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    with Switch(autocast=None):  # it is on no list of autocast, as in torch
        found: Tensor = FUNCTIONAL[name](input, weight, bias, stride, padding, *more)
    return found
