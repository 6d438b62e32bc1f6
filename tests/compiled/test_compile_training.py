"""Training loops as torch users write them: programs, with the bits of an eager twin."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut


def batch(i: int, rows: int = 4) -> tuple[Any, Any]:
    draw = np.random.default_rng(i)
    x = draw.standard_normal((rows, 8)).astype("f4")
    return ut.tensor(x), ut.tensor(draw.integers(0, 3, rows))


def network(seed: int = 0) -> Any:
    ut.manual_seed(seed)
    return ut.nn.Sequential(ut.nn.Linear(8, 6), ut.nn.Tanh(), ut.nn.Linear(6, 3))


def loss_of(model: Any, x: Any, y: Any) -> Any:
    return ut.nn.functional.cross_entropy(model(x), y)


def numbers(values: Any) -> list[Any]:
    """Copies of what is there now, of all kinds."""
    leaves = ut.utils._pytree.tree_flatten(values)[0]
    leaves = [0.5 if v is None else v for v in leaves]
    return [v.detach().clone().numpy() if isinstance(v, ut.Tensor) else v for v in leaves]


def trained(make: Callable[[], Any], batches: list[Any], programs: int = 1) -> Any:
    """`make` gives a step, what it trains, and what is compiled of it; twins agree throughout."""
    step, state, _ = make()
    other, others, function = make()
    compiled = function if hasattr(function, "explain") else ut.compile(other)
    other = other if compiled is function else compiled
    for i, given in enumerate(batches):
        a, b = numbers([step(*given), state()]), numbers([other(*given), others()])
        for s, t in zip(a, b, strict=True):
            assert np.allclose(s, t, 1e-4, 1e-6, equal_nan=True), i
    found = [e.program for e in compiled._entries.values() if e.program is not None]
    assert len(found) >= programs, compiled.explain()
    return compiled


@pytest.mark.parametrize("clip", [False, True])
def test_scaler(clip: bool) -> None:
    """The factor grows, and shrinks after an overflow, whose step is left out."""
    scalers = []

    def make() -> Any:
        model = network()
        optimizer = ut.optim.AdamW(model.parameters(), lr=0.1)
        scaler = ut.amp.GradScaler("cpu", init_scale=8.0, growth_interval=9)
        scalers.append(scaler)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            scaler.scale(loss).backward()
            if clip:
                scaler.unscale_(optimizer)
                ut.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        return step, lambda: [*model.parameters(), optimizer.state_dict()["state"]], None

    batches = [batch(i) for i in range(30)]
    batches[15][0][1, 2] = np.inf  # an overflow
    batches[25][0][0] = np.nan
    compiled = trained(make, batches)
    assert scalers[0].state_dict() == scalers[1].state_dict()
    (entry,) = compiled._entries.values()
    assert entry.refused is None, compiled.explain()


def test_scaler_that_is_updated_outside() -> None:
    model = network()
    optimizer = ut.optim.SGD(model.parameters(), lr=0.1)
    scaler = ut.amp.GradScaler("cpu")

    @ut.compile
    def step(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        scaler.scale(loss_of(model, x, y)).backward()
        scaler.step(optimizer)

    with pytest.warns(UserWarning, match="not updated inside"):
        step(*batch(0))
    for i in range(6):
        scaler.update()
        step(*batch(i))


def test_averaged_model() -> None:
    def make() -> Any:
        model = network()
        optimizer = ut.optim.SGD(model.parameters(), lr=0.1)
        of = ut.optim.swa_utils
        mean = of.AveragedModel(model, multi_avg_fn=of.get_ema_multi_avg_fn(0.9))

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            optimizer.step()
            mean.update_parameters(model)
            return loss.detach()

        return step, lambda: [*mean.parameters(), mean.n_averaged], None

    trained(make, [batch(i) for i in range(12)])


def test_branch_that_goes_the_same_way() -> None:
    """It is asked in each call, before anything is changed; the other way is eager."""

    def make() -> Any:
        model = network()
        optimizer = ut.optim.Adam(model.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            if loss.isnan():
                return loss.detach() * 0 - 1
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, lambda: [*model.parameters(), *[p.grad for p in model.parameters()]], None

    batches = [batch(i) for i in range(20)]
    batches[9][0][0] = np.nan
    compiled = trained(make, batches)
    assert "questions about data" in compiled.explain()


def test_branch_behind_a_change_is_refused() -> None:
    total = ut.zeros(())

    @ut.compile
    def step(x: Any) -> Any:
        total.add_(x.sum())
        return x * 2 if total > 100 else x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(1, 8):
            x = ut.full((2,), float(i * 4))
            assert step(x).tolist() == [i * 8.0 if 8 * i * (i + 1) / 2 > 100 else i * 4.0] * 2
    assert "looked at after something was changed" in step.explain()


def test_branch_that_changes_its_way() -> None:
    @ut.compile
    def step(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x - 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(40):
            x = ut.full((2,), float((-1) ** i * i) if i % 8 > 4 else 1.0)
            expected = (x * 2 if x.sum() > 0 else x - 1).tolist()
            assert step(x).tolist() == expected, i


@pytest.mark.parametrize("part", ["step", "module", "inference"])
def test_autocast_around(part: str) -> None:
    """A region is a part of what is called in it; each kind of region has programs of its own."""

    def make() -> Any:
        model = network()
        optimizer = ut.optim.SGD(model.parameters(), lr=0.1)
        function = ut.compile(model)._compiled if part == "module" else ut.compile(body(model))
        call = function if not eager else (model if part == "module" else body(model))

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            with ut.autocast("cpu", dtype=ut.bfloat16), ut.set_grad_enabled(part != "inference"):
                out = call(x)
            assert out.dtype is ut.bfloat16
            if part != "inference":
                ut.nn.functional.cross_entropy(out.float(), y).backward()
                optimizer.step()
            return out.detach().float()

        eager.clear()
        return step, lambda: [*model.parameters()], function

    def body(model: Any) -> Any:
        return lambda x: model(x)

    eager = [True]
    compiled = trained(make, [batch(i) for i in range(12)], 0)
    (region,) = compiled._regions.values()
    (entry,) = region._entries.values()
    assert entry.program is not None, compiled.explain()
    assert "inside of autocast" in compiled.explain()


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_accumulate_over_calls(to_none: bool) -> None:
    """A program for calls that begin a sum, and one for those that add to it."""

    def make() -> Any:
        model = network()
        optimizer = ut.optim.AdamW(model.parameters(), lr=0.1)

        def micro(x: Any, y: Any) -> Any:
            loss = loss_of(model, x, y) / 3
            loss.backward()
            return loss.detach()

        compiled = ut.compile(micro)
        call = compiled if count else micro
        count.append(0)

        def step(x: Any, y: Any) -> Any:
            found = [call(x + j, y) for j in range(3)]
            optimizer.step()
            optimizer.zero_grad(set_to_none=to_none)
            return found

        return step, lambda: [*model.parameters()], compiled

    count: list[int] = []
    compiled = trained(make, [batch(i) for i in range(12)], 1 + to_none)
    assert "eager" not in compiled.explain()


def test_a_smaller_last_batch() -> None:
    """As a loader gives it: two programs."""
    data = ut.utils.data
    x, y = batch(0, 22)
    loader = data.DataLoader(data.TensorDataset(x, y), batch_size=4)

    def make() -> Any:
        model = network()
        optimizer = ut.optim.Adam(model.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, lambda: [*model.parameters()], None

    trained(make, [b for _ in range(8) for b in loader], 2)
