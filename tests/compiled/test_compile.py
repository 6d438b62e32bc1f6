"""`ut.compile`: programs against eager calls; see also `test_compile_footguns.py`."""

from __future__ import annotations

import contextvars
import copy
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiled_ops
import undertow as ut
from op_samples import load
from undertow.backends.program.graph import planned
from undertow.compiled.function import PROGRAMS, Compiled

TESTS = Path(__file__).parents[1]


def batch(i: int, *shape: int) -> ut.Tensor:
    return ut.tensor(np.random.default_rng(i).standard_normal(shape or (4, 3)).astype("f4"))


def close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a.detach().numpy(), b.detach().numpy(), 1e-4, 1e-6, equal_nan=True))


def programs(compiled: Any) -> list[Any]:
    function = compiled.__dict__.get("_compiled", compiled)
    return [e.program for e in function._entries.values() if e.program is not None]


# Modules ----------------------------------------------------------------------------------------
def model(seed: int = 0) -> Any:
    ut.manual_seed(seed)
    nn = ut.nn
    return nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))


def twins(make: Callable[[], Any] = model) -> tuple[Any, Any]:
    return make(), ut.compile(make())


def grads(m: Any) -> list[Any]:
    return [p.grad for p in m.parameters()]


def agree(a: Any, b: Any) -> bool:
    both = zip(a.parameters(), b.parameters(), strict=True)
    return all(close(p, q) and (p.grad is None or close(p.grad, q.grad)) for p, q in both)


def test_module_trains_as_ever() -> None:
    """Forward and backward are programs; the loss, clipping and the optimiser are eager."""
    eager, compiled = twins()
    optimizers = [ut.optim.Adam(m.parameters(), lr=0.01) for m in (eager, compiled)]
    for i in range(20):
        for m, o in zip((eager, compiled), optimizers, strict=True):
            o.zero_grad()
            loss = (m(batch(i)) - 1).square().mean()
            loss.backward()
            o.step()
        assert agree(eager, compiled), i
    (program,) = programs(compiled)
    assert program.trace.split is not None
    assert program.calls > 10


def test_gradients_accumulate_over_calls() -> None:
    eager, compiled = twins()
    for i in range(12):
        for m in (eager, compiled):
            m(batch(i)).sum().backward()
            if i % 3 == 2:
                m.zero_grad()
    assert agree(eager, compiled)
    assert programs(compiled)


def test_a_gradient_that_the_caller_holds() -> None:
    """A program writes into last time's gradient only where nobody has that any more."""
    w = ut.ones(5000, requires_grad=True)

    @ut.compile
    def step(x: ut.Tensor) -> None:
        w.grad = None
        (w * x).sum().backward()

    held: list[Any] = []
    for i in range(12):
        step(ut.full((5000,), float(i)))
        if i % 2:
            held.append((w.grad, float(i)))
        for gradient, value in held:
            assert gradient.tolist() == [value] * 5000
    assert programs(step)


def test_two_forwards_before_a_backward() -> None:
    """What the first one's backward needs is not overwritten by the second."""
    eager, compiled = twins()
    for i in range(12):
        for m in (eager, compiled):
            m.zero_grad()
            a, b = m(batch(i)), m(batch(i + 50))
            (a * b).sum().backward()
        assert agree(eager, compiled), i


def test_backward_twice_and_freed() -> None:
    eager, compiled = twins()
    for i in range(8):
        for m in (eager, compiled):
            m.zero_grad()
            loss = m(batch(i)).square().sum()
            loss.backward(retain_graph=True)
            loss.backward()
            with pytest.raises(RuntimeError):
                loss.backward()
        assert agree(eager, compiled), i


def test_create_graph_to_any_order() -> None:
    eager, compiled = twins()
    for i in range(8):
        found = []
        for m in (eager, compiled):
            x = batch(i).requires_grad_()
            (g,) = ut.autograd.grad(m(x).sum(), x, create_graph=True)
            (h,) = ut.autograd.grad(g.square().sum(), x, create_graph=True)
            (k,) = ut.autograd.grad(h.square().sum(), x)
            found.append((g, h, k))
        assert all(map(close, *found)), i
    assert programs(compiled)


