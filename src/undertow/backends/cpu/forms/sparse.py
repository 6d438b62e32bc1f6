"""The kernel of matrices that are stored by their nonzero elements: choose and call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....kernel.sparse import csr_matmul_function
from ... import memory
from ..calls.launch import launch_once
from ..codegen.kernels import kernel, machine, type_of

VECTORS = 8  # in a stripe, at most: sums that stay in registers


def run_csr_matmul(begins: Any, columns: Any, values: Any, dense: Any) -> Any:
    """`Backend.csr_matmul`; None if there is no kernel."""
    word, index = type_of(dense.dtype), type_of(columns.dtype)
    if word not in ("f32", "f64") or index not in ("i32", "i64") or not dense.size:
        return None
    if begins.dtype != columns.dtype or values.dtype != dense.dtype:
        return None
    begins, columns, values = map(np.ascontiguousarray, (begins, columns, values))
    if dense.strides[1] != dense.itemsize or dense.strides[0] % dense.itemsize:
        dense = np.ascontiguousarray(dense)
    rows, width = begins.size - 1, dense.shape[1]
    lanes = machine().vector // dense.itemsize
    vectors = max(1, min(VECTORS, width // lanes))
    call = kernel("csr_matmul", csr_matmul_function, word, index, lanes, vectors)
    out = memory.empty((rows, width), dense.dtype)
    arrays = (out, dense, begins, columns, values)
    step = dense.strides[0] // dense.itemsize
    launch_once(call, arrays, rows, width, columns.size, step, dense.shape[0] - 1)
    return out
