"""Each optimiser and each schedule beside torch's, step by step."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.conformance

STEPS = 50
SHAPES = ((3, 4), (5,), (), (2, 3, 2))
# Options of each optimiser: all that change the formula, alone and together.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "maximize": True, "betas": (0.5, 0.7), "eps": 1e-3}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True, "maximize": True}),
    ("Adamax", {"lr": 0.1}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adagrad", {"lr": 0.1}),
    (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
    ),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 2.0, "rho": 0.7, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "maximize": True}),
    ("RMSprop", {"centered": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2), "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 10, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "d": 2.0, "eps": (1e-3, 1e-2)}),
]


def name_of(case: Any) -> str:
    return f"{case[0]}-{'-'.join(case[1])}" if isinstance(case, tuple) else str(case)


def loss(m: Any, params: Any) -> Any:
    """Not convex, with bounded slopes: no step leads so far that rounding errors explode."""
    total = 0
    for i, p in enumerate(params):
        total = total + (m.log(1 + (p - i) ** 2) + 0.3 * m.sin(2 * p)).sum()
    return total


def parameters(m: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(s) for s in SHAPES]
    return [m.tensor(a, dtype=m.float64, requires_grad=True) for a in arrays]


def descend(m: Any, params: Any, optimizer: Any, steps: int, unused: int = -1) -> None:
    for i in range(steps):
        optimizer.zero_grad()
        active = [p for j, p in enumerate(params) if j != unused or i % 3]
        loss(m, active).backward()
        optimizer.step()


def same(a: Any, b: Any, tolerance: float = 1e-10) -> None:
    for x, y in zip(a, b, strict=True):
        found, wanted = x.detach().numpy(), y.detach().numpy()
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def same_state(found: Any, wanted: Any) -> None:
    """Two state dicts: the same names in the same order, and the same values."""
    assert [list(g) for g in found["param_groups"]] == [list(g) for g in wanted["param_groups"]]
    for ours, theirs in zip(found["param_groups"], wanted["param_groups"], strict=True):
        assert ours == theirs
    assert list(found["state"]) == list(wanted["state"])
    for i, state in wanted["state"].items():
        assert list(found["state"][i]) == list(state)
        for name, value in state.items():
            ours = found["state"][i][name]
            assert str(ours.dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
            np.testing.assert_allclose(ours.numpy(), value.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_optimiser_follows_torch(case: Any) -> None:
    """50 steps, one parameter now and then without a gradient; then the whole state."""
    name, options = case
    ours, theirs = parameters(ut), parameters(torch)
    a = getattr(ut.optim, name)(ours, **options)
    b = getattr(torch.optim, name)(theirs, **options)
    descend(ut, ours, a, STEPS, unused=1)
    descend(torch, theirs, b, STEPS, unused=1)
    same(ours, theirs)
    same_state(a.state_dict(), b.state_dict())


def converted(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return ut.from_numpy(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {k: converted(v) for k, v in value.items()}
    if isinstance(value, list):
        return [converted(v) for v in value]
    return value


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_state_of_torch_goes_on(case: Any) -> None:
    """Ten steps in torch, then the same ten in both from torch's state."""
    name, options = case
    theirs = parameters(torch)
    b = getattr(torch.optim, name)(theirs, **options)
    descend(torch, theirs, b, 10)
    ours = [ut.tensor(p.detach().numpy(), requires_grad=True) for p in theirs]
    a = getattr(ut.optim, name)(ours, **options)
    a.load_state_dict(converted(b.state_dict()))
    c = getattr(torch.optim, name)(theirs, **options)
    c.load_state_dict(b.state_dict())
    descend(ut, ours, a, 10)
    descend(torch, theirs, c, 10)
    same(ours, theirs)


@pytest.mark.parametrize("case", [c for c in CASES if c[0] != "Adafactor"], ids=name_of)
def test_float32(case: Any) -> None:
    name, options = case
    both = []
    for m in (ut, torch):
        params = [p.detach().to(m.float32).requires_grad_() for p in parameters(m)]
        descend(m, params, getattr(m.optim, name)(params, **options), 10)
        both.append(params)
    same(*both, tolerance=3e-4)


