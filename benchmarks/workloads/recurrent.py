"""Recurrent networks, forward and backward: two layers at once, and a cell step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._workload import Run, Workload, normal, training

STEPS, BATCH, WIDTH, LAYERS = 64, 32, 128, 2


def _network(kind: str) -> Callable[[Any], Run]:
    """`nn.LSTM` or `nn.GRU`, the gradients of its weights by a cotangent of its results."""

    def make(module: Any) -> Run:
        network = getattr(module.nn, kind)(WIDTH, WIDTH, LAYERS)
        weights = _fill(module, network)
        x, cotangent = (module.from_numpy(normal(STEPS, BATCH, WIDTH, seed=s)) for s in (20, 21))
        return training(lambda x, *weights: network(x)[0], (x, *weights), cotangent)

    return make


def _cell(module: Any) -> Run:
    """`nn.LSTMCell` in a loop, as a program writes it that decides at every step."""
    cell = module.nn.LSTMCell(WIDTH, WIDTH)
    weights = _fill(module, cell)
    x = module.from_numpy(normal(STEPS, BATCH, WIDTH, seed=20))
    cotangent = module.from_numpy(normal(BATCH, WIDTH, seed=21))

    def function(x: Any, *weights: Any) -> Any:
        h = c = module.zeros(BATCH, WIDTH)
        for t in range(STEPS):
            h, c = cell(x[t], (h, c))
        return h

    return training(function, (x, *weights), cotangent)


def _fill(module: Any, network: Any) -> list[Any]:
    """The parameters, with values that are the same for every library."""
    weights = list(network.parameters())
    with module.no_grad():
        for i, w in enumerate(weights):
            w.copy_(module.from_numpy(normal(*w.shape, seed=i) * WIDTH**-0.5))
    return weights


def _flops(gates: int, layers: int) -> int:
    """Two products forward, four backward, of which the first layer's input needs none."""
    products = 6 * layers - 1
    return 2 * products * STEPS * BATCH * gates * WIDTH * WIDTH


RECURRENT = (
    Workload("lstm train", _network("LSTM"), 1.0, 0.7, flops=_flops(4, LAYERS)),
    Workload("gru train", _network("GRU"), 1.0, 0.7, flops=_flops(3, LAYERS)),
    Workload("lstm cell train", _cell, 1.1, 0.8, flops=_flops(4, 1)),
)
