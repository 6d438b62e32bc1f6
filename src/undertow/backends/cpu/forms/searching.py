"""The kernel of `searchsorted`: choose and call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....kernel.searching import search_function
from ... import memory
from ..calls.launch import launch_once
from ..codegen.kernels import kernel, type_of


def run_search(edges: Any, values: Any, right: bool) -> Any:
    """`Backend.searchsorted`; None if there is no kernel."""
    dtype, count = type_of(edges.dtype), edges.shape[-1]
    if not dtype or edges.dtype != values.dtype or not count or not values.size:
        return None
    rows, out = edges.size // count, memory.empty(values.shape, np.int64)
    edges, values = np.ascontiguousarray(edges), np.ascontiguousarray(values)
    call = kernel("search", search_function, dtype, right)
    ints = (rows, values.size // rows, count, count.bit_length())
    launch_once(call, (out, edges, values), *ints)
    return out
