"""Linear algebra: 10,000 matrices of 8×8, where what a call costs is most of the time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ._workload import Run, Workload, forward, normal, training

COUNT, SIDE, COLUMNS = 10_000, 8, 4


def _well_posed(dtype: str) -> Any:
    """Matrices far from singular ones, whose rows have to be exchanged."""
    return normal(COUNT, SIDE, SIDE, dtype=dtype) + SIDE * np.eye(SIDE, dtype=dtype)[::-1]


def _definite(dtype: str) -> Any:
    """Positive definite matrices, which are as good for triangles."""
    a = normal(COUNT, SIDE, SIDE, dtype=dtype)
    return a @ a.transpose(0, 2, 1) + SIDE * np.eye(SIDE, dtype=dtype)


_SMALL: dict[str, Callable[..., Any]] = {
    "cholesky": lambda m, a, d, b: m.linalg.cholesky(d),
    "lu_factor": lambda m, a, d, b: m.linalg.lu_factor(a),
    "solve_triangular": lambda m, a, d, b: m.linalg.solve_triangular(d, b, upper=False),
    "solve": lambda m, a, d, b: m.linalg.solve(a, b),
    "inv": lambda m, a, d, b: m.linalg.inv(a),
    "det": lambda m, a, d, b: m.linalg.det(a),
}


def _solved(*arrays: Callable[[], Any]) -> Callable[[Any], Run]:
    def make(module: Any) -> Run:
        inputs = [module.from_numpy(a()).requires_grad_() for a in arrays]
        return training(lambda a, b: module.linalg.solve(a, b).square().sum(), inputs)

    return make


def _workloads() -> list[Workload]:
    found = []
    for dtype in ("float32", "float64"):
        arrays = [
            partial(_well_posed, dtype),
            partial(_definite, dtype),
            partial(normal, COUNT, SIDE, COLUMNS, dtype=dtype, seed=1),
        ]
        size = COUNT * SIDE * SIDE * np.dtype(dtype).itemsize
        for name, function in _SMALL.items():
            title = f"{name} {COUNT}x{SIDE}x{SIDE} {dtype}"
            found.append(Workload(title, forward(function, *arrays), 0.8, 0.5, size, size))
        title = f"solve {COUNT}x{SIDE}x{SIDE} {dtype} train"
        found.append(Workload(title, _solved(arrays[0], arrays[2]), 0.8, 0.5))
    return found


LINEAR_ALGEBRA = tuple(_workloads())
