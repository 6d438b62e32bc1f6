"""Averages of a model's weights: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

from ..backends.registry import backend_of
from ..core.modes import no_grad
from ..core.recording import RECORDERS, recorder
from ..core.tensor import Tensor
from ..core.update import Update
from ..dtypes import int64
from ..errors import ArgumentError
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..ops.create.from_data import tensor
from .lr_scheduler.scheduler import LRScheduler, Rates, one_each
from .optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Tensors = Sequence[Tensor]
_towards = Update(
    "AveragedModel", lambda mean, new, part: (mean + part * (new - mean),), 2, 1, (0,)
)


def _move(means: Tensors, news: Tensors, part: float) -> None:
    """Move each mean by a part of the way to what is new, all floating ones in one launch."""
    rows = []
    for mean, new in zip(means, news, strict=True):
        if mean.is_floating_point() and new.dtype is mean.dtype and new.device == mean.device:
            rows.append((mean, new))
        else:
            mean.copy_(mean + (new - mean) * part)
    _towards(rows, (part,))


def _check_decay(name: str, decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ArgumentError(
            f"[{name}] Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Tensors, Tensors, Any], None]:
    """The exponential moving average, of all parameters at once.

    >>> import undertow as ut
    >>> mean, new = ut.zeros(2), ut.ones(2)
    >>> ut.optim.swa_utils.get_ema_multi_avg_fn(0.9)([mean], [new], None)
    >>> mean
    tensor([0.1000, 0.1000])
    """
    _check_decay("get_ema_multi_avg_fn", decay)

    @no_grad()
    def ema_update(ema_param_list: Tensors, current_param_list: Tensors, _: Any) -> None:
        _move(ema_param_list, current_param_list, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Tensors, Tensors, Any], None]:
    """The mean of all parameters so far, of all of them at once.

    >>> import undertow as ut
    >>> mean, new = ut.zeros(2), ut.ones(2)
    >>> ut.optim.swa_utils.get_swa_multi_avg_fn()([mean], [new], 3)
    >>> mean
    tensor([0.2500, 0.2500])
    """

    @no_grad()
    def swa_update(averaged_param_list: Tensors, current_param_list: Tensors, count: Any) -> None:
        _move(averaged_param_list, current_param_list, 1 / (float(count) + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The exponential moving average, of one parameter.

    >>> import undertow as ut
    >>> ut.optim.swa_utils.get_ema_avg_fn(0.9)(ut.zeros(2), ut.ones(2), None)
    tensor([0.1000, 0.1000])
    """
    _check_decay("get_ema_avg_fn", decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The mean of all parameters so far, of one parameter.

    >>> import undertow as ut
    >>> ut.optim.swa_utils.get_swa_avg_fn()(ut.zeros(2), ut.ones(2), 3)
    tensor([0.2500, 0.2500])
    """

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _positive(count: Tensor) -> bool:
    """Whether it is; recorded as a question, which is asked before anything is changed."""
    if RECORDERS and recorder() is not None:
        return backend_of(count._array).within(count._array, 1, math.inf)
    return count.item() > 0


class AveragedModel(Module):
    """A copy of a model whose weights are the average of those that the model has had.

    Args:
        model: What is copied and averaged.
        device: Where the copy lives; by default where the model does.
        avg_fn: `(mean, new, count) -> mean` of one parameter; the plain mean by default.
        multi_avg_fn: The same for lists of parameters, which it changes in place.
        use_buffers: Whether buffers are averaged too; else they are copied.

    >>> import undertow as ut
    >>> model = ut.nn.Linear(1, 1, bias=False)
    >>> averaged = ut.optim.swa_utils.AveragedModel(model)
    >>> for weight in (1.0, 2.0, 6.0):
    ...     _ = ut.nn.init.constant_(model.weight, weight)
    ...     averaged.update_parameters(model)
    >>> averaged(ut.ones(1)).item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Tensors, Tensors, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError(
                "[AveragedModel] Only one of avg_fn and multi_avg_fn should be provided"
            )
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the weights that the model has now into the average."""
        means, news = (
            [t.detach() for t in chain(m.parameters(), m.buffers() if self.use_buffers else ())]
            for m in (self.module, model)
        )
        news = [new.to(mean.device) for mean, new in zip(means, news, strict=True)]
        count = self.n_averaged
        if not _positive(count):
            for mean, new in zip(means, news, strict=True):
                mean.copy_(new)
        elif self.avg_fn is not None:
            for mean, new in zip(means, news, strict=True):
                mean.copy_(self.avg_fn(mean, new, count.to(mean.device)))
        elif means:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(means, news, count)
        if not self.use_buffers:
            for mean, new in zip(self.module.buffers(), model.buffers(), strict=True):
                mean.detach().copy_(new.detach())
        count += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Measure the running statistics of batch norms anew, in one pass over the data.

    An averaged model needs it: the statistics of its activations are not the averages of those
    that the models had. Of a batch that is a list or a tuple, the first element is the input.
    """
    norms: list[Any] = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean of all batches
    for batch in loader:
        given = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(given if device is None else given.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present learning rate to a constant one, `swa_lr`, in `anneal_epochs`.

    >>> import undertow as ut
    >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ut.optim.swa_utils.SWALR(
    ...     optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear"
    ... )
    >>> for _ in range(3):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [1.0]
    [0.75]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = one_each("SWALR", "swa_lr", self._checked(optimizer), swa_lr)
        for lr, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                "[SWALR] anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        if type(anneal_epochs) is not int or anneal_epochs < 0:
            raise ArgumentError(
                f"[SWALR] anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """How much of the way is done after so many steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def _lrs(self) -> Rates:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
