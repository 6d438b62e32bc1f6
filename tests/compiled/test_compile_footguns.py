"""What makes other libraries' compiled functions give stale answers: right here, or refused.

Each case is a function that makes a step and a change. The step runs eagerly and compiled, side by
side, on twins that begin alike, with the change in between; results, parameters and gradients must
be the same in every call.
"""

from __future__ import annotations

import array
import collections
import contextvars
import dataclasses
import functools
import gc
import math
import random
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.compiled.function import CompileError

CALLS = 24


def same(a: Any, b: Any) -> bool:
    if isinstance(a, ut.Tensor):
        return (
            isinstance(b, ut.Tensor)
            and a.shape == b.shape
            and a.dtype == b.dtype
            and a.requires_grad == b.requires_grad
            and bool(np.allclose(a.detach().numpy(), b.detach().numpy(), 1e-5, 1e-6, True))
        )
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return bool(a == b or (a != a and b != b))


Made = tuple[Callable[..., Any], Callable[[int], Any], Callable[[], Any]]
CASES: dict[str, Callable[[], Made]] = {}


def case(make: Callable[[], Made]) -> Callable[[], Made]:
    """A twin: the step, what happens before call i (giving its arguments), and what to compare."""
    CASES[make.__name__] = make
    return make


def batch(i: int, *shape: int) -> ut.Tensor:
    return ut.tensor(np.random.default_rng(i).standard_normal(shape or (4, 3)).astype("f4"))


def nothing() -> None:
    return None


@case
def counter_in_closure() -> Made:
    n = 0

    def step(x: Any) -> Any:
        nonlocal n
        n += 1
        return x * n

    return step, lambda i: (batch(i),), lambda: n


@case
def counter_in_list() -> Made:
    n = [0]

    def step(x: Any) -> Any:
        n[0] += 1
        return x * n[0]

    return step, lambda i: (batch(i),), lambda: n


@case
def counter_that_is_not_used() -> Made:
    box = types.SimpleNamespace(calls=0)

    def step(x: Any) -> Any:
        box.calls += 1
        return x * 2

    return step, lambda i: (batch(i),), lambda: box.calls


@case
def random_numbers_of_python() -> Made:
    source = random.Random(3)

    def step(x: Any) -> Any:
        return x * source.random()

    return step, lambda i: (batch(i),), nothing


@case
def rare_branch_on_random() -> Made:
    source = random.Random(3)

    def step(x: Any) -> Any:
        return x + 1 if source.random() < 0.1 else x * 2

    return step, lambda i: (batch(i),), nothing


@case
def random_numbers_of_numpy() -> Made:
    source = np.random.default_rng(0)

    def step(x: Any) -> Any:
        return x * float(source.random())

    return step, lambda i: (batch(i),), nothing


@case
def closure_changes() -> Made:
    scale = 2.0

    def step(x: Any) -> Any:
        return x * scale

    def before(i: int) -> Any:
        nonlocal scale
        if i in (7, 15):
            scale = float(i)
        return (batch(i),)

    return step, before, nothing


SCALE = {"a": 1.0}
FACTOR = 1.0


@case
def globals_change() -> Made:
    def step(x: Any) -> Any:
        return x * FACTOR + SCALE["a"]

    def before(i: int) -> Any:
        globals()["FACTOR"] = 1.0 if i < 9 else 3.0
        SCALE["a"] = 1.0 if i < 14 else -2.0
        return (batch(i),)

    return step, before, nothing


@case
def attribute_changes() -> Made:
    class Config:
        def __init__(self) -> None:
            self.scale, self.inner = 1.0, types.SimpleNamespace(shift=0.5, parts=[1.0, 2.0])

    config = Config()

    def step(x: Any) -> Any:
        return x * config.scale + config.inner.shift + sum(config.inner.parts)

    def before(i: int) -> Any:
        if i == 8:
            config.scale = 4.0
        if i == 12:
            config.inner.shift = 9.0
        if i == 17:
            config.inner.parts.append(5.0)
        return (batch(i),)

    return step, before, nothing


@case
def attribute_of_a_class_changes() -> Made:
    class Config:
        scale = 1.0

    config = Config()

    def step(x: Any) -> Any:
        return x * config.scale

    def before(i: int) -> Any:
        if i == 8:
            Config.scale = 4.0
        return (batch(i),)

    return step, before, nothing


@case
def function_is_replaced() -> Made:
    box = types.SimpleNamespace(f=lambda x: x + 1)

    def step(x: Any) -> Any:
        return box.f(x)

    def before(i: int) -> Any:
        if i == 9:
            box.f = lambda x: x * 5
        return (batch(i),)

    return step, before, nothing


@case
def module_attribute_by_dynamic_name() -> Made:
    box = types.SimpleNamespace(a0=1.0, a1=2.0)

    def step(x: Any) -> Any:
        for i in range(2):
            x = x + getattr(box, "a" + str(i))
        return x

    def before(i: int) -> Any:
        if i == 9:
            box.a1 = 7.0
        return (batch(i),)

    return step, before, nothing


@case
def branch_on_python_value() -> Made:
    box = types.SimpleNamespace(training=True)

    def step(x: Any) -> Any:
        return x * 2 if box.training else x - 1

    def before(i: int) -> Any:
        box.training = i % 7 != 6
        return (batch(i),)

    return step, before, nothing


