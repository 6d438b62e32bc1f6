"""Numbers before tensors, the order of arguments before torch 1.5, which both still take."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda lib, v, m: lib.add(v, 0.1, v * 3),
    "add_": lambda lib, v, m: v.clone().add_(0.1, v * 3),
    "sub_": lambda lib, v, m: v.clone().sub_(0.5, v * 3),
    "addcmul_": lambda lib, v, m: v.clone().addcmul_(0.5, v, v * 3),
    "addcdiv": lambda lib, v, m: lib.addcdiv(v, -0.5, v, v * 3),
    "addmm of beta": lambda lib, v, m: lib.addmm(0.5, m, m, m),
    "addmm of both": lambda lib, v, m: lib.addmm(0.5, m, 2, m, m),
    "addmm_": lambda lib, v, m: m.clone().addmm_(0.5, 2, m, m),
    "addmv": lambda lib, v, m: lib.addmv(0.5, v, 2, m, v),
    "addr": lambda lib, v, m: lib.addr(0.5, m, 2, v, v),
    "baddbmm": lambda lib, v, m: lib.baddbmm(0.5, m[None], 2, m[None], m[None]),
    "addbmm": lambda lib, v, m: lib.addbmm(0.5, m, 2, m[None], m[None]),
}


@pytest.mark.parametrize("name", CALLS)
def test_old_orders(name: str) -> None:
    found = []
    for lib in (torch, ut):
        v, m = lib.arange(1.0, 3.0), lib.arange(1.0, 5.0).reshape(2, 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(CALLS[name](lib, v, m).numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    assert "is deprecated" in str(caught[0].message)
