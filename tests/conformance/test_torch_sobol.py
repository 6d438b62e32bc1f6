"""Sobol's sequence, hashes and products in few bits beside torch's."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("dimension", [1, 2, 13, 200, 1111])
def test_points(dimension: int) -> None:
    ours, theirs = (m.quasirandom.SobolEngine(dimension) for m in (ut, torch))
    for n in (1, 5, 200):
        assert np.array_equal(ours.draw(n).numpy(), theirs.draw(n).numpy())
    ours.fast_forward(1000)
    theirs.fast_forward(1000)
    found, expected = ours.draw(3, dtype=ut.float64), theirs.draw(3, dtype=torch.float64)
    assert np.array_equal(found.numpy(), expected.numpy())
    assert ours.sobolstate.tolist() == theirs.sobolstate.tolist()


def test_scrambling_by_given_matrices() -> None:
    ltm = np.tril(np.random.default_rng(0).integers(0, 2, (9, 30, 30)))
    states = []
    for m in (ut, torch):
        state = m.zeros(9, 30, dtype=m.int64)
        m._sobol_engine_initialize_state_(state, 9)
        m._sobol_engine_scramble_(state, m.tensor(ltm), 9)
        states.append(state.tolist())
    assert states[0] == states[1]


def test_hashes() -> None:
    rng = np.random.default_rng(0)
    for x in (rng.standard_normal((3, 4, 5)), rng.integers(0, 9, (6, 2)), np.array([True, False])):
        for options in ({}, {"dim": 0}, {"dim": -1, "keepdim": True}):
            ours, theirs = (m.hash_tensor(m.tensor(x), **options) for m in (ut, torch))
            assert ours.tolist() == theirs.tolist()


def test_scaled_products() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((16, 32)), rng.standard_normal((48, 32))
    found = []
    for m in (ut, torch):
        x = m.tensor(a, dtype=m.float32).to(m.float8_e4m3fn)
        y = m.tensor(b, dtype=m.float32).to(m.float8_e4m3fn).t()
        one = m.tensor(0.5), m.tensor(2.0)
        found.append(m._scaled_mm(x, y, *one, out_dtype=m.float32).tolist())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-5)


def test_bags() -> None:
    rng = np.random.default_rng(0)
    table, indices = rng.standard_normal((9, 4)), rng.integers(0, 9, 12)
    for mode in (1, 2):
        found = []
        for m in (ut, torch):
            given = (m.tensor(table), m.tensor(indices), m.tensor([0, 3, 3, 8]))
            found.append(m.embedding_bag(*given, False, mode))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)
