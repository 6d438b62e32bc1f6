"""Adagrad."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.elementwise.arithmetic import sqrt
from .arguments import check_ways, not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class Adagrad(Elementwise):
    """Steps divided by the root of all squared gradients so far (Duchi et al., 2011).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.Adagrad([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    takes_sparse = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        not_negative(
            "Adagrad",
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        check_ways("Adagrad", foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                self._start(p, self.state[p], group)

    def states(self, group: Group) -> dict[str, float]:
        return {"sum": group["initial_accumulator_value"]}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        step_size = group["lr"] / (1 + (kept["step"] - 1) * group["lr_decay"])
        return {"step_size": step_size, "eps": group["eps"]}

    @staticmethod
    def rule(p: Any, g: Any, sum: Any, *, step_size: Any, eps: Any) -> tuple[Any, ...]:
        total = sum + g * g
        return p - step_size * g / (sqrt(total) + eps), total