def test_inside_of_a_larger_graph() -> None:
    """An argument with a history gets its gradient."""
    eager, compiled = twins()
    w = [ut.ones(3, requires_grad=True) for _ in range(2)]
    for i in range(10):
        for m, v in zip((eager, compiled), w, strict=True):
            m.zero_grad()
            v.grad = None
            m(batch(i) * v).square().sum().backward()
        assert agree(eager, compiled), i
        assert close(w[0].grad, w[1].grad), i
    assert programs(compiled)


def test_changes_between_forward_and_backward_are_noticed() -> None:
    compiled = ut.compile(model())
    for i in range(8):
        compiled(batch(i)).sum().backward()
    out = compiled(batch(1))
    with ut.no_grad():
        next(iter(compiled.parameters())).add_(1)
    out.sum().backward()  # the first weight is not needed, since the input wants no gradient
    out = compiled(batch(1))
    with ut.no_grad():
        compiled[3].weight.add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        out.sum().backward()


def test_results_may_be_changed_in_place() -> None:
    eager, compiled = twins()
    for i in range(10):
        for m in (eager, compiled):
            m.zero_grad()
            out = m(batch(i))
            out.mul_(2)
            out.sum().backward()
        assert agree(eager, compiled), i


def test_dropout_and_running_statistics() -> None:
    def make() -> Any:
        ut.manual_seed(0)
        nn = ut.nn
        return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))

    eager, compiled = twins(make)
    for i in range(16):
        for m in (eager, compiled):
            m.train(i % 8 < 6)
            m.zero_grad()
            ut.manual_seed(i)
            m(batch(i)).sum().backward()
        assert agree(eager, compiled), i
        assert all(map(close, eager.buffers(), compiled.buffers())), i
    assert programs(compiled)
    compiled.train()
    x = batch(1).requires_grad_()
    for _ in range(6):
        ut.autograd.grad(compiled(x).sum(), x)
    with pytest.raises(RuntimeError, match="create_graph"):
        ut.autograd.grad(compiled(x).sum(), x, create_graph=True)


def test_module_under_no_grad() -> None:
    eager, compiled = twins()
    for i in range(8):
        with ut.no_grad():
            assert close(eager(batch(i)), compiled(batch(i)))
    assert programs(compiled)
    for i in range(4):
        with ut.inference_mode():
            assert close(eager(batch(i)), compiled(batch(i)))


def test_module_is_the_one_that_it_was() -> None:
    """As in torch: names begin with `_orig_mod`, attributes are those of the module."""
    compiled = ut.compile(model())
    assert next(n for n, _ in compiled.named_parameters()) == "_orig_mod.0.weight"
    assert isinstance(compiled, ut.nn.Module)
    assert compiled[0] is compiled._orig_mod[0]
    assert len(compiled) == 4
    compiled.eval()
    assert not compiled._orig_mod.training
    compiled.load_state_dict(ut.compile(model(3)).state_dict())
    compiled._orig_mod.load_state_dict(model(3).state_dict())
    assert ut.compile(compiled) is compiled


def test_several_results_of_which_some_are_used() -> None:
    w = [batch(5).requires_grad_() for _ in range(2)]

    def function(v: Any, x: Any) -> Any:
        return {"a": (x * v).sum(0), "b": [(x * v).exp(), x.sum()]}

    compiled = ut.compile(function)
    for i in range(10):
        for f, v in ((function, w[0]), (compiled, w[1])):
            v.grad = None
            out = f(v, batch(i))
            (out["a"].sum() if i % 2 else out["b"][0].sum()).backward()
            assert not out["b"][1].requires_grad
        assert close(w[0].grad, w[1].grad), i


