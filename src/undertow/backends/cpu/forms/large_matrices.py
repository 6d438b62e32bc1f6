"""Factors and systems of large matrices: panels by kernels, the rest by our own products.

What NumPy brings along as LAPACK is slow where a matrix of float32 is large. So LU and Cholesky
eliminate a panel of columns at a time (`kernel/panels.py`), and take its products from all that is
left over. Matrices of a batch come one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....kernel import panels as build
from ... import memory
from ..calls.launch import launch_once
from ..codegen.kernels import TYPES, kernel
from ..products.gemm import gemm
from .copies import run_copy

WIDE = 64  # columns of a panel, rows of a triangle
STRIP = 256  # rows of a symmetric product that are computed from their diagonal on
_INT32 = np.dtype(np.int32)
Arrays = tuple[Any, ...]


def run_large(kind: str, arrays: Sequence[Any], *options: Any) -> Arrays | None:
    """`Backend.linalg` of matrices that are large; None where there is no kernel for them."""
    run = ROUTINES.get(kind)
    if run is None:
        return None
    lead = arrays[0].shape[:-2]
    if not lead:
        return run(arrays, *options)
    flat = [a.reshape(-1, *a.shape[-2:]) for a in arrays]
    found = []
    for number in range(math.prod(lead)):
        one = run([a[number] for a in flat], *options)
        if one is None:
            return None
        found.append(one)
    parts = [np.stack(part) for part in zip(*found, strict=True)]
    return tuple([part.reshape(*lead, *part.shape[1:]) for part in parts])


def _call(function: Callable[..., Any], given: tuple[Any, ...], arrays: Any, *sizes: int) -> None:
    name = function.__name__.removesuffix("_function")
    call = kernel(name, function, TYPES[arrays[0].dtype], *given)
    launch_once(call, arrays, *sizes)


def _step(a: Any) -> int:
    return int(a.strides[0] // a.itemsize)


# LU --------------------------------------------------------------------------------------------
def _factored(a: Any, pivot: bool) -> Arrays:
    """L and U in one matrix, the exchanges of rows from 0 on, and info."""
    x = run_copy(a)
    m, n = x.shape
    least = min(m, n)
    pivots, info, first = np.empty(least, _INT32), np.zeros(1, _INT32), 0
    scratch = memory.empty((m, min(WIDE, n)), x.dtype)
    for start in range(0, least, WIDE):
        stop = min(start + WIDE, least)
        own, rows, step = pivots[start:stop], x[start:], _step(x)
        sizes = m - start, stop - start, step
        _call(build.lu_panel_function, (pivot,), (rows[:, start:], scratch, own, info), *sizes)
        if info[0] and not first:
            first = start + int(info[0])
        if pivot:
            _exchange(rows[:, :start], own)
            _exchange(rows[:, stop:], own)
        if stop < n:
            _substitute(x[start:stop, start:stop], x[start:stop, stop:], False, True)
            if stop < m:
                factors = -x[stop:, start:stop]
                gemm(factors, x[start:stop, stop:], x[stop:, stop:], accumulate=True)
        own += start
    return x, pivots, np.asarray(first, _INT32)


def _exchange(x: Any, pivots: Any) -> None:
    """Exchange rows in the order of the pivots, which count them from 0 on."""
    if x.size:
        _call(build.exchange_function, (), (x, pivots), len(pivots), x.shape[1], _step(x))


def _lu(arrays: Sequence[Any], pivot: bool) -> Arrays:
    x, pivots, info = _factored(arrays[0], bool(pivot))
    return x, pivots + 1, info


# Triangular systems ----------------------------------------------------------------------------
def _substitute(a: Any, x: Any, upper: bool, unit: bool) -> None:
    """X of A X = B in the memory of B: blocks of rows by a kernel, products between them."""
    n = len(a)
    steps = [s // a.itemsize for s in a.strides]
    blocks = [(start, min(start + WIDE, n)) for start in range(0, n, WIDE)]
    for start, stop in reversed(blocks) if upper else blocks:
        triangle, part = a[start:stop, start:stop], x[start:stop]
        sizes = stop - start, x.shape[1], _step(x), *steps
        _call(build.substitute_function, (upper, unit), (part, triangle), *sizes)
        rest = slice(0, start) if upper else slice(stop, n)
        if len(x[rest]):
            gemm(a[rest, start:stop], -part, x[rest], accumulate=True)


def _triangular(arrays: Sequence[Any], upper: bool, unit: bool) -> Arrays:
    a, b = arrays
    x = run_copy(b)
    _substitute(a, x, bool(upper), bool(unit))
    return (x,)


# Linear systems --------------------------------------------------------------------------------
def _solve(arrays: Sequence[Any]) -> Arrays:
    a, b = arrays
    factors, pivots, info = _factored(a, True)
    x = run_copy(b)
    _exchange(x, pivots)
    _substitute(factors, x, False, True)
    _substitute(factors, x, True, False)
    return x, info


def _inv(arrays: Sequence[Any]) -> Arrays:
    (a,) = arrays
    return _solve((a, np.eye(len(a), dtype=a.dtype)))


def _diagonal(a: Any) -> tuple[Any, Any]:
    """The diagonal of U, and the sign of the exchanges."""
    factors, pivots, _ = _factored(a, True)
    moved = np.count_nonzero(pivots != np.arange(len(pivots)))
    return factors.diagonal(), a.dtype.type(1 - 2 * (moved & 1))


def _det(arrays: Sequence[Any]) -> Arrays:
    line, sign = _diagonal(arrays[0])
    with np.errstate(all="ignore"):
        return (np.asarray(line.prod() * sign),)


def _slogdet(arrays: Sequence[Any]) -> Arrays:
    line, sign = _diagonal(arrays[0])
    with np.errstate(all="ignore"):
        return np.asarray(sign * np.sign(line).prod()), np.asarray(np.log(np.abs(line)).sum())


# Cholesky factors ------------------------------------------------------------------------------
def _cholesky(arrays: Sequence[Any], upper: bool) -> Arrays | None:
    """None where a matrix is not positive definite: then LAPACK tells what is wrong with it."""
    (a,) = arrays
    x = run_copy(a if upper else a.T)
    n, step = len(x), _step(x)
    info = np.zeros((), _INT32)
    for start in range(0, n, WIDE):
        stop = min(start + WIDE, n)
        block = x[start:stop, start:stop]
        _call(build.cholesky_block_function, (), (block, info), stop - start, step)
        if info:
            return None
        if stop < n:
            beside = x[start:stop, stop:]
            x[stop:, start:stop] = 0
            _substitute(block.T, beside, False, False)
            factors = -beside
            for top in range(0, n - stop, STRIP):
                bottom = min(top + STRIP, n - stop)
                part = x[stop + top : stop + bottom, stop + top :]
                gemm(factors[:, top:bottom].T, beside[:, top:], part, accumulate=True)
    return (x if upper else x.T), info


ROUTINES: dict[str, Callable[..., Arrays | None]] = {
    "cholesky": _cholesky,
    "det": _det,
    "inv": _inv,
    "lu": _lu,
    "slogdet": _slogdet,
    "solve": _solve,
    "triangular": _triangular,
}