@pytest.mark.parametrize("options", [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"}])
def test_muon(options: dict[str, Any]) -> None:
    """Its iterations round to bfloat16, where torch's do: now and then a sum to another side."""
    both = []
    for m in (ut, torch):
        rng = np.random.default_rng(0)
        shapes = ((4, 6), (6, 4), (5, 5))
        arrays = [rng.standard_normal(s) for s in shapes]
        params = [m.tensor(a, dtype=m.float64, requires_grad=True) for a in arrays]
        optimizer = m.optim.Muon(params, lr=0.01, **options)
        descend(m, params, optimizer, STEPS)
        both.append(params)
    same(*both, tolerance=2e-3)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("history", [3, 100])
def test_lbfgs(search: str | None, history: int) -> None:
    both = []
    for m in (ut, torch):
        params = parameters(m)
        optimizer = m.optim.LBFGS(
            params, lr=0.01 if search is None else 1, line_search_fn=search, history_size=history
        )

        def closure(m: Any = m, params: Any = params, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            found = loss(m, params)
            found.backward()
            return found

        losses = [optimizer.step(closure).item() for _ in range(4)]
        state = optimizer.state[params[0]]
        both.append((params, losses, (state["n_iter"], state["func_evals"])))
    same(both[0][0], both[1][0], 1e-6)
    np.testing.assert_allclose(both[0][1], both[1][1], rtol=1e-8)
    assert both[0][2] == both[1][2]


def test_lbfgs_goes_on_from_torch() -> None:
    """Its state has lists of tensors, and numbers that are tensors."""
    theirs = parameters(torch)
    b = torch.optim.LBFGS(theirs, line_search_fn="strong_wolfe", max_iter=4)

    def closure_of(m: Any, params: Any, optimizer: Any) -> Any:
        def closure() -> Any:
            optimizer.zero_grad()
            found = loss(m, params)
            found.backward()
            return found

        return closure

    for _ in range(2):
        b.step(closure_of(torch, theirs, b))
    ours = [ut.tensor(p.detach().numpy(), requires_grad=True) for p in theirs]
    a = ut.optim.LBFGS(ours, line_search_fn="strong_wolfe", max_iter=4)
    a.load_state_dict(converted(b.state_dict()))
    for _ in range(2):
        a.step(closure_of(ut, ours, a))
        b.step(closure_of(torch, theirs, b))
    same(ours, theirs, 1e-7)


def test_groups_and_tensor_lr() -> None:
    both = []
    for m in (ut, torch):
        params = parameters(m)
        groups = [
            {"params": params[:2], "weight_decay": 0.1},
            {"params": params[2:], "lr": m.tensor(0.05, dtype=m.float64), "betas": (0.8, 0.9)},
        ]
        optimizer = m.optim.AdamW(groups, lr=0.01, weight_decay=0.0)
        descend(m, params, optimizer, STEPS)
        both.append(params)
    same(*both)


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"weight_decay": 0.1}),
        ("Adam", {"weight_decay": 0.1}),
        ("AdamW", {}),
        ("NAdam", {}),
        ("RAdam", {}),
        ("Adagrad", {}),
        ("Adadelta", {}),
        ("ASGD", {}),
    ],
)
def test_differentiable(name: str, options: dict[str, Any]) -> None:
    """The gradient of the loss after three steps, by where they began.

    Of the others torch's own fails in its second step, and its momentum begins detached; all are
    held against finite differences in tests/optim/test_optim.py.
    """
    found = []
    for m in (ut, torch):
        start = m.tensor([0.3, -0.7, 1.1], dtype=m.float64, requires_grad=True)
        x = start.clone()
        optimizer = getattr(m.optim, name)([x], lr=0.1, differentiable=True, **options)
        for _ in range(3):
            (x.grad,) = m.autograd.grad(loss(m, [x]), x, create_graph=True)
            optimizer.step()
        (gradient,) = m.autograd.grad(loss(m, [x]), start)
        found.append(gradient)
    same([found[0]], [found[1]], 1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_gradient_of_the_learning_rate(name: str) -> None:
    found = []
    for m in (ut, torch):
        start = m.tensor([0.3, -0.7, 1.1], dtype=m.float64, requires_grad=True)
        lr = m.tensor(0.1, dtype=m.float64, requires_grad=True)
        x = start.clone()
        optimizer = getattr(m.optim, name)([x], lr=lr, differentiable=True, weight_decay=0.1)
        for _ in range(3):
            (x.grad,) = m.autograd.grad(loss(m, [x]), x, create_graph=True)
            optimizer.step()
        found.append(m.autograd.grad(loss(m, [x]), lr)[0])
    same([found[0]], [found[1]], 1e-5)


@pytest.mark.parametrize(
    "name", [n for n in ut.optim.__all__ if n[0].isupper() and n not in ("Optimizer", "SparseAdam")]
)
def test_arguments_and_defaults(name: str) -> None:
    """Names, order, kinds and defaults of the arguments; the options in groups, in order."""
    ours, theirs = (
        [(p.name, p.kind, p.default) for p in inspect.signature(c).parameters.values()]
        for c in (getattr(ut.optim, name), getattr(torch.optim, name))
    )
    assert ours == theirs
    made = []
    for m in (ut, torch):
        made.append(getattr(m.optim, name)([m.ones(2, 2, requires_grad=True)]))
    assert list(made[0].param_groups[0]) == list(made[1].param_groups[0])
    assert repr(made[0]) == repr(made[1])


# Schedules ---------------------------------------------------------------------------------------
class Factor:
    """A callable object, of which schedules save the attributes."""

    def __init__(self, base: float) -> None:
        self.base = base

    def __call__(self, epoch: int) -> float:
        return self.base ** (epoch % 7)


def sequential(s: Any, o: Any) -> Any:
    parts = [s.LinearLR(o, 0.1, total_iters=5), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)]
    return s.SequentialLR(o, parts, [5, 25])


