"""Softmax without a dimension: the one that old programs mean, with a warning."""

from __future__ import annotations

import pytest

import undertow as ut

F = ut.nn.functional


@pytest.mark.parametrize(("rank", "dim"), [(1, 0), (2, 1), (3, 0), (4, 1)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_without_a_dimension(name: str, rank: int, dim: int) -> None:
    x = ut.rand(*range(2, 2 + rank))
    with pytest.warns(UserWarning, match=f"dimension {dim}"):
        found = getattr(F, name)(x)
    assert bool((found == getattr(F, name)(x, dim=dim)).all())
