"""`Variable`, torch's name from before tensors had gradients: a tensor."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..errors import DTypeError
from .engine import queue_callback


class _AnyTensor(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor)


class _Engine:
    """What distributed code asks of torch's engine: to be called at the end of a backward pass."""

    queue_callback = staticmethod(queue_callback)


class Variable(metaclass=_AnyTensor):
    """The tensor itself without its history, and with gradients if they are asked for.

    >>> import undertow as ut
    >>> x = ut.autograd.Variable(ut.ones(2), requires_grad=True)
    >>> isinstance(x, ut.Tensor), isinstance(x, ut.autograd.Variable), x.requires_grad
    (True, True, True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: Any = None) -> Any:
        if not isinstance(data, Tensor):
            raise DTypeError(f"[Variable] wraps a Tensor, got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
