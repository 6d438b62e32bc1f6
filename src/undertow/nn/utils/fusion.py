"""A batch norm in evaluation, taken into the product before it."""

from __future__ import annotations

import copy
from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ..modules.linear import Linear
from ..modules.module import Module
from ..parameter import Parameter


def _scaled(
    weight: Tensor, bias: Tensor | None, norm: tuple[Any, ...], eps: float, dim: int = 0
) -> tuple[Parameter, Parameter]:
    """A weight and a bias with a norm's mean, variance, gain and bias taken in."""
    mean, var, gain, shift = norm
    with no_grad():
        scale = (var + eps).rsqrt()
        scale = scale if gain is None else scale * gain
        shape = [1] * weight.ndim
        shape[dim] = -1
        moved = (-mean if bias is None else bias - mean) * scale
        fused = weight * scale.reshape(shape).to(weight.dtype)
        moved = moved if shift is None else moved + shift
        dtype = weight.dtype if bias is None else bias.dtype
    grad = bias is None or bias.requires_grad
    return Parameter(fused, weight.requires_grad), Parameter(moved.to(dtype), grad)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a convolution that does what the two do.

    >>> import undertow as ut
    >>> one, four = ut.ones(1), ut.full((1,), 4.0)
    >>> weight, bias = ut.nn.utils.fuse_conv_bn_weights(
    ...     ut.ones(1, 1, 1), None, one, four, 0.0, one, one
    ... )
    >>> weight.detach(), bias.detach()
    (tensor([[[0.5000]]]), tensor([0.5000]))
    """
    return _scaled(conv_w, conv_b, (bn_rm, bn_rv, bn_w, bn_b), bn_eps, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a Linear that does what the two do.

    >>> import undertow as ut
    >>> one = ut.ones(1)
    >>> weight, bias = ut.nn.utils.fuse_linear_bn_weights(
    ...     ut.ones(1, 2), one, bn_rm=one, bn_rv=4 * one, bn_eps=0.0, bn_w=one, bn_b=5 * one
    ... )
    >>> weight.detach(), bias.detach()
    (tensor([[0.5000, 0.5000]]), tensor([5.]))
    """
    return _scaled(linear_w, linear_b, (bn_rm, bn_rv, bn_w, bn_b), bn_eps)


def _fused(op: str, layer: Any, norm: Any, transpose: bool) -> Any:
    if layer.training or norm.training:
        raise ArgumentError(f"[{op}] fusion only for eval: call .eval() on both first")
    if norm.running_mean is None or norm.running_var is None:
        raise ArgumentError(f"[{op}] the norm has no running statistics to take in")
    made = copy.deepcopy(layer)
    statistics = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    made.weight, made.bias = _scaled(
        made.weight, made.bias, statistics, norm.eps, 1 if transpose else 0
    )
    return made


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A convolution that does what a convolution and a batch norm in evaluation do.

    >>> import undertow as ut
    >>> conv, norm = ut.nn.Conv1d(2, 3, 1).eval(), ut.nn.BatchNorm1d(3).eval()
    >>> x = ut.rand(1, 2, 4)
    >>> fused = ut.nn.utils.fuse_conv_bn_eval(conv, norm)
    >>> ut.allclose(fused(x), norm(conv(x)), atol=1e-6)
    True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_eval(linear: Linear, bn: Module) -> Linear:
    """A Linear that does what a Linear and a batch norm in evaluation do.

    >>> import undertow as ut
    >>> linear, norm = ut.nn.Linear(4, 3).eval(), ut.nn.BatchNorm1d(3).eval()
    >>> x = ut.rand(5, 4)
    >>> fused = ut.nn.utils.fuse_linear_bn_eval(linear, norm)
    >>> ut.allclose(fused(x), norm(linear(x)), atol=1e-6)
    True
    """
    features = getattr(bn, "num_features", None)
    if features not in (1, linear.out_features):
        raise ArgumentError(
            "[fuse_linear_bn_eval] the norm must have num_features 1 or out_features, got "
            f"{features} and {linear.out_features}"
        )
    return _fused("fuse_linear_bn_eval", linear, bn, False)
