"""Optimisers: formulas against NumPy, one launch for all, and everything around a step."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.base import Backend
from undertow.backends.cpu.calls import launch
from undertow.backends.cpu.calls.choice import MODE
from undertow.backends.registry import backend_on
from undertow.core.update import Update
from undertow.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

# Every optimiser of scalars, with options that reach all of its formula.
ELEMENTWISE: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1}),
    ("Adamax", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.99)}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adadelta", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True}),
    ("Rprop", {}),
    ("ASGD", {"lr": 0.1, "t0": 1}),
]
OTHERS: list[tuple[str, dict[str, Any]]] = [("Adafactor", {"lr": 0.1}), ("Muon", {"lr": 0.1})]
ALL = [*ELEMENTWISE, *OTHERS]


def named(case: Any) -> str:
    return "-".join([case[0], *case[1]]) if isinstance(case, tuple) else str(case)


def make(case: Any, params: Any) -> Any:
    return getattr(ut.optim, case[0])(params, **case[1])


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def descend(optimizer: Any, params: Any, steps: int = 4) -> None:
    """Gradients that depend on where the parameters are."""
    for i in range(steps):
        for j, p in enumerate(params):
            p.grad = ut.sin(p.detach() * 3 + i) + 0.1 * j
        optimizer.step()


# The formulas ------------------------------------------------------------------------------------
def test_sgd_by_hand() -> None:
    p, buf, x = numbers(7), None, ut.tensor(numbers(7), requires_grad=True)
    optimizer = ut.optim.SGD([x], lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01)
    for i in range(5):
        g = numbers(7, seed=i)
        x.grad = ut.from_numpy(g)
        optimizer.step()
        g = g + 0.01 * p
        buf = g if buf is None else 0.9 * buf + 0.5 * g
        p = p - 0.1 * buf
    np.testing.assert_allclose(x.detach().numpy(), p, rtol=1e-14)
    np.testing.assert_allclose(optimizer.state[x]["momentum_buffer"].numpy(), buf, rtol=1e-14)


def test_adam_by_hand() -> None:
    p, x = numbers(7), ut.tensor(numbers(7), requires_grad=True)
    m = v = np.zeros(7)
    optimizer = ut.optim.AdamW([x], lr=0.1, weight_decay=0.1)
    for t in range(1, 6):
        g = numbers(7, seed=t)
        x.grad = ut.from_numpy(g)
        optimizer.step()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p = p * (1 - 0.01)
        p = p - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(x.detach().numpy(), p, rtol=1e-12)
    assert optimizer.state[x]["step"].item() == 5


@pytest.mark.parametrize("case", ALL, ids=named)
def test_it_descends(case: Any) -> None:
    """A quadratic is lower after forty steps; higher with `maximize`."""
    x = ut.tensor(numbers(4, 4) + 3, requires_grad=True)
    optimizer = make(case, [x])
    first = (x**2).sum().item()
    for _ in range(40):
        optimizer.zero_grad()
        loss = (x**2).sum()
        loss.backward()
        optimizer.step()
    last = (x**2).sum().item()
    assert last > first if case[1].get("maximize") else last < first
    assert math.isfinite(last)


@pytest.mark.parametrize("case", ALL, ids=named)
def test_maximize_is_the_gradient_turned_round(case: Any) -> None:
    if case[0] == "Muon":
        return
    other = (case[0], {**case[1], "maximize": not case[1].get("maximize", False)})
    found = []
    for which, sign in ((case, 1), (other, -1)):
        x = ut.tensor(numbers(3, 3), requires_grad=True)
        optimizer = make(which, [x])
        for i in range(3):
            x.grad = ut.tensor(sign * numbers(3, 3, seed=i))
            optimizer.step()
        found.append(x.detach().numpy())
    np.testing.assert_array_equal(*found)


def test_lbfgs_finds_the_valley_of_rosenbrock() -> None:
    for search in ("strong_wolfe", None):
        x = ut.tensor([-1.2, 1.0], dtype=ut.float64, requires_grad=True)
        lr = 1 if search else 0.2
        optimizer = ut.optim.LBFGS([x], lr=lr, max_iter=100, line_search_fn=search)

        def closure(x: Any = x, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
            loss.backward()
            return loss

        for _ in range(5):
            optimizer.step(closure)
        np.testing.assert_allclose(x.detach().numpy(), [1, 1], atol=1e-4)
    state = optimizer.state_dict()["state"][0]
    assert state["n_iter"] > 0
    assert len(state["old_dirs"]) == len(state["ro"])


def test_lbfgs_bad_input() -> None:
    x, y = ut.ones(2, requires_grad=True), ut.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="parameter groups"):
        ut.optim.LBFGS([{"params": [x]}, {"params": [y]}])
    with pytest.raises(ValueError, match="closure"):
        ut.optim.LBFGS([x]).step()
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        ut.optim.LBFGS([x], line_search_fn="armijo").step(lambda: x.sum())


def test_muon_makes_steps_orthogonal() -> None:
    x = ut.tensor(numbers(4, 8), dtype=ut.float32, requires_grad=True)
    before = x.detach().clone()
    x.grad = ut.tensor(numbers(4, 8, seed=1), dtype=ut.float32)
    ut.optim.Muon([x], lr=1.0, weight_decay=0.0).step()
    singular = np.linalg.svd((before - x.detach()).numpy())[1]
    assert (singular > 0.6).all()
    assert (singular < 1.3).all()
    with pytest.raises(ValueError, match=r"2D.*\(3,\)"):
        ut.optim.Muon([ut.ones(3, requires_grad=True)])


# One launch --------------------------------------------------------------------------------------
SHAPES = [(64, 64), (3,), (), (17, 5), (0, 4), (40000,), (2, 3, 4)]


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64, ut.float16, ut.bfloat16])
@pytest.mark.parametrize("case", ELEMENTWISE, ids=named)
def test_together_is_one_by_one(case: Any, dtype: Any) -> None:
    """All parameters in one optimiser, or an optimiser for each: the same bits."""
    together = [ut.tensor(numbers(*s), dtype=dtype, requires_grad=True) for s in SHAPES]
    apart = [p.detach().clone().requires_grad_() for p in together]
    descend(make(case, together), together)
    for j, p in enumerate(apart):
        optimizer = make(case, [p])
        for i in range(4):
            p.grad = ut.sin(p.detach() * 3 + i) + 0.1 * j
            optimizer.step()
    for a, b in zip(together, apart, strict=True):
        assert a.dtype is dtype
        np.testing.assert_array_equal(a.detach().float().numpy(), b.detach().float().numpy())


@pytest.mark.parametrize("case", ELEMENTWISE, ids=named)
def test_reference_device(case: Any) -> None:
    """NumPy's answer to the form, on arrays that nobody else knows."""
    start = [numbers(*s) for s in SHAPES]
    found = []
    for device in ("cpu", "reference"):
        params = [ut.tensor(a, device=device, requires_grad=True) for a in start]
        descend(make(case, params), params)
        found.append([p.detach().to("cpu").numpy() for p in params])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def test_any_number_of_threads() -> None:
    """The same bits, of large parameters and small ones."""
    before = ut.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            ut.set_num_threads(threads)
            shapes = [(300, 301), (7,), (16384,), (16385,)]
            params = [ut.tensor(numbers(*s), requires_grad=True) for s in shapes]
            descend(ut.optim.Adam(params, lr=0.1), params)
            found.append([p.detach().numpy() for p in params])
    finally:
        ut.set_num_threads(before)
    for a, b, c in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def launches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each launch of the form has."""
    seen: list[int] = []
    backend = backend_on("cpu")
    form = type(backend).update

    def update(self: Any, exprs: Any, rows: Any, numbers: Any, places: Any) -> None:
        if len(rows[0]) > 1:  # not the count of steps
            seen.append(len(rows))
        form(self, exprs, rows, numbers, places)

    monkeypatch.setattr(type(backend), "update", update)
    return seen


def test_one_launch_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    params = [ut.ones(3, requires_grad=True) for _ in range(20)]
    optimizer = ut.optim.Adam(params)
    seen = launches(monkeypatch)
    descend(optimizer, params, 2)
    assert seen == [20, 20]
    params[3].grad = None  # it stays behind: from now on its number of steps is another
    optimizer.step()
    assert seen == [20, 20, 19]
    descend(optimizer, params, 1)
    assert sorted(seen[3:]) == [1, 19]


@pytest.mark.skipif(MODE == "never", reason="no kernels")
def test_nothing_is_compiled_again() -> None:
    """The learning rate, the betas and the number of steps are arguments of the kernel."""
    x = ut.ones(5, requires_grad=True)
    optimizer = ut.optim.Adam([x], weight_decay=0.1)
    descend(optimizer, [x], 1)
    kernels = len(launch.PLANS)
    for i in range(5):
        optimizer.param_groups[0].update(lr=0.1 / (i + 1), betas=(0.5 + i / 20, 0.9), eps=1e-3 * i)
        descend(optimizer, [x], 1)
    assert len(launch.PLANS) == kernels


def test_memory_that_is_shared() -> None:
    """Parameters that overlap are changed one after the other, as if by two optimisers."""
    base = ut.tensor(numbers(10))
    a = base[:6].detach().requires_grad_()
    b = base[4:].detach().requires_grad_()
    a.grad, b.grad = ut.ones(6, dtype=ut.float64), ut.ones(6, dtype=ut.float64)
    before = base.numpy().copy()
    ut.optim.SGD([a, b], lr=0.5).step()
    expected = before - 0.5
    expected[4:6] -= 0.5
    np.testing.assert_array_equal(base.numpy(), expected)


def test_gradients_that_are_shared() -> None:
    """One tensor as the gradient of two parameters, and a parameter as its own gradient."""
    g = ut.tensor([1.0, 2.0])
    a, b = (ut.zeros(2, requires_grad=True) for _ in range(2))
    a.grad = b.grad = g
    c = ut.tensor([3.0, 4.0], requires_grad=True)
    c.grad = c.detach()
    ut.optim.SGD([a, b, c], lr=0.5, momentum=0.9).step()
    np.testing.assert_array_equal(a.detach().numpy(), [-0.5, -1.0])
    np.testing.assert_array_equal(b.detach().numpy(), [-0.5, -1.0])
    np.testing.assert_array_equal(c.detach().numpy(), [1.5, 2.0])


@pytest.mark.parametrize("case", ELEMENTWISE, ids=named)
def test_not_contiguous(case: Any) -> None:
    """Transposed and sliced parameters, beside contiguous copies of them; so of gradients."""
    whole = ut.tensor(numbers(6, 8))
    kinds = [
        lambda: whole.clone().t().detach(),
        lambda: whole.clone()[::2, 1::3].detach(),
        lambda: whole.clone()[:, 2].detach(),
    ]
    for kind in kinds:
        p = kind().requires_grad_()
        q = p.detach().contiguous().clone().requires_grad_()
        a, b = make(case, [p]), make(case, [q])
        for i in range(3):
            g = ut.tensor(numbers(*reversed(p.shape), seed=i)).t() if p.ndim == 2 else ut.sin(q)
            p.grad = g.detach()
            q.grad = g.detach().contiguous()
            a.step()
            b.step()
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-14)


def test_expanded_gradient() -> None:
    p = ut.zeros(3, 4, requires_grad=True)
    p.grad = ut.ones(1, 1).expand(3, 4)
    ut.optim.Adam([p], lr=0.1).step()
    np.testing.assert_allclose(p.detach().numpy(), np.full((3, 4), -0.1), rtol=1e-5)


def test_update_of_devices_and_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch for each device and dtype."""
    params = [
        ut.ones(2, dtype=dtype, device=device, requires_grad=True)
        for dtype in (ut.float32, ut.float64)
        for device in ("cpu", "reference")
    ]
    optimizer = ut.optim.SGD([*params, ut.ones(3, requires_grad=True)], lr=0.1)
    seen = launches(monkeypatch)
    for p in optimizer.param_groups[0]["params"]:
        p.grad = ut.ones_like(p)
    optimizer.step()
    assert sorted(seen) == [1, 2]
    for p in params:
        np.testing.assert_allclose(p.detach().to("cpu").numpy(), 0.9, rtol=1e-6)


