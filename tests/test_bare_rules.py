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


def cases() -> list[Any]:
    found = []
    for ta, tb in itertools.product((False, True), repeat=2):
        name = ut.ops.matmul._PRODUCTS[ta, tb].name
        found += [
            (name, *product(ta, tb)),
            (name, *product(ta, tb, 5)),
            (name, *product(ta, tb, 0)),
        ]
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
    z = double(0, 3)
    found += [("sum", (z,), lambda: z.sum(0)), ("sum", (z,), lambda: z.sum())]
    return found


def test_every_bare_rule_is_here() -> None:
    named = {name for name, *_ in cases()}
    assert named == {name for name, op in OPS.items() if op.bare}
    for name in named:
        assert set(OPS[name].bare) == set(OPS[name].rules)


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
    for one, two in zip(first, written, strict=True):
        np.testing.assert_array_equal(one.numpy(), two.detach().numpy())
    only = ut.autograd.grad(out, leaves[-1], ut.from_numpy(seed))  # one of them alone
    np.testing.assert_array_equal(only[0].numpy(), first[-1].numpy())
