"""Symmetric indefinite factors L D Lᵀ with Bunch and Kaufman's pivoting, packed as by LAPACK."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_ALPHA = (1 + 17**0.5) / 8  # how much larger an element off the diagonal must be to be preferred


def flat(a: Any) -> Any:
    """Matrices with one batch dimension."""
    return a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])


def size(x: Any) -> Any:
    """What pivots are chosen by: of complex numbers the sum of both parts, as in LAPACK."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def ldl(a: Any, hermitian: bool) -> tuple[Any, ...]:
    """L and D of the lower triangle in one matrix, pivots and info, as `sytrf` has them.

    A pivot p > 0 is a block of one row, exchanged with row p; two pivots -p are one of two.
    """
    lead, n = a.shape[:-2], a.shape[-1]
    x = flat(np.tril(a))
    pivots = np.zeros((len(x), n), np.int32)
    info = np.zeros(len(x), np.int32)
    conjugate = hermitian and a.dtype.kind == "c"
    for i, matrix in enumerate(x):
        info[i] = _factor(matrix, pivots[i], conjugate)
    return x.reshape(a.shape), pivots.reshape(*lead, n), info.reshape(lead)


def _factor(a: Any, pivots: Any, conjugate: bool) -> int:
    n, k, info = len(a), 0, 0
    while k < n:
        if conjugate:
            a[k, k] = a[k, k].real
        row, width = _pivot(a, k)
        if row < 0:  # a column of zeros
            info, row = info or k + 1, k
        last = k + width - 1
        if row != last:
            _exchange(a, k, last, row, conjugate)
        rest = slice(k + width, n)
        if a[k, k] != 0 or width == 2:
            block, column = _block(a, k, width, conjugate), a[rest, k : k + width].copy()
            scaled = column / block[0, 0] if width == 1 else np.linalg.solve(block.T, column.T).T
            other = column.conj() if conjugate else column
            a[rest, rest] -= np.tril(scaled @ other.T)
            a[rest, k : k + width] = scaled
        pivots[k : k + width] = row + 1 if width == 1 else -(row + 1)
        k += width
    return info


def _pivot(a: Any, k: int) -> tuple[int, int]:
    """Which row is brought to the front, -1 where there is nothing, and the size of its block."""
    own = size(a[k, k])
    below = size(a[k + 1 :, k])
    most = below.max(initial=0)
    if own == 0 and most == 0:
        return -1, 1
    if not own < _ALPHA * most:  # NaN stays where it is
        return k, 1
    row = k + 1 + int(below.argmax())
    others = max(size(a[row, k:row]).max(), size(a[row + 1 :, row]).max(initial=0))
    if own >= _ALPHA * most * (most / others):
        return k, 1
    return (row, 1) if size(a[row, row]) >= _ALPHA * others else (row, 2)


def _exchange(a: Any, k: int, i: int, j: int, conjugate: bool) -> None:
    """Rows and columns i < j of the part from k on, of which only the lower triangle is there."""
    a[j + 1 :, [i, j]] = a[j + 1 :, [j, i]]
    column, row = a[i + 1 : j, i].copy(), a[j, i + 1 : j].copy()
    if conjugate:
        column, row, a[j, i] = column.conj(), row.conj(), a[j, i].conj()
    a[i + 1 : j, i], a[j, i + 1 : j] = row, column
    a[i, i], a[j, j] = a[j, j], a[i, i]
    if i > k:
        a[i, k], a[j, k] = a[j, k], a[i, k]


def _block(a: Any, k: int, width: int, conjugate: bool) -> Any:
    """The block of D at k, whole."""
    block = a[k : k + width, k : k + width].copy()
    if width == 2:
        block[0, 1] = block[1, 0].conj() if conjugate else block[1, 0]
    return block


def ldl_solve(packed: Any, pivots: Any, b: Any, hermitian: bool) -> tuple[Any, ...]:
    """X of A X = B, given what `ldl` made of A."""
    x = flat(np.array(b))
    conjugate = hermitian and packed.dtype.kind == "c"
    for a, p, right in zip(flat(packed), flat(pivots[..., None]), x, strict=True):
        _solve(a, p[:, 0], right, conjugate)
    return (x.reshape(b.shape),)


def _solve(a: Any, pivots: Any, x: Any, conjugate: bool) -> None:
    n, k = len(a), 0
    starts = []
    while k < n:
        width = 1 if pivots[k] > 0 else 2
        last, row, rest = k + width - 1, abs(int(pivots[k])) - 1, slice(k + width, n)
        starts.append((k, width, last, row, rest))
        x[[last, row]] = x[[row, last]]
        x[rest] -= a[rest, k : k + width] @ x[k : k + width]
        block = _block(a, k, width, conjugate)
        part = x[k : k + width]
        x[k : k + width] = part / block if width == 1 else np.linalg.solve(block, part)
        k += width
    for k, width, last, row, rest in reversed(starts):
        below = a[rest, k : k + width]
        x[k : k + width] -= (below.conj() if conjugate else below).T @ x[rest]
        x[[last, row]] = x[[row, last]]