def nested(s: Any, o: Any) -> Any:
    chained = s.ChainedScheduler([s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9)])
    return s.SequentialLR(o, [s.SequentialLR(o, [chained, s.StepLR(o, 2)], [7])], [])


SCHEDULES: dict[str, Any] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.95**e, Factor(0.9)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95 + 0.01 * (e % 3)),
    "StepLR": lambda s, o: s.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 10, 10, 30], 0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.3, 6),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.9, 13),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 31, 1.7),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 11, 0.01),
    "WarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, [0.5, 0.7], 4, 7),
    "CyclicLR2": lambda s, o: s.CyclicLR(o, 0.01, 0.5, 4, mode="triangular2"),
    "CyclicLR_exp": lambda s, o: s.CyclicLR(o, 0.01, 0.5, 4, mode="exp_range", gamma=0.95),
    "CyclicLR_own": lambda s, o: s.CyclicLR(o, 0.01, 0.5, 4, scale_fn=Factor(0.8)),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.5, 0.7], total_steps=60),
    "OneCycleLR3": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=6, steps_per_epoch=10, three_phase=True, anneal_strategy="linear"
    ),
    "SequentialLR": sequential,
    "nested": nested,
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.5, 9), s.ExponentialLR(o, 0.9)]
    ),
}


def scheduled(m: Any, kind: str = "SGD") -> Any:
    """An optimiser with two groups."""
    params = [m.ones(2, requires_grad=True), m.ones(3, requires_grad=True)]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.3}]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(m.optim, kind)(groups, lr=0.1, **options)


def rates(optimizer: Any) -> list[float]:
    found = []
    for g in optimizer.param_groups:
        found += [float(g["lr"]), *g.get("betas", ()), g.get("momentum", 0.0)]
    return found


@pytest.mark.filterwarnings("ignore:Detected call of")  # by torch too, of nested ones
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_follows_torch(name: str, kind: str) -> None:
    """60 epochs, saved and loaded into a new one on the way."""
    history = []
    for m in (ut, torch):
        s = m.optim.lr_scheduler
        optimizer = scheduled(m, kind)
        scheduler = SCHEDULES[name](s, optimizer)
        found = [rates(optimizer)]
        for epoch in range(58):
            optimizer.step()
            scheduler.step()
            found.append(rates(optimizer))
            np.testing.assert_array_equal(
                scheduler.get_last_lr(), [g["lr"] for g in optimizer.param_groups]
            )
            if epoch == 20:
                state, own = scheduler.state_dict(), optimizer.state_dict()
                optimizer = scheduled(m, kind)
                scheduler = SCHEDULES[name](s, optimizer)
                optimizer.load_state_dict(own)
                scheduler.load_state_dict(state)
        history.append((np.array(found), scheduler.state_dict()))
    np.testing.assert_allclose(history[0][0], history[1][0], rtol=1e-12, atol=1e-15)
    assert set(history[0][1]) == set(history[1][1])


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_at_a_given_epoch(name: str) -> None:
    if name in ("SequentialLR", "nested", "ChainedScheduler"):
        return
    history = []
    for m in (ut, torch):
        optimizer = scheduled(m)
        scheduler = SCHEDULES[name](m.optim.lr_scheduler, optimizer)
        optimizer.step()
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for epoch in (1, 5, 3, 17, 40):
                scheduler.step(epoch)
                found.append(rates(optimizer))
        history.append(found)
    np.testing.assert_allclose(*history, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["StepLR", "LinearLR", "CosineAnnealingLR", "PolynomialLR"])
