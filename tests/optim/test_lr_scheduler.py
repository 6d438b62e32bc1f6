"""Schedules of learning rates against their closed forms; averages of weights."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.optim import lr_scheduler as s
from undertow.optim import swa_utils

EPOCHS = 50


def optimizer(lr: Any = 0.4, kind: str = "SGD", groups: int = 1) -> Any:
    params = [{"params": [ut.ones(2, requires_grad=True)]} for _ in range(groups)]
    return getattr(ut.optim, kind)(params, lr=lr)


def rates(o: Any, scheduler: Any, epochs: int = EPOCHS) -> list[float]:
    """The rate of each epoch."""
    found = []
    for _ in range(epochs):
        found.append(float(o.param_groups[0]["lr"]))
        o.step()
        scheduler.step()
    return found


def cosine(part: float) -> float:
    return (1 + math.cos(math.pi * part)) / 2


def restarts(epoch: int) -> float:
    length = 4
    while epoch >= length:
        epoch -= length
        length *= 2
    return 0.1 + 0.3 * cosine(epoch / length)


def one_cycle(epoch: int) -> float:
    """Up in 30 % of 60 steps, and down; see Smith and Topin."""
    top, low, least = 17.0, 0.4 / 25, 0.4 / 25 / 1e4
    if epoch <= top:
        return 0.4 + (low - 0.4) * cosine(epoch / top)
    return least + (0.4 - least) * cosine((epoch - top) / (59 - top))


def triangle(epoch: int, height: Any) -> float:
    cycle, place = divmod(epoch, 12)
    part = place / 4 if place <= 4 else (12 - place) / 8
    return 0.1 + 0.3 * part * height(cycle, epoch)


# How each is made, and what its rate is after `e` epochs.
CLOSED: dict[str, tuple[Any, Any]] = {
    "LambdaLR": (lambda o: s.LambdaLR(o, lambda e: 1 / (e + 1)), lambda e: 0.4 / (e + 1)),
    "MultiplicativeLR": (lambda o: s.MultiplicativeLR(o, lambda e: 0.9), lambda e: 0.4 * 0.9**e),
    "StepLR": (lambda o: s.StepLR(o, 7, 0.5), lambda e: 0.4 * 0.5 ** (e // 7)),
    "MultiStepLR": (
        lambda o: s.MultiStepLR(o, [3, 10, 10], 0.5),
        lambda e: 0.4 * 0.5 ** ((e >= 3) + 2 * (e >= 10)),
    ),
    "ConstantLR": (lambda o: s.ConstantLR(o, 0.25, 6), lambda e: 0.4 if e >= 6 else 0.1),
    "LinearLR": (
        lambda o: s.LinearLR(o, 0.2, 0.8, 13),
        lambda e: 0.4 * (0.2 + 0.6 * min(e, 13) / 13),
    ),
    "ExponentialLR": (lambda o: s.ExponentialLR(o, 0.9), lambda e: 0.4 * 0.9**e),
    "PolynomialLR": (
        lambda o: s.PolynomialLR(o, 31, 1.7),
        lambda e: 0.4 * (1 - min(e, 31) / 31) ** 1.7,
    ),
    "CosineAnnealingLR": (
        lambda o: s.CosineAnnealingLR(o, 11, 0.1),
        lambda e: 0.1 + 0.3 * cosine(e / 11),
    ),
    "CosineAnnealingWarmRestarts": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.1),
        restarts,
    ),
    "CyclicLR": (
        lambda o: s.CyclicLR(o, 0.1, 0.4, 4, 8, cycle_momentum=False),
        lambda e: triangle(e, lambda cycle, epoch: 1),
    ),
    "CyclicLR-triangular2": (
        lambda o: s.CyclicLR(o, 0.1, 0.4, 4, 8, "triangular2", cycle_momentum=False),
        lambda e: triangle(e, lambda cycle, epoch: 0.5**cycle),
    ),
    "CyclicLR-exp_range": (
        lambda o: s.CyclicLR(o, 0.1, 0.4, 4, 8, "exp_range", 0.9, cycle_momentum=False),
        lambda e: triangle(e, lambda cycle, epoch: 0.9**epoch),
    ),
    "OneCycleLR": (lambda o: s.OneCycleLR(o, 0.4, 60, cycle_momentum=False), one_cycle),
    "SequentialLR": (
        lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.5, 5), s.ExponentialLR(o, 0.9)], [5]),
        lambda e: 0.2 if e < 5 else 0.4 * 0.9 ** (e - 5),
    ),
    "ChainedScheduler": (
        lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 5), s.ExponentialLR(o, 0.9)]),
        lambda e: 0.4 * 0.9**e * (0.5 if e < 5 else 1),
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_form(name: str) -> None:
    make, rate = CLOSED[name]
    o = optimizer()
    found = rates(o, make(o))
    np.testing.assert_allclose(found, [rate(e) for e in range(EPOCHS)], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CLOSED)
def test_tensor_as_learning_rate(name: str) -> None:
    """The tensor itself changes."""
    make, rate = CLOSED[name]
    lr = ut.tensor(0.4, dtype=ut.float64)
    o = optimizer(lr)
    found = rates(o, make(o), 12)
    assert o.param_groups[0]["lr"] is lr
    np.testing.assert_allclose(found, [rate(e) for e in range(12)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CLOSED)
def test_saved_and_loaded(name: str) -> None:
    """A new schedule with the state of the old one goes on as that would have."""
    make, rate = CLOSED[name]
    o = optimizer()
    scheduler = make(o)
    rates(o, scheduler, 9)
    state, own = copy.deepcopy(scheduler.state_dict()), copy.deepcopy(o.state_dict())
    assert "optimizer" not in state
    o = optimizer()
    scheduler = make(o)
    o.load_state_dict(own)
    scheduler.load_state_dict(state)
    found = rates(o, scheduler, 20)
    np.testing.assert_allclose(found, [rate(e) for e in range(9, 29)], rtol=1e-10, atol=1e-12)
    assert scheduler.get_last_lr() == [o.param_groups[0]["lr"]]


@pytest.mark.parametrize("name", [n for n in CLOSED if n[0] not in "S" and "Chained" not in n])
def test_any_epoch(name: str) -> None:
    """Those that know the rate of any epoch can be told which one it is."""
    make, rate = CLOSED[name]
    if name == "MultiplicativeLR":
        return  # it does not know
    o = optimizer()
    scheduler = make(o)
    o.step()
    for epoch in (5, 20, 3):
        if name == "CosineAnnealingWarmRestarts":
            scheduler.step(epoch)
        else:
            with pytest.warns(UserWarning, match="epoch parameter"):
                scheduler.step(epoch)
        np.testing.assert_allclose(o.param_groups[0]["lr"], rate(epoch), rtol=1e-12)


def test_momentum_goes_the_other_way() -> None:
    for kind in ("SGD", "Adam"):
        o = optimizer(kind=kind)
        scheduler = s.OneCycleLR(o, 1.0, total_steps=20, base_momentum=0.8, max_momentum=0.9)
        found = []
        for _ in range(20):
            group = o.param_groups[0]
            found.append((group["lr"], group["betas"][0] if kind == "Adam" else group["momentum"]))
            o.step()
            scheduler.step()
        lrs, momenta = map(np.array, zip(*found, strict=True))
        assert momenta[0] == momenta[-1] == 0.9
        assert momenta.argmin() == lrs.argmax()
        assert ((np.diff(lrs) >= 0) == (np.diff(momenta) <= 0)).all()
    with pytest.raises(ValueError, match=r"\[CyclicLR\].*Adadelta"):
        s.CyclicLR(optimizer(kind="Adadelta"), 0.1, 1.0)


def test_plateau() -> None:
    o = optimizer(1.0)
    scheduler = s.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1, min_lr=0.2)
    metrics = [5, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    found = []
    for m in metrics:
        scheduler.step(ut.tensor(float(m)))
        found.append(scheduler.get_last_lr()[0])
    assert found == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25] + [0.25] * 3 + [0.2] * 6
    state = scheduler.state_dict()
    other = s.ReduceLROnPlateau(o, mode="max")
    other.load_state_dict(state)
    assert (other.mode, other.best, other.patience) == ("min", 3.0, 2)


def test_groups() -> None:
    o = optimizer(groups=2)
    scheduler = s.LambdaLR(o, [lambda e: 0.5**e, lambda e: 1.0])
    o.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.2, 0.4]
    assert [g["initial_lr"] for g in o.param_groups] == [0.4, 0.4]
    for bad in ([lambda e: 1.0], [lambda e: 1.0] * 3):
        with pytest.raises(ValueError, match=r"\[LambdaLR\].*2 groups"):
            s.LambdaLR(o, bad)


class Halving:
    """A callable object: its attributes are saved."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, epoch: int) -> float:
        return self.by**epoch


