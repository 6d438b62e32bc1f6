"""The schedule that waits: a lower learning rate when a metric no longer improves."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ...core.recording import RECORDERS, recorder
from ...errors import ArgumentError
from ..optimizer import Optimizer
from .scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler, one_each, set_option


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` after more than `patience` epochs without progress.

    >>> import undertow as ut
    >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ut.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0, 2.0]:
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ArgumentError(f"[{self._name}] Factor should be < 1.0, got {factor}")
        self.factor = factor
        self.optimizer = self._checked(optimizer)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = one_each(self._name, "min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._current()
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self) -> None:
        """Forget the best value and all counts."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at this epoch's metric, and set the learning rates of the next one."""
        if RECORDERS and recorder() is not None:
            recorder().refuse("a schedule that looks at the loss (ReduceLROnPlateau)")
        value = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._current()

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise ArgumentError(
                    f"[{self._name}] there are {len(groups)} parameter groups and "
                    f"{len(self.min_lrs)} min_lrs, since groups were added; set min_lrs to as many"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_option(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs are not counted at present."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        if self.threshold_mode == "rel":
            if self.mode == "min":
                return value < best * (1.0 - self.threshold)
            return value > best * (self.threshold + 1.0)
        if self.mode == "min":
            return value < best - self.threshold
        return value > best + self.threshold

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ArgumentError(f"[{self._name}] mode {mode} is unknown! Use 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                f"[{self._name}] threshold mode {threshold_mode} is unknown! Use 'rel' or 'abs'"
            )
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
