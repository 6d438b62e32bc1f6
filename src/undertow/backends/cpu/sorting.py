"""Sorting by generated kernels: choose, lay out and call; see Note [sort keys]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...kernel.lower import NotCompiled
from .. import memory
from ..base import Backend
from ..threads import current_limit
from . import pool
from .gemm_tiles import host
from .kernels import QUICK, launching, type_of, written
from .plans import Plans
from .sorting_items import FEW, Keys
from .sorting_text import ARRAYS, GROUPS, NUMBERS, RANK_NUMBERS, first_text, rank_text, sort_text

SEVERAL = 1 << 13  # elements that threads share
SAMPLED = 500  # elements of a row in which one is found sooner than it is sorted
EARLY = 16  # part of a row whose elements are found sooner by Note [first of a row]
LINE = 64  # bytes
_INT64 = np.dtype(np.int64)
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0xFF << 23, "f64": 0x7FF << 52}
_plans = Plans()


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses."""

    launch: Callable[..., None]
    shape: tuple[int, ...]  # of the results, along the last dimension
    rows: int
    room: int  # bytes of scratch memory for a thread


def run_sort(x: Any, dim: int, descending: bool, count: int | None, backend: Backend) -> Any:
    """The form `sort`; None if there is no kernel for it."""
    found = _run(x, dim, backend, _make, descending, count)
    if found is None or dim == x.ndim - 1:
        return found
    return backend.copy(found[0]), backend.copy(found[1])


def run_rank(x: Any, dim: int, rank: int, backend: Backend) -> Any:
    """The form `ranked`; None if there is no kernel for it, or none that pays."""
    return _run(x, dim, backend, _make_rank, rank)


def _run(x: Any, dim: int, backend: Backend, make: Callable[..., _Plan], *given: Any) -> Any:
    """Values and indices, as views with the last dimension in the place of `dim`."""
    last = dim == x.ndim - 1
    rows = x if last else x.swapaxes(dim, -1)
    key = (make, rows.shape, x.dtype, given)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.make(key, make, rows, *given)
    if not plan:
        return None
    if not rows.flags.c_contiguous:
        rows = backend.copy(rows)
    values, indices = memory.empty(plan.shape, x.dtype), memory.empty(plan.shape, _INT64)
    threads = min(current_limit(), plan.rows) if x.size >= SEVERAL else 1
    scratch = memory.empty((threads * plan.room,), np.uint8)
    plan.launch(pool.pointer(threads), rows, values, indices, scratch)
    return (values, indices) if last else (values.swapaxes(dim, -1), indices.swapaxes(dim, -1))


def _make_rank(rows: Any, rank: int) -> _Plan:
    """The plan for an element of a rank of rows like these."""
    keys, n = _keys(rows), rows.shape[-1]
    if n < SAMPLED or rank < n // EARLY:
        raise NotCompiled("sorted as quickly, or found sooner among the first")
    samples = max(FEW, int(n ** (2 / 3)))
    middle, apart = rank * samples // n, int(1.5 * samples**0.5) + 1
    room = _room(keys, n)
    given = {"rows": rows.size // n, "n": n, "rank": rank, "flip": 0, "samples": samples}
    given |= {"low": middle - apart, "high": middle + apart, "room": room}
    call = written("rank", rank_text, keys, host(), buffers=len(ARRAYS), ints=len(RANK_NUMBERS))
    ints = [given[name] for name in RANK_NUMBERS]
    launch = launching(call, len(ARRAYS), ints, release=rows.size >= QUICK)
    return _Plan(launch, (*rows.shape[:-1], 1), given["rows"], room)


def _keys(rows: Any) -> Keys:
    kind = type_of(rows.dtype)
    if not kind or not rows.size or rows.shape[-1] >= 1 << 31:
        raise NotCompiled("no elements, or of unknown types, or more than words can count")
    if kind in _INFINITY:
        return Keys(rows.itemsize * 8, "float", _INFINITY[kind])
    return Keys(rows.itemsize * 8, "signed" if kind[0] == "i" else "unsigned")


def _room(keys: Keys, n: int) -> int:
    """Bytes for n items twice, which are read by whole vectors."""
    return 2 * (-(-n * keys.item // LINE) + 2) * LINE


def _make(rows: Any, descending: bool, count: int | None) -> _Plan:
    """The plan for rows like these."""
    keys, n = _keys(rows), rows.shape[-1]
    if count == 0:
        raise NotCompiled("nothing to find")
    wanted = n if count is None else count
    groups = -(-2 * wanted // GROUPS) * GROUPS
    few = n >= 2 * groups
    room = _room(keys, n)
    given = {"rows": rows.size // n, "n": n, "count": wanted, "flip": -int(descending)}
    given |= {"groups": groups, "room": room}
    form, text = ("first", first_text) if few else ("sort", sort_text)
    call = written(form, text, keys, host(), buffers=len(ARRAYS), ints=len(NUMBERS))
    ints = [given[name] for name in NUMBERS]
    launch = launching(call, len(ARRAYS), ints, release=rows.size >= QUICK)
    return _Plan(launch, (*rows.shape[:-1], wanted), given["rows"], room)
