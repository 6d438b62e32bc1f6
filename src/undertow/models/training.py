"""`Training`: a model learns from series, and can be stopped and continued at any batch.

As in H. Ismail Fawaz et al. (2019): Adam, batches of at most a tenth of the series, the learning
rate halved after 50 epochs in which the training loss made no progress. The model is that of the
epoch with the smallest loss of the validation series; without any, of the training series, as
theirs is.

Note [continuing]
What follows depends on nothing but `state()`: the weights and what the optimiser and the schedule
remember, both generators, the order of the epoch under way, how far it has come, and the sums so
far. So a training that stops between any two batches and goes on in another process gives the same
bits as one that never stopped.

Note [statistics]
The running means of batch norms lag behind weights that Adam moves quickly: with the momentum of
the paper (Keras's 0.99) they need hundreds of epochs of ten batches until a model in evaluation
does what it does in training, and after one large step they are of no use for a while. So a model
that is validated, and the best one in the end, get the mean statistics of batches of the training
series under its own weights, as `optim.swa_utils.update_bn` takes them. The batches are as large as
in training: the variance in a small one is less than that of all series.

Note [average]
From one epoch to the next the weights jump to and fro around a good place. Where nothing is left to
choose an epoch by, since all series are learnt from, their moving average over about ten epochs
is taken; the epoch is then chosen by the validation of such averages, too.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..core.generator import Generator, default_generator
from ..core.modes import no_grad
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..nn import Module
from ..optim import Adam
from ..optim.lr_scheduler import ReduceLROnPlateau
from ..optim.swa_utils import update_bn
from ..utils.data import DataLoader, TensorDataset
from .tasks import CLASSIFICATION, Task

PATIENCE, LEAST_RATE = 50, 1e-4  # epochs without progress; where halving ends
_EVALUATED = 64  # series at once, when nothing is learnt
_KEPT = 0.9  # of the average of weights, in one epoch
_PASSES = 5  # over the series, for the statistics of batch norms of the best model


def paper_batch_size(number: int) -> int:
    """The batch size of the paper: a tenth of the series, at most 16.

    >>> from undertow.models.training import paper_batch_size
    >>> paper_batch_size(50), paper_batch_size(500), paper_batch_size(7)
    (5, 16, 1)
    """
    return max(1, min(number // 10, 16))


class _Batches:
    """The batches that are left of a training's epoch, as lists of indices."""

    def __init__(self, training: Training) -> None:
        self.training = weakref.proxy(training)

    def __iter__(self) -> Iterator[list[int]]:
        order, size = self.training.order, self.training.batch_size
        for i in range(self.training.seen, len(order), size):
            yield order[i : i + size]

    def __len__(self) -> int:
        return -(-(len(self.training.order) - self.training.seen) // self.training.batch_size)


class Training:
    """The training of one model on one set of series: values, lengths if they differ, targets.

    With `validation` series the best epoch is that with the smallest loss of them, and `over` is
    true after `patience` epochs without a better one.

    >>> import undertow as ut
    >>> from undertow.models import FCN
    >>> from undertow.models.training import Training
    >>> waves = ut.sin(ut.tensor([1.0, 2.0]).repeat(4).reshape(8, 1, 1) * ut.arange(16.0))
    >>> data = ut.utils.data.TensorDataset(waves, ut.tensor([0, 1]).repeat(4))
    >>> training = Training(FCN(1, 2), data, lr=1e-3, batch_size=4, seed=0)
    >>> training.epoch_of_training() and training.epochs
    1
    """

    def __init__(
        self,
        model: Module,
        data: TensorDataset,
        *,
        lr: float,
        batch_size: int,
        seed: int,
        device: Any = None,
        workers: int = 0,
        task: Task = CLASSIFICATION,
        validation: TensorDataset | None = None,
        patience: int | None = None,
        averaged: bool = False,
    ) -> None:
        self.task, self.validation, self.patience = task, validation, patience
        self.model = model.to(device) if device is not None else model
        self.data, self.batch_size, self.device = data, batch_size, device
        self.optimizer = Adam(self.model.parameters(), lr=lr)
        self.schedule = ReduceLROnPlateau(
            self.optimizer,
            factor=0.5,
            patience=PATIENCE - 1,  # torch counts those that may pass, Keras the one that may not
            threshold=1e-4,
            threshold_mode="abs",
            min_lr=min(LEAST_RATE, lr),
        )
        self.shuffling = Generator().manual_seed(seed)
        self.epochs = 0  # that are complete
        self.history: list[dict[str, float]] = []
        self.order: list[int] = []  # of the epoch under way
        self.seen = 0  # series of that order
        self.loss_sum, self.score_sum, self.seconds = 0.0, 0.0, 0.0
        self.best: dict[str, Tensor] = {}
        self.average: dict[str, Tensor] | None = {} if averaged else None  # Note [average]
        self.best_loss, self.best_epoch = float("inf"), 0
        self.loader: DataLoader[Any] = DataLoader(
            data,
            batch_size=None,  # since what is drawn is a whole batch already
            sampler=_Batches(self),
            num_workers=workers,
            persistent_workers=workers > 0,
            generator=Generator(),  # for seeds of workers, which have nothing random to do
        )

    @property
    def batches(self) -> int:
        """How many there are in an epoch."""
        return -(-len(self.data) // self.batch_size)

    @property
    def batches_done(self) -> int:
        """How many there were in all."""
        return self.epochs * self.batches + -(-self.seen // self.batch_size)

    @property
    def loss(self) -> float:
        """The mean over the series of the epoch under way."""
        return self.loss_sum / max(self.seen, 1)

    @property
    def score(self) -> float:
        """The task's measure of the series of the epoch under way, before learning from each."""
        return self.score_sum / max(self.seen, 1)

    @property
    def over(self) -> bool:
        """Whether `patience` is at its end."""
        return self.patience is not None and self.epochs - self.best_epoch >= self.patience

    def epoch_of_training(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Learn from every series once; False if `stop()`, asked after each batch, says so.

        The next call continues where this one has stopped.
        """
        if not self.order:
            self.order = FUNCTIONS["randperm"](len(self.data), generator=self.shuffling).tolist()
        self.model.train()
        begin = time.perf_counter()
        for batch in self.loader:
            self._learn(batch)
            if self.seen < len(self.order) and stop():
                self.seconds += time.perf_counter() - begin
                return False
        self.seconds += time.perf_counter() - begin
        self._end_epoch()
        return True

    def _learn(self, batch: Sequence[Tensor]) -> None:
        if self.device is not None:
            batch = [part.to(self.device) for part in batch]
        *inputs, targets = batch
        self.optimizer.zero_grad()
        outputs = self.model(*inputs)
        loss = self.task.loss(outputs, targets)
        loss.backward()
        self.optimizer.step()
        self.seen += len(targets)
        self.loss_sum += float(loss.item()) * len(targets)
        self.score_sum += self.task.scored(outputs, targets)

    def _end_epoch(self) -> None:
        self.epochs += 1
        rate = float(self.optimizer.param_groups[0]["lr"])
        if not math.isfinite(self.loss):
            raise ArgumentError(
                f"[Training] the loss of epoch {self.epochs} is {self.loss}: with a learning rate "
                f"of {rate:g} it diverges; try a smaller one"
            )
        if self.average is not None:
            self.average = _nearer(self.average, _copy(self.model), self.epochs)
        row = {"epoch": self.epochs, "loss": self.loss, self.task.metric: self.score, "lr": rate}
        chosen_by = self.loss
        if self.validation is not None:
            begin = time.perf_counter()
            chosen_by, score = self.validated()
            row |= {"validation_loss": chosen_by, f"validation_{self.task.metric}": score}
            self.seconds += time.perf_counter() - begin
        self.history.append({**row, "seconds": self.seconds})
        if chosen_by < self.best_loss:
            self.best_loss, self.best_epoch = chosen_by, self.epochs
            self.best = dict(self.average or _copy(self.model))
        self.schedule.step(self.loss)
        self.order, self.seen, self.seconds = [], 0, 0.0
        self.loss_sum = self.score_sum = 0.0

    def validated(self) -> tuple[float, float]:
        """Loss and measure of the validation series, with statistics of the present weights."""
        assert self.validation is not None
        kept = _copy(self.model)
        if self.average:
            self.model.load_state_dict(self.average)
        self._take_statistics(1)
        found = evaluated(self.model, self.validation, self.device, self.task)
        self.model.load_state_dict(kept)
        return found

    def take_best(self) -> None:
        """Give the model the weights of the best epoch, and the statistics that belong to them."""
        if self.best:
            self.model.load_state_dict(self.best)
            self._take_statistics(_PASSES)

    def take_last(self) -> None:
        """Give the model the weights of the last epoch, likewise."""
        if self.average:
            self.model.load_state_dict(self.average)
        self._take_statistics(_PASSES)

    def _take_statistics(self, passes: int) -> None:
        """Give batch norms the statistics of the training series: Note [statistics]."""
        *inputs, targets = self.data.tensors
        drawn = Generator()
        orders = [FUNCTIONS["randperm"](len(targets), generator=drawn) for _ in range(passes)]
        chosen = FUNCTIONS["cat"](orders).split(self.batch_size)
        with no_grad():
            update_bn(chosen, _Chosen(self.model, inputs, self.device))

    # Stopping and going on: Note [continuing] -----------------------------------------------------
    def state(self) -> dict[str, Any]:
        """Everything that `load_state` needs to go on in another process."""
        return {
            "model": dict(self.model.state_dict()),
            "best": dict(self.best),
            "average": dict(self.average or {}),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffling": self.shuffling.get_state(),
            "random": default_generator.get_state(),
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` was."""
        needed = {"model", "best", "average", "optimizer", "schedule", "shuffling", "random"}
        needed |= set(_NUMBERS)
        if missing := needed - set(state):
            raise ArgumentError(f"[Training] the state has no {', '.join(sorted(missing))}")
        if state["order"] and len(state["order"]) != len(self.data):
            raise ArgumentError(
                f"[Training] the state is of {len(state['order'])} series, these are "
                f"{len(self.data)}"
            )
        self.model.load_state_dict(state["model"])
        self.best = dict(state["best"])
        if self.average is not None:
            self.average = dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffling.set_state(state["shuffling"])
        default_generator.set_state(state["random"])
        for name in _NUMBERS:
            setattr(self, name, state[name])


_NUMBERS = (
    *("epochs", "order", "seen", "loss_sum", "score_sum", "seconds"),
    *("best_loss", "best_epoch"),
)


class _Chosen(Module):
    """A model whose input are indices of series: `update_bn` gives it one tensor."""

    def __init__(self, model: Module, inputs: Sequence[Tensor], device: Any) -> None:
        super().__init__()
        self.model, self.inputs, self.device = model, inputs, device
        self.train(model.training)

    def forward(self, chosen: Tensor) -> Tensor:
        parts = [part[chosen] for part in self.inputs]
        if self.device is not None:
            parts = [part.to(self.device) for part in parts]
        outputs: Tensor = self.model(*parts)
        return outputs


def _nearer(
    average: dict[str, Tensor], weights: dict[str, Tensor], epochs: int
) -> dict[str, Tensor]:
    """The average with one more epoch in it: Note [average]."""
    if not average:
        return weights
    share = 1 - min(_KEPT, epochs / (epochs + 9))
    return {
        name: old + share * (weights[name] - old) if old.is_floating_point() else weights[name]
        for name, old in average.items()
    }


def _copy(model: Module) -> dict[str, Tensor]:
    return {k: v.detach().clone() for k, v in model.state_dict().items()}


def scores_of(model: Module, *inputs: Tensor, device: Any = None) -> Tensor:
    """The outputs for series of shape (number, channels, length), in evaluation.

    For a classifier they are the scores of all classes. Series of uneven lengths come with those.
    """
    training = model.training
    model.eval()
    with no_grad():
        parts = [
            model(*(part if device is None else part.to(device) for part in batch))
            for batch in zip(*(part.split(_EVALUATED) for part in inputs), strict=True)
        ]
    model.train(training)
    return FUNCTIONS["cat"](parts).to("cpu")


def evaluated(
    model: Module, data: TensorDataset, device: Any = None, task: Task = CLASSIFICATION
) -> tuple[float, float]:
    """The mean loss of a set of series, and the task's measure: of classes, the share found."""
    *inputs, targets = data.tensors
    outputs = scores_of(model, *inputs, device=device)
    loss = float(task.loss(outputs, targets).item())
    return loss, task.scored(outputs, targets) / len(targets)
