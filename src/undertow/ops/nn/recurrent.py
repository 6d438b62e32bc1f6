"""Recurrent networks: single cells, and stacks of layers in one or both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ShapeError
from ..elementwise.comparison import where
from ..elementwise.transcendental import sigmoid, tanh
from ..shape.joining import cat, chunk, stack, unbind
from ..shape.movement import transpose
from .composite import linear
from .dropout import dropout
from .packing import Packing
from .recurrent_arguments import (
    Weights,
    bound,
    by_layer,
    cell_fits,
    check_cell,
    check_dtypes,
    check_states,
    check_weights,
    pair,
)
from .recurrent_layer import layer


# Cells ---------------------------------------------------------------------------------------
@function(method=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the new state and memory, from an input (batch, features) and the old.

    >>> import undertow as ut
    >>> x, h, c = ut.zeros(1, 3), ut.zeros(1, 1), ut.ones(1, 1)
    >>> ut.lstm_cell(x, (h, c), ut.zeros(4, 3), ut.zeros(4, 1))
    (tensor([[0.2311]]), tensor([[0.5000]]))
    """
    h, c = pair("lstm_cell", hx)
    return _cell("lstm_cell", "lstm", input, h, c, w_ih, w_hh, b_ih, b_hh)


@function(method=False)
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a gated recurrent unit: the new state from an input (batch, features).

    >>> import undertow as ut
    >>> ut.gru_cell(ut.zeros(1, 3), ut.ones(1, 1), ut.zeros(3, 3), ut.zeros(3, 1))
    tensor([[0.5000]])
    """
    return _cell("gru_cell", "gru", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@function(method=False)
def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a plain recurrent layer, tanh(w_ih @ x + w_hh @ h + biases).

    >>> import undertow as ut
    >>> ut.rnn_tanh_cell(ut.ones(1, 1), ut.ones(1, 1), ut.ones(1, 1), ut.ones(1, 1))
    tensor([[0.9640]])
    """
    return _cell("rnn_tanh_cell", "tanh", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@function(method=False)
def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a plain recurrent layer, relu(w_ih @ x + w_hh @ h + biases).

    >>> import undertow as ut
    >>> ut.rnn_relu_cell(ut.ones(1, 1), ut.ones(1, 1), ut.ones(1, 1), ut.ones(1, 1))
    tensor([[2.]])
    """
    return _cell("rnn_relu_cell", "relu", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


def _cell(
    op: str,
    kind: str,
    x: Tensor,
    h: Tensor,
    c: Tensor | None,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> Any:
    """The state, and the memory of an LSTM, after a layer's only step."""
    if not cell_fits(kind, x, h, c, w_ih, w_hh, b_ih, b_hh):
        check_cell(op, kind, x, h, c, Weights(w_ih, w_hh, b_ih, b_hh))
    out, _, c = layer(kind, x, h, c, w_ih, w_hh, b_ih, b_hh)
    return out, c


# Layers --------------------------------------------------------------------------------------
@overload
def lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def lstm(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor, Tensor]: ...
@function(method=False)
def lstm(*arguments: Any, **named: Any) -> Any:
    """A long short-term memory: states of the last layer, and last states and memories of all.

    The arguments are (input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
    batch_first), or for packed sequences (data, batch_sizes, hx, params, has_biases, num_layers,
    dropout, train, bidirectional). `nn.LSTM` is the module that calls this.

    >>> import undertow as ut
    >>> x, h = ut.zeros(5, 2, 3), ut.zeros(1, 2, 4)
    >>> weights = [ut.zeros(16, 3), ut.zeros(16, 4)]
    >>> out, h_n, c_n = ut.lstm(x, (h, h), weights, False, 1, 0.0, False, False, False)
    >>> out.shape, h_n.shape, c_n.shape
    ((5, 2, 4), (1, 2, 4), (1, 2, 4))
    """
    given = bound("lstm", arguments, named)
    h, c = pair("lstm", given.pop("hx"))
    return _network("lstm", "lstm", h=h, c=c, **given)


@overload
def gru(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]: ...
@overload
def gru(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor]: ...
@function(method=False)
def gru(*arguments: Any, **named: Any) -> Any:
    """A network of gated recurrent units: states of the last layer, and last states of all.

    The arguments are those of `lstm`, with one tensor as `hx`; `nn.GRU` is the module.

    >>> import undertow as ut
    >>> x, h, weights = ut.zeros(5, 2, 3), ut.zeros(1, 2, 4), [ut.zeros(12, 3), ut.zeros(12, 4)]
    >>> out, h_n = ut.gru(x, h, weights, False, 1, 0.0, False, False, False)
    >>> out.shape, h_n.shape
    ((5, 2, 4), (1, 2, 4))
    """
    given = bound("gru", arguments, named)
    return _network("gru", "gru", h=given.pop("hx"), c=None, **given)[:2]


@overload
def rnn_tanh(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]: ...
@overload
def rnn_tanh(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor]: ...
@function(method=False)
def rnn_tanh(*arguments: Any, **named: Any) -> Any:
    """A plain recurrent network with tanh: states of the last layer, and last states of all.

    The arguments are those of `lstm`, with one tensor as `hx`; `nn.RNN` is the module.

    >>> import undertow as ut
    >>> x, h, weights = ut.ones(3, 1, 1), ut.zeros(1, 1, 1), [ut.ones(1, 1), ut.zeros(1, 1)]
    >>> ut.rnn_tanh(x, h, weights, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.7616]]])
    """
    given = bound("rnn_tanh", arguments, named)
    return _network("rnn_tanh", "tanh", h=given.pop("hx"), c=None, **given)[:2]


@overload
def rnn_relu(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]: ...
@overload
def rnn_relu(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor]: ...
@function(method=False)
def rnn_relu(*arguments: Any, **named: Any) -> Any:
    """A plain recurrent network with relu: states of the last layer, and last states of all.

    The arguments are those of `lstm`, with one tensor as `hx`; `nn.RNN` is the module.

    >>> import undertow as ut
    >>> x, h, weights = ut.ones(3, 1, 1), ut.zeros(1, 1, 1), [ut.ones(1, 1), ut.ones(1, 1)]
    >>> ut.rnn_relu(x, h, weights, False, 1, 0.0, False, False, False)[1]
    tensor([[[3.]]])
    """
    given = bound("rnn_relu", arguments, named)
    return _network("rnn_relu", "relu", h=given.pop("hx"), c=None, **given)[:2]


def _network(
    op: str,
    kind: str,
    h: Tensor,
    c: Tensor | None,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    input: Tensor | None = None,
    batch_first: bool = False,
    data: Tensor | None = None,
    batch_sizes: Tensor | None = None,
) -> Any:
    """All layers: the states of the last one, all last states, and an LSTM's last memories."""
    packing = None
    if data is not None and batch_sizes is not None:
        if data.ndim != 2:
            raise ShapeError(f"[{op}] packed data must be (rows, features), got {data.shape}")
        packing = Packing(op, batch_sizes, data.shape[0], data)
        x = packing.padded(data)
    else:
        assert input is not None
        x = input
        if x.ndim != 3:
            raise ShapeError(f"[{op}] input must have 3 dimensions, got shape {x.shape}")
        if batch_first:
            x = transpose(x, 0, 1)
    if not x.shape[0]:
        raise ShapeError(f"[{op}] a sequence needs at least one step, got input of {x.shape}")
    directions = 1 + bool(bidirectional)
    layers = by_layer(op, kind, list(params), bool(has_biases), num_layers * directions)
    check_states(op, h, c, len(layers), x.shape[1], layers)
    check_dtypes(op, x, h, c, *params)
    lengths = packing.lengths if packing is not None and packing.ragged else None
    first = unbind(h)
    memories = (None,) * len(first) if c is None else unbind(c)
    last_h: list[Tensor] = []
    last_c: list[Any] = []
    for level in range(num_layers):
        outs = []
        for way in range(directions):
            at = level * directions + way
            where_ = f" of layer {level}{' reversed' if way else ''}"
            check_weights(op, kind, layers[at], x.shape[2], h.shape[2], where_)
            given, more = (x, first[at], memories[at]), (lengths, way == 1)
            if layers[at].hr is None:
                w = layers[at]
                out, h_n, c_n = layer(kind, *given, w.ih, w.hh, w.b_ih, w.b_hh, *more)
            else:
                out, h_n, c_n = _projected(*given, layers[at], *more)
            outs.append(out)
            last_h.append(h_n)
            last_c.append(c_n)
        x = outs[0] if directions == 1 else cat(outs, 2)
        if dropout and train and level < num_layers - 1:
            x = _dropped(x, dropout)
    if packing is not None:
        x = packing.packed(x)
    elif batch_first:
        x = transpose(x, 0, 1)
    return x, stack(last_h), None if c is None else stack(last_c)


_dropped = dropout  # the name is an argument's above


def _projected(
    x: Tensor, h: Tensor, c: Any, weights: Weights, lengths: Tensor | None, reverse: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """One layer of an LSTM whose state is a product of what the cell gives: step by step."""
    assert weights.hr is not None
    count = x.shape[0]
    bias = None
    if weights.b_ih is not None and weights.b_hh is not None:
        bias = weights.b_ih + weights.b_hh
    of_steps = unbind(linear(x, weights.ih, bias))
    outs: list[Any] = [None] * count
    for t in range(count)[::-1] if reverse else range(count):
        i, f, g, o = chunk(of_steps[t] + linear(h, weights.hh), 4, 1)
        new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        new_h = linear(sigmoid(o) * tanh(new_c), weights.hr)
        if lengths is not None:
            active = (lengths > t).unsqueeze(1)
            new_h = where(active, new_h, h.to(new_h.dtype))  # autocast narrows products
            new_c = where(active, new_c, c)
        outs[t] = h = new_h
        c = new_c
    return stack(outs), h, c
