"""Adamax."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.elementwise.extremes import maximum
from ..ops.elementwise.rounding import abs
from .arguments import check_betas, not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class Adamax(Elementwise):
    """Adam by the largest gradient in place of the mean square (Kingma and Ba, 2015, section 7).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.Adamax([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        not_negative("Adamax", lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas("Adamax", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        beta1, beta2 = group["betas"]
        return {
            "part1": 1 - beta1,
            "beta2": beta2,
            "step_size": group["lr"] / (1 - beta1 ** kept["step"]),
            "eps": group["eps"],
        }

    @staticmethod
    def rule(
        p: Any,
        g: Any,
        exp_avg: Any,
        exp_inf: Any,
        *,
        part1: Any,
        beta2: Any,
        step_size: Any,
        eps: Any,
    ) -> tuple[Any, ...]:
        m = exp_avg + part1 * (g - exp_avg)
        u = maximum(beta2 * exp_inf, abs(g) + eps)
        return p - step_size * m / u, m, u