def test_default_of_the_form() -> None:
    """The composition is what the CPU's own does."""
    backend = backend_on("cpu")
    mix = Update("mix", lambda a, b, c: (a + c * b, a * b), 2, 1, (0, 1))
    rows = [(ut.tensor(numbers(5)), ut.tensor(numbers(5, seed=1))) for _ in range(3)]
    copies = [[t._array.copy() for t in row] for row in rows]
    mix(rows, (2.0,))
    Backend.update(backend, mix.exprs, copies, (2.0,), (0, 1))
    for row, arrays in zip(rows, copies, strict=True):
        for t, array in zip(row, arrays, strict=True):
            np.testing.assert_array_equal(t.numpy(), array)


# In place ----------------------------------------------------------------------------------------
def test_versions_rise() -> None:
    """What a graph has saved of a parameter is out of date after a step."""
    x = ut.ones(3, requires_grad=True)
    optimizer = ut.optim.Adam([x])
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    before = x._version
    memory = x.data_ptr()
    optimizer.step()
    assert x._version == before + 1
    assert x.data_ptr() == memory
    assert x.is_leaf
    assert x.requires_grad
    with pytest.raises(RuntimeError, match="in place"):
        loss.backward()


def test_a_view_sees_the_step() -> None:
    x = ut.ones(4, requires_grad=True)
    view = x.detach()[1:3]
    x.grad = ut.ones(4)
    ut.optim.SGD([x], lr=0.5).step()
    np.testing.assert_array_equal(view.numpy(), [0.5, 0.5])
    assert view._version == x._version


