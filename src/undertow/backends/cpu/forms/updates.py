"""Many rows of arrays changed in place by one launch: lay out, check that they lie apart, call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.expr import Expr
from ....kernel.lower import NotCompiled
from ....kernel.maps import BLOCK
from ....kernel.updates import update_function
from ..calls.launch import Launch, Plan, plan_of, planned
from ..calls.layouts import scalar_type
from ..codegen.kernels import address, kernel, type_of
from ..threads import pool

_TABLES = 32  # remembered for each plan
_NEW = object()


class _Rows(NamedTuple):
    """What a plan remembers: the tables of rows that it has met, by their addresses and sizes.

    The table is None where one launch would be wrong: see `_table`.
    """

    widths: list[int]  # bytes of an element in each array of a row
    tables: dict[tuple[int, ...], Any]


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
    plan = plan_of(_make, (), exprs, dtypes, places, len(numbers))
    if not plan:
        return [*rows, *left]
    addresses = [address(a) for row in rows for a in row]
    sizes = [row[0].size for row in rows]
    known = (*addresses, *sizes)
    widths, tables = plan.more
    table = tables.get(known, _NEW)
    if table is _NEW:
        if len(tables) >= _TABLES:
            tables.clear()
        table = tables[known] = _table(addresses, sizes, widths, places)
    if table is None:
        return [*rows, *left]
    plan.launch.run(pool.pointer(), *first, table, len(table), *numbers)
    return left


def _make(
    operands: tuple[()],
    exprs: tuple[Expr, ...],
    dtypes: tuple[Any, ...],
    places: tuple[int, ...],
    numbers: int,
) -> Plan:
    types = [type_of(t) for t in dtypes]
    compute = {scalar_type(t) for t in types}
    if compute not in ({"f32"}, {"f64"}):
        raise NotCompiled(f"an update of {', '.join(map(str, dtypes))}")
    call = kernel("update", update_function, exprs, types, places, numbers, compute.pop())
    return planned(Launch(call, len(types) + 1, []), more=_Rows([t.itemsize for t in dtypes], {}))


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


def _table(
    addresses: list[int], sizes: list[int], widths: list[int], places: tuple[int, ...]
) -> Any:
    """The blocks of all rows; see Note [rows of an update].

    None if arrays do not lie apart, or not a whole number of elements.
    """
    at, counts = np.array(addresses).reshape(len(sizes), -1), np.array(sizes)
    steps, rest = np.divmod(at - at[0], widths)
    if rest.any() or not _apart(at, counts[:, None] * np.array(widths), places):
        return None
    blocks = -(-counts // BLOCK)
    row = np.repeat(np.arange(len(counts)), blocks)
    done = (np.arange(len(row)) - (blocks.cumsum() - blocks)[row]) * BLOCK
    return np.column_stack((np.minimum(counts[row] - done, BLOCK), steps[row] + done[:, None]))


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
