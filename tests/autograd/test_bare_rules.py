"""Rules for arrays against the rules as written; see Note [bare rules]."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.core.op import OPS
from undertow.kernel.windows import Geometry


def double(*shape: int, seed: int = 0) -> ut.Tensor:
    return ut.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


def product(ta: bool, tb: bool, *lead: int) -> Any:
    a = double(*lead, *((3, 2) if ta else (2, 3)))
    b = double(*lead, *((4, 3) if tb else (3, 4)), seed=1)
    op = ut.ops.matmul._PRODUCTS[ta, tb]
    return (a, b), lambda: ut.core.dispatch.apply(op, (a, b))


def conv_weight(x: ut.Tensor, y: ut.Tensor) -> ut.Tensor:
    geometry = Geometry((9,), (3,), (2,), ((1, 1),), (1,), (1,))
    return ut.core.dispatch.apply(OPS["conv_weight"], (x, y), (geometry, 2))


def norms() -> list[Any]:
    """Joint rules; as written they are compositions."""
    F = ut.nn.functional
    x, weight, bias = double(3, 4, 5), double(4, seed=1), double(4, seed=2)
    mean, var = ut.zeros(4, dtype=ut.float64), ut.ones(4, dtype=ut.float64)
    last = double(5, seed=3), double(5, seed=4)
    q, k, v = (double(2, 4, 3, seed=seed) for seed in range(3))
    labels, weights = ut.tensor([0, 3, 1]), ut.tensor([1.0, 2.0, 0.5, 1.0], dtype=ut.float64)
    rows = double(3, 4, seed=5)

    def loss(**how: Any) -> Any:
        return lambda: F.cross_entropy(rows, labels, **how)

    def normed(training: bool) -> Any:
        return lambda: F.batch_norm(x, mean.clone(), var.clone(), weight, bias, training)

    return [
        ("channel_norm", (x, weight, bias), normed(True)),
        ("channel_norm", (x,), lambda: F.batch_norm(x, None, None, training=True)),
        ("channel_norm", (x, weight), lambda: F.instance_norm(x, weight=weight)),
        ("fixed_norm", (x, weight, bias), normed(False)),
        ("group_norm", (x, weight, bias), lambda: F.group_norm(x, 2, weight, bias)),
        ("group_norm", (x,), lambda: F.group_norm(x, 2)),
        ("layer_norm", (x, *last), lambda: F.layer_norm(x, (5,), *last)),
        ("layer_norm", (x, last[0]), lambda: F.layer_norm(x, (5,), *last)),
        ("rms_norm", (x, last[0]), lambda: F.rms_norm(x, (5,), last[0])),
        ("rms_norm", (x,), lambda: F.rms_norm(x, (5,))),
        ("attention", (q, k, v), lambda: F.scaled_dot_product_attention(q, k, v)),
        *(
            ("cross_entropy", (rows,), loss(weight=w, label_smoothing=s, reduction=r))
            for w, s in ((None, 0.0), (weights, 0.1))
            for r in ("none", "mean", "sum")
        ),
    ]


def cases() -> list[Any]:
    found = []
    for ta, tb in itertools.product((False, True), repeat=2):
        name = ut.ops.matmul._PRODUCTS[ta, tb].name
        found += [
            (name, *product(ta, tb)),
            (name, *product(ta, tb, 5)),
            (name, *product(ta, tb, 0)),
        ]
    into, added = double(5, 3, seed=6), double(5, seed=7)
    linear = ut.nn.functional.linear
    for lead in ((), (2,), (2, 4), (0, 4)):
        given = double(*lead, 3)
        found += [
            ("linear", (given, into), lambda given=given: linear(given, into)),  # type: ignore[misc]
            ("linear", (given, into, added), lambda given=given: linear(given, into, added)),  # type: ignore[misc]
        ]
    for count in (0, 1, 4):
        rows, turned = double(count, 3), into.detach().T.clone().requires_grad_()
        operands = (rows, turned, added)
        found.append(("addmm", operands, lambda o=operands: ut.addmm(o[2], o[0], o[1])))  # type: ignore[misc]
    x = double(3, 1)
    found += [("expand", (x,), lambda: x.expand(2, 3, 4)), ("expand", (x,), lambda: x.expand(3, 1))]
    y = double(2, 3, 4)
    for dim, keepdim in itertools.product((None, 0, (0, 2), (-1, -2)), (False, True)):
        found.append(
            ("sum", (y,), lambda dim=dim, keepdim=keepdim: y.sum(dim, keepdim))  # type: ignore[misc]
        )
    u, v, b = double(2, 4, 9), double(6, 2, 3, seed=1), double(6, seed=2)
    w = double(2, 6, 5, seed=3)
    found += [
        ("conv", (u, v, b), lambda: ut.conv1d(u, v, b, 2, 1, groups=2)),
        ("conv", (u, v), lambda: ut.conv1d(u, v, None, 2, 1, groups=2)),
        ("conv_input", (w, v), lambda: ut.conv_transpose1d(w, v, None, 2, 1, groups=2)),
        ("conv_weight", (u, w), lambda: conv_weight(u, w)),
    ]
    found += norms()
    found += [
        ("view", (y,), lambda: y.view(6, 4)),
        ("reshape", (y,), lambda: y.transpose(0, 1).reshape(6, 4)),
        ("permute", (y,), lambda: y.permute(2, 0, 1)),
        ("slice", (y,), lambda: y[1, 1:, ::2]),
        ("clone", (y,), lambda: y.clone()),
        ("softmax", (y,), lambda: y.softmax(1)),
        ("log_softmax", (y,), lambda: y.log_softmax(-1)),
        ("max_pool", (u,), lambda: ut.nn.functional.max_pool1d(u, 3, 2)),
        ("sum_pool", (u,), lambda: ut.nn.functional.avg_pool1d(u, 3, 2)),
        ("span_sum", (u,), lambda: ut.nn.functional.adaptive_avg_pool1d(u, 4)),
        ("span_max", (u,), lambda: ut.nn.functional.adaptive_max_pool1d(u, 4)),
    ]
    for dim, keepdim in itertools.product((None, (0, 2)), (False, True)):
        found.append(
            ("mean", (y,), lambda dim=dim, keepdim=keepdim: y.mean(dim, keepdim))  # type: ignore[misc]
        )
    z = double(0, 3)
    found.append(("mean", (z,), lambda: z.mean(0)))
    found += [("sum", (z,), lambda: z.sum(0)), ("sum", (z,), lambda: z.sum())]
    return found


def test_every_bare_rule_is_here() -> None:
    named = {name for name, *_ in cases()}
    assert named == {name for name, op in OPS.items() if op.bare}
    for name in named:
        bare = OPS[name].bare
        assert OPS[name].joint if callable(bare) else set(bare) == set(OPS[name].rules)


@pytest.mark.parametrize("name, leaves, run", cases())
@pytest.mark.parametrize("transposed", [False, True])
def test_both_ways_agree(name: str, leaves: Any, run: Any, transposed: bool) -> None:
    out = run()
    seed = np.random.default_rng(7).standard_normal(out.shape)
    if transposed and seed.ndim:
        seed = np.asfortranarray(seed)
    how = {"materialize_grads": True, "retain_graph": True}
    first = ut.autograd.grad(out, leaves, ut.from_numpy(seed), **how)
    written = ut.autograd.grad(out, leaves, ut.from_numpy(seed), create_graph=True, **how)
    tolerance = 1e-12 if OPS[name].joint else 0.0
    for one, two in zip(first, written, strict=True):
        np.testing.assert_allclose(one.numpy(), two.detach().numpy(), tolerance, tolerance)
    only = ut.autograd.grad(out, leaves[-1], ut.from_numpy(seed))  # one of them alone
    np.testing.assert_allclose(only[0].numpy(), first[-1].numpy(), tolerance, tolerance)


def test_what_a_forward_keeps_has_no_history() -> None:
    for name in ("layer_norm", "channel_norm", "group_norm", "attention", "cross_entropy"):
        assert OPS[name].differentiable == 1
    x = double(3, 4)
    values, indices = x.max(1)
    assert len(values.grad_fn.metas) == 1
    assert not indices.requires_grad