def test_no_gradient_no_step() -> None:
    x, y = ut.ones(2, requires_grad=True), ut.ones(2, requires_grad=True)
    x.grad = ut.ones(2)
    optimizer = ut.optim.Adam([x, y])
    optimizer.step()
    assert list(optimizer.state) == [x]
    np.testing.assert_array_equal(y.detach().numpy(), [1, 1])


def test_memory_that_must_not_change() -> None:
    array = np.ones(3)
    array.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = ut.from_numpy(array).requires_grad_()
    x.grad = ut.ones(3, dtype=ut.float64)
    with pytest.raises(RuntimeError, match=r"\[SGD\].*read-only"):
        ut.optim.SGD([x]).step()
    y = ut.ones(1).expand(3).detach().requires_grad_()
    y.grad = ut.ones(3)
    with pytest.raises(RuntimeError, match=r"\[SGD\].*share one memory"):
        ut.optim.SGD([y]).step()


def test_state_of_another_shape_or_dtype() -> None:
    x = ut.ones(3, requires_grad=True)
    x.grad = ut.ones(3)
    optimizer = ut.optim.Adam([x])
    optimizer.step()
    optimizer.state[x]["exp_avg"] = ut.zeros(4)
    with pytest.raises(ValueError, match=r"\[Adam\].*\(3,\).*\(4,\)"):
        optimizer.step()
    optimizer.state[x]["exp_avg"] = ut.zeros(3, dtype=ut.float64)
    with pytest.raises(TypeError, match=r"\[Adam\].*float64"):
        optimizer.step()
    optimizer.state[x]["exp_avg"] = ut.zeros(3, device="reference")
    with pytest.raises(RuntimeError, match=r"\[Adam\].*reference"):
        optimizer.step()


