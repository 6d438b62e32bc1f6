"""Schedules made of others: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ...core.recording import told
from ...errors import ArgumentError, DTypeError
from ..optimizer import Optimizer
from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler, set_option


class _Composed(LRScheduler):
    _not_saved = ("optimizer", "_schedulers")
    _schedulers: Sequence[LRScheduler]

    def _check_schedulers(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise DTypeError(
                    f"[{self._name}] the scheduler at index {i} should have `optimizer` as its "
                    f"attribute, got {type(scheduler).__name__}"
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ArgumentError(
                    f"[{self._name}] does not support `ReduceLROnPlateau`, whose step needs a "
                    f"metric, but got one at index {i}"
                )
            if scheduler.optimizer is not optimizer:
                raise ArgumentError(
                    f"[{self._name}] expects all schedulers to belong to the same optimizer, but "
                    f"{type(scheduler).__name__} at index {i} belongs to another one"
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedulers."""
        states = [s.state_dict() for s in self._schedulers]
        return {**super().state_dict(), "_schedulers": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        others = dict(state_dict)
        states = others.pop("_schedulers")
        super().load_state_dict(others)
        for scheduler, state in zip(self._schedulers, states, strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Composed):
    """One schedule after the other; each begins anew at its milestone.

    >>> import undertow as ut
    >>> from undertow.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=1.0)
    >>> warm_up = ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> decay = ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = SequentialLR(optimizer, [warm_up, decay], milestones=[2])
    >>> for _ in range(4):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [0.5]
    [0.5]
    [1.0]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if not schedulers:
            raise ArgumentError(
                f"[{self._name}] expects at least one scheduler, but got no scheduler"
            )
        self._check_schedulers(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                f"[{self._name}] expects one scheduler more than milestones, but got "
                f"{len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # as if none of them had begun
            set_option(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back the first step of all schedules, also of those inside others."""
        inside = getattr(sched or self, "_schedulers", None)
        if inside is None:
            sched.last_epoch -= 1
        else:
            for scheduler in inside:
                self.recursive_undo(scheduler)

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch, by the schedule whose turn it is."""
        if told(self.step, epoch):
            return
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Several schedules at once: each changes what the one before has set.

    >>> import undertow as ut
    >>> from undertow.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=1.0)
    >>> parts = [ConstantLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, 0.5)]
    >>> scheduler = ChainedScheduler(parts)
    >>> for _ in range(3):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [0.5]
    [0.25]
    [0.25]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ArgumentError(
                f"[{self._name}] expects at least one scheduler to be chained, but got no scheduler"
            )
        self.optimizer = optimizer or schedulers[0].optimizer
        self._check_schedulers(schedulers, self.optimizer)
        self._schedulers = schedulers
        self._last_lr = self._current()

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch, by all schedules in turn."""
        if told(self.step, epoch):
            return
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()
