"""Reductions of a 2048×2048 matrix: over everything, along rows and along columns."""

from __future__ import annotations

from functools import partial
from typing import Any

from ._workload import Workload, forward, normal

SIDE = 2048
_OVER = {"all": (), "rows": (1,), "columns": (0,)}


def _reduction(name: str, dims: tuple[int, ...]) -> Any:
    return lambda m, x: getattr(m, name)(x, *dims)


REDUCTIONS = tuple(
    Workload(
        f"{name} {over}",
        forward(_reduction(name, dims), partial(normal, SIDE, SIDE)),
        1.0,
        0.7,
        4 * SIDE * SIDE,
    )
    for name in ("sum", "mean", "max", "argmax", "var")
    for over, dims in _OVER.items()
)