def test_not_a_number_and_infinity() -> None:
    """They go through, without a warning."""
    x = ut.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x.grad = ut.tensor([float("nan"), float("inf"), 1.0])
    ut.optim.Adam([x], lr=0.1).step()
    found = x.detach().numpy()
    assert np.isnan(found[:2]).all()
    np.testing.assert_allclose(found[2], 2.9, rtol=1e-6)


# Differentiated steps ----------------------------------------------------------------------------
@pytest.mark.parametrize("case", [c for c in ELEMENTWISE if c[0] != "Rprop"], ids=named)
def test_differentiable(case: Any) -> None:
    """The derivative of three steps, by where they begin, against finite differences."""

    def after(start: Any) -> Any:
        x = start.clone()
        optimizer = make((case[0], {**case[1], "differentiable": True}), [x])
        for _ in range(3):
            y = x.clone()  # what the graph saves must not change
            loss = (ut.sin(y) * ut.exp(y * 0.3)).sum()
            (x.grad,) = ut.autograd.grad(loss, x, create_graph=True)
            optimizer.step()
        return x

    start = ut.tensor([0.4, -0.8, 1.7], dtype=ut.float64, requires_grad=True)
    assert ut.autograd.gradcheck(after, (start,), atol=1e-4)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adamax"])
def test_gradient_of_the_learning_rate(name: str) -> None:
    def after(lr: Any) -> Any:
        x = ut.tensor([0.4, -0.8, 1.7], dtype=ut.float64, requires_grad=True).clone()
        optimizer = getattr(ut.optim, name)([x], lr=lr, weight_decay=0.1, differentiable=True)
        for _ in range(3):
            (x.grad,) = ut.autograd.grad((x.clone() ** 4).sum(), x, create_graph=True)
            optimizer.step()
        return x

    lr = ut.tensor(0.03, dtype=ut.float64, requires_grad=True)
    assert ut.autograd.gradcheck(after, (lr,))


