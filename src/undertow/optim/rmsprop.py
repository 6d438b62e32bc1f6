"""RMSprop."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.elementwise.arithmetic import sqrt
from .arguments import not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class RMSprop(Elementwise):
    """Steps divided by the root of a moving mean square (Tieleman and Hinton, 2012).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.RMSprop([x], lr=0.01)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_negative(
            "RMSprop", lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        momentum = {"momentum_buffer": 0.0} if group["momentum"] > 0 else {}
        return {"square_avg": 0.0} | momentum | ({"grad_avg": 0.0} if group["centered"] else {})

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        alpha = group["alpha"]
        found = {"lr": group["lr"], "alpha": alpha, "part": 1 - alpha, "eps": group["eps"]}
        return found | {"momentum": group["momentum"]} if group["momentum"] > 0 else found

    @staticmethod
    def rule(
        p: Any,
        g: Any,
        square_avg: Any,
        momentum_buffer: Any = None,
        grad_avg: Any = None,
        *,
        lr: Any,
        alpha: Any,
        part: Any,
        eps: Any,
        momentum: Any = None,
    ) -> tuple[Any, ...]:
        v = alpha * square_avg + part * (g * g)
        m = None if grad_avg is None else grad_avg + part * (g - grad_avg)
        step = g / (sqrt(v if m is None else v - m * m) + eps)
        buf = None if momentum_buffer is None else momentum * momentum_buffer + step
        return p - lr * (step if buf is None else buf), v, buf, m
