"""Sorting by generated kernels: choose, lay out and call; see Note [sort keys]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....kernel.lower import NotCompiled
from ....kernel.sorting import FEW, WIDEST, Keys, first_function, rank_function, sort_function
from ...base import Backend
from ..calls.launch import Launch, Plan, Room, for_each_thread, plan_of, planned, run
from ..codegen.kernels import QUICK, Kernel, kernel, type_of

SEVERAL = 1 << 13  # elements that threads share
SAMPLED = 500  # elements of a row in which one is found sooner than it is sorted
EARLY = 16  # part of a row whose elements are found sooner by Note [first of a row]
GROUPS = 16  # groups of elements are a multiple of these, whole vectors on any machine
LINE = 8  # words
_INT64 = np.dtype(np.int64)
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0xFF << 23, "f64": 0x7FF << 52}


def run_sort(x: Any, dim: int, descending: bool, count: int | None, backend: Backend) -> Any:
    """The form `sort`; None if there is no kernel for it."""
    found = _run(x, dim, backend, _make, descending, count)
    if found is None or dim == x.ndim - 1:
        return found
    return backend.copy(found[0]), backend.copy(found[1])


def run_rank(x: Any, dim: int, rank: int, backend: Backend) -> Any:
    """The form `ranked`; None if there is no kernel for it, or none that pays."""
    return _run(x, dim, backend, _make_rank, rank)


def _run(x: Any, dim: int, backend: Backend, make: Callable[..., Plan], *given: Any) -> Any:
    """Values and indices, as views with the last dimension in the place of `dim`."""
    last = dim == x.ndim - 1
    rows = x if last else x.swapaxes(dim, -1)
    if not rows.flags.c_contiguous:
        rows = backend.copy(rows)
    plan = plan_of(make, (rows,), *given)
    if not plan:
        return None
    values, indices = run(plan, (rows,))
    return (values, indices) if last else (values.swapaxes(dim, -1), indices.swapaxes(dim, -1))


def _keys(rows: Any) -> Keys:
    kind = type_of(rows.dtype)
    if not kind or not rows.size or rows.shape[-1] >= 1 << 31:
        raise NotCompiled("no elements, or of unknown types, or more than words can count")
    if kind in _INFINITY:
        return Keys(rows.itemsize * 8, "float", _INFINITY[kind])
    return Keys(rows.itemsize * 8, "signed" if kind[0] == "i" else "unsigned")


def _make(arrays: tuple[Any], descending: bool, count: int | None) -> Plan:
    """The plan for rows like these in order, or what comes first in them."""
    (rows,) = arrays
    keys, n, flip = _keys(rows), rows.shape[-1], -int(descending)
    if count == 0:
        raise NotCompiled("nothing to find")
    wanted = n if count is None else count
    groups = -(-2 * wanted // GROUPS) * GROUPS
    if n < 2 * groups:
        call = kernel("sort", sort_function, keys, tuned=True)
        return _planned(call, keys, rows, wanted, flip)
    call = kernel("first", first_function, keys, tuned=True)
    return _planned(call, keys, rows, wanted, flip, groups)


def _make_rank(arrays: tuple[Any], rank: int) -> Plan:
    """The plan for an element of a rank of rows like these."""
    (rows,) = arrays
    keys, n = _keys(rows), rows.shape[-1]
    if n < SAMPLED or rank < n // EARLY:
        raise NotCompiled("sorted as quickly, or found sooner among the first")
    samples = max(FEW, int(n ** (2 / 3)))
    middle, apart = rank * samples // n, int(1.5 * samples**0.5) + 1
    call = kernel("rank", rank_function, keys, tuned=True)
    return _planned(call, keys, rows, 1, 0, rank, samples, middle - apart, middle + apart)


def _planned(call: Kernel, keys: Keys, rows: Any, count: int, flip: int, *more: int) -> Plan:
    """The plan of a kernel that finds so many elements of each row."""
    n = rows.shape[-1]
    # The items twice, and room to read a whole vector of them from the last one on.
    room = 2 * (-(-n * keys.words // LINE) * LINE + WIDEST * keys.words)
    alone = rows.size < SEVERAL or rows.size == n
    shape = (*rows.shape[:-1], count)
    results = [Room(shape, rows.dtype), Room(shape, _INT64)]
    scratch = [for_each_thread(room, _INT64, alone)]
    launch = Launch(call, 4, [rows.size // n, n, count, flip, room, *more], rows.size >= QUICK)
    return planned(launch, results, scratch, alone=alone)
