"""The kernel of sparse matrices times dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.forms.sparse import run_csr_matmul
from undertow.backends.registry import backend_on

rng = np.random.default_rng(3)


def matrix(rows: int, columns: int, filled: float) -> Any:
    """A dense matrix, most of it zero."""
    return rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < filled)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 7, 8, 16, 64, 65, 150])
def test_the_kernel(dtype: str, width: int) -> None:
    """Every width: whole stripes of columns, and what is left of them; empty rows."""
    cpu = backend_on("cpu")
    host = matrix(70, 90, 0.1)
    host[::7] = 0
    s = ut.tensor(host, dtype=getattr(ut, dtype)).to_sparse_csr()
    dense = rng.standard_normal((90, width)).astype(dtype)
    for operand in (dense, np.asfortranarray(dense), np.repeat(dense, 2, 1)[:, ::2]):
        parts = (s.crow_indices(), s._places.rows, s.col_indices(), s.values())
        got = run_csr_matmul(*(parts[i].numpy() for i in (0, 2, 3)), operand)
        np.testing.assert_allclose(got, host.astype(dtype) @ dense, rtol=1e-4, atol=1e-4)
        again = cpu.csr_matmul(*(p.numpy() for p in parts), operand)
        np.testing.assert_allclose(again, got, rtol=1e-4, atol=1e-4)


def test_the_kernel_gives_the_same_bits_on_any_number_of_threads() -> None:
    """Rows are summed in order."""
    s = ut.tensor(matrix(200, 300, 0.2), dtype=ut.float32).to_sparse_csr()
    dense = ut.tensor(rng.standard_normal((300, 40)), dtype=ut.float32)
    before = ut.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            ut.set_num_threads(threads)
            found.append((s @ dense).numpy().tobytes())
    finally:
        ut.set_num_threads(before)
    assert found[0] == found[1] == found[2]
