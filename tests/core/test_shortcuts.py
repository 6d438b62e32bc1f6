"""Cases in which a shortcut of the backward pass was wrong once."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("size", [3, 3000])
def test_two_leaves_that_share_memory(device: str, size: int) -> None:
    """One array as both operands is one tensor only if both gradients go to one place."""
    x = ut.arange(1.0, size + 1, device=device).requires_grad_()
    y = x.detach().requires_grad_()
    (x * y + x / y).sum().backward()
    expected = np.arange(1.0, size + 1)
    np.testing.assert_allclose(x.grad.tolist(), expected + 1 / expected, rtol=1e-5)
    np.testing.assert_allclose(y.grad.tolist(), expected - 1 / expected, rtol=1e-4, atol=1e-6)
    (g,) = ut.autograd.grad((x * y).sum(), y)
    np.testing.assert_allclose(g.tolist(), expected, rtol=1e-6)


def test_a_slow_hook_does_not_hide_a_cut() -> None:
    """Hooks on two threads: what one of them did is not forgotten by the other."""
    found = []
    for workers in (1, 2):
        x = ut.randn(40, 40, dtype=ut.float64).requires_grad_()
        a, b = x @ x, x @ x.t()

        def slow(g: Any) -> None:
            time.sleep(0.2)

        a.register_hook(slow)
        b.register_hook(lambda g: g.detach() * 2)
        total = (a.tanh() + b.tanh()).sum()
        (g,) = ut.autograd.grad(total, x, create_graph=True, workers=workers)
        found.append(g.requires_grad)
    assert found[0] == found[1]


def test_a_derivative_marks_no_node_of_the_forward() -> None:
    class Returns(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(w)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return ctx.saved_tensors[0], None

    x, p = ut.ones(2, requires_grad=True), ut.ones(2, requires_grad=True)
    w = p * 2
    ut.autograd.grad(Returns.apply(x, w).sum(), x, create_graph=True)
    with pytest.raises(ut.errors.GradientError, match="not used"):
        ut.autograd.grad((w * 3).sum(), x)


def test_a_second_derivative_leaves_no_cycle() -> None:
    gc.collect()
    gc.disable()
    try:
        x = ut.ones(2, requires_grad=True)
        y = (x**3).sum()
        node = weakref.ref(y.grad_fn)
        (g,) = ut.autograd.grad(y, x, create_graph=True)
        ut.autograd.grad(g.sum(), x)
        del y, g
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_table_cannot_be_changed(device: str) -> None:
    x = ut.arange(4.0, device=device).reshape(1, 1, 4).requires_grad_()
    expected = F.interpolate(x, size=7, mode="linear").tolist()

    def spoil(t: ut.Tensor) -> ut.Tensor:
        t.zero_()
        return t

    with (
        pytest.raises(ut.errors.InplaceError),
        ut.autograd.graph.saved_tensors_hooks(spoil, lambda t: t),
    ):
        F.interpolate(x, size=7, mode="linear")
    assert F.interpolate(x, size=7, mode="linear").tolist() == expected


def test_the_gradient_of_a_transposed_leaf_is_added_to() -> None:
    x = ut.ones(30, 20).t().detach().requires_grad_()
    (x * x).sum().backward()
    g = x.grad
    (x * x).sum().backward()
    assert x.grad is g
    assert g.tolist() == [[4.0] * 30] * 20


def test_a_gradient_made_in_inference_mode_is_not_changed() -> None:
    x = ut.ones(2, requires_grad=True)
    with ut.inference_mode():
        made = ut.ones(2)
    x.grad = made
    (x * 3).sum().backward()
    assert made.tolist() == [1, 1]
    assert x.grad.tolist() == [4, 4]


def test_an_ops_own_type_error_stays_one() -> None:
    from undertow.core.dispatch import elementwise
    from undertow.core.op import elementwise_op

    def broken(x: Any) -> Any:
        raise TypeError("a mistake of the author")

    op = elementwise_op("broken", broken, inputs="x", derived=True)
    for x in (ut.ones(2), ut.arange(2)):
        with pytest.raises(TypeError, match="a mistake of the author") as caught:
            elementwise(op, x)
        assert not isinstance(caught.value, ut.errors.UndertowError)


def test_gradients_that_are_views_of_their_size() -> None:
    """An expanded part of a cotangent has as many elements as it, but nobody may add into it."""
    a = ut.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    d = a * ut.tensor([1.0, 2.0, 3.0, 4.0])
    for _ in range(6):
        d = d * 1.0
    c = ut.cat([a.sum(0, keepdim=True), ut.tensor([5.0, 6.0, 7.0])])
    (d.sum() + c.pow(2).sum()).backward()
    assert a.grad is not None
    assert a.grad.tolist() == [21, 22, 23, 24]
    assert a.grad.stride() == (1,)


@pytest.mark.parametrize(
    "layer", [lambda: ut.nn.Linear(64, 64, bias=False), lambda: ut.nn.Linear(5, 3, bias=False)]
)
def test_gradients_have_the_strides_of_parameters(layer: Any) -> None:
    """So that `grad.view(-1)` works, as in torch."""
    made = layer()
    made(ut.ones(32, made.in_features)).sum().backward()
    assert made.weight.grad.stride() == made.weight.stride()
    w = ut.ones(5, 4, requires_grad=True)
    (ut.ones(3, 4) @ w.t()).sum().backward()
    assert w.grad is not None
    assert w.grad.stride() == (4, 1)
    part = ut.ones(6, requires_grad=True)
    ut.complex(part, ut.zeros(6)).abs().sum().backward()
    assert part.grad is not None
    assert part.grad.stride() == (1,)
