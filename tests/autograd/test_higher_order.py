"""Branches, loops and scans: results, containers, derivatives of any order, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow._higher_order_ops import associative_scan, cond, map, scan, while_loop
from undertow.autograd import gradcheck, gradgradcheck


def leaf(*shape: int) -> ut.Tensor:
    rng = np.random.default_rng(len(shape))
    return ut.tensor(rng.uniform(0.5, 1.5, shape), requires_grad=True)


@pytest.mark.parametrize("pred", [True, False, ut.tensor(True), ut.tensor([False])])
def test_cond_runs_one_branch(pred: Any) -> None:
    ran = []
    branches = (lambda x: ran.append("yes") or x.sin(), lambda x: ran.append("no") or x.cos())
    x = leaf(3)
    out = cond(pred, *branches, (x,))
    assert ran == ["yes" if pred else "no"]
    assert gradcheck(lambda x: cond(pred, *branches, (x,)), (x,))
    assert gradgradcheck(lambda x: cond(pred, *branches, (x,)), (x,))
    assert out.shape == (3,)


def test_cond_takes_and_gives_containers() -> None:
    x, y = leaf(2), leaf(2)
    out = ut.cond(
        x.sum() > 0,
        lambda d, e: {"a": d["x"] * e[0], "b": (e[0],)},
        lambda d, e: {"a": d["x"], "b": (d["x"],)},
        ({"x": x}, [y]),
    )
    assert ut.equal(out["a"], x * y)
    assert ut.equal(out["b"][0], y)


def test_cond_refuses() -> None:
    f = ut.sin
    with pytest.raises(RuntimeError, match="single-element"):
        cond(ut.tensor([True, False]), f, f, (ut.ones(1),))
    with pytest.raises(RuntimeError, match="callable"):
        cond(ut.tensor(True), 3, f, (ut.ones(1),))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="operands"):
        cond(ut.tensor(True), f, f, (3,))


def test_while_loop() -> None:
    x = leaf(2)

    def powers(x: ut.Tensor) -> Any:
        return while_loop(
            lambda i, d: i < 3, lambda i, d: (i + 1, {"x": d["x"] * x}), (ut.tensor(0), {"x": x})
        )[1]["x"]

    assert ut.allclose(powers(x), x**4)
    assert gradcheck(powers, (x,))
    assert gradgradcheck(powers, (x,))
    count, same = ut.while_loop(lambda i, x: i < 0, lambda i, x: (i + 1, x), (1, x))
    assert count == 1
    assert same is not x
    assert ut.equal(same, x)
    with pytest.raises(RuntimeError, match="boolean"):
        while_loop(lambda x: x, lambda x: (x,), (ut.ones(1),))
    with pytest.raises(AssertionError, match="tuple"):
        while_loop(lambda x: True, lambda x: x, (ut.ones(1),))
    with pytest.raises(AssertionError, match="same number"):
        while_loop(lambda x: True, lambda x: (x, x), (ut.ones(1),))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scan(dim: int, reverse: bool) -> None:
    init, xs = leaf(2), leaf(2, 2)

    def run(init: ut.Tensor, xs: ut.Tensor) -> Any:
        return scan(lambda c, x: (c * x, c + x), init, xs, dim=dim, reverse=reverse)

    carry, outs = run(init, xs)
    expected, rows = init, []
    for x in reversed(xs.unbind(dim)) if reverse else xs.unbind(dim):
        rows.append(expected + x)
        expected = expected * x
    rows = rows[::-1] if reverse else rows
    assert ut.equal(carry, expected)
    assert ut.equal(outs, ut.stack(rows, dim))
    assert gradcheck(run, (init, xs))
    assert gradgradcheck(run, (init, xs))


def test_scan_of_trees_and_nothing() -> None:
    def step(c: Any, x: Any) -> Any:
        return {"s": c["s"] + x[0]}, {"out": c["s"] * x[1], "none": None}

    carry, out = scan(step, {"s": ut.zeros(())}, (ut.ones(3), ut.arange(3.0)))
    assert carry["s"] == 3
    assert out["none"] is None
    assert out["out"].tolist() == [0.0, 1.0, 4.0]
    assert scan(step, ut.zeros(1), []) == (ut.zeros(1), [])
    with pytest.raises(RuntimeError, match="dimension > 0"):
        scan(lambda c, x: (c, x), ut.zeros(1), ut.zeros(0, 2))
    with pytest.raises(RuntimeError, match="one size"):
        scan(lambda c, x: (c, x), ut.zeros(1), (ut.zeros(2), ut.zeros(3)))


@pytest.mark.parametrize("mode", ["pointwise", "generic"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_associative_scan(count: int, reverse: bool, mode: str) -> None:
    xs = leaf(2, count)

    def run(x: ut.Tensor) -> Any:
        return associative_scan(lambda a, b: a * b, x, 1, reverse, mode)

    expected = xs.flip([1]).cumprod(1).flip([1]) if reverse else xs.cumprod(1)
    assert ut.allclose(run(xs), expected)
    if count < 4:
        assert gradcheck(run, (xs,))
        assert gradgradcheck(run, (xs,))


def test_associative_scan_of_a_linear_recurrence() -> None:
    a, b = leaf(6, 2), leaf(6, 2)

    def both(p: Any, q: Any) -> Any:
        return p[0] * q[0], q[0] * p[1] + q[1]

    _, h = associative_scan(both, (a, b), dim=0)
    expected, rows = ut.zeros(2, dtype=ut.float64), []
    for i in range(6):
        expected = a[i] * expected + b[i]
        rows.append(expected)
    assert ut.allclose(h, ut.stack(rows))
    with pytest.raises(ValueError, match="Combine_mode"):
        associative_scan(both, (a, b), 0, combine_mode="x")


def test_associative_scan_of_matrices() -> None:
    xs = leaf(5, 2, 2)
    out = associative_scan(lambda a, b: a @ b, xs, 0, combine_mode="generic")
    expected = [xs[0]]
    for i in range(1, 5):
        expected.append(expected[-1] @ xs[i])
    assert ut.allclose(out, ut.stack(expected))


def test_map() -> None:
    xs, y = leaf(3, 2), leaf(2)

    def run(xs: ut.Tensor, y: ut.Tensor) -> Any:
        return map(lambda d, y: {"z": d["x"].sin() * y}, {"x": xs}, y)["z"]

    assert ut.allclose(run(xs, y), xs.sin() * y)
    assert gradcheck(run, (xs, y))
    assert gradgradcheck(run, (xs, y))
    with pytest.raises(RuntimeError, match="consistent"):
        map(lambda x: x, (ut.ones(2), ut.ones(3)))


def test_refusals_say_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match="compiler"):
        ut._higher_order_ops.invoke_subgraph(1)
    with pytest.raises(NotImplementedError, match="flex_attention"):
        ut._higher_order_ops.flex_attention(1)


def test_the_operators_are_the_functions() -> None:
    assert ut.ops.higher_order.cond is cond
    assert ut.ops.higher_order.associative_scan is associative_scan
    with pytest.raises(AttributeError):
        ut.ops.higher_order.nothing_of_that_name  # noqa: B018


def test_every_other_name_of_ops_is_a_library() -> None:
    """Whether it has operators or not, as in torch."""
    assert hasattr(ut.ops, "some_library")
    assert not hasattr(ut.ops.some_library, "some_operator")
