"""torch's `_fused_*_`: a step of an optimiser on lists of tensors, without an optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..core.update import Update
from .adagrad import Adagrad
from .adam import Adam
from .elementwise import Elementwise, _update
from .sgd import SGD

Tensors = Sequence[Tensor]
_unscale = Update("unscale", lambda g, scale: (g / scale,), 1, 1, (0,))


def _step(
    cls: type[Elementwise],
    lists: Sequence[Tensors],
    states: tuple[str, ...],
    steps: Sequence[float],
    group: dict[str, Any],
    fresh: bool = False,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """The formula of an optimiser, for parameters, gradients and states; see `Elementwise`."""
    if found_inf is not None and found_inf.item():
        return
    rows = list(zip(*lists, strict=True))
    if grad_scale is not None:
        _unscale([(row[1],) for row in rows], (float(grad_scale.item()),))
    group["lr"] = float(group["lr"])
    alike: dict[float, list[tuple[Tensor, ...]]] = {}
    for row, step in zip(rows, steps, strict=True):
        alike.setdefault(step, []).append(row)
    for step, members in alike.items():
        kept = {"step": step, "fresh": fresh}
        numbers = cls.numbers(cls.__new__(cls), group, kept)
        decay = group["weight_decay"]
        if decay:
            shrinks = group.get("decoupled_weight_decay")
            numbers["shrink" if shrinks else "weight_decay"] = (
                1 - group["lr"] * decay if shrinks else decay
            )
        update = _update(cls, states, tuple(numbers), bool(group["maximize"]))
        with no_grad():
            update(members, tuple([float(n) for n in numbers.values()]))


def _adam(decoupled: bool) -> Any:
    def run(
        self: Tensors,
        grads: Tensors,
        exp_avgs: Tensors,
        exp_avg_sqs: Tensors,
        max_exp_avg_sqs: Tensors,
        state_steps: Tensors,
        *,
        lr: float | Tensor,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Tensor | None = None,
        found_inf: Tensor | None = None,
    ) -> None:
        lists = [self, grads, exp_avgs, exp_avg_sqs]
        states: tuple[str, ...] = ("exp_avg", "exp_avg_sq")
        if amsgrad:
            lists, states = [*lists, max_exp_avg_sqs], (*states, "max_exp_avg_sq")
        group = {
            "lr": lr,
            "betas": (beta1, beta2),
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled,
        }
        steps = [float(s) for s in state_steps]
        _step(Adam, lists, states, steps, group, False, grad_scale, found_inf)

    run.__name__ = run.__qualname__ = "_fused_adamw_" if decoupled else "_fused_adam_"
    run.__doc__ = f"A step of Adam{'W' if decoupled else ''} on lists; steps are counted already."
    return run


_fused_adam_ = _adam(False)
_fused_adamw_ = _adam(True)


def _fused_sgd_(
    self: Tensors,
    grads: Tensors,
    momentum_buffer_list: Tensors,
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """A step of SGD on lists; at the first one the momentum is set to the gradient."""
    lists, states = ([self, grads], ())
    if momentum:
        lists, states = [*lists, momentum_buffer_list], ("momentum_buffer",)  # type: ignore[assignment]
    group = {
        "lr": lr,
        "momentum": momentum,
        "dampening": dampening,
        "nesterov": nesterov,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    steps = [0.0] * len(self)
    _step(SGD, lists, states, steps, group, is_first_step, grad_scale, found_inf)


def _fused_adagrad_(
    self: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    *,
    lr: float | Tensor,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """A step of Adagrad on lists; steps are counted already."""
    group = {
        "lr": lr,
        "lr_decay": lr_decay,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    steps = [float(s) for s in state_steps]
    _step(Adagrad, [self, grads, state_sums], ("sum",), steps, group, False, grad_scale, found_inf)
