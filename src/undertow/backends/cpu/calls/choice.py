"""Which of NumPy and a generated kernel is faster: measured once, decided by size and cost.

`UNDERTOW_KERNELS=always` takes a generated kernel wherever there is one, however small the arrays
(for tests), `never` takes NumPy (to tell whether a kernel is to blame).
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from typing import Any

from ....errors import ArgumentError
from ....kernel.expr import Expr

MODE = os.environ.get("UNDERTOW_KERNELS", "auto")
if MODE == "auto" and importlib.util.find_spec("llvmlite") is None:
    warnings.warn("llvmlite is not installed, so large arrays go to NumPy too", stacklevel=2)
    MODE = "never"
if MODE not in ("auto", "always", "never"):
    raise ArgumentError(f"UNDERTOW_KERNELS must be auto, always or never, got {MODE!r}")

# A generated kernel costs about 7 microseconds to call, NumPy 0.5 per ufunc; these primitives are
# bound by memory in both, all others cost NumPy several times as much per element. What it has no
# ufunc for, it computes by a long formula: a kernel is quicker for a single element.
_CHEAP = {
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "abs",
    "sqrt",
    "maximum",
    "minimum",
    "copysign",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_not",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bit_not",
}
# Multiplications in a product from which on ours is used: up to 2^18 NumPy's BLAS runs on one
# thread, and costs less to call.
MULTIPLIED = (1 << 18) + 1
CONVOLVED = 1 << 12  # multiplications of a convolution from which on NumPy is slower
_LONG = 14  # ufuncs from which on a kernel is quicker at any size
_limits: dict[int, tuple[Expr, int, int]] = {}


def crossover(*exprs: Expr) -> int:
    """The elements from which on a generated kernel computes expressions faster than NumPy."""
    limit, ufuncs = sys.maxsize, 0
    for expr in exprs:
        found = _limits.get(id(expr))
        if found is None:
            if len(_limits) > 4096:
                _limits.clear()
            cost, count = _cost(expr, set())
            found = _limits[id(expr)] = (expr, max(1024, 40960 // max(cost, 1)), count)
        limit, ufuncs = min(limit, found[1]), ufuncs + found[2]
    limit = limit if ufuncs < _LONG else 1
    return limit if MODE == "auto" else threshold(limit)


def threshold(size: int) -> int:
    """`size`, the measured number of elements from which on a kernel pays; or as the mode says."""
    return size if MODE == "auto" else 1 if MODE == "always" else sys.maxsize


def convolved(out: Any, w: Any) -> bool:
    """Whether a convolution, as the form `conv` sees it, has enough to multiply for a kernel."""
    return bool(out.size * w.size >= threshold(CONVOLVED) * w.shape[0] * w.shape[1])


def _cost(node: Expr, seen: set[int]) -> tuple[int, int]:
    """What NumPy takes for an element, and the ufuncs it calls."""
    if node.head in ("arg", "const") or id(node) in seen:
        return 0, 0
    seen.add(id(node))
    cost, count = (1, 1) if node.head in _CHEAP else (60, 24) if node.head == "erf" else (6, 1)
    for a in node.args:
        more, ufuncs = _cost(a, seen)
        cost, count = cost + more, count + ufuncs
    return cost, count
