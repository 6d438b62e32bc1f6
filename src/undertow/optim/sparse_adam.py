"""SparseAdam: Adam for the rows that a sparse gradient has."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError
from ..ops.elementwise.arithmetic import sqrt
from .arguments import not_negative
from .elementwise import Elementwise, Numbers
from .optimizer import Group, ParamsT


class SparseAdam(Elementwise):
    """Adam for sparse gradients, which leaves rows alone that have none, moments included.

    >>> import undertow as ut
    >>> table = ut.ones(3, 2, requires_grad=True)
    >>> optimizer = ut.optim.SparseAdam([table], lr=0.1)
    >>> ut.nn.functional.embedding(ut.tensor([1]), table, sparse=True).sum().backward()
    >>> optimizer.step()
    >>> table
    tensor([[1.0000, 1.0000],
            [0.9000, 0.9000],
            [1.0000, 1.0000]], requires_grad=True)
    """

    takes_sparse = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        not_negative("SparseAdam", lr=lr, eps=eps)
        for beta in betas:
            if not 0.0 <= beta < 1.0:
                raise ArgumentError(f"[SparseAdam] betas are in [0, 1), got {betas}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def states(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        beta1, beta2 = group["betas"]
        steps = kept["step"]
        rate = group["lr"] * (1 - beta2**steps) ** 0.5 / (1 - beta1**steps)
        return {"rate": rate, "beta1": beta1, "beta2": beta2, "eps": group["eps"]}

    def _step_group(self, group: Group) -> None:
        for p in group["params"]:
            if isinstance(p.grad, Tensor):
                raise UnsupportedError(
                    "[SparseAdam] takes sparse gradients only, got a dense one of shape "
                    f"{p.shape}; use Adam"
                )
        super()._step_group(group)

    @staticmethod
    def rule(
        p: Any,
        g: Any,
        exp_avg: Any,
        exp_avg_sq: Any,
        *,
        rate: Any,
        beta1: Any,
        beta2: Any,
        eps: Any,
    ) -> tuple[Any, ...]:
        mean = exp_avg + (1 - beta1) * (g - exp_avg)
        square = exp_avg_sq + (1 - beta2) * (g * g - exp_avg_sq)
        return p - rate * mean / (sqrt(square) + eps), mean, square
