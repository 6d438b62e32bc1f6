"""Rules that become ops of their own: right to any order, and only where they can be."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import undertow as ut
from undertow.core import derived
from undertow.core.dispatch import apply
from undertow.core.op import OPS, Op
from undertow.kernel.expr import Expr, call, trace


def _orders(function, x, count):
    """The values of the first `count` derivatives of an elementwise function."""
    found = []
    y = function(x)
    for _ in range(count):
        (y,) = ut.autograd.grad(y.sum(), x, create_graph=True)
        found.append(y.detach().numpy())
    return found


def _tanh(x):
    t = np.tanh(x)
    s = 1 - t * t
    return [s, -2 * t * s, (6 * t * t - 2) * s, (16 * t - 24 * t**3) * s]


def _sigmoid(x):
    s = 1 / (1 + np.exp(-x))
    d = s * (1 - s)
    return [
        d,
        d * (1 - 2 * s),
        d * (1 - 6 * s + 6 * s * s),
        d * (1 - 14 * s + 36 * s**2 - 24 * s**3),
    ]


def _power(p):
    def orders(x):
        return [math.prod(p - i for i in range(n)) * x ** (p - n) for n in range(1, 5)]

    return orders


PAIRS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
CASES = {
    "tanh": (lambda x: x.tanh(), _tanh),
    "sigmoid": (lambda x: x.sigmoid(), _sigmoid),
    "sqrt": (lambda x: x.sqrt(), _power(0.5)),
    "reciprocal": (lambda x: x.reciprocal(), _power(-1)),
    "quotient": (lambda x: 1 / x, _power(-1)),
    "product": (lambda x: x * x * x * x * x, _power(5)),
}


@pytest.mark.parametrize("shape", [(7,), (60, 700)])
@pytest.mark.parametrize("name", CASES)
def test_four_orders(name, shape):
    function, expected = CASES[name]
    x = np.random.default_rng(0).uniform(0.5, 2.0, shape)
    found = _orders(function, ut.tensor(x, requires_grad=True), 4)
    for got, want in zip(found, expected(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_a_rule_is_one_node():
    x = ut.randn(5, requires_grad=True)
    out = x.tanh()
    seed = ut.ones(5, requires_grad=True)
    (g,) = ut.autograd.grad(out, x, seed, create_graph=True)
    assert g.grad_fn.name() == "TanhBackwardBackward0"
    assert [node.name() for node, _ in g.grad_fn.next_functions] == [
        "AccumulateGrad",
        "TanhBackward0",
    ]
    assert "tanh_backward" not in OPS


def test_mixed_derivatives_of_a_quotient():
    a = ut.rand(4, dtype=ut.float64, requires_grad=True)
    b = (ut.rand(4, dtype=ut.float64) + 1).requires_grad_()
    assert ut.autograd.gradgradcheck(lambda a, b: a / b, (a, b))
    (by_b,) = ut.autograd.grad((a / b).sum(), b, create_graph=True)
    (mixed,) = ut.autograd.grad(by_b.sum(), a, create_graph=True)
    np.testing.assert_allclose(mixed.detach().numpy(), -1 / b.detach().numpy() ** 2)
    (third,) = ut.autograd.grad(mixed.sum(), b)
    np.testing.assert_allclose(third.numpy(), 2 / b.detach().numpy() ** 3)


def test_numbers_beside_tensors():
    x = ut.tensor([1.0, 2.0], dtype=ut.float64, requires_grad=True)
    found = _orders(lambda x: 3 / x, x, 3)
    np.testing.assert_allclose(found, [[-3, -0.75], [6, 0.75], [-18, -1.125]])


def test_other_primitives_run_as_written():
    for rule in (lambda g, x: g * call("exp", x) * x, lambda g, x: call("where", x > 0, g * x, 0)):
        assert derived.as_op("f", trace(rule, 2), 2) is None


def test_no_op_for_what_is_one_already_or_does_not_use_an_argument():
    assert derived.as_op("f", trace(lambda g, x: g * x, 2), 2) is None
    assert derived.as_op("f", trace(lambda g, x: -(g + g), 2), 2) is None


def test_long_rules_run_as_written():
    def rule(g, x):
        for _ in range(60):
            g = g * x + 1
        return g

    assert derived.as_op("f", trace(rule, 2), 2) is None


@pytest.mark.parametrize("seed", range(40))
def test_random_expressions(seed):
    """The derivatives of random sums of products, against the tensors' own ops."""
    random = np.random.default_rng(seed)

    def rule(*xs):
        known = [*xs, 2.0, -0.5]
        for _ in range(random_length):
            a, b = known[picks.pop()], known[picks.pop()]
            kind = kinds.pop()
            if isinstance(a, float) and isinstance(b, float):
                a = known[0]
            if kind == "div":
                b = b * b + 3
            known.append(-a if kind == "neg" else PAIRS[kind](a, b))
        return known[-1] + sum(x * 0.25 for x in xs)

    random_length = int(random.integers(1, 7))
    all_picks = [int(i) for i in random.integers(0, 5, 2 * random_length)]
    all_kinds = [str(k) for k in random.choice(["add", "sub", "mul", "div", "neg"], random_length)]
    picks, kinds = list(all_picks), list(all_kinds)
    expr = trace(rule, 3)
    op = derived.as_op("random", expr, 3)
    assert isinstance(op, Op)
    assert isinstance(op.expr, Expr)
    xs = [ut.tensor(random.normal(size=3), requires_grad=True) for _ in range(3)]
    picks, kinds = list(all_picks), list(all_kinds)
    slow = rule(*xs)
    fast = apply(op, xs)
    for _ in range(3):
        np.testing.assert_allclose(fast.detach().numpy(), slow.detach().numpy(), rtol=1e-10)
        fast, slow = (
            sum(
                g * (i + 1)
                for i, g in enumerate(ut.autograd.grad((y * y).sum(), xs, create_graph=True))
            )
            for y in (fast, slow)
        )
