"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.tensor import Tensor
from ..ops.create.creation import full
from .arguments import not_negative, scalar_dtype
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class ASGD(Elementwise):
    """Descent that also keeps the average of where it has been, `ax` (Polyak and Juditsky, 1992).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.ASGD([x], lr=0.1, lambd=0.0)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x, optimizer.state[x]["ax"]
    (tensor([0.8000, 1.6000], requires_grad=True), tensor([0.8000, 1.6000]))
    """

    scalars: ClassVar[dict[str, float]] = {"step": 0.0, "eta": 0.0, "mu": 1.0}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        not_negative("ASGD", lr=lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        return {"ax": 0.0}

    def _start(self, p: Tensor, state: dict[str, Any], group: Group) -> None:
        super()._start(p, state, group)
        state["eta"].fill_(float(group["lr"]))

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        lr, lambd = group["lr"], group["lambd"]
        eta = kept["eta"]
        found = {"eta": eta, "keep": 1 - lambd * eta}
        if kept["mu"] != 1:
            found["mu"] = kept["mu"]
        kept["eta"] = _rounded(lr / (1 + lambd * lr * kept["step"]) ** group["alpha"])
        kept["mu"] = _rounded(1 / max(1, kept["step"] - group["t0"]))
        return found

    @staticmethod
    def rule(p: Any, g: Any, ax: Any, *, eta: Any, keep: Any, mu: Any = None) -> tuple[Any, ...]:
        p = keep * p - eta * g
        return p, p if mu is None else ax + mu * (p - ax)


def _rounded(number: Any) -> float:
    """A number as precise as in torch, also where a loaded state could hold more."""
    return full((), float(number), dtype=scalar_dtype()).item()
