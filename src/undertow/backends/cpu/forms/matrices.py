"""Linear algebra of many small matrices as kernels: choose, lay out and call.

For one matrix LAPACK is quick; for thousands, what each call costs is most of the time. Large ones,
and what NumPy does not show of LAPACK, are the business of `large_matrices`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....kernel import small_matrices as build
from ... import memory
from ...threads import current_limit
from ..calls.launch import launch_once
from ..codegen.kernels import TYPES, kernel, machine
from .large_matrices import run_large

MANY = 64  # matrices: fewer are LAPACK's
LARGE = 192  # rows: from here on products are quicker than LAPACK
ROWS = 64  # rows, from which on they are quicker than NumPy row by row
SMALL = 1024  # elements of a matrix with what stands beside it, in the memory of a thread
FEW = 16  # rows: so few that pivots are picked by looking through all of them
UNROLLED = 64  # elements of matrices whose sizes become part of their kernel
_INT32 = np.dtype(np.int32)


def run_linalg(kind: str, arrays: Sequence[Any], *options: Any) -> tuple[Any, ...] | None:
    """`Backend.linalg`; None where there is no kernel, or LAPACK must find out what is wrong."""
    run = ROUTINES.get(kind)
    first = arrays[0]
    if run is None or first.dtype not in (np.float32, np.float64):
        return None
    lead = first.shape[:-2]
    count, rows = math.prod(lead), first.shape[-2]
    if not count or not all(a.size and _aligned(a) for a in arrays):
        return None
    if count < MANY or rows * sum(a.shape[-1] for a in arrays) > SMALL:
        # Without LAPACK, NumPy takes a few calls for each row of all matrices together.
        least = min(first.shape[-2:])
        by_rows = kind in ("lu", "triangular")
        large = least >= max(ROWS, count / 2) if by_rows else least >= LARGE
        return run_large(kind, arrays, *options) if large else None
    found = run(lead, [_in_a_row(a, len(lead)) for a in arrays], *options)
    return found and tuple([a.reshape(*lead, *a.shape[1:]) for a in found])


def _aligned(a: Any) -> bool:
    return all(s % a.itemsize == 0 for s in a.strides)


def _in_a_row(a: Any, lead: int) -> Any:
    """The array with one batch dimension, a view where that can be."""
    return a.reshape(-1, *a.shape[lead:])


def _packed(a: Any) -> bool:
    """Whether each matrix is contiguous."""
    return a.strides[1:] == (a.shape[2] * a.itemsize, a.itemsize)


def _run(
    function: Callable[..., Any],
    given: tuple[Any, ...],
    sizes: Sequence[int],
    elements: int,
    arrays: Sequence[Any],
) -> None:
    """A kernel over arrays of matrices, written ones first."""
    dtype = arrays[0].dtype
    packed = all(_packed(a) for a in arrays if a.ndim == 3)
    lanes = machine().vector // dtype.itemsize if packed else 0
    name = function.__name__.removesuffix("_function")
    call = kernel(name, function, TYPES[dtype], lanes, *given)
    threads = current_limit()
    own = memory.empty((elements * build.GROUP * threads,), dtype)
    steps = [s // a.itemsize for a in arrays for s in a.strides]
    launch_once(call, (*arrays, own), len(arrays[0]), *sizes, *steps, threads=threads)


def _lu(lead: Any, arrays: Sequence[Any], pivot: bool) -> Any:
    (a,) = arrays
    count, m, n = a.shape
    out = memory.empty(a.shape, a.dtype)
    pivots, info = np.empty((count, min(m, n)), _INT32), np.empty(count, _INT32)
    given = (m <= FEW, bool(pivot), (m, n) if m * n <= UNROLLED else ())
    _run(build.lu_function, given, (m, n), (m + 1) * n, (out, pivots, info, a))
    return out, pivots, info


def _solve(lead: Any, arrays: Sequence[Any]) -> Any:
    a, b = arrays
    count, n, columns = b.shape
    x, info = memory.empty(b.shape, a.dtype), np.empty(count, _INT32)
    elements = (n + 1) * (n + columns)
    _run(build.solve_function, (n <= FEW,), (n, columns), elements, (x, info, a, b))
    return x, info


def _inv(lead: Any, arrays: Sequence[Any]) -> Any:
    (a,) = arrays
    return _solve(lead, (a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)))


def _diagonals(a: Any) -> tuple[Any, Any]:
    """The diagonals of U of matrices, one matrix beside the other, and the sign of P."""
    count, n, _ = a.shape
    line, exchanges = memory.empty((n, count), a.dtype), np.empty(count, _INT32)
    _run(build.pivots_function, (n <= FEW,), (n,), (n + 1) * n, (line.T, exchanges, a))
    return line, (1 - 2 * (exchanges & 1)).astype(a.dtype)


def _det(lead: Any, arrays: Sequence[Any]) -> Any:
    line, sign = _diagonals(*arrays)
    return (line.prod(0) * sign,)


def _slogdet(lead: Any, arrays: Sequence[Any]) -> Any:
    line, sign = _diagonals(*arrays)
    return sign * np.sign(line).prod(0), np.log(np.abs(line)).sum(0)


def _cholesky(lead: Any, arrays: Sequence[Any], upper: bool) -> Any:
    (a,) = arrays
    out, info = memory.empty(a.shape, a.dtype), np.empty(len(a), _INT32)
    given = [np.swapaxes(x, -2, -1) if upper else x for x in (out, a)]
    _run(build.cholesky_function, (), (a.shape[-1],), a.shape[-1] ** 2, (given[0], info, given[1]))
    return None if info.any() else (out, info)


def _triangular(lead: Any, arrays: Sequence[Any], upper: bool, unit: bool) -> Any:
    a, b = arrays
    _, n, columns = b.shape
    x = memory.empty(b.shape, b.dtype)
    given = (bool(upper), bool(unit))
    _run(build.triangular_function, given, (n, columns), n * (n + columns), (x, a, b))
    return (x,)


ROUTINES: dict[str, Callable[..., Any]] = {
    "cholesky": _cholesky,
    "det": _det,
    "inv": _inv,
    "lu": _lu,
    "slogdet": _slogdet,
    "solve": _solve,
    "triangular": _triangular,
}