# Programs of forms --------------------------------------------------------------------------------
def random_step(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    """A step of views, writes, maps, reductions and products, drawn by a seed."""
    draw = np.random.default_rng(seed)
    kept = [batch(seed + 7, 4, 4), batch(seed + 8, 4, 4)]
    plan = [
        (int(draw.integers(14)), int(draw.integers(100)), int(draw.integers(100)))
        for _ in range(int(draw.integers(3, 14)))
    ]

    def step(x: Any, y: Any) -> Any:
        pool = [x, y, *kept]
        for kind, i, j in plan:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if kind == 0:
                pool.append(a * b + 0.5)
            elif kind == 1:
                pool.append(ut.tanh(a) - b)
            elif kind == 2:
                pool.append((a @ b) * 0.1)
            elif kind == 3:
                pool.append(a.t())
            elif kind == 4:
                pool.append(a[:2].repeat(2, 1))
            elif kind == 5:
                pool.append(a.sum(j % 2, keepdim=True).expand(4, 4))
            elif kind == 6:
                kept[i % 2].mul_(0.5).add_(b, alpha=0.25)
            elif kind == 7:
                kept[i % 2][j % 4].copy_(a[i % 4])
            elif kind == 8:
                pool.append(a.softmax(j % 2))
            elif kind == 9:
                c = a.clone()
                c[:, j % 4] += b[:, i % 4]
                pool.append(c)
            elif kind == 10:
                pool.append(ut.cat([a[:, :2], b[:, 2:]], 1))
            elif kind == 11:
                pool.append(a.reshape(2, 8).reshape(4, 4).contiguous())
            elif kind == 12:
                pool.append(ut.where(a > b, a, b * 2))
            else:
                x.mul_(0.5)
        return [p.clone() if p is x or p is y else p for p in pool[4:]][-3:], pool[-1].sum()

    return step, kept


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    """Views and writes in any order, with the program's memory filled with NaN before each call."""
    one, one_kept = random_step(seed)
    other, other_kept = random_step(seed)
    compiled = ut.compile(other)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(9):
            for p in programs(compiled):
                p.table.fill(255)
            x, y = batch(i, 4, 4), batch(i + 20, 4, 4)
            a, b = one(x.clone(), y.clone()), compiled(x.clone(), y.clone())
            for s, t in zip([*a[0], a[1], *one_kept], [*b[0], b[1], *other_kept], strict=True):
                assert close(s, t), (i, seed)


@pytest.mark.parametrize("name", sorted(load())[::5])
def test_one_sample_of_every_fifth_op(name: str) -> None:
    """Forward and backward as a program; all samples, bit for bit: `compiled_ops.py`."""
    info = load()[name]
    if name.endswith("_") or not info.samples:
        pytest.skip("changes its arguments" if info.samples else "no samples")
    compiled_ops.check(info, info.samples[len(name) % len(info.samples)])


def test_bits_are_those_of_kernels() -> None:
    """Every step of the benchmark, at one and two threads: not a bit differs."""
    code = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "import undertow as ut, compile as steps, warnings\n"
        "warnings.simplefilter('error')\n"
        "ut.set_num_threads(int(sys.argv[2]))\n"
        "for name in ('chain', 'small_mlp', 'penalty', 'fcn', 'lstm_cell'):\n"
        "    eager, batch, mine = steps.STEPS[name](ut)\n"
        "    step, _, theirs = steps.STEPS[name](ut)\n"
        "    run = ut.compile(step)\n"
        "    for i in range(6):\n"
        "        a, b = eager(*batch(i)), run(*batch(i))\n"
        "        assert bool((a == b).all()), (name, i)\n"
        "        for p, q in zip(mine, theirs):\n"
        "            assert bool((p == q).all()) and bool((p.grad == q.grad).all()), (name, i)\n"
        "    assert any(e.program for e in run._entries.values()), run.explain()\n"
    )
    folder = str(TESTS.parent / "benchmarks")
    for threads in ("1", "2"):
        env = {**os.environ, "UNDERTOW_KERNELS": "always"}
        subprocess.run([sys.executable, "-c", code, folder, threads], check=True, env=env)


