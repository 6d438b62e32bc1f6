"""Muon."""

from __future__ import annotations

import math
from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..dtypes import bfloat16, float32
from ..errors import ArgumentError
from .arguments import not_negative
from .optimizer import Closure, Group, Optimizer, ParamsT


class Muon(Optimizer):
    """Momentum made orthogonal by Newton–Schulz iterations (Jordan et al., 2024); for matrices.

    The iterations have the precision of bfloat16, as in torch.

    >>> import undertow as ut
    >>> x = ut.eye(2, requires_grad=True)
    >>> optimizer = ut.optim.Muon([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> bool(x[0, 0] < 1.0)
    True
    """

    takes_complex = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        not_negative("Muon", lr=lr, momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(
                f"[Muon] Adjust learning rate function {adjust_lr_fn} is not supported; use "
                "'original' or 'match_rms_adamw'"
            )
        if len(ns_coefficients) != 3:
            raise ArgumentError(f"[Muon] ns_coefficients are three, got {ns_coefficients}")
        if ns_steps >= 100:
            raise ArgumentError(f"[Muon] ns_steps must be less than 100, got {ns_steps}")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def _check_parameter(self, p: Any) -> None:
        super()._check_parameter(p)
        if p.ndim != 2:
            raise ArgumentError(
                f"[Muon] only supports 2D parameters whereas we found a parameter with size: "
                f"{p.shape}; give the others to AdamW"
            )

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
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = g.new_zeros(g.shape)
        lr, momentum = float(group["lr"]), group["momentum"]
        buf = state["momentum_buffer"].lerp_(g, 1 - momentum)
        update = g.lerp(buf, momentum) if group["nesterov"] else buf
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        p.mul_(1 - lr * group["weight_decay"])
        p.sub_(update.to(p.dtype), alpha=lr * _ratio(p.shape, group["adjust_lr_fn"]))


def _orthogonal(
    g: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """About the nearest orthogonal matrix: a polynomial that pulls singular values towards 1."""
    a, b, c = coefficients
    tall = g.shape[0] > g.shape[1]
    x = _rounded(g.T if tall else g)
    x = _rounded(x / _rounded(x.norm()).clamp(min=eps))
    for _ in range(steps):
        gram = _rounded(x @ x.T)
        x = _rounded(a * x + _rounded(b * gram + c * (gram @ gram)) @ x)
    return x.T if tall else x


def _rounded(x: Tensor) -> Tensor:
    """As precise as bfloat16, in which torch runs the iterations; computed in single."""
    return x.to(bfloat16).to(float32)


def _ratio(shape: tuple[int, ...], how: str | None) -> float:
    """By how much the learning rate is larger for a matrix of this shape."""
    if how == "match_rms_adamw":
        return 0.2 * math.sqrt(max(shape))
    return math.sqrt(max(1.0, shape[0] / shape[1]))
