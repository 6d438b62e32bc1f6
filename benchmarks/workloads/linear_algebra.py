"""Linear algebra: 10,000 matrices of 8×8, where what a call costs is most of the time; and one
large matrix: rows without a bar.

The matrices are random, so some of many are nearly singular. What is compared may differ by
rounding times the condition number of each of them; of factors, what they multiply to is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from ._workload import Run, Workload, forward, normal, training

COUNT, SIDE, COLUMNS, LARGE = 10_000, 8, 4, 512
Function = Callable[..., Any]  # of a module, a matrix, a definite one, and a right-hand side


def _definite(shape: tuple[int, ...], dtype: str) -> Any:
    a = normal(*shape, dtype=dtype)
    return a @ a.swapaxes(-2, -1) + np.eye(shape[-1], dtype=dtype)


@cache
def _condition(shape: tuple[int, ...], dtype: str, of: str, power: int = 1) -> Any:
    a = (_definite if of == "definite" else lambda s, t: normal(*s, dtype=t))(shape, dtype)
    a = a.astype(np.float64)
    return np.linalg.cond(np.tril(a) if of == "triangle" else a) ** power


_FUNCTIONS: dict[str, Function] = {
    "cholesky": lambda m, a, d, b: m.linalg.cholesky_ex(d),
    "lu_factor": lambda m, a, d, b: m.linalg.lu_factor(a),
    "solve_triangular": lambda m, a, d, b: m.linalg.solve_triangular(a, b, upper=False),
    "solve_triangle": lambda m, a, d, b: m.linalg.solve_triangular(d, b, upper=False),
    "solve": lambda m, a, d, b: m.linalg.solve(a, b),
    "inv": lambda m, a, d, b: m.linalg.inv(a),
    "det": lambda m, a, d, b: m.linalg.det(a),
    "slogdet": lambda m, a, d, b: m.linalg.slogdet(a),
    "qr": lambda m, a, d, b: m.linalg.qr(a),
    "svdvals": lambda m, a, d, b: m.linalg.svdvals(a),
    "eigvalsh": lambda m, a, d, b: m.linalg.eigvalsh(d),
}
_SMALL = ("cholesky", "lu_factor", "solve_triangular", "solve", "inv", "det")
_ONE = [n for n in _FUNCTIONS if n not in ("det", "solve_triangular")]  # which overflow


def _multiplied(m: Any, lu: Any, pivots: Any) -> Any:
    p, lower, upper = m.lu_unpack(lu, pivots)
    return p @ lower @ upper


# What is compared of a factorisation: the product of what it has found, whatever the choices.
_PRODUCTS: dict[str, Function] = {
    "cholesky": lambda m, a, d, b: (lambda low: low @ low.mT)(m.linalg.cholesky_ex(d)[0]),
    "lu_factor": lambda m, a, d, b: _multiplied(m, *m.linalg.lu_factor(a)),
    "qr": lambda m, a, d, b: (lambda q, r: (q @ r, q.mT @ q))(*m.linalg.qr(a)),
}


def _solved(*arrays: Callable[[], Any]) -> Callable[[Any], Run]:
    def make(module: Any) -> Run:
        inputs = [module.from_numpy(a()).requires_grad_() for a in arrays]
        return training(lambda a, b: module.linalg.solve(a, b).square().sum(), inputs)

    return make


def _row(name: str, shape: tuple[int, ...], dtype: str, bar: float, aim: float) -> Workload:
    arrays = (
        partial(normal, *shape, dtype=dtype),
        partial(_definite, shape, dtype),
        partial(normal, *shape[:-1], COLUMNS, dtype=dtype, seed=1),
    )
    size = math.prod(shape) * np.dtype(dtype).itemsize
    title = f"{name} {'x'.join(map(str, shape))} {dtype}"
    product = _PRODUCTS.get(name)
    of = "triangle" if name == "solve_triangular" else "matrix"
    exact = product is not None or name in ("svdvals", "eigvalsh", "solve_triangle")
    return Workload(
        title,
        forward(_FUNCTIONS[name], *arrays),
        bar,
        aim,
        size,
        size,
        compared=None if product is None else forward(product, *arrays),
        condition=None if exact else partial(_condition, shape, dtype, of),
    )


def _workloads() -> list[Workload]:
    found = []
    for dtype in ("float32", "float64"):
        shape = (COUNT, SIDE, SIDE)
        found += [_row(name, shape, dtype, 0.8, 0.5) for name in _SMALL]
        title = f"solve {COUNT}x{SIDE}x{SIDE} {dtype} train"
        arrays = [partial(normal, *shape, dtype=dtype)]
        arrays += [partial(normal, COUNT, SIDE, COLUMNS, dtype=dtype, seed=1)]
        twice = partial(_condition, shape, dtype, "matrix", 2)
        found.append(Workload(title, _solved(*arrays), 0.8, 0.5, condition=twice))
        found += [_row(name, (LARGE, LARGE), dtype, math.inf, 1.0) for name in _ONE]
    return found


LINEAR_ALGEBRA = tuple(_workloads())