# Calling ----------------------------------------------------------------------------------------
def test_arguments_of_torch() -> None:
    def double(x: Any) -> Any:
        return x * 2

    for given in (
        {"mode": "max-autotune"},
        {"fullgraph": True, "dynamic": True},
        {"backend": "inductor", "options": {"trace.enabled": True}},
    ):
        f = ut.compile(double, **given)
        g = ut.compile(**given)(double)
        for h in (f, g):
            assert isinstance(h, Compiled)
            assert h.__name__ == "double"
            assert all(h(ut.ones(2)).tolist() == [2.0, 2.0] for _ in range(5))
    assert ut.compile(double, disable=True) is double
    assert ut.compile(double, backend="eager") is double
    with pytest.raises(ValueError, match="mode is one of"):
        ut.compile(double, mode="quick")
    with pytest.raises(TypeError, match="expects a function or a module, got int"):
        ut.compile(3)


def test_as_a_method() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.scale = 2.0

        @ut.compile
        def step(self, x: Any) -> Any:
            return x * self.scale

    trainer = Trainer()
    for i in range(12):
        trainer.scale = 2.0 if i < 6 else 3.0
        assert trainer.step(ut.ones(2)).tolist() == [trainer.scale] * 2


def test_eight_programs_then_eager() -> None:
    @ut.compile
    def double(x: Any) -> Any:
        return x * 2

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(5):
            for n in range(PROGRAMS + 3):
                assert double(ut.ones(n + 1)).shape == (n + 1,)
    assert len([w for w in caught if "more than 8 kinds" in str(w.message)]) == 1
    assert len(programs(double)) == PROGRAMS


def test_disable_and_reset() -> None:
    @ut.compiler.disable
    def inside(x: Any) -> Any:
        return x + 1

    @ut.compile
    def step(x: Any) -> Any:
        return inside(x) * 2

    with pytest.warns(UserWarning, match="inside is disabled"):
        step(ut.ones(2))
    assert all(step(ut.ones(2)).tolist() == [4.0, 4.0] for _ in range(4))

    @ut.compile
    def double(x: Any) -> Any:
        return x * 2

    for _ in range(5):
        double(ut.ones(2))
    assert programs(double)
    ut.compiler.reset()
    assert not programs(double)
    assert "not called yet" in double.explain()
    ut.compiler.cudagraph_mark_step_begin()
    assert not ut.compiler.is_compiling()


@pytest.mark.parametrize(
    "switch",
    [
        lambda: ut.autograd.set_detect_anomaly(False),
        lambda: ut.autograd.set_multithreading_enabled(True),
        lambda: ut.inference_mode(False).__enter__(),
        lambda: ut.set_grad_enabled(True),
        lambda: ut.set_autocast_enabled("cpu", False),
        lambda: ut.set_autocast_dtype("cpu", ut.bfloat16),
    ],
)
def test_a_switch_that_is_set_to_what_it_is(switch: Any) -> None:
    """Programs of torch's users begin with such lines, which must not end compilation."""

    def calls() -> str:
        switch()
        double = ut.compile(lambda x: x * 2)
        for _ in range(5):
            double(ut.ones(2))
        told: str = double.explain()
        return told

    assert "ran as this program" in contextvars.copy_context().run(calls)


