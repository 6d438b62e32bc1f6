"""Fourier transforms as kernels: which sizes have one, layouts, and transforms in two steps."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ....kernel.expr import arg
from ....kernel.fourier import (
    COLUMNS,
    fft_function,
    halves_function,
    real_fft_function,
    turns,
    twiddles,
)
from ... import memory
from ...fourier import transform
from ...threads import current_limit
from ..calls.launch import launch_once
from ..codegen.kernels import kernel
from .copies import run_copy
from .maps import run_maps

LONG = 1 << 14  # elements of a row that one thread alone would take
LONGEST = 1 << 22  # beyond, the tables of a row would be too large to keep
_TYPES = {np.dtype(np.complex64): "f32", np.dtype(np.complex128): "f64"}
_COMPLEX = {
    np.dtype(np.float32): np.dtype(np.complex64),
    np.dtype(np.float64): np.dtype(np.complex128),
}
_TIMES = arg(0) * arg(1)


def run_fft(kind: str, x: Any, dims: tuple[int, ...], size: int, norm: str) -> Any:
    """The form `fft`, by kernels where there are some."""
    *others, last = dims
    if kind == "real":
        x = _half_of(x, last, norm)
    elif kind != "to_real":
        others = list(dims)
    inverse = kind in ("inverse", "to_real")
    ours = kind == "real"  # whether the array may be overwritten
    for dim in reversed(others):  # rows first: columns are better off in one array
        if _fits(x.shape[dim]):
            x = _along(x, dim, inverse, norm, ours)
        else:
            x = transform("inverse" if inverse else "forward", x, (dim,), size, norm)
        ours = True
    return _whole_of(x, last, size, norm) if kind == "to_real" else x


def _half_of(x: Any, dim: int, norm: str) -> Any:
    """The kind "real" along one dimension: as pairs along the last, else by NumPy."""
    n = x.shape[dim]
    if dim != x.ndim - 1 or not _fits(n // 2) or n % 2:
        return transform("real", x, (dim,), n, norm)
    x = np.ascontiguousarray(x)
    pairs = x.view(_COMPLEX[x.dtype])
    scale = _scale(n, False, norm)
    if not _is_long(pairs):
        return _real_rows(pairs, n, False, scale)
    return _halves(_rows(pairs, False, scale), n, False)


def _whole_of(x: Any, dim: int, n: int, norm: str) -> Any:
    """The kind "to_real" along one dimension."""
    if dim != x.ndim - 1 or not _fits(n // 2) or n % 2:
        return transform("to_real", x, (dim,), n, norm)
    x = np.ascontiguousarray(x)
    scale = 2 * _scale(n, True, norm)
    if not _is_long(x):
        found = _real_rows(x, n, True, scale)
    else:
        found = _rows(_halves(x, n, True), True, scale)
    return found.view(x.real.dtype)


def _real_rows(x: Any, n: int, inverse: bool, scale: float) -> Any:
    """Rows of n real numbers, as pairs, to half of their spectrum, or back."""
    half = n // 2
    out = memory.empty((*x.shape[:-1], half if inverse else half + 1), x.dtype)
    real = x.real.dtype
    threads = current_limit()
    planes = [memory.empty((threads * 2 * half,), real) for _ in range(2)]
    run = kernel("real_fft", real_fft_function, _TYPES[x.dtype], half, inverse)
    buffers = (out, x, *planes, twiddles(half, real.name), turns(n, real.name))
    launch_once(run, buffers, math.prod(x.shape[:-1]), scale, threads=threads)
    return out


def _halves(x: Any, n: int, inverse: bool) -> Any:
    half = n // 2
    out = memory.empty((*x.shape[:-1], half if inverse else half + 1), x.dtype)
    run = kernel("fft_halves", halves_function, _TYPES[x.dtype], half, inverse)
    table = turns(n, x.real.dtype.name)
    launch_once(run, (out, x, table), math.prod(x.shape[:-1]))
    return out


def _is_long(x: Any) -> bool:
    """Whether the threads share a row."""
    return x.shape[-1] >= LONG and math.prod(x.shape[:-1]) < 2 * current_limit()


def _fits(n: int) -> bool:
    return 16 <= n <= LONGEST and n & (n - 1) == 0


def _scale(n: int, inverse: bool, norm: str) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "backward") == inverse else 1.0


def _along(x: Any, dim: int, inverse: bool, norm: str, ours: bool) -> Any:
    """The transform along one dimension of an array, in its memory if it is ours."""
    x = np.ascontiguousarray(x)
    n = x.shape[dim]
    scale = _scale(n, inverse, norm)
    lines, columns = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    if columns == 1:
        return _rows(x.reshape(*x.shape[: dim + 1]), inverse, scale, ours).reshape(x.shape)
    out = x if ours else memory.empty(x.shape, x.dtype)
    _call(out, x, n, lines, columns, inverse, scale)
    return out


def _rows(x: Any, inverse: bool, scale: float, ours: bool = False) -> Any:
    """The transform along the last dimension of a contiguous array."""
    n, lines = x.shape[-1], math.prod(x.shape[:-1])
    if _is_long(x):
        return _in_two_steps(x.reshape(lines, n), inverse, scale).reshape(x.shape)
    out = x if ours else memory.empty(x.shape, x.dtype)
    _call(out, x, n, lines, 1, inverse, scale)
    return out


def _call(out: Any, x: Any, n: int, lines: int, columns: int, inverse: bool, scale: float) -> None:
    real = out.real.dtype
    threads = current_limit()
    wide = COLUMNS if columns > 1 else 1
    planes = [memory.empty((threads * 2 * n * wide,), real) for _ in range(2)]
    run = kernel("fft", fft_function, _TYPES[x.dtype], n, inverse, columns > 1)
    sizes = (lines, columns) if columns > 1 else (lines,)
    buffers = (out, x, *planes, twiddles(n, real.name))
    launch_once(run, buffers, *sizes, scale, threads=threads)


def _in_two_steps(x: Any, inverse: bool, scale: float) -> Any:
    """Long rows as matrices: columns, powers, rows, and the result transposed.

    All threads work on one row, and on parts of it that fit in the cache.
    """
    lines, n = x.shape
    high = 1 << (n.bit_length() // 2)
    low = n // high
    matrix = memory.empty((lines, high, low), x.dtype)
    _call(matrix, x, high, lines, low, inverse, 1.0)
    powers = _powers(high, low, inverse, x.dtype.name)
    turned = run_maps((_TIMES,), (matrix, powers), (x.dtype,))
    matrix = matrix * powers if turned is None else turned[0]
    rows = memory.empty(matrix.shape, x.dtype)
    _call(rows, matrix, low, lines * high, 1, inverse, scale)
    found = rows.swapaxes(1, 2)
    copied = run_copy(found)
    return np.ascontiguousarray(found) if copied is None else copied


@functools.lru_cache(maxsize=2)
def _powers(high: int, low: int, inverse: bool, dtype: str) -> Any:
    sign = 2j if inverse else -2j
    turns = np.outer(np.arange(high), np.arange(low)) % (high * low) / (high * low)
    return np.exp(sign * np.pi * turns).astype(dtype)
