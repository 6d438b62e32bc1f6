"""How recurrent layers are written: as ONNX's own, whose gates stand in another order."""

from __future__ import annotations

from typing import Any

from ..core.register import FUNCTIONS
from .ops import writes
from .writer import Writer

# ONNX's name, the order of gates there in terms of ours, and attributes.
_LAYERS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "lstm_layer": ("LSTM", (0, 3, 1, 2), {}),  # i f g o here, i o f g there
    "gru_layer": ("GRU", (1, 0, 2), {"linear_before_reset": 1}),  # r z n here, z r n there
    "tanh_layer": ("RNN", (0,), {}),
    "relu_layer": ("RNN", (0,), {"activations": ["Relu"]}),
}


@writes(*_LAYERS)
def _recurrent(w: Writer) -> Any:
    x, h, c, w_ih, w_hh, b_ih, b_hh, lengths = w.names
    op, order, attributes = _LAYERS[w.call.op.name]
    if lengths is not None:
        raise w.refused("packed sequences have no ONNX form here; pass padded ones")
    first = w.graph.numbers([0])
    width = w.tensor(4).shape[1]
    rows = [width * gate + i for gate in order for i in range(width)]

    def turned(name: str | None) -> str:
        """A weight or bias with its gates in ONNX's order."""
        if name is None:
            zeros = FUNCTIONS["zeros"](len(rows), dtype=w.dtype)
            return w.graph.tensor(zeros)
        return name if len(order) == 1 else w.node("Gather", name, w.graph.numbers(rows), axis=0)

    weights = [w.node("Unsqueeze", turned(name), first) for name in (w_ih, w_hh)]
    biases = w.node("Concat", turned(b_ih), turned(b_hh), axis=0)
    given = [w.node("Unsqueeze", name, first) for name in (biases, h)]
    single = w.rank == 2  # one step
    states = 3 if c is not None else 2
    found = w.node(
        op,
        w.node("Unsqueeze", x, first) if single else x,
        *weights,
        given[0],
        "",  # lengths
        given[1],
        *([w.node("Unsqueeze", c, first)] if c is not None else []),
        count=states,
        hidden_size=width,
        direction="reverse" if w.param("reverse") else "forward",
        **attributes,
    )
    out = w.node("Squeeze", found[0], w.graph.numbers([0, 1] if single else [1]))
    return [out, *[w.node("Squeeze", state, first) for state in found[1:]]]
