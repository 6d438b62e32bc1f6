"""What is learnt: a class, a number, or what comes next; the loss of each and how good it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.tensor import Tensor
from ..nn import functional as F

TASKS = ("classification", "regression", "forecast")


@dataclass(frozen=True)
class Task:
    """The loss to learn by, and a measure that people read, whose `unit` is that of the targets."""

    metric: str
    loss: Callable[[Tensor, Tensor], Tensor]
    score: Callable[[Tensor, Tensor], Tensor]  # the sum over the series of a batch
    unit: float = 1.0

    def scored(self, outputs: Tensor, targets: Tensor) -> float:
        """The sum of the measure over the series of a batch."""
        return self.unit * float(self.score(outputs.detach(), targets).item())


def _hits(scores: Tensor, classes: Tensor) -> Tensor:
    return (scores.argmax(dim=1) == classes).sum()


def _errors(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).abs().flatten(1).mean(dim=1).sum()


CLASSIFICATION = Task("accuracy", F.cross_entropy, _hits)


def regression(unit: float = 1.0) -> Task:
    """Numbers that were divided by `unit`, by their mean squared error; `mae` is in their own.

    >>> import undertow as ut
    >>> from undertow.models.tasks import regression
    >>> regression(10.0).scored(ut.tensor([[1.0], [2.0]]), ut.tensor([[1.5], [2.0]]))
    5.0
    """
    return Task("mae", F.mse_loss, _errors, unit)
