"""Adam, and AdamW, whose weights decay apart from the gradient."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..ops.elementwise.arithmetic import sqrt
from ..ops.elementwise.extremes import maximum
from .arguments import check_betas, check_ways, not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class Adam(Elementwise):
    """Adam (Kingma and Ba, 2015): steps scaled by averages of the gradient and of its square.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.Adam([x], lr=0.1)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (x**2).sum().backward()
    ...     optimizer.step()
    >>> x
    tensor([0.8004, 1.8002], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = type(self).__name__
        not_negative(name, lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(name, betas)
        if isinstance(betas[0], Tensor) is not isinstance(betas[1], Tensor):
            raise ArgumentError(f"[{name}] betas must be either both floats or both Tensors")
        tensors = [x for x in (lr, *betas) if isinstance(x, Tensor)]
        if tensors and foreach and not capturable:
            raise ArgumentError(
                f"[{name}] lr or betas as a Tensor is not supported for capturable=False and "
                "foreach=True"
            )
        check_ways(name, foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        found = {"exp_avg": 0.0, "exp_avg_sq": 0.0}
        return found | {"max_exp_avg_sq": 0.0} if group["amsgrad"] else found

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        (beta1, beta2), t = group["betas"], kept["step"]
        return {
            "part1": 1 - beta1,
            "beta2": beta2,
            "part2": 1 - beta2,
            "step_size": group["lr"] / (1 - beta1**t),
            "scale": (1 - beta2**t) ** -0.5,
            "eps": group["eps"],
        }

    @staticmethod
    def rule(
        p: Any,
        g: Any,
        exp_avg: Any,
        exp_avg_sq: Any,
        max_exp_avg_sq: Any = None,
        *,
        part1: Any,
        beta2: Any,
        part2: Any,
        step_size: Any,
        scale: Any,
        eps: Any,
    ) -> tuple[Any, ...]:
        m = exp_avg + part1 * (g - exp_avg)
        v = beta2 * exp_avg_sq + part2 * (g * g)
        most = None if max_exp_avg_sq is None else maximum(max_exp_avg_sq, v)
        root = sqrt(v if most is None else most)
        return p - step_size * m / (root * scale + eps), m, v, most


class AdamW(Adam):
    """Adam with weights that decay by themselves (Loshchilov and Hutter, 2019), not by gradient.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.AdamW([x], lr=0.1, weight_decay=0.5)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8500, 1.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # files of old do not say it
            group["decoupled_weight_decay"] = True