def test_a_differentiated_step_is_the_same_step() -> None:
    for case in ELEMENTWISE:
        found = []
        for recorded in (False, True):
            x = ut.tensor(numbers(5), requires_grad=not recorded)
            optimizer = make((case[0], {**case[1], "differentiable": recorded}), [x])
            descend(optimizer, [x])
            found.append(x.detach().numpy())
        np.testing.assert_allclose(*found, rtol=1e-12, err_msg=case[0])


# Groups and arguments ----------------------------------------------------------------------------
def leaf(*shape: int) -> Any:
    return ut.ones(*(shape or (2,)), requires_grad=True)


def test_groups() -> None:
    x, y = leaf(), leaf()
    optimizer = ut.optim.SGD([{"params": x}, {"params": [y], "lr": 0.1}], lr=0.5, momentum=0.9)
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.1]
    assert [g["momentum"] for g in optimizer.param_groups] == [0.9, 0.9]
    x.grad, y.grad = ut.ones(2), ut.ones(2)
    optimizer.step()
    np.testing.assert_allclose(x.detach().numpy(), 0.5)
    np.testing.assert_allclose(y.detach().numpy(), 0.9)
    z = leaf(3)
    optimizer.add_param_group({"params": [z]})
    assert optimizer.param_groups[2]["lr"] == 0.5


def test_named_parameters() -> None:
    x, y = leaf(), leaf()
    optimizer = ut.optim.Adam([("a", x), ("b", y)])
    assert optimizer.param_groups[0]["param_names"] == ["a", "b"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="names"):
        optimizer.add_param_group({"params": [leaf()]})
    with pytest.raises(ValueError, match="names"):
        ut.optim.Adam([("a", x), y])


@pytest.mark.parametrize(
    "params, error, words",
    [
        (list, ValueError, "empty parameter list"),
        (lambda: iter(()), ValueError, "empty parameter list"),
        (leaf, TypeError, "iterable"),
        (lambda: [1.0], TypeError, "float"),
        (lambda: [leaf() * 2], ValueError, "non-leaf"),
        (lambda: [{"params": {leaf()}}], TypeError, "set"),
        (lambda: [{"weights": [leaf()]}], KeyError, "params"),
        (lambda: [{"params": [p]} for p in [leaf()] * 2], ValueError, "more than one"),
    ],
)
def test_bad_parameters(params: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=rf"\[SGD\].*{words}"):
        ut.optim.SGD(params())


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])  # torch's, too
def test_optimisers_of_real_numbers(name: str) -> None:
    with pytest.raises(TypeError, match=rf"\[{name}\] does not support complex parameters"):
        getattr(ut.optim, name)([ut.zeros(2, 2, dtype=ut.complex64, requires_grad=True)])


_PAIRED = "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop"
PAIRED = _PAIRED.split()


@pytest.mark.parametrize("differentiable", [False, True])
@pytest.mark.parametrize("name", PAIRED)
def test_complex_parameters_are_optimised_as_pairs(name: str, differentiable: bool) -> None:
    start = ut.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=ut.float64)
    found = []
    for paired in (True, False):
        p = ut.view_as_complex(start.clone()) if paired else start.clone()
        optimizer = getattr(ut.optim, name)([p], lr=0.1, differentiable=differentiable)
        for _ in range(3):
            x = p.detach().clone().requires_grad_()
            pairs = ut.view_as_real(x) if paired else x
            (p.grad,) = ut.autograd.grad((pairs**4).sum(), x)
            optimizer.step()
        found.append(ut.view_as_real(p) if paired else p)
    np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=1e-12)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_optimises_complex_parameters_as_pairs(search: str | None) -> None:
    """Step for step as with the parts, beside a real parameter, to the minimum."""
    start = ut.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=ut.float64)
    found = []
    for paired in (True, False):
        p = (ut.view_as_complex(start.clone()) if paired else start.clone()).requires_grad_()
        real = ut.ones(3, dtype=ut.float64, requires_grad=True)
        optimizer = ut.optim.LBFGS([p, real], lr=0.1, max_iter=5, line_search_fn=search)

        def closure(p: Any = p, real: Any = real, paired: Any = paired, o: Any = optimizer) -> Any:
            o.zero_grad()
            pairs = ut.view_as_real(p) if paired else p
            loss = ((pairs - 2) ** 2).sum() * (1 + real.dot(real)) + (pairs**4).sum()
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(3)]
        assert losses[2] < losses[0]
        p = p.detach()
        found.append([*(ut.view_as_real(p) if paired else p).flatten().tolist(), *losses])
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_duplicates_warn() -> None:
    x = leaf()
    with pytest.warns(UserWarning, match="duplicate"):
        ut.optim.SGD([x, x])


