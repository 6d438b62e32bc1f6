"""Convolutions with fewer products, by tiles; `woven` and `lanes` use the same code.

    cook_toom_forms  which tiles a geometry has: outputs, phases, weaving
    cook_toom_plan   where tiles begin, what they read and write, and in which blocks
    cook_toom_text   the code of a block of tiles
    cook_toom_tiles  the code of one vector of tiles

See Note [fewer products] in kernel/cook_toom.py, and Note [two products] in problem.py for results
at positions and the gradient of a weight. Lines are read in place; in more dimensions padding is
laid out once, as for shifts.
"""

from __future__ import annotations

from .cook_toom_forms import tiling
from .cook_toom_plan import tiled
from .problem import Problem, Way


def plan(p: Problem) -> Way | None:
    """How to compute it so; None if there is no form for it."""
    found = None if p.dilated else tiling(p.geometry, p.mode)
    return None if found is None else tiled(p, found)