@case
def branch_on_data() -> Made:
    def step(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x - 1

    return step, lambda i: (batch(i),), nothing


@case
def item_inside() -> Made:
    def step(x: Any) -> Any:
        return x / x.abs().max().item()

    return step, lambda i: (batch(i),), nothing


@case
def number_as_argument() -> Made:
    def step(x: Any, k: Any) -> Any:
        return x * k

    return step, lambda i: (batch(i), [2, 2.0, True, 3][i % 4]), nothing


@case
def keyword_arguments() -> Made:
    def step(x: Any, *, flip: bool = False, more: Any = None) -> Any:
        out = -x if flip else x + 1
        return out if more is None else out + more["y"][0]

    def before(i: int) -> Any:
        more = {"y": [batch(i + 100)]} if i % 3 else None
        return {"x": batch(i), "flip": i % 2 == 0, "more": more}

    return step, before, nothing


@case
def other_shapes() -> Made:
    def step(x: Any) -> Any:
        return (x * 2).sum(0)

    return step, lambda i: (batch(i, 1 + i % 12, 3),), nothing


@case
def other_dtypes() -> Made:
    def step(x: Any) -> Any:
        return x * 2 + 1

    return step, lambda i: (batch(i).to([ut.float32, ut.float64, ut.int64][i % 3]),), nothing


@case
def other_layouts() -> Made:
    def step(x: Any) -> Any:
        return x * 2 + x.t().sum()

    return step, lambda i: (batch(i, 3, 3) if i % 2 else batch(i, 3, 3).t(),), nothing


@case
def arguments_that_share_memory() -> Made:
    def step(x: Any, y: Any) -> Any:
        x += 1
        return x * y

    def before(i: int) -> Any:
        x = batch(i)
        return (x, x) if i % 3 == 2 else (x, batch(i + 50))

    return step, before, nothing


@case
def arguments_that_overlap() -> Made:
    def step(x: Any, y: Any) -> Any:
        x.mul_(2)
        y.add_(x)
        return y.clone()

    def before(i: int) -> Any:
        x = batch(i, 8)
        return (x[:4], x[2:6]) if i in (9, 11) else (x[:4], x[4:])

    return step, before, nothing


@case
def argument_is_also_captured() -> Made:
    kept = batch(99)

    def step(x: Any) -> Any:
        return x * 2 + kept

    return step, lambda i: (kept if i < 6 else batch(i),), nothing


@case
def argument_that_is_changed() -> Made:
    def step(x: Any) -> Any:
        x.mul_(2)
        return x

    return step, lambda i: (batch(i),), nothing


@case
def results_are_kept() -> Made:
    kept: list[Any] = []

    def step(x: Any) -> Any:
        return x * 2, x.sum()

    def before(i: int) -> Any:
        return (batch(i),)

    def after() -> Any:
        return [k.clone() for k in kept]

    def outer(x: Any) -> Any:
        found = inner(x)
        kept.append(found[0])
        return found

    inner = step
    return step, before, after


@case
def tensor_is_replaced() -> Made:
    box = types.SimpleNamespace(w=batch(7))

    def step(x: Any) -> Any:
        return x * box.w

    def before(i: int) -> Any:
        if i == 9:
            box.w = batch(8)
        if i == 14:
            box.w = box.w.double().float() + 1
        return (batch(i),)

    return step, before, nothing


@case
def tensor_is_changed_in_place() -> Made:
    w = batch(7)

    def step(x: Any) -> Any:
        return x * w

    def before(i: int) -> Any:
        if i > 8:
            w.add_(1)
        return (batch(i),)

    return step, before, nothing


@case
def data_is_replaced() -> Made:
    w = batch(7).requires_grad_()

    def step(x: Any) -> Any:
        w.grad = None
        (x * w).sum().backward()
        with ut.no_grad():
            w.sub_(0.1 * w.grad)
        return w.detach().sum()

    def before(i: int) -> Any:
        if i in (9, 10):
            w.data = batch(8)
        return (batch(i),)

    return step, before, lambda: (w, w.grad)


@case
def element_of_a_list_is_replaced() -> Made:
    parts = [batch(1), batch(2)]

    def step(x: Any) -> Any:
        for p in parts:
            x = x * p
        return x

    def before(i: int) -> Any:
        if i == 9:
            parts[1] = batch(3)
        if i == 14:
            parts.append(batch(4))
        return (batch(i),)

    return step, before, nothing


def network(seed: int = 0, **options: Any) -> tuple[Any, Any]:
    ut.manual_seed(seed)
    model = ut.nn.Sequential(ut.nn.Linear(3, 8), ut.nn.Tanh(), ut.nn.Linear(8, 2))
    return model, ut.optim.Adam(model.parameters(), lr=0.01, **options)


def training(model: Any, optimizer: Any) -> Callable[..., Any]:
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def pair(i: int) -> Any:
    return batch(i), batch(i + 100, 4, 2)


def state(model: Any) -> Callable[[], Any]:
    return lambda: ([*model.parameters()], [p.grad for p in model.parameters()])


@case
def learning_rate_changes() -> Made:
    model, optimizer = network()

    def before(i: int) -> Any:
        optimizer.param_groups[0]["lr"] = 0.01 / (i + 1)
        return pair(i)

    return training(model, optimizer), before, state(model)


@case
def other_options_change() -> Made:
    model, optimizer = network()

    def before(i: int) -> Any:
        if i == 8:
            optimizer.param_groups[0]["weight_decay"] = 0.1
        if i == 13:
            optimizer.param_groups[0]["betas"] = (0.5, 0.9)
        if i == 18:
            optimizer.param_groups[0]["maximize"] = True
        return pair(i)

    return training(model, optimizer), before, state(model)


@case
def schedule_inside() -> Made:
    model, optimizer = network()
    schedule = ut.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    inner = training(model, optimizer)

    def step(x: Any, y: Any) -> Any:
        loss = inner(x, y)
        schedule.step()
        return loss

    return step, pair, lambda: (state(model)(), schedule.last_epoch, schedule.get_last_lr())


@case
def several_schedules_inside() -> Made:
    model, optimizer = network()
    lr = ut.optim.lr_scheduler
    schedule = lr.SequentialLR(
        optimizer,
        [lr.LinearLR(optimizer, 0.1, total_iters=5), lr.CosineAnnealingLR(optimizer, 20)],
        milestones=[6],
    )
    inner = training(model, optimizer)

    def step(x: Any, y: Any) -> Any:
        loss = inner(x, y)
        schedule.step()
        return loss

    return step, pair, lambda: (state(model)(), schedule.last_epoch, schedule.get_last_lr())


@case
def schedule_outside() -> Made:
    model, optimizer = network()
    schedule = ut.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=CALLS + 2)
    step = training(model, optimizer)

    def before(i: int) -> Any:
        if i:
            schedule.step()
        return pair(i)

    return step, before, state(model)


