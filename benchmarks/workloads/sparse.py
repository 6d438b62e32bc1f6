"""A matrix of 4096² of which 1 % is stored, by rows, times a dense one of 64 columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._workload import Run, Workload, normal

SIDE, WIDTH, FILLED = 4096, 64, 0.01


def _matrix(module: Any) -> tuple[Any, Any]:
    """The sparse matrix and the dense one."""
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((SIDE, SIDE)) < FILLED)
    begins = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=SIDE))])
    parts = [module.from_numpy(a.astype(np.int64)) for a in (begins, columns)]
    values = module.from_numpy(normal(rows.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch's are in beta
        matrix = module.sparse_csr_tensor(*parts, values, (SIDE, SIDE))
    return matrix, module.from_numpy(normal(SIDE, WIDTH, seed=1))


def _product(module: Any) -> Run:
    matrix, dense = _matrix(module)
    return lambda: (matrix @ dense,)


def _trained(module: Any) -> Run:
    matrix, dense = _matrix(module)
    matrix, dense = matrix.requires_grad_(), dense.requires_grad_()

    def run() -> tuple[Any, ...]:
        matrix.grad = dense.grad = None
        out = module.sparse.mm(matrix, dense)
        out.sum().backward()
        return out.detach(), dense.grad, matrix.grad.values()

    return run


_COUNT = int(SIDE * SIDE * FILLED)
_READ, _WRITTEN = _COUNT * 12 + 4 * SIDE * WIDTH, 4 * SIDE * WIDTH
_FLOPS = 2 * _COUNT * WIDTH

SPARSE = (
    Workload("csr matmul", _product, 0.8, 0.6, _READ, _WRITTEN, _FLOPS),
    Workload("csr matmul train", _trained, 1.0, 0.8, 3 * _READ, 3 * _WRITTEN, 3 * _FLOPS),
)
