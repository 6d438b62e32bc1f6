"""NAdam."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.tensor import Tensor
from ..ops.elementwise.arithmetic import sqrt
from .arguments import check_betas, not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class NAdam(Elementwise):
    """Adam with Nesterov momentum (Dozat, 2016).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.NAdam([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8944, 1.8944], requires_grad=True)
    """

    scalars: ClassVar[dict[str, float]] = {"step": 0.0, "mu_product": 1.0}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_negative(
            "NAdam", lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        check_betas("NAdam", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        (beta1, beta2), t, decay = group["betas"], kept["step"], group["momentum_decay"]
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (s * decay)) for s in (t, t + 1))
        # As precise as the tensor that it is kept in, as in torch, which may have a gradient.
        product = kept["state"]["mu_product"] * mu
        kept["mu_product"] = product = product if product.requires_grad else product.item()
        return {
            "part1": 1 - beta1,
            "beta2": beta2,
            "part2": 1 - beta2,
            "now": group["lr"] * (1 - mu) / (1 - product),
            "ahead": group["lr"] * following / (1 - product * following),
            "scale": (1 - beta2**t) ** -0.5,
            "eps": group["eps"],
        }

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
        now: Any,
        ahead: Any,
        scale: Any,
        eps: Any,
    ) -> tuple[Any, ...]:
        m = exp_avg + part1 * (g - exp_avg)
        v = beta2 * exp_avg_sq + part2 * (g * g)
        return p - (now * g + ahead * m) / (sqrt(v) * scale + eps), m, v
