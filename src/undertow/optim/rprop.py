"""Rprop."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..ops.elementwise.comparison import where
from ..ops.elementwise.extremes import maximum, minimum
from ..ops.elementwise.rounding import sign
from .arguments import not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class Rprop(Elementwise):
    """Steps by the gradient's sign, longer while it stays the same (Riedmiller and Braun, 1993).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.Rprop([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_negative("Rprop", lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ArgumentError(
                f"[Rprop] Invalid eta values: {etas[0]}, {etas[1]}; they must be below and above 1"
            )
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def states(self, group: Group) -> dict[str, float]:
        return {"prev": 0.0, "step_size": float(group["lr"])}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        (shorter, longer), (least, most) = group["etas"], group["step_sizes"]
        return {"shorter": shorter, "longer": longer, "least": least, "most": most}

    @staticmethod
    def rule(
        p: Any,
        g: Any,
        prev: Any,
        step_size: Any,
        *,
        shorter: Any,
        longer: Any,
        least: Any,
        most: Any,
    ) -> tuple[Any, ...]:
        turned = g * prev  # negative where the sign has changed
        same = where(turned > 0, longer * step_size, step_size)
        size = where(turned < 0, shorter * step_size, same)
        size = minimum(maximum(size, least), most)
        g = where(turned < 0, 0.0, g)
        return p - sign(g) * size, g, size
