"""`Training`: a classifier learns from series, and can be stopped and continued at any batch.

As in H. Ismail Fawaz et al. (2019): Adam, batches of at most a tenth of the series, the learning
rate halved after 50 epochs in which the training loss made no progress, and the model of the epoch
with the smallest training loss.

Note [continuing]
What follows depends on nothing but `state()`: the weights and what the optimiser and the schedule
remember, both generators, the order of the epoch under way, how far it has come, and the sums so
far. So a training that stops between any two batches and goes on in another process gives the same
bits as one that never stopped.

Note [statistics]
The running means of batch norms lag behind weights that Adam moves quickly: with the momentum of
the paper (Keras's 0.99) they need hundreds of epochs of ten batches until a model in evaluation
does what it does in training. So the best model gets the mean statistics of batches of the
training series under its own weights, as `optim.swa_utils.update_bn` takes them. The batches are as
large as in training: the variance in a small one is less than that of all series.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..core.generator import Generator, default_generator
from ..core.modes import no_grad
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..nn import functional as F
from ..optim import Adam
from ..optim.lr_scheduler import ReduceLROnPlateau
from ..optim.swa_utils import update_bn
from ..utils.data import DataLoader, TensorDataset
from .classifier import Classifier

PATIENCE, LEAST_RATE = 50, 1e-4  # epochs without progress; where halving ends
_EVALUATED = 64  # series at once, when nothing is learnt
_PASSES = 5  # over the series, for the statistics of batch norms


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
    """The training of one classifier on one set of series.

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
        model: Classifier,
        data: TensorDataset,
        *,
        lr: float,
        batch_size: int,
        seed: int,
        device: Any = None,
        workers: int = 0,
    ) -> None:
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
        self.loss_sum, self.hits, self.seconds = 0.0, 0, 0.0
        self.best: dict[str, Tensor] = {}
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
    def accuracy(self) -> float:
        """The share of the series of the epoch under way whose class was found before learning."""
        return self.hits / max(self.seen, 1)

    def epoch_of_training(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Learn from every series once; False if `stop()`, asked after each batch, says so.

        The next call continues where this one has stopped.
        """
        if not self.order:
            self.order = FUNCTIONS["randperm"](len(self.data), generator=self.shuffling).tolist()
        self.model.train()
        begin = time.perf_counter()
        for values, classes in self.loader:
            self._learn(values, classes)
            if self.seen < len(self.order) and stop():
                self.seconds += time.perf_counter() - begin
                return False
        self.seconds += time.perf_counter() - begin
        self._end_epoch()
        return True

    def _learn(self, values: Tensor, classes: Tensor) -> None:
        if self.device is not None:
            values, classes = values.to(self.device), classes.to(self.device)
        self.optimizer.zero_grad()
        scores = self.model(values)
        loss = F.cross_entropy(scores, classes)
        loss.backward()
        self.optimizer.step()
        self.seen += len(classes)
        self.loss_sum += float(loss.item()) * len(classes)
        self.hits += int((scores.detach().argmax(dim=1) == classes).sum().item())

    def _end_epoch(self) -> None:
        self.epochs += 1
        rate = float(self.optimizer.param_groups[0]["lr"])
        if not math.isfinite(self.loss):
            raise ArgumentError(
                f"[Training] the loss of epoch {self.epochs} is {self.loss}: with a learning rate "
                f"of {rate:g} it diverges; try a smaller one"
            )
        row = {"epoch": self.epochs, "loss": self.loss, "accuracy": self.accuracy, "lr": rate}
        self.history.append({**row, "seconds": self.seconds})
        if self.loss < self.best_loss:
            self.best_loss, self.best_epoch = self.loss, self.epochs
            self.best = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.schedule.step(self.loss)
        self.order, self.seen, self.loss_sum, self.hits, self.seconds = [], 0, 0.0, 0, 0.0

    def take_best(self) -> None:
        """Give the model the weights of the epoch with the smallest training loss.

        Its batch norms get the statistics of the training series: Note [statistics].
        """
        if self.best:
            self.model.load_state_dict(self.best)
            values, drawn = self.data.tensors[0], Generator()
            passes = [FUNCTIONS["randperm"](len(values), generator=drawn) for _ in range(_PASSES)]
            order = FUNCTIONS["cat"](passes)
            with no_grad():
                batches = (values[chosen] for chosen in order.split(self.batch_size))
                update_bn(batches, self.model, self.device)

    # Stopping and going on: Note [continuing] -----------------------------------------------------
    def state(self) -> dict[str, Any]:
        """Everything that `load_state` needs to go on in another process."""
        return {
            "model": dict(self.model.state_dict()),
            "best": dict(self.best),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffling": self.shuffling.get_state(),
            "random": default_generator.get_state(),
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` was."""
        needed = {"model", "best", "optimizer", "schedule", "shuffling", "random", *_NUMBERS}
        if missing := needed - set(state):
            raise ArgumentError(f"[Training] the state has no {', '.join(sorted(missing))}")
        if state["order"] and len(state["order"]) != len(self.data):
            raise ArgumentError(
                f"[Training] the state is of {len(state['order'])} series, these are "
                f"{len(self.data)}"
            )
        self.model.load_state_dict(state["model"])
        self.best = dict(state["best"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffling.set_state(state["shuffling"])
        default_generator.set_state(state["random"])
        for name in _NUMBERS:
            setattr(self, name, state[name])


_NUMBERS = ("epochs", "order", "seen", "loss_sum", "hits", "seconds", "best_loss", "best_epoch")


def scores_of(model: Classifier, values: Tensor, device: Any = None) -> Tensor:
    """The scores of all classes for series of shape (number, channels, length), in evaluation."""
    training = model.training
    model.eval()
    with no_grad():
        parts = [
            model(batch if device is None else batch.to(device))
            for batch in values.split(_EVALUATED)
        ]
    model.train(training)
    return FUNCTIONS["cat"](parts).to("cpu")


def evaluated(model: Classifier, data: TensorDataset, device: Any = None) -> tuple[float, float]:
    """The mean loss of a set of series, and the share of them whose class the model finds."""
    values, classes = data.tensors
    scores = scores_of(model, values, device)
    hits = int((scores.argmax(dim=1) == classes).sum().item())
    return float(F.cross_entropy(scores, classes).item()), hits / len(classes)
