"""Taylor mode against nested forward mode and written derivatives; reverse over both."""

from __future__ import annotations

import math
from typing import Any

import pytest

import undertow as ut
from op_cases import cases, has_float
from op_samples import OpInfo, Sample
from transform_table import of_floats, same
from undertow.func import grad, hessian, jet, jvp, laplacian, linearize, vmap

close = ut.testing.assert_close
F = ut.nn.functional


def nested(function: Any, tangents: Any, order: int) -> Any:
    """The derivative of an order along a direction, by levels of forward mode."""
    for _ in range(order):
        inner = function
        function = lambda *xs, f=inner: jvp(f, xs, tangents)[1]
    return function


def twice_backward(function: Any, tangents: Any, order: int) -> Any:
    """The same by two backward passes for each order."""
    for _ in range(order):
        inner = function
        function = lambda *xs, f=inner: linearize(f, *xs)[1](*tangents)
    return function


@pytest.mark.parametrize(
    "info, sample", cases(lambda i, s: i.gradgrad and has_float(i, s) and s is i.samples[0])
)
def test_every_op(info: OpInfo, sample: Sample) -> None:
    """The second derivative of an op is that of nested forward mode."""
    function, primals, tangents = of_floats(info, sample)
    if not primals or not function(*primals):
        return
    out, found = jet(function, primals, tangents, 2)
    same(out, function(*primals))
    same(found[1], nested(function, tangents, 2)(*primals), 1e-5, 1e-6)


W = ut.tensor([[0.3, -0.2, 0.7], [1.1, 0.4, -0.5]], dtype=ut.float64)
X = ut.tensor([0.5, 1.5, 0.8], dtype=ut.float64)
V = ut.tensor([1.0, -0.5, 2.0], dtype=ut.float64)
FUNCTIONS = {
    "tanh": lambda w, x: (w @ x).tanh(),
    "softmax": lambda w, x: (w @ x).softmax(0),
    "exp": lambda w, x: (w @ x).exp() / (1 + x.sum()),
    "gelu": lambda w, x: F.gelu(F.linear(x, w)),
    "layer_norm": lambda w, x: F.layer_norm(w @ x.sin() + x[0], (2,)),
    "views": lambda w, x: (w * x).T.reshape(2, 3)[1:].exp(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_reverse_over_taylor_and_nested_forward(name: str, order: int) -> None:
    function = FUNCTIONS[name]

    def by_weights(derivative: Any) -> Any:
        along = lambda w, x: derivative(lambda x: function(w, x), (V,), order)(x)
        return grad(lambda w, x: along(w, x).sin().sum(), (0, 1))(W, X)

    taylor = lambda f, v, n: lambda x: jet(f, (x,), v, n)[1][n - 1]
    expected = by_weights(twice_backward)
    close(by_weights(taylor), expected)
    close(by_weights(nested), expected)
    plain = twice_backward(lambda x: function(W, x), (V,), order)(X)
    close(taylor(lambda x: function(W, x), (V,), order)(X), plain)
    close(nested(lambda x: function(W, x), (V,), order)(X), plain)


def test_changes_in_place() -> None:
    changed = lambda x: x.clone().mul_(x).sin_()
    expected = twice_backward(lambda x: (x * x).sin(), (V,), 3)(X)
    close(jet(changed, (X,), (V,), 3)[1][2], expected)
    close(nested(changed, (V,), 3)(X), expected)


def test_high_orders() -> None:
    x = ut.tensor([0.3, 1.2], dtype=ut.float64)
    one = ut.ones(2, dtype=ut.float64)
    _, found = jet(ut.exp, (x,), (one,), 8)
    for derivative in found:
        close(derivative, x.exp())
    _, found = jet(lambda x: 1 / x, (x,), (one,), 6)
    for n, derivative in enumerate(found, 1):
        close(derivative, (-1) ** n * math.factorial(n) / x ** (n + 1))


def test_nesting() -> None:
    rows = ut.stack([X, V.abs()])
    each = vmap(lambda x: jet(lambda x: (W @ x).tanh(), (x,), (V,), 3)[1][2], loop=False)(rows)
    close(each[1], nested(lambda x: (W @ x).tanh(), (V,), 3)(rows[1]))
    gradient = grad(lambda x: (x.sin() * x[0]).sum())
    close(jet(gradient, (X,), (V,), 2)[1][1], nested(gradient, (V,), 2)(X))
    inner = lambda x: jet(lambda y: y.sin() * x, (x,), (V,), 2)[1][1]
    close(jet(inner, (X,), (V,), 2)[1][1], nested(lambda x: -x.sin() * x * V * V, (V,), 2)(X))
    close(jvp(inner, (X,), (V,))[1], nested(lambda x: -x.sin() * x * V * V, (V,), 1)(X))
    mapped = lambda x: vmap(lambda a: a.sin() * x, loop=False)(x)
    close(jet(mapped, (X,), (V,), 3)[1][2], nested(mapped, (V,), 3)(X))


def test_laplacian_of_a_network() -> None:
    function = lambda x: (W @ x).tanh().prod() * x.sin().sum()
    close(laplacian(function)(X), hessian(function)(X).trace())


class Double(ut.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_refusals() -> None:
    with pytest.raises(ValueError, match="order is an int above 0"):
        jet(ut.sin, (X,), (V,), 0)
    with pytest.raises(ValueError, match="does not fit"):
        jet(ut.sin, (X,), (V[:2],), 2)
    with pytest.raises(TypeError, match="does not fit"):
        jet(ut.sin, (X,), (V.float(),), 2)
    with pytest.raises(NotImplementedError, match="a custom Function"):
        jet(Double.apply, (X,), (V,), 2)

    def fills(x: Any) -> Any:
        out = ut.zeros(3, dtype=ut.float64)
        out[0] = x[0]
        return out

    with pytest.raises(NotImplementedError, match="jet"):
        jet(fills, (X,), (V,), 2)
    _, (first, second) = jet(lambda x: (ut.ones(2), x), (X,), (V,), 2)
    close(first, (ut.zeros(2), V))
    close(second, (ut.zeros(2), ut.zeros_like(V)))
