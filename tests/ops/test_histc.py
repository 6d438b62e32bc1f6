"""`histc` at the ends of its range."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut


@pytest.mark.parametrize("seed", range(20))
def test_histc_counts_both_ends(seed: int) -> None:
    """low + (high - low) can be below high in single precision; the largest element counts."""
    rng = np.random.default_rng(seed)
    data = (rng.standard_normal(50) * 10.0 ** rng.integers(-3, 4)).astype(np.float32)
    bins = int(rng.integers(1, 100))
    assert float(ut.histc(ut.tensor(data), bins).sum()) == 50


def test_histc_of_equal_numbers_beyond_the_rounding_of_one() -> None:
    largest = ut.finfo(ut.float32).max
    assert ut.histc(ut.tensor([largest] * 3), bins=4).tolist() == [0, 0, 3, 0]
    assert ut.histc(ut.tensor([-largest] * 3), bins=4).tolist() == [0, 0, 3, 0]


def test_histogramdd_of_points_without_coordinates() -> None:
    """One box without edges, which no point is in, as in torch."""
    for weight in (None, ut.tensor([1.0, 2.0, 3.0])):
        hist, edges = ut.histogramdd(ut.zeros(3, 0), 2, weight=weight)
        assert hist.shape == ()
        assert hist.item() == 0
        assert edges == ()
    assert ut.histogramdd(ut.zeros(3, 0), [], density=True).hist.isnan()