def test_functions_are_not_saved_but_objects_are() -> None:
    o = optimizer(groups=2)
    scheduler = s.LambdaLR(o, [lambda e: 1.0, Halving(0.25)])
    state = scheduler.state_dict()
    assert state["lr_lambdas"] == [None, {"by": 0.25}]
    other = s.LambdaLR(o, [lambda e: 1.0, Halving(0.5)])
    other.load_state_dict(state)
    assert other.lr_lambdas[1].by == 0.25
    assert "lr_lambdas" in state  # nothing was taken out of it


# Order of calls ----------------------------------------------------------------------------------
def test_too_early() -> None:
    o = optimizer()
    scheduler = s.StepLR(o, 1)
    with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`"):
        scheduler.step()
    o = optimizer()
    scheduler = s.StepLR(o, 1)
    o.step = lambda: None
    with pytest.warns(UserWarning, match="overridden"):
        scheduler.step()


def test_get_lr_is_not_for_users() -> None:
    scheduler = s.StepLR(optimizer(), 1)
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()


def test_resumed() -> None:
    """With `last_epoch`, from a rate that the optimiser remembers."""
    with pytest.raises(KeyError, match="initial_lr"):
        s.StepLR(optimizer(), 2, last_epoch=3)
    o = optimizer()
    o.param_groups[0]["initial_lr"] = 0.4
    o.param_groups[0]["lr"] = 0.2
    scheduler = s.StepLR(o, 2, 0.5, last_epoch=2)
    assert scheduler.last_epoch == 3
    o.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.1]


def test_optimiser_is_freed() -> None:
    """A schedule that notes the optimiser's steps does not keep it alive by a cycle."""
    import weakref

    o = optimizer()
    s.StepLR(o, 1)
    reference = weakref.ref(o)
    del o
    assert reference() is None


def test_own_schedule() -> None:
    class Root(s._LRScheduler):
        def get_lr(self) -> list[float]:
            return [base / math.sqrt(self.last_epoch + 1) for base in self.base_lrs]

    o = optimizer()
    np.testing.assert_allclose(rates(o, Root(o), 4), [0.4 / math.sqrt(e + 1) for e in range(4)])


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda o: s.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: s.ConstantLR(o, 1.5), ValueError, "between 0 and 1, got 1.5"),
        (lambda o: s.LinearLR(o, 0.0), ValueError, "got 0.0"),
        (lambda o: s.LinearLR(o, 0.5, 1.5), ValueError, "got 1.5"),
        (lambda o: s.MultiplicativeLR(o, 0.5), TypeError, "should be a function.*float"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0, but got 0"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 2, 0), ValueError, "T_mult >= 1, but got 0"),
        (lambda o: s.CyclicLR(o, 0.1, 1.0, mode="square"), ValueError, "square"),
        (lambda o: s.CyclicLR(o, [0.1, 0.2], 1.0), ValueError, "base_lr.*2 values.*1 groups"),
        (lambda o: s.OneCycleLR(o, 1.0), ValueError, "either total_steps OR"),
        (lambda o: s.OneCycleLR(o, 1.0, 0), ValueError, "total_steps, but got 0"),
        (lambda o: s.OneCycleLR(o, 1.0, epochs=2, steps_per_epoch=-1), ValueError, "got -1"),
        (lambda o: s.OneCycleLR(o, 1.0, 5, pct_start=2.0), ValueError, "got 2.0"),
        (lambda o: s.OneCycleLR(o, 1.0, 5, anneal_strategy="x"), ValueError, "got x"),
        (lambda o: s.ReduceLROnPlateau(o, factor=1.0), ValueError, "< 1.0, got 1.0"),
        (lambda o: s.ReduceLROnPlateau(o, "least"), ValueError, "mode least"),
        (lambda o: s.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "mode x"),
        (lambda o: s.ReduceLROnPlateau(o, min_lr=[0, 0]), ValueError, "min_lr"),
        (lambda o: s.SequentialLR(o, [], []), ValueError, "at least one"),
        (lambda o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]), ValueError, "1 milestones"),
        (lambda o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []), ValueError, "index 0"),
        (lambda o: s.SequentialLR(optimizer(), [s.StepLR(o, 1)], []), ValueError, "same opt"),
        (lambda o: s.ChainedScheduler([]), ValueError, "at least one"),
        (lambda o: s.ChainedScheduler([1], o), TypeError, "int"),
        (lambda o: swa_utils.SWALR(o, 0.1, anneal_strategy="x"), ValueError, "got x"),
        (lambda o: swa_utils.SWALR(o, 0.1, anneal_epochs=-1), ValueError, "got -1"),
    ],
)
def test_bad_input(make: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        make(optimizer())


def test_too_many_steps() -> None:
    o = optimizer()
    scheduler = s.OneCycleLR(o, 1.0, total_steps=2)
    rates(o, scheduler, 2)
    with pytest.raises(ValueError, match="step 3 times"):
        scheduler.step()


# Averages of weights -----------------------------------------------------------------------------
class Model(ut.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = ut.nn.Parameter(ut.zeros(3))
        self.register_buffer("seen", ut.zeros(2))

    def forward(self, x: Any) -> Any:
        return self.weight * x


def averaged(steps: int = 5, **options: Any) -> Any:
    model = Model()
    found = swa_utils.AveragedModel(model, **options)
    for i in range(steps):
        with ut.no_grad():
            model.weight.fill_(float(i))
            model.seen.fill_(float(i))
        found.update_parameters(model)
    return found


def test_mean_of_weights() -> None:
    found = averaged()
    np.testing.assert_allclose(found.module.weight.detach().numpy(), 2.0, rtol=1e-6)
    np.testing.assert_array_equal(found.module.seen.numpy(), 4.0)  # the last
    assert found.n_averaged.item() == 5
    assert list(found.state_dict()) == ["n_averaged", "module.weight", "module.seen"]
    np.testing.assert_allclose(found(ut.ones(3)).detach().numpy(), 2.0, rtol=1e-6)
    np.testing.assert_allclose(averaged(use_buffers=True).module.seen.numpy(), 2.0, rtol=1e-6)


def test_moving_averages() -> None:
    expected = 0.0
    for i in range(1, 5):
        expected = 0.75 * expected + 0.25 * i
    for options in (
        {"avg_fn": swa_utils.get_ema_avg_fn(0.75)},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)},
    ):
        found = averaged(**options).module.weight.detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    for options in (
        {"avg_fn": swa_utils.get_swa_avg_fn()},
        {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
    ):
        np.testing.assert_allclose(averaged(**options).module.weight.detach().numpy(), 2, rtol=1e-6)


def test_averages_on_another_device() -> None:
    found = averaged(device="reference")
    assert str(found.module.weight.device) == "reference"
    np.testing.assert_allclose(found.module.weight.detach().to("cpu").numpy(), 2.0, rtol=1e-6)


def test_integers_are_averaged_too() -> None:
    mean, new = ut.tensor([0, 10]), ut.tensor([4, 10])
    swa_utils.get_ema_multi_avg_fn(0.5)([mean], [new], None)
    assert mean.tolist() == [2, 10]


def test_bad_averages() -> None:
    for make in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=r"decay value 1.5"):
            make(1.5)
    function = swa_utils.get_swa_avg_fn()
    with pytest.raises(AssertionError, match="Only one"):
        swa_utils.AveragedModel(
            Model(), avg_fn=function, multi_avg_fn=swa_utils.get_swa_multi_avg_fn()
        )


def test_swalr() -> None:
    o = optimizer(1.0)
    found = rates(o, swa_utils.SWALR(o, 0.2, 4), 8)
    expected = [0.2 + 0.8 * cosine(min(e, 4) / 4) for e in range(8)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_statistics_are_measured_anew() -> None:
    model = ut.nn.Sequential(ut.nn.BatchNorm1d(3), ut.nn.Linear(3, 2)).eval()
    batches = [ut.tensor(np.random.default_rng(i).standard_normal((8, 3)) + i) for i in range(4)]
    swa_utils.update_bn([(b.float(), None) for b in batches], model)
    expected = np.mean([b.numpy().mean(0) for b in batches], 0)
    np.testing.assert_allclose(model[0].running_mean.numpy(), expected, rtol=1e-5)
    assert model[0].momentum == 0.1
    assert not model.training
    swa_utils.update_bn([], ut.nn.Linear(2, 2))  # nothing to do
