"""What torch's own layers call: `native_layer_norm` and its kin, results with their statistics.

The statistics have gradients here, which torch's have not.
"""

from __future__ import annotations

from ...core.register import FUNCTIONAL, function
from ...core.tensor import Tensor
from ...errors import ShapeError
from ...shapes import Ints
from ..random.random import rand_like


def _statistics(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """The mean along some dimensions, and one over the standard deviation."""
    mean, var = x.mean(dims, keepdim=True), x.var(dims, correction=0, keepdim=True)
    return mean, (var + eps).rsqrt()


@function(method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.layer_norm`, the means and one over the standard deviations.

    >>> import undertow as ut
    >>> ut.native_layer_norm(ut.tensor([1.0, 5.0]), (2,), None, None, 0.0)
    (tensor([-1.,  1.]), tensor([3.]), tensor([0.5000]))
    """
    y: Tensor = FUNCTIONAL["layer_norm"](input, normalized_shape, weight, bias, eps)
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    return y, *_statistics(input, tuple(range(-count, 0)), eps)


@function(method=False)
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.group_norm` of (N, C, …), the means and one over the standard deviations.

    >>> import undertow as ut
    >>> ut.native_group_norm(ut.tensor([[1.0, 5.0]]), None, None, 1, 2, 1, 1, 0.0)
    (tensor([[-1.,  1.]]), tensor([[3.]]), tensor([[0.5000]]))
    """
    if input.ndim < 2 or input.shape[:2] != (N, C) or input.numel() != N * C * HxW:
        raise ShapeError(
            f"[native_group_norm] N, C and HxW are {N}, {C} and {HxW}, got an input of shape "
            f"{input.shape}"
        )
    y: Tensor = FUNCTIONAL["group_norm"](input, group, weight, bias, eps)
    mean, rstd = _statistics(input.reshape(N, group, C // group * HxW), (-1,), eps)
    return y, mean.squeeze(-1), rstd.squeeze(-1)


@function(method=False)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.batch_norm`, and in training the means and one over standard deviations.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0], [5.0]])
    >>> ut.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1:]
    (tensor([3.]), tensor([0.5000]))
    """
    y: Tensor = FUNCTIONAL["batch_norm"](
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    if not training:
        return y, input.new_empty(0), input.new_empty(0)
    mean, rstd = _statistics(input, (0, *range(2, input.ndim)), eps)
    return y, mean.reshape(-1), rstd.reshape(-1)


@function(method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`nn.functional.dropout`, and which elements were kept; `train` None is training.

    >>> import undertow as ut
    >>> ut.native_dropout(ut.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    FUNCTIONAL["dropout"](input.new_empty(0), p, True)  # checks p
    if train is False or p == 0:
        return input.clone(), input.new_ones(input.shape).bool()
    kept = rand_like(input) >= p
    return input * kept * (1 / (1 - p) if p < 1 else 0.0), kept


@function(method=False)
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of what `native_dropout` was given, from that of its result.

    >>> import undertow as ut
    >>> ut.native_dropout_backward(ut.ones(2), ut.tensor([True, False]), 2.0)
    tensor([2., 0.])
    """
    found: Tensor = grad_output * mask * scale
    return found
