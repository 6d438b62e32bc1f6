"""Sorting and what is built on it: short rows, those of 1,000 and 32,000 elements, a million."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ._workload import Workload, forward, normal, positions

_rows = partial(normal, 64, 1000)
_long = partial(normal, 1 << 20)
_whole = partial(positions, 1 << 20, below=1 << 62)
_few = partial(positions, 1 << 20, below=100)


def _edges() -> Any:
    return np.sort(normal(1000, seed=1))


def _row(name: str, function: Any, make: Any, bar: float = 1.0, aim: float = 0.5) -> Workload:
    """Read once, written once with an index of 8 bytes: the least that there is to do."""
    x = make()
    return Workload(name, forward(function, make), bar, aim, x.nbytes, x.nbytes + 8 * x.size)


def _first(name: str, k: int, make: Any, dim: int = -1) -> Workload:
    # Which of equal elements come first is torch's secret, so values are compared.
    return Workload(
        name, forward(lambda m, x: m.topk(x, k, dim).values, make), 1.0, 0.5, make().nbytes
    )


SORTING = (
    _first("topk 5 of 1000", 5, _rows),
    _first("topk 50 of 1000", 50, _rows),
    _first("topk 10 of 1000 float64", 10, partial(_rows, dtype="float64")),
    _first("topk 5 of 1000 columns", 5, partial(normal, 1000, 64), 0),
    _first("topk 50 of 32000", 50, partial(normal, 16, 32000)),
    _first("topk 100 of 1M", 100, _long),
    _row("sort 64×1000", lambda m, x: m.sort(x, stable=True), _rows),
    _row("sort 64×1000 float64", lambda m, x: m.sort(x, stable=True), partial(_rows, dtype="f8")),
    _row("sort 1000×64 columns", lambda m, x: m.msort(x), partial(normal, 1000, 64)),
    _row("sort 16k×16", lambda m, x: m.sort(x, stable=True), partial(normal, 1 << 14, 16)),
    _row("argsort 1M", lambda m, x: m.argsort(x, stable=True), _long),
    _row("sort 1M int64", lambda m, x: m.sort(x, stable=True), _whole),
    Workload("median 64×1000", forward(lambda m, x: m.median(x, 1).values, _rows), 1.0, 0.5),
    Workload("median 1M", forward(lambda m, x: m.median(x), _long), 1.0, 0.5),
    Workload("unique 1M int64", forward(lambda m, x: m.unique(x), _few), 1.0, 0.5),
    Workload(
        "searchsorted 1M", forward(lambda m, e, x: m.searchsorted(e, x), _edges, _long), 1, 0.5
    ),
)
