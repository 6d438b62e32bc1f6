"""One workload: how to make it for a library, what it must move, and what is expected of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Run = Callable[[], tuple[Any, ...]]


class Workload(NamedTuple):
    """A workload by its name; ratios of time to torch are expected at most `bar`, aimed at `aim`.

    `make(module)` gives, for a library, a function that runs the workload once and returns all
    its results; or (setup, function of what setup returned), of which only the function is timed.
    The least traffic with memory in bytes, and the least arithmetic, tell the machine's limit.
    A bar that is infinite is none: the row is there to be seen.
    """

    name: str
    make: Callable[[Any], Run | tuple[Callable[[], Any], Callable[[Any], Any]]]
    bar: float
    aim: float
    read: int = 0
    written: int = 0
    flops: int = 0
    resident: int = 0  # bytes of all arrays together, where some are moved more than once
    # What is compared before the race, where that is not what is timed; and by how much rounding
    # may be amplified, for each matrix of a batch, or one number for all.
    compared: Callable[[Any], Run] | None = None
    condition: Callable[[], Any] | None = None

    def whole(self, module: Any) -> Run:
        """What `make` gives as one function, with the setup inside."""
        made = self.make(module)
        if not isinstance(made, tuple):
            return made
        setup, run = made
        return lambda: run(setup())


def normal(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Normal numbers, the same for every library."""
    return np.random.default_rng(seed).standard_normal(shape, np.dtype(dtype).type)


def positions(*shape: int, below: int, seed: int = 0) -> Any:
    """Integers from 0 to below - 1, the same for every library."""
    return np.random.default_rng(seed).integers(0, below, shape)


def forward(function: Callable[..., Any], *arrays: Callable[[], Any]) -> Callable[[Any], Run]:
    """`function(module, *inputs)` without gradients, as a workload's `make`."""

    def make(module: Any) -> Run:
        inputs = [module.from_numpy(a()) for a in arrays]

        def run() -> tuple[Any, ...]:
            out = function(module, *inputs)
            return tuple(out) if isinstance(out, tuple) else (out,)

        return run

    return make


def training(function: Callable[..., Any], inputs: Sequence[Any], cotangent: Any = None) -> Run:
    """Forward and backward of `function(*inputs)`; the results are the output and all gradients."""
    wanted = [t for t in inputs if t.requires_grad]

    def run() -> tuple[Any, ...]:
        for t in wanted:
            t.grad = None
        out = function(*inputs)
        if cotangent is None:
            out.backward()
        else:
            out.backward(cotangent)
        return (out.detach(), *(t.grad for t in wanted))

    return run
