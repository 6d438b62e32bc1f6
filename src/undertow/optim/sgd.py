"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.tensor import Tensor
from ..errors import ArgumentError
from .arguments import check_ways, not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class SGD(Elementwise):
    """Stochastic gradient descent, with momentum if wanted.

    `buf = momentum * buf + (1 - dampening) * g`, the gradient itself at first, and
    `p = p - lr * buf`; with `nesterov`, `p = p - lr * (g + momentum * buf)`.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.SGD([x], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (x**2).sum().backward()
    ...     optimizer.step()
    >>> x
    tensor([0.4600, 0.9200], requires_grad=True)
    """

    scalars: ClassVar[dict[str, float]] = {}
    takes_sparse = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        not_negative("SGD", lr=lr, momentum=momentum, weight_decay=weight_decay)
        check_ways("SGD", foreach, fused, differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError(
                "[SGD] Nesterov momentum requires a momentum and zero dampening, got "
                f"momentum={momentum} and dampening={dampening}"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        return {"momentum_buffer": 0.0} if group["momentum"] != 0 else {}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        found = {"lr": group["lr"]}
        if group["momentum"] != 0:
            found["keep"] = 0.0 if kept["fresh"] else group["momentum"]
            found["take"] = 1.0 if kept["fresh"] else 1 - group["dampening"]
            if group["nesterov"]:
                found["momentum"] = group["momentum"]
        return found

    @staticmethod
    def rule(
        p: Any,
        g: Any,
        momentum_buffer: Any = None,
        *,
        lr: Any,
        keep: Any = None,
        take: Any = None,
        momentum: Any = None,
    ) -> tuple[Any, ...]:
        if momentum_buffer is None:
            return (p - lr * g,)
        buf = keep * momentum_buffer + take * g
        return p - lr * (buf if momentum is None else g + momentum * buf), buf