def test_resumed_by_last_epoch(name: str) -> None:
    history = []
    for m in (ut, torch):
        s, optimizer = m.optim.lr_scheduler, scheduled(m)
        for group in optimizer.param_groups:
            group["initial_lr"] = 0.4
        makers = {
            "StepLR": lambda o, s=s: s.StepLR(o, 3, last_epoch=4),
            "LinearLR": lambda o, s=s: s.LinearLR(o, total_iters=9, last_epoch=4),
            "CosineAnnealingLR": lambda o, s=s: s.CosineAnnealingLR(o, 10, last_epoch=4),
            "PolynomialLR": lambda o, s=s: s.PolynomialLR(o, 10, last_epoch=4),
        }
        scheduler = makers[name](optimizer)
        found = [rates(optimizer)]
        for _ in range(8):
            optimizer.step()
            scheduler.step()
            found.append(rates(optimizer))
        history.append(found)
    np.testing.assert_allclose(*history, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"mode": "max", "patience": 1, "cooldown": 3, "min_lr": [0.01, 0.02]},
        {"threshold_mode": "abs", "threshold": 0.1, "patience": 0, "factor": 0.5},
    ],
)
def test_plateau(options: dict[str, Any]) -> None:
    metrics = np.random.default_rng(0).standard_normal(80).round(1).tolist()
    history = []
    for m in (ut, torch):
        optimizer = scheduled(m)
        scheduler = m.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        found = []
        for metric in metrics:
            scheduler.step(metric)
            found.append([*scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.best])
        history.append((found, set(scheduler.state_dict())))
    assert history[0] == history[1]


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 7])
def test_swalr(strategy: str, epochs: int) -> None:
    history = []
    for m in (ut, torch):
        optimizer = scheduled(m)
        scheduler = m.optim.swa_utils.SWALR(optimizer, [0.05, 0.5], epochs, strategy)
        found = []
        for _ in range(20):
            optimizer.step()
            scheduler.step()
            found.append(scheduler.get_last_lr())
        history.append(found)
    np.testing.assert_allclose(*history, rtol=1e-12)


@pytest.mark.parametrize("name", ut.optim.lr_scheduler.__all__)
def test_arguments_of_schedules(name: str) -> None:
    ours, theirs = (
        [(p.name, p.kind, p.default) for p in inspect.signature(c).parameters.values()]
        for c in (getattr(ut.optim.lr_scheduler, name), getattr(torch.optim.lr_scheduler, name))
    )
    assert ours == theirs


@pytest.mark.parametrize("how", ["mean", "ema", "multi_ema", "own"])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averaged_model(how: str, use_buffers: bool) -> None:
    rng = np.random.default_rng(0)
    weights = [(rng.standard_normal((3, 2)), rng.standard_normal(3)) for _ in range(5)]
    means = []
    for m in (ut, torch):
        swa = m.optim.swa_utils
        options = {
            "mean": {},
            "ema": {"avg_fn": swa.get_ema_avg_fn(0.8)},
            "multi_ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.8)},
            "own": {"avg_fn": lambda mean, new, count: mean + new / (count + 2)},
        }[how]
        model = m.nn.Linear(2, 3, dtype=m.float64)
        model.register_buffer("seen", m.zeros(2, dtype=m.float64))
        model.register_buffer("count", m.tensor(0))
        averaged = swa.AveragedModel(model, use_buffers=use_buffers, **options)
        for i, (w, b) in enumerate(weights):
            with m.no_grad():
                model.weight.copy_(m.from_numpy(w))
                model.bias.copy_(m.from_numpy(b))
                model.seen.fill_(float(i))
                if how == "mean" or not use_buffers:
                    model.count += 1
            averaged.update_parameters(model)
        means.append(averaged.state_dict())
    assert list(means[0]) == list(means[1])
    same([v.double() for v in means[0].values()], [v.double() for v in means[1].values()])


COMPLEX = "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop LBFGS".split()  # noqa: SIM905


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_parameters(name: str) -> None:
    """Steps with a complex parameter beside a real one are torch's."""
    found = []
    for m in (ut, torch):
        z = m.tensor([1 + 2j, -0.5j, 3.0], dtype=m.complex128, requires_grad=True)
        x = m.tensor([0.5, -1.0], dtype=m.float64, requires_grad=True)
        optimizer = getattr(m.optim, name)([z, x], lr=0.05)

        def closure(m: Any = m, z: Any = z, x: Any = x, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = ((z - 1j).abs() ** 3).sum() * (x**2).sum() + (z * z).real.sum()
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(4)]
        found.append([np.asarray(losses), z.detach().numpy(), x.detach().numpy()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)
