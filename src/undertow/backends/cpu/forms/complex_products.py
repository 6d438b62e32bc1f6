"""Products of complex matrices as one real product.

Note [complex products]
A row of complex numbers is in memory a row of twice as many real ones: re, im, re, im … Multiplied
by a real matrix that has two rows for each row of b, the row itself and i times it, it gives the
row of the complex product, in the same layout. So a and the result are taken as they lie, and only
b is copied, at twice its size; the real product does the rest, with the four multiplications of
parts that a complex one is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....kernel.expr import arg, trace
from ..products.gemm import gemm
from .maps import run_maps

_BOTH = (arg(0), trace(lambda b: b * 1j, 1))
_REAL = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(float)}


def complex_product(a: Any, b: Any, bias: Any = None) -> Any | None:
    """`a @ b + bias` of complex arrays, the bias a vector; None if there is no kernel for it."""
    dtype = a.dtype
    real = _REAL[dtype]
    *batch, depth, columns = b.shape
    turned = np.empty((*batch, depth, 2, columns), dtype)
    if run_maps(_BOTH, (b,), (dtype, dtype), (turned[..., 0, :], turned[..., 1, :])) is None:
        return None
    if a.strides[-1] != a.itemsize:
        a = np.ascontiguousarray(a)
    pairs = turned.view(real).reshape(*batch, 2 * depth, 2 * columns)
    beside = None if bias is None else np.ascontiguousarray(bias).view(real)
    out: Any = gemm(a.view(real), pairs, bias=beside).view(dtype)
    return out
