"""Convolutions as sums over windows in the lanes of vectors: tiles of one output, of any stride."""

from __future__ import annotations

import functools

from ....kernel.windows import Geometry
from .cook_toom_forms import Tiling, slides_of
from .cook_toom_plan import tiled
from .problem import Problem, Way


def plan(p: Problem) -> Way | None:
    """How to compute it so; None if it cannot be."""
    tiling = None if p.dilated else windows(p.geometry)
    return None if tiling is None else tiled(p, tiling)


@functools.lru_cache(maxsize=1024)
def windows(geometry: Geometry) -> Tiling | None:
    """How to sum over windows, of any stride; None for taps that are apart."""
    slides = slides_of(geometry)
    if max(slides.gaps) > 1:
        return None
    return Tiling(geometry, slides, (1,) * len(slides.taps))