def test_halves_in_a_fresh_process() -> None:
    """The import of their package, which the first call does, is no part of the function."""
    program = """
        import undertow as ut
        f = ut.compile(lambda x: x.to(ut.bfloat16) * 2)
        for _ in range(6):
            f(ut.ones(300))
        assert "ran as this program" in f.explain(), f.explain()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    subprocess.run(command, check=True, timeout=300)


def test_explain_tells_of_calls_around_programs() -> None:
    double = ut.compile(lambda x: x * 2)
    for _ in range(5):
        double(ut.ones(2))
    with ut.autograd.set_detect_anomaly(True):
        double(ut.ones(2))
    assert "1 calls ran eagerly" in double.explain()


def test_explain() -> None:
    m = model()
    o = ut.optim.Adam(m.parameters())

    @ut.compile
    def step(x: Any) -> Any:
        o.zero_grad()
        loss = m(x).square().mean()
        loss.backward()
        o.step()
        return loss.detach()

    for i in range(6):
        step(batch(i))
    told = step.explain()
    assert "launches (" in told
    assert "update" in told
    assert "1 optimiser steps" in told
    assert "ran as this program" in told


def test_threads() -> None:
    """Several threads call one function at once: one has the program, others run eagerly."""

    @ut.compile
    def double(x: Any) -> Any:
        return (x * 2).sum(1) + 1

    wrong: list[Any] = []

    def work(k: int) -> None:
        for i in range(60):
            x = batch(100 * k + i)
            if not close(double(x), (x * 2).sum(1) + 1):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_compiled_inside_of_compiled() -> None:
    @ut.compile
    def inner(x: Any) -> Any:
        return x * 2

    @ut.compile
    def outer(x: Any) -> Any:
        return inner(x) + 1

    for i in range(8):
        assert close(outer(batch(i)), batch(i) * 2 + 1)
    assert programs(outer)


def test_error_inside() -> None:
    """An exception of the function comes out, and nothing is left behind."""

    @ut.compile
    def step(x: Any, fail: bool) -> Any:
        y = x * 2
        if fail:
            raise KeyError("told so")
        return y

    for i in range(6):
        with pytest.raises(KeyError, match="told so"):
            step(batch(i), True)
        assert close(step(batch(i), False), batch(i) * 2)
    assert programs(step)


@pytest.mark.parametrize("mode", ["off", "check"])
def test_environment(mode: str) -> None:
    code = (
        "import undertow as ut\n"
        "m = ut.nn.Linear(3, 2); o = ut.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)\n"
        "def step(x):\n"
        "    o.zero_grad(); loss = m(x).square().mean(); loss.backward(); o.step()\n"
        "    return loss.detach()\n"
        "f = ut.compile(step)\n"
        "print(f is step, [f(ut.ones(4, 3)).item() for _ in range(8)][-1])\n"
    )
    env = {**os.environ, "UNDERTOW_COMPILE": mode, "UNDERTOW_KERNELS": "always"}
    found = subprocess.run([sys.executable, "-c", code], check=True, env=env, capture_output=True)
    assert found.stdout.split()[0] == (b"True" if mode == "off" else b"False")


def test_memory_is_planned_by_lifetimes() -> None:
    """No two stores that live at the same time share a byte."""
    draw = np.random.default_rng(0)
    for _ in range(50):
        sizes = []
        for _ in range(40):
            first = int(draw.integers(0, 60))
            sizes.append((int(draw.integers(0, 5000)), first, first + int(draw.integers(0, 9))))
        offsets, total = planned(sizes)
        for i, (n, f, g) in enumerate(sizes):
            assert offsets[i] % 64 == 0
            assert offsets[i] + n <= total
            for j, (m, h, k) in enumerate(sizes[:i]):
                apart = offsets[i] + n <= offsets[j] or offsets[j] + m <= offsets[i]
                assert apart or g < h or k < f


@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")  # the hook keeps a list
def test_a_compiled_module_is_copied_and_hooked() -> None:
    model = ut.compile(ut.nn.Linear(3, 2))
    x = ut.ones(1, 3)
    for _ in range(6):
        model(x)
    copied = copy.deepcopy(model)
    with ut.no_grad():
        copied.weight.zero_()
        copied.bias.zero_()
    seen = []
    handle = model.register_forward_hook(lambda module, args, out: seen.append(out))
    for _ in range(6):
        assert copied(x).abs().sum() == 0
        assert model(x).abs().sum() > 0
    assert len(seen) == 6
    handle.remove()


@pytest.mark.filterwarnings("ignore:.*compile.*:UserWarning")
def test_transforms_inside_and_outside_run_eagerly() -> None:
    x = ut.tensor([0.3, 1.2, -0.4])
    functions = {
        "jvp inside": ut.compile(lambda x: ut.func.jvp(ut.sin, (x,), (ut.ones(3),))[1]),
        "inside jvp": lambda x: ut.func.jvp(compiled, (x,), (ut.ones(3),))[1],
        "vmap inside": ut.compile(lambda x: ut.func.vmap(ut.func.grad(ut.sin), loop=False)(x)),
        "inside vmap": lambda x: ut.func.vmap(ut.func.grad(compiled), loop=False)(x),
    }
    compiled = ut.compile(lambda x: x.sin())
    for name, function in functions.items():
        for _ in range(6):
            np.testing.assert_allclose(function(x).numpy(), x.cos().numpy(), 1e-6, err_msg=name)