@pytest.mark.parametrize(
    "name, options, words",
    [
        ("SGD", {"lr": -1}, "learning rate: -1"),
        ("SGD", {"momentum": -0.1}, "momentum value: -0.1"),
        ("SGD", {"nesterov": True}, "Nesterov"),
        ("SGD", {"weight_decay": -1}, "weight_decay"),
        ("SGD", {"fused": True, "foreach": True}, "together"),
        ("Adam", {"betas": (1.0, 0.9)}, "index 0: 1.0"),
        ("Adam", {"betas": (0.9, -0.1)}, "index 1: -0.1"),
        ("Adam", {"eps": -1}, "epsilon value: -1"),
        ("Adam", {"lr": float("nan")}, "learning rate: nan"),
        ("Adam", {"fused": True, "differentiable": True}, "differentiable"),
        ("AdamW", {"weight_decay": -1}, "weight_decay"),
        ("Adamax", {"betas": (0.9, 1.0)}, "index 1"),
        ("NAdam", {"momentum_decay": -1}, "momentum_decay"),
        ("RAdam", {"lr": -1}, "learning rate"),
        ("Adagrad", {"initial_accumulator_value": -1}, "initial_accumulator_value"),
        ("Adadelta", {"rho": 1.1}, "rho value: 1.1"),
        ("RMSprop", {"alpha": -1}, "alpha"),
        ("Rprop", {"etas": (1.1, 1.2)}, "eta values"),
        ("ASGD", {"weight_decay": -1}, "weight_decay"),
        ("Adafactor", {"d": 0.5}, "d should be"),
        ("Adafactor", {"beta2_decay": 0.5}, "beta2_decay"),
        ("Muon", {"adjust_lr_fn": "other"}, "other"),
        ("LBFGS", {"lr": -1}, "learning rate"),
    ],
)
def test_bad_options(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=rf"\[{name}\].*{words}"):
        getattr(ut.optim, name)([leaf(2, 2)], **options)


def test_more_bad_options() -> None:
    with pytest.raises(TypeError, match=r"\[Adam\] lr must be a number, got str"):
        ut.optim.Adam([leaf()], lr="fast")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1-element"):
        ut.optim.Adam([leaf()], lr=ut.ones(2))
    dense = leaf()
    dense.sum().backward()
    with pytest.raises(NotImplementedError, match=r"\[SparseAdam\].*dense.*use Adam"):
        ut.optim.SparseAdam([dense]).step()
    with pytest.raises(ValueError, match=r"\[SparseAdam\] betas"):
        ut.optim.SparseAdam([leaf()], betas=(0.9, 1.0))
    with pytest.raises(NotImplementedError, match="step"):
        ut.optim.Optimizer([leaf()], {}).step()


def test_learning_rate_as_a_tensor() -> None:
    x, y = leaf(), leaf()
    lr = ut.tensor(0.5)
    a, b = ut.optim.Adam([x], lr=lr), ut.optim.Adam([y], lr=0.5)
    for optimizer, p in ((a, x), (b, y)):
        descend(optimizer, [p])
    np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())
    lr.fill_(0.0)
    before = x.detach().clone()
    descend(a, [x], 1)
    np.testing.assert_array_equal(x.detach().numpy(), before.numpy())


def test_zero_grad() -> None:
    x = leaf()
    optimizer = ut.optim.SGD([x])
    (grad,) = ut.autograd.grad((x**3).sum(), x, create_graph=True)
    x.grad = grad
    optimizer.zero_grad(set_to_none=False)
    assert x.grad is grad
    assert not grad.requires_grad
    np.testing.assert_array_equal(grad.numpy(), [0, 0])
    optimizer.zero_grad()
    assert x.grad is None


def test_closure() -> None:
    x = leaf()
    optimizer = ut.optim.SGD([x], lr=0.5)

    def closure() -> Any:
        assert ut.is_grad_enabled()
        optimizer.zero_grad()
        loss = (x**2).sum()
        loss.backward()
        return loss

    with ut.no_grad():
        assert optimizer.step(closure).item() == 2.0
    np.testing.assert_array_equal(x.detach().numpy(), [0, 0])