@case
def load_state_dict() -> Made:
    model, optimizer = network()
    other = network(5)[0].state_dict()

    def before(i: int) -> Any:
        if i == 9:
            model.load_state_dict(other)
        if i == 13:
            model.load_state_dict(other, assign=True)
        if i == 18:
            optimizer.load_state_dict(optimizer.state_dict())
        return pair(i)

    return training(model, optimizer), before, state(model)


@case
def state_of_an_optimiser_is_replaced() -> Made:
    model, optimizer = network()

    def before(i: int) -> Any:
        p = next(model.parameters())
        if i == 8:
            optimizer.state[p]["exp_avg"] = ut.zeros_like(p)
        if i == 12:
            optimizer.state[p]["exp_avg"].zero_()
        if i == 15:
            optimizer.state[p]["step"].fill_(1.0)
        if i == 19:
            optimizer.state.clear()
        return pair(i)

    return training(model, optimizer), before, state(model)


@case
def parameter_is_replaced() -> Made:
    model, optimizer = network()

    def before(i: int) -> Any:
        if i == 9:
            model[0].weight = ut.nn.Parameter(batch(3, 8, 3))
        if i == 14:
            model[1] = ut.nn.ReLU()
        return pair(i)

    return training(model, optimizer), before, state(model)


@case
def group_is_added() -> Made:
    model, optimizer = network()
    more = ut.nn.Parameter(batch(1, 1))

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) * more.sum() - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def before(i: int) -> Any:
        if i == 9:
            optimizer.add_param_group({"params": [more], "lr": 0.5})
        return pair(i)

    return step, before, lambda: (state(model)(), more)


@case
def frozen_parameter() -> Made:
    model, optimizer = network()

    def before(i: int) -> Any:
        if i == 9:
            model[0].weight.requires_grad_(False)
        if i == 15:
            model[0].weight.requires_grad_(True)
        return pair(i)

    return training(model, optimizer), before, state(model)


@case
def train_and_eval() -> Made:
    ut.manual_seed(0)
    model = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.BatchNorm1d(4), ut.nn.Dropout(0.5))

    def step(x: Any) -> Any:
        with ut.no_grad():
            return model(x)

    def before(i: int) -> Any:
        model.train(i % 10 < 7)
        ut.manual_seed(i)
        return (batch(i),)

    return step, before, lambda: [*model.buffers()]


@case
def dropout_draws_on() -> Made:
    source = ut.Generator().manual_seed(3)

    def step(x: Any) -> Any:
        return x * (ut.rand(4, 3, generator=source) > 0.5)

    return step, lambda i: (batch(i),), lambda: source.get_state()


