"""Adadelta."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..ops.elementwise.arithmetic import sqrt
from .arguments import not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class Adadelta(Elementwise):
    """Steps in the units of the steps before (Zeiler, 2012).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.Adadelta([x], lr=10.0)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9684, 1.9684], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_negative("Adadelta", lr=lr, eps=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ArgumentError(f"[Adadelta] Invalid rho value: {rho}; it must be in [0, 1]")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        rho = group["rho"]
        return {"lr": group["lr"], "rho": rho, "part": 1 - rho, "eps": group["eps"]}

    @staticmethod
    def rule(
        p: Any, g: Any, square_avg: Any, acc_delta: Any, *, lr: Any, rho: Any, part: Any, eps: Any
    ) -> tuple[Any, ...]:
        v = rho * square_avg + part * (g * g)
        delta = sqrt(acc_delta + eps) / sqrt(v + eps) * g
        return p - lr * delta, v, rho * acc_delta + part * (delta * delta)
