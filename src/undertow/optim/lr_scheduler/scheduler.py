"""LRScheduler: what all schedules of learning rates share.

A schedule changes the learning rate of every group after each epoch. Most say by what factor the
rate changes from one epoch to the next (`_lrs`), so that several may work on one optimiser; those
that also know the rate of any epoch (`_get_closed_form_lr`) can be told which one it is.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import ref

from ...core.recording import told
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError
from ..optimizer import Optimizer

Rates = list[Any]  # one for each group: numbers, or tensors of one element

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)
_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the "
    "opposite order: `optimizer.step()` before `lr_scheduler.step()`. Failure to do this will "
    "result in skipping the first value of the learning rate schedule."
)
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`."
)


class LRScheduler:
    """Base of all schedules: a subclass gives the rates of the next epoch by `get_lr`.

    Args:
        optimizer: Whose learning rates change.
        last_epoch: The number of the last epoch, to go on from there; -1 to begin.

    >>> import undertow as ut
    >>> class Halve(ut.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base / 2**self.last_epoch for base in self.base_lrs]
    >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = Halve(optimizer)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _not_saved: tuple[str, ...] = ("optimizer",)  # in state_dict
    _last_lr: Rates
    _step_count: int

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = self._checked(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"[{self._name}] param 'initial_lr' is not specified in param_groups[{i}] when "
                    "resuming a scheduler with last_epoch >= 0; load the optimizer's state first, "
                    "or begin with last_epoch=-1"
                )
        self.base_lrs: Rates = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _checked(self, optimizer: Any) -> Any:
        if not isinstance(optimizer, Optimizer):
            raise DTypeError(f"[{self._name}] {type(optimizer).__name__} is not an Optimizer")
        return optimizer

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    # The next epoch -----------------------------------------------------------------------
    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch; call it after `optimizer.step()`."""
        if told(self.step, epoch):
            return
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(_OVERRIDDEN, UserWarning, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(_TOO_EARLY, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set_lrs(closed or self.get_lr)

    def _set_lrs(self, rates: Callable[[], Rates]) -> None:
        self._get_lr_called_within_step = True
        try:
            values = rates()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_option(group, "lr", lr)
        self._last_lr = self._current()

    def get_lr(self) -> Rates:
        """The rates of the epoch `last_epoch`; to be called by `step` alone."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        return self._lrs()

    def _lrs(self) -> Rates:
        raise NotImplementedError(f"[{self._name}] has no get_lr()")

    def get_last_lr(self) -> Rates:
        """The rates that were set last."""
        return self._last_lr

    def _current(self) -> Rates:
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def _times(self, factor: float) -> Rates:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    # Saving and loading -------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and plain functions."""
        return {k: v for k, v in self.__dict__.items() if k not in self._not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The base by its old name."""


def _note_steps(optimizer: Any) -> None:
    """Let the optimizer remember that its step has been called."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step, reference = optimizer.step.__func__, ref(optimizer)

    @wraps(step)
    def noted(*args: Any, **kwargs: Any) -> Any:
        found: Any = reference()
        found._opt_called = True
        return step(found, *args, **kwargs)

    noted._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = noted


# Options of groups -------------------------------------------------------------------------------
def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def set_option(group: dict[str, Any], key: str, value: Any) -> None:
    """Give a group another value; a tensor stays the same tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value)
    else:
        group[key] = value


def one_each(owner: str, name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group: those of a list, or one for all."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * groups
    elif len(value) != groups:
        raise ArgumentError(
            f"[{owner}] {name} must have the same length as optimizer.param_groups: it has "
            f"{len(value)} values, there are {groups} groups"
        )
    return [_copied(v) for v in value]


def saved_function(function: Any) -> Any:
    """What is saved of a callable object, its attributes; of a plain function nothing."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()