# Hooks -------------------------------------------------------------------------------------------
def test_step_hooks() -> None:
    x = leaf()
    optimizer = ut.optim.SGD([x])
    seen: list[str] = []

    def note(word: str) -> Any:
        return lambda o, args, kwargs: seen.append(word)

    handles = [
        optimizer.register_step_pre_hook(note("own before")),
        optimizer.register_step_post_hook(note("own after")),
        register_optimizer_step_pre_hook(note("every before")),
        register_optimizer_step_post_hook(note("every after")),
    ]
    optimizer.step()
    assert seen == ["every before", "own before", "own after", "every after"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 4


def test_step_hook_gives_other_arguments() -> None:
    x = leaf()
    optimizer = ut.optim.SGD([x])
    with optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7), {})):
        assert optimizer.step() == 7
    with (
        optimizer.register_step_pre_hook(lambda o, args, kwargs: 3),
        pytest.raises(RuntimeError, match="args, kwargs"),
    ):
        optimizer.step()


def test_state_dict_hooks() -> None:
    x = leaf()
    optimizer = ut.optim.SGD([x], lr=0.5)
    seen: list[Any] = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    state = optimizer.state_dict()
    assert seen == ["first", "second"]
    assert state["more"] == 1

    def slower(o: Any, d: Any) -> Any:
        d = copy.deepcopy(d)
        d["param_groups"][0]["lr"] = 0.1
        return d

    optimizer.register_load_state_dict_pre_hook(slower)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(state)
    assert seen[-1] == "loaded"
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert state["param_groups"][0]["lr"] == 0.5


# Saving and loading ------------------------------------------------------------------------------
@pytest.mark.parametrize("case", ALL, ids=named)
def test_saved_and_loaded(case: Any) -> None:
    """The same steps after loading into another optimiser; the two share nothing."""
    params = [
        ut.tensor(numbers(3, 4), requires_grad=True),
        ut.tensor(numbers(4, 2), requires_grad=True),
    ]
    optimizer = make(case, params)
    descend(optimizer, params)
    copies = [p.detach().clone().requires_grad_() for p in params]
    other = make((case[0], {}), copies)
    other.load_state_dict(optimizer.state_dict())
    descend(optimizer, params)
    descend(other, copies)
    for a, b in zip(params, copies, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    assert optimizer.state_dict()["param_groups"] == other.state_dict()["param_groups"]


def test_layout_of_the_state() -> None:
    x, y = leaf(), leaf(3)
    optimizer = ut.optim.Adam([{"params": [x]}, {"params": [y]}])
    descend(optimizer, [x, y])
    found = optimizer.state_dict()
    assert list(found) == ["state", "param_groups"]
    assert [g["params"] for g in found["param_groups"]] == [[0], [1]]
    assert list(found["state"][1]) == ["step", "exp_avg", "exp_avg_sq"]
    assert found["state"][1]["exp_avg"] is optimizer.state[y]["exp_avg"]
    step = found["state"][0]["step"]
    assert (step.shape, step.dtype, step.item()) == ((), ut.float32, 4.0)
    assert ut.optim.SGD([x]).state_dict()["state"] == {}
    assert list(ut.optim.Adagrad([x]).state_dict()["state"][0]) == ["step", "sum"]


def test_loading_casts() -> None:
    """To the parameter's dtype and device, but for the number of steps."""
    x = ut.tensor(numbers(3), requires_grad=True)
    optimizer = ut.optim.Adam([x])
    descend(optimizer, [x])
    y = ut.ones(3, device="reference", requires_grad=True)
    other = ut.optim.Adam([y])
    other.load_state_dict(optimizer.state_dict())
    state = other.state[y]
    assert (state["exp_avg"].dtype, str(state["exp_avg"].device)) == (ut.float32, "reference")
    assert str(state["step"].device) == "cpu"
    descend(other, [y])
    assert state["step"].item() == 8


def test_old_states_load() -> None:
    """Steps as plain numbers, a momentum that has not begun, and options that did not exist."""
    x = leaf()
    x.grad = ut.ones(2)
    optimizer = ut.optim.Adam([x])
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0]["step"] = 1
    del state["param_groups"][0]["maximize"]
    optimizer.load_state_dict(state)
    optimizer.step()
    assert optimizer.state[x]["step"].item() == 2
    assert optimizer.param_groups[0]["maximize"] is False
    sgd = ut.optim.SGD([x], lr=0.5, momentum=0.9)
    groups = sgd.state_dict()["param_groups"]
    sgd.load_state_dict({"state": {0: {"momentum_buffer": None}}, "param_groups": groups})
    sgd.step()
    np.testing.assert_array_equal(sgd.state[x]["momentum_buffer"].numpy(), [1, 1])


