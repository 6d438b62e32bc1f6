"""Nodes of torch's engine that programs and tests name."""

from __future__ import annotations

from typing import Any

from ...autograd.function import Function
from ...core.node import AccumulateGrad
from ...core.tensor import Tensor
from ...errors import GradientError

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None


class _Fails(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, message: str) -> Tensor:
        ctx.message = message
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise GradientError(ctx.message)


class UndefinedGrad:
    """The same tensor, whose gradient does not arrive.

    >>> import undertow as ut
    >>> x = ut.ones(2, requires_grad=True)
    >>> UndefinedGrad()(x * 2).sum().backward()
    >>> x.grad is None
    True
    """

    def __call__(self, x: Tensor) -> Any:
        return _Undefined.apply(x)


class DelayedError:
    """The same tensors, whose gradients are an error.

    >>> import undertow as ut
    >>> x = ut.ones(2, requires_grad=True)
    >>> DelayedError("not this way", 1)(x).sum().backward()
    Traceback (most recent call last):
    undertow.errors.GradientError: not this way
    in the backward of _FailsBackward; ut.autograd.detect_anomaly() shows the forward line
    """

    def __init__(self, message: str, num_inputs: int) -> None:
        self.message = message

    def __call__(self, *tensors: Tensor) -> Any:
        found = [_Fails.apply(x, self.message) for x in tensors]
        return found[0] if len(found) == 1 else tuple(found)
