"""Schedules that go up and down: warm restarts, triangles, and the one cycle."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ...core.recording import told
from ...errors import ArgumentError
from ..optimizer import Optimizer
from .scheduler import LRScheduler, Rates, one_each, saved_function, set_option


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to `eta_min` in `T_0` epochs, then again, `T_mult` times as long.

    >>> import undertow as ut
    >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ut.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ArgumentError(f"[{self._name}] Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ArgumentError(f"[{self._name}] Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ArgumentError(f"[{self._name}] Expected a number eta_min, but got {eta_min!r}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _lrs(self) -> Rates:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next epoch, or of any, which may be a fraction."""
        if told(self.step, epoch):
            return
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        elif epoch < 0:
            raise ArgumentError(f"[{self._name}] Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._set_lrs(self.get_lr)


class _WithMomentum(LRScheduler):
    """A schedule that lets the momentum, or Adam's first beta, go the other way."""

    cycle_momentum: bool
    use_beta1: bool

    def _start_momentum(self, base: Any, most: Any, last_epoch: int) -> tuple[Rates, Rates]:
        """The least and the largest momentum of each group, which begins with the largest."""
        options = self.optimizer.defaults
        if "momentum" not in options and "betas" not in options:
            raise ArgumentError(
                f"[{self._name}] optimizer must support momentum or beta1 with `cycle_momentum` "
                f"option enabled; {type(self.optimizer).__name__} does not"
            )
        self.use_beta1 = "betas" in options
        lows = one_each(self._name, "base_momentum", self.optimizer, base)
        highs = one_each(self._name, "max_momentum", self.optimizer, most)
        if last_epoch == -1:
            for high, low, group in zip(highs, lows, self.optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return lows, highs

    def _set_momentum(self, group: dict[str, Any], momentum: Any) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


def _triangular2(cycle: float) -> float:
    return 1 / 2.0 ** (cycle - 1)


def _exp_range(gamma: float, epoch: float) -> float:
    return gamma**epoch


class CyclicLR(_WithMomentum):
    """Up and down between `base_lr` and `max_lr` (Smith, 2017), a step after every batch.

    >>> import undertow as ut
    >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = ut.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
    >>> for _ in range(4):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [0.0]
    [0.5]
    [1.0]
    [0.5]
    """

    _not_saved = ("optimizer", "_scale_fn_ref", "_scale_fn_custom")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = self._checked(optimizer)
        base_lrs = one_each(self._name, "base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_option(group, "lr", lr)
        self.max_lrs = one_each(self._name, "max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ArgumentError(f"[{self._name}] mode is invalid and scale_fn is None: {mode!r}")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(
                base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"
        self._scale_fn_ref: Any = {
            "triangular": lambda cycle: 1.0,
            "triangular2": _triangular2,
            "exp_range": partial(_exp_range, self.gamma),
        }[self.mode]

    def scale_fn(self, x: float) -> float:
        """How high the triangle is, by the number of the cycle or of the step."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    def _lrs(self) -> Rates:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x <= self.step_ratio
        part = x / self.step_ratio if up else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            momenta = [high - (high - low) * part * scale for low, high in pairs]
            for group, momentum in zip(self.optimizer.param_groups, momenta, strict=True):
                self._set_momentum(group, momentum)
        rates = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * part * scale for low, high in rates]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and plain functions."""
        own = self._scale_fn_custom
        saved = None if own is None else saved_function(own)
        return {**super().state_dict(), "_scale_fn_custom": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        others = dict(state_dict)
        saved = others.pop("_scale_fn_custom")
        super().load_state_dict(others)
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)
        self._init_scale_fn()


class OneCycleLR(_WithMomentum):
    """Up to `max_lr` and far down, once in `total_steps` batches (Smith and Topin, 2019).

    >>> import undertow as ut
    >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = ut.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=11)
    >>> rates = []
    >>> for _ in range(11):
    ...     rates += [round(lr, 2) for lr in scheduler.get_last_lr()]
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.04, 0.42, 0.96, 0.98, 0.88, 0.73, 0.53, 0.33, 0.16, 0.04, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = self._checked(optimizer)
        self.total_steps = self._total(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1 or not isinstance(pct_start, float):
            raise ArgumentError(
                f"[{self._name}] Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"[{self._name}] anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        first, last = float(pct_start * self.total_steps) - 1, self.total_steps - 1
        # Each phase: its last step, and between which options the rate and the momentum go.
        up = (first, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        down = (last, "max_lr", "min_lr", "base_momentum", "max_momentum")
        phases = [up, down]
        if three_phase:
            second = float(2 * pct_start * self.total_steps) - 2
            back = (second, "max_lr", "initial_lr", "base_momentum", "max_momentum")
            phases = [up, back, (last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases: list[dict[str, Any]] = [
            dict(zip(names, phase, strict=True)) for phase in phases
        ]
        max_lrs = one_each(self._name, "max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for most, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _total(self, total: Any, epochs: Any, steps_per_epoch: Any) -> int:
        given = {"total_steps": total}
        if total is None:
            given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError(
                    f"[{self._name}] You must define either total_steps OR (epochs AND "
                    "steps_per_epoch)"
                )
        for name, value in given.items():
            if not isinstance(value, int) or value <= 0:
                raise ArgumentError(
                    f"[{self._name}] Expected positive integer {name}, but got {value}"
                )
        return math.prod(given.values())

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _lrs(self) -> Rates:
        step = self.last_epoch
        if step > self.total_steps:
            raise ArgumentError(
                f"[{self._name}] Tried to step {step} times. The specified number of total steps "
                f"is {self.total_steps}"
            )
        begin, phase = 0.0, self._schedule_phases[0]
        for phase in self._schedule_phases:  # the last one stays
            if step <= phase["end_step"]:
                break
            if phase is not self._schedule_phases[-1]:
                begin = phase["end_step"]
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, part))
        return rates
