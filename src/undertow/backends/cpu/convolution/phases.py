"""Convolutions of a dilated input, phase by phase: each is one of the input as it is.

A phase is a remainder of the result's positions, with the taps that do not fall on zeros there; see
`phases` in kernel/windows.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....kernel.windows import Phase, phases
from ...base import Backend
from .problem import Arrays, Problem, Way, beside, finish


def plan(p: Problem, choose: Callable[[Problem], tuple[str, Way] | None]) -> Way | None:
    """How to compute it so, each phase as is chosen; None beside a stride."""
    parts = phases(p.geometry)
    if parts is None:
        return None
    found = [choose(_part(p, part)._replace(geometry=part.geometry)) for part in parts]
    ways = [each[1] for each in found if each is not None]  # as all of them are
    return Way(functools.partial(_run, parts, ways, p.relu), True, True)


def _run(
    parts: Sequence[Phase], ways: Sequence[Way], relu: bool, a: Arrays, backend: Backend
) -> bool:
    fill_rest(a, relu, parts, backend)
    return all(
        way.compute(_part(a, part), relu, backend) for part, way in zip(parts, ways, strict=True)
    )


def _part(a: Any, part: Phase) -> Any:
    return a._replace(out=a.out[(..., *part.positions)], w=a.w[(..., *part.taps)])


def fill_rest(a: Arrays, relu: bool, parts: Sequence[Phase], backend: Backend) -> None:
    """Write the result where no phase has a position: what no tap meets."""
    out, bias = a.out, a.bias
    if sum(math.prod(part.geometry.output) for part in parts) < math.prod(out.shape[3:]):
        if bias is None:
            backend.zero([out])
        else:
            backend.assign(out, np.broadcast_to(beside(bias, out), out.shape))
            finish(out, None, relu, backend)
