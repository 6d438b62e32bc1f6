"""4M complex numbers at a time, their sums, and products of complex matrices, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ._workload import Run, Workload, forward, normal, training

SIZE = 4 << 20
SIDE = 512

_TWO = {"add": lambda m, x, y: x + y, "mul": lambda m, x, y: x * y, "div": lambda m, x, y: x / y}
_ONE = {
    "exp": lambda m, x: m.exp(x),
    "log": lambda m, x: m.log(x),
    "sqrt": lambda m, x: m.sqrt(x),
    "sin": lambda m, x: m.sin(x),
    "abs": lambda m, x: m.abs(x),
    "angle": lambda m, x: m.angle(x),
    "sum": lambda m, x: m.sum(x),
}


def _complex(*shape: int, dtype: str, seed: int = 0) -> Any:
    part = "float32" if dtype == "complex64" else "float64"
    pairs = normal(*shape, 2, dtype=part, seed=seed)
    return pairs.view(dtype)[..., 0]


def _energy(module: Any, *inputs: Any) -> Any:
    """A real number out of a product, whose gradients are complex."""
    out = inputs[0] @ inputs[1] if inputs[0].ndim == 2 else inputs[0] * inputs[1].exp()
    return out.abs().sum()


def _trained(*arrays: Callable[[], Any]) -> Callable[[Any], Run]:
    def make(module: Any) -> Run:
        inputs = [module.from_numpy(a()).requires_grad_() for a in arrays]
        return training(partial(_energy, module), inputs)

    return make


def _workloads() -> list[Workload]:
    found = []
    for dtype in ("complex64", "complex128"):
        array = SIZE * np.dtype(dtype).itemsize
        plain = [partial(_complex, SIZE, dtype=dtype, seed=s) for s in (0, 1)]
        square = [partial(_complex, SIDE, SIDE, dtype=dtype, seed=s) for s in (0, 1)]
        for name, function in _TWO.items():
            make = forward(function, *plain)
            found.append(Workload(f"{name} {dtype}", make, 1.0, 0.7, 2 * array, array))
        for name, function in _ONE.items():
            written = 0 if name == "sum" else array // 2 if name in ("abs", "angle") else array
            make = forward(function, plain[0])
            found.append(Workload(f"{name} {dtype}", make, 1.0, 0.7, array, written))
        flops = 4 * SIDE**3
        make = forward(lambda m, x, y: x @ y, *square)
        found.append(Workload(f"matmul {dtype}", make, 1.3, 1.0, flops=flops))
        found.append(
            Workload(f"matmul {dtype} train", _trained(*square), 1.3, 1.0, flops=3 * flops)
        )
        found.append(Workload(f"mul exp {dtype} train", _trained(*plain), 1.0, 0.7))
    return found


COMPLEX = tuple(_workloads())
