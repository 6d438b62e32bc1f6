"""Rules for arrays against the rules as written; see Note [bare rules]."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.core.op import OPS

BARE = sorted(name for name, op in OPS.items() if op.bare)


def double(*shape: int, seed: int = 0) -> ut.Tensor:
    return ut.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


def product(ta: bool, tb: bool, *lead: int) -> Any:
    a = double(*lead, *((3, 2) if ta else (2, 3)))
    b = double(*lead, *((4, 3) if tb else (3, 4)), seed=1)
    op = ut.ops.matmul._PRODUCTS[ta, tb]
    return (a, b), lambda: ut.core.dispatch.apply(op, (a, b))


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
    z = double(0, 3)
    found += [("sum", (z,), lambda: z.sum(0)), ("sum", (z,), lambda: z.sum())]
    return found


def test_every_bare_rule_is_here() -> None:
    assert sorted({name for name, *_ in cases()}) == BARE
    for name in BARE:
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
