"""4M elements at a time: arithmetic and functions, transposed and broadcast operands."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ._workload import Workload, forward, normal

SIZE = 4 << 20
SIDE = 2048

_TWO = {"add": lambda m, x, y: x + y, "mul": lambda m, x, y: x * y}
_ONE = {
    "exp": lambda m, x: m.exp(x),
    "log": lambda m, x: m.log(x),
    "sin": lambda m, x: m.sin(x),
    "tanh": lambda m, x: m.tanh(x),
    "sigmoid": lambda m, x: m.sigmoid(x),
    "erf": lambda m, x: m.erf(x),
    "gelu": lambda m, x: m.nn.functional.gelu(x),
    "sqrt": lambda m, x: m.sqrt(x),
}


def _positive(dtype: str) -> Any:
    # In place: a temporary would leave a hole that NumPy has marked for huge pages, and the first
    # small block in it would count as 2 MB of peak memory.
    found = normal(SIZE, dtype=dtype)
    return np.abs(found, out=found)


def _workloads() -> list[Workload]:
    found = []
    for dtype in ("float32", "float64"):
        array = SIZE * np.dtype(dtype).itemsize
        plain = [partial(normal, SIZE, dtype=dtype, seed=s) for s in (0, 1)]
        for name, function in _TWO.items():
            make = forward(function, *plain)
            found.append(Workload(f"{name} {dtype}", make, 1.0, 0.7, 2 * array, array))
        for name, function in _ONE.items():
            values = partial(_positive, dtype) if name in ("log", "sqrt") else plain[0]
            make = forward(function, values)
            found.append(Workload(f"{name} {dtype}", make, 1.0, 0.7, array, array))
    square = [partial(normal, SIDE, SIDE, seed=s) for s in (0, 1)]
    array = 4 * SIDE * SIDE
    found += [
        Workload(
            "add transposed",
            forward(lambda m, x, y: x.t() + y, *square),
            1.0,
            0.6,
            2 * array,
            array,
        ),
        Workload(
            "add broadcast row",
            forward(lambda m, x, y: x + y, square[0], partial(normal, SIDE)),
            1.0,
            0.6,
            array,
            array,
        ),
        Workload(
            "add broadcast column",
            forward(lambda m, x, y: x + y, square[0], partial(normal, SIDE, 1)),
            1.0,
            0.6,
            array,
            array,
        ),
    ]
    return found


ELEMENTWISE = tuple(_workloads())
