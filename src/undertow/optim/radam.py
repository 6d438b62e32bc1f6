"""RAdam."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.elementwise.arithmetic import sqrt
from .arguments import check_betas, not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class RAdam(Elementwise):
    """Adam whose first steps are not scaled, until the mean square is sure (Liu et al., 2020).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.RAdam([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_negative("RAdam", lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas("RAdam", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        (beta1, beta2), t = group["betas"], kept["step"]
        correction = 1 - beta2**t
        limit = 2 / (1 - beta2) - 1
        rho = limit - 2 * t * beta2**t / correction
        found = {
            "part1": 1 - beta1,
            "beta2": beta2,
            "part2": 1 - beta2,
            "step_size": group["lr"] / (1 - beta1**t),
            "eps": group["eps"],
        }
        if rho > 5:
            sure = (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)
            found["rectified"] = (sure * correction) ** 0.5
        return found

    @staticmethod
    def rule(
        p: Any,
        g: Any,
        exp_avg: Any,
        exp_avg_sq: Any,
        *,
        part1: Any,
        beta2: Any,
        part2: Any,
        step_size: Any,
        eps: Any,
        rectified: Any = None,
    ) -> tuple[Any, ...]:
        m = exp_avg + part1 * (g - exp_avg)
        v = beta2 * exp_avg_sq + part2 * (g * g)
        step = step_size * m
        return p - (step if rectified is None else step * rectified / (sqrt(v) + eps)), m, v