@case
def seeded_between_calls() -> Made:
    drop = ut.nn.Dropout(0.5)

    def step(x: Any) -> Any:
        return drop(x)

    def before(i: int) -> Any:
        ut.manual_seed(i // 3)
        return (batch(i),)

    return step, before, nothing


@case
def attribute_of_a_module_changes() -> Made:
    drop = ut.nn.Dropout(0.5)

    def step(x: Any) -> Any:
        return drop(x)

    def before(i: int) -> Any:
        ut.manual_seed(i)
        drop.p = 0.5 if i < 9 else 0.0
        return (batch(i),)

    return step, before, nothing


@case
def gradient_mode() -> Made:
    w = batch(3).requires_grad_()

    def step(x: Any) -> Any:
        return (x * w).sum()

    def before(i: int) -> Any:
        return (batch(i),)

    return step, before, nothing


@case
def gradients_accumulate() -> Made:
    model, _ = network()

    def step(x: Any, y: Any) -> Any:
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        return loss.detach()

    def before(i: int) -> Any:
        if i % 5 == 4:
            model.zero_grad()
        return pair(i)

    return step, before, state(model)


@case
def gradients_are_kept_by_the_user() -> Made:
    model, optimizer = network()
    kept: list[Any] = []

    def before(i: int) -> Any:
        kept.extend(p.grad for p in model.parameters() if p.grad is not None)
        return pair(i)

    return training(model, optimizer), before, lambda: (state(model)(), list(kept))


@case
def results_are_changed_by_the_user() -> Made:
    last: list[Any] = []

    def step(x: Any) -> Any:
        found = x * 2
        return found, found.sum()

    def before(i: int) -> Any:
        if last:
            last[-1].add_(100)
        return (batch(i),)

    return step, before, nothing


@case
def list_is_appended_to() -> Made:
    losses: list[Any] = []

    def step(x: Any) -> Any:
        losses.append(x.sum())
        return x * 2

    return step, lambda i: (batch(i),), lambda: list(losses)


@case
def tensor_is_kept_on_an_object() -> Made:
    box = types.SimpleNamespace(last=None)

    def step(x: Any) -> Any:
        box.last = x * 3
        return x * 2

    return step, lambda i: (batch(i),), lambda: box.last


@case
def hidden_state_on_an_object() -> Made:
    box = types.SimpleNamespace(h=ut.zeros(4, 3))

    def step(x: Any) -> Any:
        box.h = ut.tanh(box.h + x)
        return box.h

    return step, lambda i: (batch(i),), lambda: box.h


@case
def iterator_inside() -> Made:
    source = iter([batch(i) for i in range(100)])

    def step(x: Any) -> Any:
        return x + next(source)

    return step, lambda i: (batch(i),), nothing


@case
def generator_inside() -> Made:
    def numbers() -> Any:
        n = 0.0
        while True:
            yield n
            n += 1

    source = numbers()

    def step(x: Any) -> Any:
        for n in source:
            return x + n
        return None

    return step, lambda i: (batch(i),), nothing


@case
def loader_inside() -> Made:
    data = ut.utils.data.TensorDataset(batch(1, 64, 3))
    source = iter(ut.utils.data.DataLoader(data, batch_size=2))

    def step(x: Any) -> Any:
        return x.sum() + next(source)[0].sum()

    return step, lambda i: (batch(i),), nothing


@case
def array_of_numpy_changes() -> Made:
    table = np.ones(3, "f4")

    def step(x: Any) -> Any:
        return x * ut.tensor(table)

    def before(i: int) -> Any:
        if i > 8:
            table[0] = i
        return (batch(i),)

    return step, before, nothing


@case
def tensor_from_a_list() -> Made:
    values = [1.0, 2.0, 3.0]

    def step(x: Any) -> Any:
        return x * ut.tensor(values)

    def before(i: int) -> Any:
        if i > 8:
            values[1] = float(i)
        return (batch(i),)

    return step, before, nothing


@case
def index_that_is_negative_later() -> Made:
    w = batch(3, 6, 2)

    def step(x: Any) -> Any:
        return w[x] * 2

    def before(i: int) -> Any:
        return (ut.tensor([1, 2, -3 if i in (9, 10) else 3]),)

    return step, before, nothing


@case
def classes_that_are_ignored_later() -> Made:
    model, optimizer = network()

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ut.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def before(i: int) -> Any:
        return batch(i), ut.tensor([0, 1, -100 if i > 9 else 1, 0])

    return step, before, state(model)


@case
def mask_as_an_index() -> Made:
    def step(x: Any) -> Any:
        return x[x > 0].sum()

    return step, lambda i: (batch(i),), nothing


@case
def not_finite_later() -> Made:
    conv = ut.nn.Conv1d(2, 3, 3)

    def step(x: Any) -> Any:
        with ut.no_grad():
            return conv(x)

    def before(i: int) -> Any:
        x = batch(i, 2, 2, 20)
        if i > 9:
            x[0, 0, 3] = math.inf if i % 2 else math.nan
        if i > 15:
            with ut.no_grad():
                conv.weight[0, 0, 0] = math.inf
        return (x,)

    ut.manual_seed(0)
    conv = ut.nn.Conv1d(2, 3, 3)
    return step, before, nothing


@case
def hooks_come_and_go() -> Made:
    model, optimizer = network()
    handles: list[Any] = []

    def before(i: int) -> Any:
        if i == 8:
            handles.append(model[0].register_forward_hook(lambda m, a, out: out * 2))
        if i == 12:
            handles.pop().remove()
        if i == 15:
            handles.append(model[0].weight.register_hook(lambda g: g * 3))
        if i == 19:
            handles.pop().remove()
        return pair(i)

    return training(model, optimizer), before, state(model)


@case
def threads_change() -> Made:
    model, optimizer = network()
    first = ut.get_num_threads()

    def before(i: int) -> Any:
        ut.set_num_threads(1 if i % 12 > 8 else first)
        return pair(i)

    return training(model, optimizer), before, state(model)


@case
def second_order() -> Made:
    model, optimizer = network()

    def step(x: Any, y: Any) -> Any:
        x = x.detach().requires_grad_()
        optimizer.zero_grad()
        out = model(x)
        (g,) = ut.autograd.grad(out.sum(), x, create_graph=True)
        loss = ((out - y) ** 2).mean() + (g.norm(dim=1) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, pair, state(model)


@case
def clipping_and_averages() -> Made:
    model, optimizer = network()
    average = network()[0]

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        norm = ut.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        with ut.no_grad():
            for a, p in zip(average.parameters(), model.parameters(), strict=True):
                a.data.mul_(0.9).add_(p.data, alpha=0.1)
        return loss.detach(), norm

    return step, pair, lambda: (state(model)(), [*average.parameters()])


@case
def two_optimisers() -> Made:
    model, first = network()
    second = ut.optim.SGD([model[2].bias], lr=0.1, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        first.zero_grad()
        second.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        first.step()
        second.step()
        return loss.detach()

    return step, pair, state(model)


@case
def accumulation_with_a_counter() -> Made:
    model, optimizer = network()

    def step(x: Any, y: Any, last: bool) -> Any:
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        return loss.detach()

    return step, lambda i: (*pair(i), i % 3 == 2), state(model)


@case
def default_argument_that_is_kept() -> Made:
    def step(x: Any, cache: Any = {}) -> Any:  # noqa: B006
        cache["n"] = cache.get("n", 0) + 1
        return x * cache["n"]

    return step, lambda i: (batch(i),), nothing


@case
def tensor_is_deleted() -> Made:
    box = types.SimpleNamespace(w=batch(2))

    def step(x: Any) -> Any:
        return x * box.w if hasattr(box, "w") else x

    def before(i: int) -> Any:
        if i == 9:
            del box.w
            gc.collect()
        return (batch(i),)

    return step, before, nothing


@case
def view_is_returned() -> Made:
    w = batch(5)

    def step(x: Any) -> Any:
        return w[:2], (x * 2).t(), w

    return step, lambda i: (batch(i),), nothing


@case
def number_is_returned() -> Made:
    box = types.SimpleNamespace(n=1)

    def step(x: Any) -> Any:
        return {"n": box.n, "y": x + box.n}

    def before(i: int) -> Any:
        box.n = 1 if i < 9 else 2
        return (batch(i),)

    return step, before, nothing


@case
def default_dtype_changes() -> Made:
    def step(x: Any) -> Any:
        return x + ut.ones(4, 3)

    def before(i: int) -> Any:
        ut.set_default_dtype(ut.float64 if 10 <= i < 20 else ut.float32)
        return (batch(i),)

    return step, before, nothing


@case
def instance_shadows_its_class() -> Made:
    class Options:
        factor = 1.0

        @property
        def doubled(self) -> float:
            return 2 * self.factor

    options = Options()

    def before(i: int) -> Any:
        if i == 11:
            options.factor = 5.0
        return (batch(i),)

    return lambda x: x * options.doubled, before, nothing


@case
def class_in_a_partial() -> Made:
    class Options:
        factor = 1.0

    times = functools.partial(lambda kind, x: x * kind.factor, Options)

    def before(i: int) -> Any:
        if i == 11:
            Options.factor = 5.0
        return (batch(i),)

    return lambda x: times(x), before, nothing


@case
def attributes_found_by_the_class() -> Made:
    class Options:
        def __init__(self) -> None:
            self.table = {"factor": 1.0}

        def __getattr__(self, name: str) -> float:
            return self.__dict__["table"][name]  # a KeyError for most names

    options = Options()

    def before(i: int) -> Any:
        if i == 11:
            options.table["factor"] = 5.0
        return (batch(i),)

    return lambda x: x * options.factor, before, nothing


@case
def remembered_results() -> Made:
    factor = [1.0]
    read = functools.lru_cache(lambda: factor[0])

    def before(i: int) -> Any:
        factor[0] = 1.0 + i
        if i == 11:
            read.cache_clear()
        return (batch(i),)

    return lambda x: x * read(), before, nothing


@case
def context_variable_changes() -> Made:
    factor = contextvars.ContextVar("factor", default=1.0)

    def before(i: int) -> Any:
        factor.set(1.0 + i // 4)
        return (batch(i),)

    return lambda x: x * factor.get(), before, nothing


@case
def one_tensor_is_returned_twice() -> Made:
    def step(x: Any) -> Any:
        y = x * 2
        return y, y.t(), y

    return step, lambda i: (batch(i),), nothing


@case
def formula_of_an_optimiser_changes() -> Made:
    model, _ = network()
    return (training(model, ut.optim.RAdam(model.parameters(), lr=0.01)), pair, state(model))


@case
def learning_rate_is_changed_inside() -> Made:
    model, optimizer = network()

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.9
        return loss.detach()

    return step, lambda i: (batch(i),), lambda: optimizer.param_groups[0]["lr"]


@case
def learning_rate_is_read_inside() -> Made:
    model, optimizer = network()
    schedule = ut.optim.lr_scheduler.StepLR(optimizer, 2)

    def step(x: Any) -> Any:
        return model(x).detach() * optimizer.param_groups[0]["lr"]

    def before(i: int) -> Any:
        if i == 10:
            optimizer.step()
            schedule.step()
            optimizer.param_groups[0]["lr"] = 3.0
        return (batch(i),)

    return step, before, nothing


@case
def last_rate_is_read_inside() -> Made:
    model, optimizer = network()
    schedule = ut.optim.lr_scheduler.StepLR(optimizer, 2)

    def step(x: Any) -> Any:
        return model(x).detach() * schedule.get_last_lr()[0], schedule.last_epoch

    def before(i: int) -> Any:
        if i > 6:
            optimizer.step()
            schedule.step()
        return (batch(i),)

    return step, before, nothing


@case
def gradients_of_others_are_forgotten() -> Made:
    model, optimizer = network()
    alone = ut.ones(2, requires_grad=True)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        alone.grad = None
        return x * 2

    def before(i: int) -> Any:
        if i % 2:
            model(batch(i)).sum().backward()
        if i > 6:
            alone.grad = ut.ones(2)
        return (batch(i),)

    return step, before, lambda: [alone.grad is None, *[p.grad is None for p in model.parameters()]]


@case
def gradient_is_looked_at() -> Made:
    w = ut.ones(2, requires_grad=True)

    def step(x: Any) -> Any:
        return x * 2 if w.grad is None else x * 3

    def before(i: int) -> Any:
        w.grad = ut.ones(2) if i > 6 else None
        return (batch(i),)

    return step, before, nothing


@case
def module_is_appended() -> Made:
    model = ut.nn.Sequential(ut.nn.ReLU())
    listed = ut.nn.ModuleList([ut.nn.ReLU()])

    def step(x: Any) -> Any:
        x = model(x)
        for module in listed:
            x = module(x)
        return x

    def before(i: int) -> Any:
        if i == 6:
            model.append(ut.nn.Tanh())
        if i == 12:
            listed.append(ut.nn.Sigmoid())
        if i == 18:
            model.add_module("more", ut.nn.Tanh())
        return (batch(i),)

    return step, before, nothing


@case
def buffer_is_registered_again() -> Made:
    class Net(ut.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", ut.full((3,), 2.0))

        def forward(self, x: Any) -> Any:
            return x * self.scale

    net = Net()

    def before(i: int) -> Any:
        if i == 6:
            net.register_buffer("scale", ut.full((3,), 5.0))
        if i == 12:
            net._buffers["scale"] = ut.full((3,), 7.0)
        return (batch(i),)

    return net, before, nothing


@case
def seeded_inside() -> Made:
    generator = ut.Generator()

    def step(x: Any) -> Any:
        generator.manual_seed(3)
        return x + ut.rand(3, generator=generator)

    return step, lambda i: (batch(i),), nothing


@case
def seed_is_read_inside() -> Made:
    generator = ut.Generator()

    def step(x: Any) -> Any:
        return x * (generator.initial_seed() % 7)

    def before(i: int) -> Any:
        generator.manual_seed(i // 5)
        return (batch(i),)

    return step, before, nothing


@case
def argument_is_popped_from() -> Made:
    given: dict[str, Any] = {}

    def step(batch: Any) -> Any:
        return batch.pop("y") * 2

    def before(i: int) -> Any:
        given.clear()
        given.update(x=batch(i), y=batch(i + 1))
        return (given,)

    return step, before, lambda: list(given)


@case
def argument_is_set_in() -> Made:
    given: dict[str, Any] = {}

    def step(batch: Any) -> Any:
        batch["z"] = batch["x"] * 2
        return batch["z"]

    def before(i: int) -> Any:
        given.clear()
        given.update(x=batch(i))
        return (given,)

    return step, before, lambda: list(given)


@case
def argument_is_appended_to() -> Made:
    log: list[int] = []

    def step(x: Any, log: Any) -> Any:
        log.append(1)
        return x * 2

    def before(i: int) -> Any:
        log.clear()
        return batch(i), log

    return step, before, lambda: log


@case
def set_as_argument() -> Made:
    names = {1}

    def step(x: Any, names: Any) -> Any:
        return x * 2 if 7 in names else x * 3

    def before(i: int) -> Any:
        if i == 9:
            names.add(7)
        return batch(i), names

    return step, before, nothing


@case
def settings_are_read() -> Made:
    def step(x: Any) -> Any:
        return x * 2 if ut.get_float32_matmul_precision() == "high" else x * 3

    def before(i: int) -> Any:
        ut.set_float32_matmul_precision("high" if 6 < i < 20 else "highest")
        return (batch(i),)

    return step, before, nothing


@case
def default_dtype_is_set_inside() -> Made:
    def step(x: Any) -> Any:
        ut.set_default_dtype(ut.float64)
        return x * 2

    def after() -> Any:
        found = str(ut.get_default_dtype())
        ut.set_default_dtype(ut.float32)
        return found

    return step, lambda i: (batch(i),), after


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")
def test_right_or_refused(name: str) -> None:
    """The compiled twin does what the eager one does, call by call."""
    before_threads = ut.get_num_threads()
    twins = []
    for compiled in (False, True):
        globals()["FACTOR"], SCALE["a"] = 1.0, 1.0
        step, before, after = CASES[name]()
        run = ut.compile(step) if compiled else step
        found = []
        for i in range(CALLS):
            if name.startswith(("random", "dropout")):
                ut.manual_seed(i)
            given = before(i)
            result = run(**given) if isinstance(given, dict) else run(*given)
            copied = _copied((result, given, after()))
            found.append(copied)
            if name == "results_are_changed_by_the_user":
                _cells(before)["last"].append(result[0])
        twins.append(found)
        ut.set_num_threads(before_threads)
    for i, (a, b) in enumerate(zip(*twins, strict=True)):
        assert same(a, b), f"call {i}: {a} {b}"


def _cells(function: Any) -> dict[str, Any]:
    names = function.__code__.co_freevars
    return {n: c.cell_contents for n, c in zip(names, function.__closure__, strict=True)}


def _copied(value: Any) -> Any:
    if isinstance(value, ut.Tensor):
        made = value.detach().clone()
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, (list, tuple)):
        return [_copied(v) for v in value]
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    return value


def test_most_of_these_are_programs() -> None:
    """The cases of training are not all refused: guards bring them back."""
    wanted = [
        "learning_rate_changes",
        "schedule_inside",
        "several_schedules_inside",
        "schedule_outside",
        "two_optimisers",
        "second_order",
        "clipping_and_averages",
        "classes_that_are_ignored_later",
        "gradients_are_kept_by_the_user",
        "dropout_draws_on",
        "closure_changes",
        "attribute_changes",
        "tensor_is_changed_in_place",
        "argument_that_is_changed",
        "accumulation_with_a_counter",
    ]
    for name in wanted:
        step, before, _ = CASES[name]()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = ut.compile(step)
            for i in range(7):
                given = before(i)
                run(*given)
        assert any(e.program is not None for e in run._entries.values()), (name, run.explain())


def test_error_leaves_everything_as_it_was() -> None:
    """An index out of range in a later call: eager's error, and nothing has changed."""
    model, optimizer = network()

    @ut.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ut.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(10):
        step(batch(i), ut.tensor([0, 1, 1, 0]))
    assert all(e.program for e in step._entries.values()), step.explain()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises((IndexError, ValueError)):
        step(batch(1), ut.tensor([0, 1, 7, 0]))
    assert all(bool((a == b).all()) for a, b in zip(before, model.parameters(), strict=True))


def test_results_are_never_overwritten() -> None:
    @ut.compile
    def step(x: Any) -> Any:
        return x * 2

    kept = [(i, step(ut.full((3,), float(i)))) for i in range(20)]
    assert all(bool((y == 2 * i).all()) for i, y in kept)


def test_fullgraph_raises() -> None:
    """What is a warning otherwise is an error then."""

    @ut.compile(fullgraph=True)
    def step(x: Any) -> Any:
        return x / x.max().item()

    with pytest.raises(CompileError, match=r"read inside"):
        step(batch(0))


def test_one_warning_with_the_reason() -> None:
    @ut.compile
    def step(x: Any) -> Any:
        return x / x.max().item()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(6):
            step(batch(i))
    told = [w for w in caught if "compile" in str(w.message)]
    assert len(told) == 1
    assert "item()" in str(told[0].message)
    assert "test_compile_footguns.py" in str(told[0].message)
    assert "item()" in step.explain()


def test_one_tensor_returned_twice_is_one() -> None:
    @ut.compile
    def step(x: Any) -> Any:
        y = x * 2
        return y, [y]

    for i in range(CALLS):
        first, (second,) = step(batch(i))
        assert first is second


@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")
def test_arguments_that_are_results_of_one_operation() -> None:
    """Each gets its own gradient."""

    def step(a: Any, b: Any) -> Any:
        return (a * 2).sum() + (b * 3).sum()

    run = ut.compile(step)
    w = ut.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    for _ in range(CALLS):
        found = []
        for f in (step, run):
            w.grad = None
            f(*ut.var_mean(w, 0)).backward()
            found.append(w.grad)
        assert same(*found)


@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")
def test_leaf_that_is_made_inside_is_one() -> None:
    @ut.compile
    def step(x: Any) -> Any:
        w = ut.ones(3, requires_grad=True)
        return w, (w * x).sum()

    for i in range(CALLS):
        w, loss = step(ut.full((3,), float(i)))
        loss.backward()
        assert w.is_leaf
        assert w.grad.tolist() == [i] * 3


def test_program_that_becomes_busy_meanwhile_is_not_run(monkeypatch: Any) -> None:
    """Another thread may have run it after it was asked, and before it was locked."""
    model = ut.nn.Sequential(ut.nn.Linear(3, 3), ut.nn.Tanh(), ut.nn.Linear(3, 1))
    run = ut.compile(model)
    for i in range(9):
        run(batch(i)).sum().backward()
    (entry,) = run.__dict__["_compiled"]._entries.values()
    program = entry.program
    assert program is not None
    x = batch(1)
    model.zero_grad()
    model(x).sum().backward()
    wanted = model[0].weight.grad.clone()
    model.zero_grad()
    test, others = program.test, []

    def other_thread() -> bool:
        monkeypatch.setattr(program, "test", test)
        others.append(run(x))
        return test()

    monkeypatch.setattr(program, "test", other_thread)
    mine = run(batch(2))
    others[0].sum().backward()
    assert same(model[0].weight.grad, wanted)
    assert same(mine, model(batch(2)))


def test_interrupt_before_a_recording_leaves_nothing_behind(monkeypatch: Any) -> None:
    from undertow.compiled import trace

    run = ut.compile(lambda x: x * 2)
    run(batch(0))

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(trace, "Watch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(batch(1))
    for i in range(6):
        run(batch(i))
    assert all(e.program is not None for e in run._entries.values()), run.explain()


@dataclasses.dataclass
class Settings:
    scale: float = 2.0


class Slotted:
    __slots__ = ("scale",)


def scaled(x: Any, scale: float = 2.0) -> Any:
    return x * scale


def _parameter_attribute() -> Any:
    w = ut.nn.Parameter(ut.ones(2))
    w.scale = 2.0  # type: ignore[attr-defined]
    return lambda x: x * w.scale, lambda: setattr(w, "scale", 5.0)  # type: ignore[attr-defined]


def _parameter_wants_gradient() -> Any:
    w = ut.ones(2)
    return lambda x: x * 2 if w.requires_grad else x * 3, lambda: w.requires_grad_(True)


def _shape_after_data() -> Any:
    w = ut.ones(2)
    return lambda x: x * w.shape[0], lambda: setattr(w, "data", ut.ones(5))


def _subclass() -> Any:
    class Base:
        scale = 2.0

    class Derived(Base):
        pass

    made = Derived()
    return lambda x: x * made.scale, lambda: setattr(Derived, "scale", 3.0)


def _forward_of_instance() -> Any:
    relu = ut.nn.ReLU()
    return lambda x: relu(x) + 0, lambda: setattr(relu, "forward", lambda x: x * 5)


def _forward_of_class() -> Any:
    class Net(ut.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    net = Net()
    return lambda x: net(x), lambda: setattr(Net, "forward", lambda self, x: x * 9)


def _array() -> Any:
    held = array.array("d", [2.0])
    return lambda x: x * held[0], lambda: held.__setitem__(0, 3.0)


def _bytes() -> Any:
    held = bytearray(b"2")
    return lambda x: x * held[0], lambda: held.__setitem__(0, 3)


def _proxy() -> Any:
    held = {"a": 2.0}
    proxy = types.MappingProxyType(held)
    return lambda x: x * proxy["a"], lambda: held.update(a=3.0)


def _user_dict() -> Any:
    held = collections.UserDict(a=2.0)
    return lambda x: x * held["a"], lambda: held.update(a=3.0)


def _subclass_of_ndarray() -> Any:
    held = np.array([2.0]).view(type("Mine", (np.ndarray,), {}))
    return lambda x: x * float(held[0]), lambda: held.__setitem__(0, 3.0)


def _as_dictionary() -> Any:
    settings = Settings()

    def step(x: Any) -> Any:
        return scaled(x, **dataclasses.asdict(settings))

    return step, lambda: setattr(settings, "scale", 3.0)


def _matched() -> Any:
    settings = Settings()

    def step(x: Any) -> Any:
        match settings:
            case Settings(scale=s):
                return x * s

    return step, lambda: setattr(settings, "scale", 3.0)


def _slots() -> Any:
    made = Slotted()
    made.scale = 2.0
    return lambda x, s=made: x * s.scale, lambda: setattr(made, "scale", 3.0)


def _defaults() -> Any:
    def inner(x: Any, k: float = 2.0) -> Any:
        return x * k

    return lambda x: inner(x), lambda: setattr(inner, "__defaults__", (3.0,))


def _code() -> Any:
    def inner(x: Any) -> Any:
        return x * 2

    return lambda x: inner(x), lambda: setattr(inner, "__code__", (lambda x: x * 7).__code__)


def _function_attribute() -> Any:
    def inner() -> None: ...

    inner.scale = 2.0  # type: ignore[attr-defined]
    return lambda x: x * inner.scale, lambda: setattr(inner, "scale", 3.0)  # type: ignore[attr-defined]


CHANGES = [
    *(_parameter_attribute, _parameter_wants_gradient, _shape_after_data, _subclass),
    *(_forward_of_instance, _forward_of_class, _array, _bytes, _proxy, _user_dict),
    *(_subclass_of_ndarray, _as_dictionary, _matched, _slots, _defaults, _code),
    _function_attribute,
]


@pytest.mark.parametrize("make", CHANGES)
@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")
def test_change_in_between_is_noticed(make: Any) -> None:
    """What a function reads changes after its program is made."""
    step, change = make()
    run = ut.compile(step)
    for i in range(6):
        run(batch(i))
    was = step(batch(7))
    change()
    assert same(run(batch(7)), step(batch(7)))
    assert not same(was, step(batch(7)))


@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")
def test_memory_around_an_argument() -> None:
    """What lies around an argument is another one in the next call."""
    for step in (lambda x: x._base.sum(), lambda x: ut.as_strided(x, (2,), (1,), 0) * 1):
        run = ut.compile(step)
        for i in range(CALLS):
            x = ut.arange(12.0 if i < 9 else 6.0) + i
            part = x[0:2] if i < 9 else x[4:6]
            assert same(run(part), step(part))


@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")
def test_attributes_of_an_argument() -> None:
    run = ut.compile(lambda x: x * x.scale)
    for i in range(CALLS):
        x = ut.ones(2)
        x.scale = float(i // 9)  # type: ignore[attr-defined]
        assert run(x).tolist() == [i // 9] * 2


def test_second_call_before_a_backward_is_a_plain_one(monkeypatch: Any) -> None:
    """While a program's memory is in use, other calls are eager ones that nobody records."""
    from undertow.compiled import function

    run = ut.compile(ut.nn.Linear(3, 3))
    for i in range(8):
        run(batch(i)).sum().backward()
    recorded = []
    record = function.record
    monkeypatch.setattr(function, "record", lambda *given: recorded.append(1) or record(*given))
    kept = [run(batch(i)) for i in range(7)]
    assert not recorded
    assert all(same(y, run._orig_mod(batch(i))) for i, y in enumerate(kept))


def test_fullgraph_raises_in_every_call() -> None:
    @ut.compile(fullgraph=True)
    def step(x: Any) -> Any:
        return x / x.max().item()

    for i in range(4):
        with pytest.raises(CompileError, match=r"read inside"):
            step(batch(i))


def test_schedule_of_momenta_is_a_program() -> None:
    """OneCycleLR changes betas, too: numbers like the rate."""
    found = []
    for compiled in (False, True):
        model, optimizer = network()
        schedule = ut.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=60)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = ut.compile(step) if compiled else step
        losses = []
        for i in range(40):
            losses.append(run(batch(i)))
            schedule.step()
        found.append(losses)
    assert same(*found)
    (entry,) = run._entries.values()  # type: ignore[attr-defined]
    assert entry.program is not None
    assert entry.program.calls > 25


@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")
def test_memory_that_must_not_be_written_is_not() -> None:
    """Changing `x.data` counts no version, and is a change."""

    def step(x: Any) -> Any:
        x.data.mul_(2)
        return x + 0

    run = ut.compile(step)
    for i in range(9):
        assert same(run(batch(i)), batch(i) * 2)
    held = np.ones((4, 3), np.float32)
    held.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = ut.from_numpy(held)
    with pytest.raises(ut.errors.InplaceError):
        run(x)
    assert (held == 1).all()


def test_callbacks_of_a_collection_are_not_the_functions() -> None:
    """Tools that time collections (hypothesis, profilers) do not stop a function's compilation."""
    model = ut.nn.Linear(3, 2)
    run = ut.compile(lambda x: model(x).sum(), fullgraph=True)
    ran = []

    def tool(phase: str, info: Any) -> None:
        ran.append(time.perf_counter())

    thresholds = gc.get_threshold()
    gc.callbacks.append(tool)
    gc.set_threshold(1)
    try:
        for i in range(8):
            run(batch(i))
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(tool)
    assert ran
    assert gc.isenabled()
    assert "launches" in run.explain()


def test_views_of_empty_memory() -> None:
    """The imaginary part of no numbers begins behind the memory that there is."""

    @ut.compile
    def f(x: Any) -> Any:
        z = ut.complex(x, x) / 3
        return z.imag.clone(), z.imag

    for _ in range(8):
        for found in f(ut.ones(0, 4)):
            assert found.shape == (0, 4)
    (entry,) = f._entries.values()
    assert entry.program is not None
    assert entry.program.calls > 3


def test_views_that_hide_whose_memory_they_are_of() -> None:
    """Those of `as_strided`, which broadcasting takes."""
    weight = ut.ones(1, 2)

    @ut.compile
    def f(x: Any) -> Any:
        z = ut.complex(weight * 1, weight * 2).imag.expand(3, 2)
        return (x > z).float() * x + z

    for i in range(12):
        weight.fill_(i)
        x = batch(i, 3, 2)
        z = 2 * np.full((1, 2), i, "f4")
        assert np.array_equal(f(x).numpy(), (x.numpy() > z) * x.numpy() + z), i
    (entry,) = f._entries.values()
    assert entry.program is not None
