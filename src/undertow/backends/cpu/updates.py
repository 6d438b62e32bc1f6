"""Many rows of arrays changed in place by one launch: lay out, check that they lie apart, call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernel.expr import Expr
from ...kernel.lower import NotCompiled
from ...kernel.updates import BLOCK, update_function
from . import pool
from .kernels import address, kernel, type_of
from .plans import Plans, scalar_type

_plans = Plans()


def run_update(
    exprs: tuple[Expr, ...],
    rows: Sequence[Sequence[Any]],
    numbers: Sequence[float],
    places: tuple[int, ...],
) -> Sequence[Sequence[Any]]:
    """Change rows at once, those that lie dense; the others, which nothing has happened to.

    That is all of them where something that is written overlaps anything else.
    """
    left = [row for row in rows if not _dense(row)]
    if left:
        rows = [row for row in rows if _dense(row)]
    rows = [row for row in rows if row[0].size]
    if not rows:
        return left
    first = rows[0]
    key = (exprs, places, len(numbers), *[a.dtype for a in first])
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.make(key, _make, exprs, first, places, len(numbers))
    sizes = np.array([row[0].size for row in rows])
    addresses = np.array([[address(a) for a in row] for row in rows])
    widths = np.array([a.itemsize for a in first])
    steps = addresses - addresses[0]
    whole = plan and not (steps % widths).any()
    if not whole or not _apart(addresses, sizes[:, None] * widths, places):
        return [*rows, *left]
    table = _table(steps // widths, sizes)
    plan(pool.pointer(), *addresses[0].tolist(), address(table), len(table), *numbers)
    return left


def _make(
    exprs: tuple[Expr, ...], arrays: Sequence[Any], places: tuple[int, ...], numbers: int
) -> Any:
    types = [type_of(a.dtype) for a in arrays]
    compute = {scalar_type(t) for t in types}
    if compute not in ({"f32"}, {"f64"}):
        raise NotCompiled(f"an update of {', '.join(str(a.dtype) for a in arrays)}")
    return kernel("update", update_function, exprs, types, places, numbers, compute.pop())


def _dense(row: Sequence[Any]) -> bool:
    """Whether the elements of all arrays lie together, in one order."""
    a, *others = row
    strides = a.strides
    return a.flags.forc and all([o.strides == strides for o in others])


def _apart(addresses: Any, sizes: Any, places: tuple[int, ...]) -> bool:
    """Whether no array that is written overlaps another one, of any row."""
    ends = addresses + sizes
    written = list(places)
    starts = addresses[:, written].ravel()
    order = starts.argsort()
    starts, stops = starts[order], ends[:, written].ravel()[order]
    if (starts[1:] < stops[:-1]).any():
        return False
    read = [i for i in range(addresses.shape[1]) if i not in written]
    before = np.searchsorted(starts, ends[:, read]) - 1  # the last one that begins before its end
    return not ((before >= 0) & (stops[before] > addresses[:, read])).any()


def _table(starts: Any, sizes: Any) -> Any:
    """The blocks of all rows; see Note [rows of an update]."""
    if sizes.max() <= BLOCK:
        return np.column_stack((sizes, starts))
    counts = -(-sizes // BLOCK)
    row = np.repeat(np.arange(len(sizes)), counts)
    done = (np.arange(len(row)) - (counts.cumsum() - counts)[row]) * BLOCK
    left = np.minimum(sizes[row] - done, BLOCK)
    return np.column_stack((left, starts[row] + done[:, None]))
