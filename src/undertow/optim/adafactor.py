"""Adafactor."""

from __future__ import annotations

from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..dtypes import finfo
from ..errors import ArgumentError
from ..ops.create.creation import full
from .arguments import as_scalars, not_negative, scalar_dtype
from .optimizer import Closure, Group, Optimizer, ParamsT


class Adafactor(Optimizer):
    """Adam with the mean squares of rows and columns alone (Shazeer and Stern, 2018).

    >>> import undertow as ut
    >>> x = ut.ones(2, 3, requires_grad=True)
    >>> optimizer = ut.optim.Adafactor([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([[0.9000, 0.9000, 0.9000],
            [0.9000, 0.9000, 0.9000]])
    >>> {name: tuple(value.shape) for name, value in optimizer.state[x].items()}
    {'step': (), 'row_var': (2, 1), 'col_var': (1, 3)}
    """

    takes_complex = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        not_negative("Adafactor", lr=lr, eps=eps[1], weight_decay=weight_decay)
        if eps[0] is not None:
            not_negative("Adafactor", eps=eps[0])
        if not beta2_decay <= 0:
            raise ArgumentError(f"[Adafactor] beta2_decay should be <= 0 but is: {beta2_decay}")
        if not d >= 1:
            raise ArgumentError(f"[Adafactor] Clipping threshold d should be >= 1 but is: {d}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for kept in self.state.values():
            as_scalars(kept, self.scalars)

    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters once; the value of `closure`, which computes the loss again."""
        loss = self._evaluate(closure)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._step_one(group, p)
        return loss

    def _step_one(self, group: Group, p: Tensor) -> None:
        g: Any = p.grad
        state = self.state[p]
        if not state:
            state["step"] = full((), 0.0, dtype=scalar_dtype())
            if g.ndim > 1:
                state["row_var"] = g.new_zeros((*g.shape[:-1], 1))
                state["col_var"] = g.new_zeros((*g.shape[:-2], 1, g.shape[-1]))
            else:
                state["variance"] = g.new_zeros(g.shape)
        if group["maximize"]:
            g = -g
        state["step"] += 1
        t, lr = state["step"].item(), float(group["lr"])
        least, floor = group["eps"]
        if least is None:
            least = finfo(p.dtype).eps
        part = t ** group["beta2_decay"]
        rms = p.norm().item() / p.numel() ** 0.5
        step_size = max(floor, rms) * min(lr, t**-0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if g.ndim > 1:
            row, column = state["row_var"], state["col_var"]
            row.lerp_((g * g).mean(-1, keepdim=True), part)
            column.lerp_((g * g).mean(-2, keepdim=True), part)
            v = row @ column / row.mean(-2, keepdim=True).clamp(min=least)
        else:
            v = state["variance"].lerp_(g * g, part)
        update = v.clamp(min=least * least).rsqrt() * g
        size = update.norm().item() / update.numel() ** 0.5
        p.sub_(update, alpha=step_size / max(1.0, size / group["d"]))
