"""Many rows of arrays changed in place by one launch: lay out, check that they lie apart, call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.expr import Expr
from ....kernel.lower import NotCompiled
from ....kernel.maps import BLOCK
from ....kernel.updates import update_function
from ..calls.launch import Launch, Plan, plan_of, planned
from ..calls.layouts import scalar_type
from ..codegen.kernels import address, kernel, type_of
from ..threads import pool

_MET = 32  # addresses of rows that are remembered for each plan
_NEW = object()


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
    if not rows:
        return left
    first = rows[0]
    dtypes = tuple([a.dtype for a in first])
    sizes = tuple([row[0].size for row in rows])
    plan = plan_of(_make, (), exprs, dtypes, places, len(numbers), sizes)
    if not plan:
        return [*rows, *left]
    addresses = tuple([address(a) for row in rows for a in row])
    met: dict[tuple[int, ...], Any] = plan.more  # what `_begins` says of them
    begins = met.get(addresses, _NEW)
    if begins is _NEW:
        if len(met) >= _MET:
            met.clear()
        begins = met[addresses] = _begins(addresses, sizes, [t.itemsize for t in dtypes], places)
    if begins is None:
        return [*rows, *left]
    plan.launch.run(pool.pointer(), *first, begins, plan.tables[0], *numbers)
    return left


def _make(
    operands: tuple[()],
    exprs: tuple[Expr, ...],
    dtypes: tuple[Any, ...],
    places: tuple[int, ...],
    numbers: int,
    sizes: tuple[int, ...],
) -> Plan:
    types = [type_of(t) for t in dtypes]
    compute = {scalar_type(t) for t in types}
    if compute not in ({"f32"}, {"f64"}):
        raise NotCompiled(f"an update of {', '.join(map(str, dtypes))}")
    call = kernel("update", update_function, exprs, types, places, numbers, compute.pop())
    table = _table(sizes)
    return planned(Launch(call, len(types) + 2, [len(table)]), tables=[table], more={})


def _dense(row: Sequence[Any]) -> bool:
    """Whether the elements of all arrays lie together, in one order."""
    first = row[0]
    if not first.flags.forc:
        return False
    strides = first.strides
    for a in row:  # noqa: SIM110 (quicker than `all`)
        if a.strides != strides:
            return False
    return True


def _table(sizes: Sequence[int]) -> Any:
    """The blocks of all rows; see Note [rows of an update]."""
    counts = np.array(sizes)
    blocks = -(-counts // BLOCK)
    row = np.repeat(np.arange(len(counts)), blocks)
    done = (np.arange(len(row)) - (blocks.cumsum() - blocks)[row]) * BLOCK
    return np.column_stack((np.minimum(counts[row] - done, BLOCK), row, done))


def _begins(
    addresses: Sequence[int], sizes: Sequence[int], widths: list[int], places: tuple[int, ...]
) -> Any:
    """Where the arrays of each row begin, in elements from those of the first.

    None if one launch would be wrong: arrays do not lie apart, or not a whole number of elements.
    """
    at = np.array(addresses).reshape(len(sizes), -1)
    begins, rest = np.divmod(at - at[0], widths)
    if rest.any() or not _apart(at, np.outer(sizes, widths), places):
        return None
    return np.ascontiguousarray(begins)


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
