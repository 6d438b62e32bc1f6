"""Recurrent networks: single cells, and stacks of layers in one or both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError
from ..kernel.cells import CELLS
from .comparison import where
from .composite import linear
from .dropout import dropout
from .joining import cat, chunk, stack, unbind
from .matmul import product
from .movement import transpose
from .packing import Packing
from .recurrent_layer import layer
from .transcendental import sigmoid, tanh


class _Weights(NamedTuple):
    """The weights of one layer in one direction."""

    ih: Tensor
    hh: Tensor
    b_ih: Tensor | None
    b_hh: Tensor | None
    hr: Tensor | None = None  # the projection of an LSTM's state


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
    h, c = _pair("lstm_cell", hx)
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
    if not _fits(kind, x, h, c, w_ih, w_hh, b_ih, b_hh):
        _complain(op, kind, x, h, c, _Weights(w_ih, w_hh, b_ih, b_hh))
    out, _, c = layer(kind, x, h, c, w_ih, w_hh, b_ih, b_hh)
    return out, c


def _fits(kind: str, x: Tensor, h: Tensor, c: Tensor | None, *weights: Tensor | None) -> bool:
    """Whether a cell's arguments are what they should be, at little cost."""
    first, state = x._array, h._array
    if len(first.shape) != 2 or len(state.shape) != 2 or first.dtype.kind != "f":
        return False
    (batch, features), (_, size), dtype = first.shape, state.shape, first.dtype
    rows = CELLS[kind].gates * size
    wanted = ((rows, features), (rows, size), (rows,), (rows,), (batch, size), (batch, size))
    for t, shape in zip((*weights, h, c), wanted, strict=True):
        if t is not None and (t._array.shape != shape or t._array.dtype != dtype):
            return False
    return True


def _complain(
    op: str, kind: str, x: Tensor, h: Tensor, c: Tensor | None, weights: _Weights
) -> None:
    """Raise what is wrong with a cell's arguments, if anything is."""
    for name, t in (("input", x), ("hx", h), ("hx[1]", c)):
        if t is not None and t.ndim != 2:
            raise ShapeError(f"[{op}] {name} must be (batch, features), got shape {t.shape}")
    size = h.shape[1]
    _check_weights(op, kind, weights, x.shape[1], size, "")
    for name, t, fits in (("hx", h, (x.shape[0], size)), ("hx[1]", c, h.shape)):
        if t is not None and t.shape != fits:
            raise ShapeError(f"[{op}] {name} must be {tuple(fits)}, got shape {t.shape}")
    _check_dtypes(op, x, h, c, *weights)


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
    given = _bound("lstm", arguments, named)
    h, c = _pair("lstm", given.pop("hx"))
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
    given = _bound("gru", arguments, named)
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
    given = _bound("rnn_tanh", arguments, named)
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
    given = _bound("rnn_relu", arguments, named)
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
    layers = _weights(op, kind, list(params), bool(has_biases), num_layers * directions)
    _check_states(op, h, c, len(layers), x.shape[1], layers)
    _check_dtypes(op, x, h, c, *params)
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
            _check_weights(op, kind, layers[at], x.shape[2], h.shape[2], where_)
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
    x: Tensor, h: Tensor, c: Any, weights: _Weights, lengths: Tensor | None, reverse: bool
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
        i, f, g, o = chunk(of_steps[t] + product(h, weights.hh, False, True), 4, 1)
        new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        new_h = product(sigmoid(o) * tanh(new_c), weights.hr, False, True)
        if lengths is not None:
            active = (lengths > t).unsqueeze(1)
            new_h, new_c = where(active, new_h, h), where(active, new_c, c)
        outs[t] = h = new_h
        c = new_c
    return stack(outs), h, c


# Arguments -----------------------------------------------------------------------------------
_SHARED = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", *_SHARED, "batch_first")
_PACKED = ("data", "batch_sizes", *_SHARED)


def _bound(op: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name: of padded sequences, or of packed ones."""
    flagged = len(arguments) > 3 and not isinstance(arguments[3], bool)
    names = _PACKED if flagged or "batch_sizes" in named else _PADDED
    given = dict(zip(names, arguments, strict=False)) | named
    if len(arguments) > len(names) or set(given) != set(names):
        raise ArgumentError(
            f"[{op}] expects ({', '.join(_PADDED)}) or, of packed sequences, "
            f"({', '.join(_PACKED)}), got {len(arguments)} arguments"
            + (f" and {', '.join(named)}" if named else "")
        )
    return given


def _pair(op: str, hx: Any) -> tuple[Tensor, Tensor]:
    if isinstance(hx, Tensor) or not isinstance(hx, Sequence) or len(hx) != 2:
        got = f"a tensor of shape {hx.shape}" if isinstance(hx, Tensor) else repr(hx)
        raise ArgumentError(f"[{op}] hx must be a pair of tensors, state and memory, got {got}")
    return hx[0], hx[1]


def _weights(op: str, kind: str, params: list[Tensor], biased: bool, count: int) -> list[_Weights]:
    """The weights of all layers, both directions of each in turn."""
    each = 4 if biased else 2
    projected = kind == "lstm" and count > 0 and len(params) == (each + 1) * count
    if not projected and len(params) != each * count:
        raise ArgumentError(
            f"[{op}] {count} layers and directions {'with' if biased else 'without'} biases need "
            f"{each * count} weights, got {len(params)}"
        )
    size = each + projected
    found = []
    for i in range(0, len(params), size):
        mine = params[i : i + size]
        b_ih, b_hh = mine[2:4] if biased else (None, None)
        found.append(_Weights(mine[0], mine[1], b_ih, b_hh, mine[-1] if projected else None))
    return found


def _check_weights(
    op: str, kind: str, weights: _Weights, features: int, size: int, where_: str
) -> None:
    """Whether weights fit an input of so many features and states of a size."""
    width = size if weights.hr is None else weights.hr.shape[-1]
    rows = CELLS[kind].gates * width
    fits = ((rows, features), (rows, size), (rows,), (rows,), (size, width))
    names = ("w_ih", "w_hh", "b_ih", "b_hh", "w_hr")
    for name, weight, shape in zip(names, weights, fits, strict=True):
        if weight is not None and weight.shape != shape:
            raise ShapeError(
                f"[{op}] {name}{where_} must be {shape} for an input of {features} features and a "
                f"state of {size}, got shape {weight.shape}"
            )


def _check_states(
    op: str, h: Tensor, c: Tensor | None, count: int, batch: int, layers: list[_Weights]
) -> None:
    of = layers[0].hr
    for name, t, size in (("hx", h, None), ("hx[1]", c, None if of is None else of.shape[-1])):
        if t is not None and (t.ndim != 3 or t.shape[:2] != (count, batch)):
            raise ShapeError(
                f"[{op}] {name} must be (layers * directions, batch, size), here ({count}, {batch},"
                f" {'size' if size is None else size}), got shape {t.shape}"
            )
    if c is not None and c.shape[2] != (h.shape[2] if of is None else of.shape[-1]):
        raise ShapeError(
            f"[{op}] the memory must have size {h.shape[2] if of is None else of.shape[-1]}, got "
            f"shape {c.shape}"
        )


def _check_dtypes(op: str, x: Tensor, *others: Tensor | None) -> None:
    if not x.is_floating_point():
        raise DTypeError(f"[{op}] input must be floating, got {x.dtype}; convert it with .float()")
    for t in others:
        if t is not None and t.dtype is not x.dtype:
            raise DTypeError(
                f"[{op}] input, states and weights need one dtype, got {x.dtype} and {t.dtype}"
            )