def test_states_that_do_not_fit() -> None:
    state = ut.optim.SGD([leaf(), leaf()]).state_dict()
    with pytest.raises(ValueError, match=r"size of optimizer's group.*\[2\].*\[1\]"):
        ut.optim.SGD([leaf()]).load_state_dict(state)
    with pytest.raises(ValueError, match="number of parameter groups"):
        ut.optim.SGD([{"params": leaf()}, {"params": leaf()}]).load_state_dict(state)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copied_and_pickled(how: Any) -> None:
    """With parameters of its own, and the states that belong to them."""
    x = leaf()
    optimizer = ut.optim.Adam([x], lr=0.1)
    descend(optimizer, [x])
    other = how(optimizer)
    (y,) = other.param_groups[0]["params"]
    assert y is not x
    assert list(other.state) == [y]
    descend(optimizer, [x])
    descend(other, [y])
    np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())


def test_repr() -> None:
    text = repr(ut.optim.SGD([leaf()], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.5\n" in text
    assert "params" not in text


def test_a_user_writes_an_optimiser() -> None:
    """A subclass with a step of its own: hooks, groups and states work as for all others."""

    class Shrink(ut.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 0.5) -> None:
            super().__init__(params, {"lr": lr})

        @ut.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(group["lr"])
                    self.state[p]["count"] = self.state[p].get("count", 0) + 1

    x = leaf()
    optimizer = Shrink([x])
    seen: list[int] = []
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(1))
    optimizer.step()
    optimizer.step()
    assert seen == [1, 1]
    assert optimizer.state_dict()["state"] == {0: {"count": 2}}
    np.testing.assert_array_equal(x.detach().numpy(), [0.25, 0.25])


def test_required_defaults() -> None:
    """Optimisers of others mark with `required` what every group must give."""
    from undertow.optim.optimizer import Optimizer, required

    w = ut.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match=r"\[Optimizer\] parameter group 0 didn't specify.* lr"):
        Optimizer([w], {"lr": required})
    assert Optimizer([{"params": [w], "lr": 0.5}], {"lr": required}).param_groups[0]["lr"] == 0.5
    assert repr(required) == "<required parameter>"


def test_adafactor_loads_a_step_that_is_a_number() -> None:
    """As old files keep it; the next step failed."""
    found = []
    for plain in (False, True):
        p = leaf()
        first = ut.optim.Adafactor([p])
        p.grad = ut.ones_like(p)
        first.step()
        state = first.state_dict()
        if plain:
            state["state"][0]["step"] = float(state["state"][0]["step"])
        second = ut.optim.Adafactor([p])
        second.load_state_dict(state)
        second.step()
        assert second.state[p]["step"].item() == 2
        found.append(p.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "decoupled_weight_decay": True}])
def test_nadam_is_differentiable_in_all_that_it_keeps(options: dict[str, Any]) -> None:
    """In the product of its momenta too, each parameter in its own: that gradient was missing."""

    def stepped(*given: Any) -> Any:
        p, g, *states = (t.clone() for t in given[:4])
        rows = [p[0], p[1]]
        optimizer = ut.optim.NAdam([{"params": []}], lr=0.9, differentiable=True, **options)
        optimizer.param_groups[0]["params"] = rows
        for i, row in enumerate(rows):
            row.grad = g[i]
            kept = {"exp_avg": states[0][i], "exp_avg_sq": states[1][i], "mu_product": given[4 + i]}
            step = ut.tensor(10.0, dtype=ut.float64)
            optimizer.state[row].update({k: v.clone() for k, v in kept.items()}, step=step)
        optimizer.step()
        optimizer.step()
        return (*rows, *(optimizer.state[row]["mu_product"] for row in rows))

    rng = np.random.default_rng(0)
    given = [ut.tensor(rng.uniform(0.1, 1, (2, 3)), requires_grad=True) for _ in range(4)]
    given += [ut.tensor(0.5, dtype=ut.float64, requires_grad=True) for _ in range(2)]
    assert ut.autograd.gradcheck(stepped, given)
