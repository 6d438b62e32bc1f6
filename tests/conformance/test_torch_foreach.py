"""`_foreach_*` and `_fused_*` beside torch's: values, dtypes, gradients, what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import foreach

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
SHAPES = [(), (3,), (2, 4), (0,), (65, 70)]


def lists(m: Any, dtype: str, count: int = 1, seed: int = 0, grad: bool = False) -> list[list[Any]]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        row = []
        for shape in SHAPES:
            values = rng.uniform(0.1, 0.9, shape) * (1 if dtype.startswith("float") else 9)
            t = m.tensor(np.asarray(values).tolist(), dtype=getattr(m, dtype))
            t = t.reshape(shape)
            row.append(t.requires_grad_() if grad else t)
        found.append(row)
    return found


def same(ours: Any, theirs: Any, exact: bool = False) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        assert a.shape == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=3e-6, atol=1e-7)


def numbers(m: Any, name: str) -> list[Any]:
    each = [0.5, 2.0, 0.25, 1.5, 0.75]
    found = [0.5, 2, each]
    return found if name in NO_TENSOR else [*found, m.tensor(0.3)]


NO_TENSOR = ("sub", "clamp_max", "clamp_min", "maximum", "minimum", "pow", "lerp")


def both(call: Any) -> tuple[Any, Any]:
    results = []
    for m in (ut, torch):
        try:
            results.append(call(m))
        except (RuntimeError, NotImplementedError, IndexError) as error:
            results.append(error)
    return results[0], results[1]


def agree(call: Any) -> None:
    ours, theirs = both(call)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), theirs
    else:
        assert not isinstance(ours, Exception), ours
        same(ours, theirs)


def test_every_name_is_there() -> None:
    for name in dir(torch):
        if name.startswith(
            ("_foreach_", "_amp_foreach", "_fused_adam", "_fused_sgd", "_fused_ada")
        ):
            assert callable(getattr(ut, name)), name


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("name", foreach._UNARY)
def test_of_one_list(name: str, dtype: str) -> None:
    for suffix in ("", "_"):
        if dtype == "float16" and name in ("lgamma", "erfc", "tan", "log10", "log2"):
            continue  # the last bit of halves

        def call(m: Any, suffix: str = suffix) -> Any:
            (xs,) = lists(m, dtype)
            found = getattr(m, f"_foreach_{name}{suffix}")(xs)
            return xs if suffix else found

        ours, theirs = both(call)
        if isinstance(theirs, Exception):
            assert isinstance(ours, Exception)
        else:
            for a, b in zip(ours, theirs, strict=True):
                assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
                tol = 2e-3 if dtype == "float16" else 3e-6
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", foreach._BINARY)
def test_of_a_list_and_numbers_or_another_list(name: str, dtype: str) -> None:
    for suffix, which in itertools.product(("", "_"), range(5)):

        def call(m: Any, suffix: str = suffix, which: int = which) -> Any:
            xs, ys = lists(m, dtype, 2)
            kinds = [*numbers(m, name), ys]
            if which >= len(kinds):
                raise RuntimeError
            found = getattr(m, f"_foreach_{name}{suffix}")(xs, kinds[which])
            return xs if suffix else found

        agree(call)
    if name in ("add", "sub"):
        agree(lambda m: getattr(m, f"_foreach_{name}")(*lists(m, dtype, 2), alpha=2))
        agree(lambda m: getattr(m, f"_foreach_{name}_")(*lists(m, dtype, 2), alpha=2))
    if name == "pow":
        agree(lambda m: m._foreach_pow(2.5, *lists(m, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", foreach._TERNARY)
def test_of_three(name: str, dtype: str) -> None:
    for suffix, which in itertools.product(("", "_"), range(5)):

        def call(m: Any, suffix: str = suffix, which: int = which) -> Any:
            a, b, c = lists(m, dtype, 3)
            given = (a, b) if name == "lerp" else (a, b, c)
            each = [0.5, 2.0, 0.25, 1.5, 0.75]
            kinds = [0.3, 0.9, each, m.tensor(each), c]
            if (name == "lerp") == (which == 3) or (name != "lerp" and which == 4):
                raise RuntimeError
            found = getattr(m, f"_foreach_{name}{suffix}")(*given, kinds[which])
            return a if suffix else found

        agree(call)


@pytest.mark.parametrize("order", [1, 2, 3.0, float("inf")])
def test_norms_and_others(order: float) -> None:
    agree(lambda m: m._foreach_norm(*lists(m, "float32"), order))
    agree(lambda m: m._foreach_norm(*lists(m, "float32"), order, dtype=m.float64))
    agree(lambda m: m._foreach_norm(lists(m, "float32")[0][:3], order))
    if order < 4:
        agree(lambda m: m._foreach_powsum(lists(m, "float32")[0], order))
    agree(lambda m: m._foreach_max(lists(m, "float32")[0][:3]))
    agree(lambda m: m._foreach_clone(lists(m, "float32")[0]))
    agree(lambda m: m._foreach_zero_(lists(m, "float32")[0]))
    agree(lambda m: m._foreach_copy_(*lists(m, "float32", 2)))
    agree(lambda m: m._foreach_copy_(lists(m, "float32")[0], lists(m, "float64")[0]))
    agree(lambda m: m._foreach_mm([m.ones(2, 3)], [m.ones(3, 2)]))
    agree(lambda m: m._foreach_max(lists(m, "float32")[0]))  # of an empty one
    for wrong in (
        lambda m: m._foreach_add([], 1),
        lambda m: m._foreach_add([m.ones(1)], [m.ones(1)] * 2),
        lambda m: m._foreach_add([m.ones(1)], [1.0, 2.0]),
        lambda m: m._foreach_add([m.ones(2)], m.ones(2)),
        lambda m: m._foreach_div_([m.ones(2, dtype=m.int64)], 2),
    ):
        agree(wrong)


@pytest.mark.parametrize(
    "name", ["mul", "add", "addcdiv", "lerp", "sqrt", "pow", "norm", "clamp_min"]
)
def test_gradients(name: str) -> None:
    def call(m: Any) -> Any:
        rows = lists(m, "float64", 3, grad=True)
        xs = [row[1:3] for row in rows]
        count = 1 if name in ("sqrt", "norm") else 3 if name == "addcdiv" else 2
        extra = (0.4,) if name in ("lerp", "addcdiv") else ()
        outs = getattr(m, f"_foreach_{name}")(*xs[:count], *extra)
        leaves = [t for row in xs[:count] for t in row]
        total = sum((o**2).sum() for o in outs)
        first = m.autograd.grad(total, leaves, create_graph=True)
        second = m.autograd.grad(sum((g**2).sum() for g in first), leaves)
        return [*first, *second]

    agree(call)


@pytest.mark.parametrize(
    "name", ["_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_"]
)
@pytest.mark.parametrize("maximize", [False, True])
def test_fused_steps(name: str, maximize: bool) -> None:
    def call(m: Any) -> Any:
        p, g, a, b, c = (row[1:3] for row in lists(m, "float32", 5))
        steps = [m.tensor(3.0), m.tensor(5.0)]
        scale = {"grad_scale": m.tensor(2.0), "found_inf": m.tensor(0.0)}
        common = {"lr": 0.1, "weight_decay": 0.05, "maximize": maximize, **scale}
        if "adam" in name:
            options = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": True}
            getattr(m, name)(p, g, a, b, c, steps, **common, **options)
        elif "sgd" in name:
            options = {"momentum": 0.9, "dampening": 0.0, "nesterov": True, "is_first_step": False}
            getattr(m, name)(p, g, a, **common, **options)
        else:
            getattr(m, name)(p, g, a, steps, lr_decay=0.01, eps=1e-8, **common)
        return [*p, *a, *g]

    agree(call)


def test_mixed_precision() -> None:
    def call(m: Any) -> Any:
        grads, found = [m.ones(3), m.tensor([1.0, float("inf")])], m.tensor(0.0)
        m._amp_foreach_non_finite_check_and_unscale_(grads, found, m.tensor(0.5))
        scale, tracker = m.tensor(8.0), m.tensor(1, dtype=m.int32)
        m._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
        other, count = m.tensor(8.0), m.tensor(1, dtype=m.int32)
        m._amp_update_scale_(other, count, m.tensor(0.0), 2.0, 0.5, 2)
        return [*grads, found, scale, tracker, other, count]

    agree(call)
