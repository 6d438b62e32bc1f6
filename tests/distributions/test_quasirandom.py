"""Sobol's sequence: evenly spread, drawn in parts or at once, scrambled."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.errors import ArgumentError, UnsupportedError
from undertow.quasirandom import SobolEngine


def test_known_points() -> None:
    points = SobolEngine(4).draw(4, dtype=ut.float64).tolist()
    assert points[0] == [0, 0, 0, 0]
    assert points[1] == [0.5, 0.5, 0.5, 0.5]
    assert points[2] == [0.75, 0.25, 0.25, 0.25]
    assert points[3] == [0.25, 0.75, 0.75, 0.75]


@pytest.mark.parametrize("scramble", [False, True])
def test_parts_are_the_whole(scramble: bool) -> None:
    def engine() -> SobolEngine:
        return SobolEngine(7, scramble, seed=3 if scramble else None)

    whole = engine().draw(64)
    one = engine()
    assert ut.equal(ut.cat([one.draw(), one.draw(2), one.draw(61)]), whole)
    assert ut.equal(one.reset().draw(64), whole)
    assert ut.equal(engine().fast_forward(10).draw(5), whole[10:15])
    assert ut.equal(engine().fast_forward(1).fast_forward(9).draw(5), whole[10:15])
    assert ut.equal(engine().draw_base2(6), whole)
    # Each half, quarter … of every axis has its share of the points.
    for n in (2, 4, 8, 64):
        counts = [(whole[:, d] * n).long().bincount(minlength=n) for d in range(7)]
        assert (ut.stack(counts) == 64 // n).all()


def test_seeds_and_words() -> None:
    a, b, c = (SobolEngine(3, True, seed=s).draw(8) for s in (1, 1, 2))
    assert ut.equal(a, b)
    assert not ut.equal(a, c)
    assert repr(SobolEngine(3, True, seed=1)) == "SobolEngine(dimension=3, scramble=True, seed=1)"
    out = ut.zeros(0)
    assert SobolEngine(2).draw(3, out=out) is out
    with pytest.raises(ArgumentError, match="no power of two"):
        SobolEngine(2).fast_forward(3).draw_base2(2)
    with pytest.raises(ArgumentError, match="between 1 and"):
        SobolEngine(0)
    with pytest.raises(UnsupportedError, match="1111 dimensions"):
        SobolEngine(1112)
