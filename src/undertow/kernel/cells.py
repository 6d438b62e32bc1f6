"""One step of each recurrent cell, as scalar expressions, and its slopes.

Note [cells]
A step takes the products of the input and of the state, one block of the layer's width for each
gate, to a new state `h`, and for an LSTM to a new memory `c`. What a backward needs of a step, its
`kept` blocks, are the values of the gates:

    tanh, relu   h = f(x + w)                                        kept: nothing, but for h itself
    lstm         i, f, o = sigmoid, g = tanh of x + w                kept: i, f, g, o
                 c' = f c + i g;  h = o tanh(c')
    gru          r, z = sigmoid(x + w);  n = tanh(xₙ + r wₙ)         kept: r, z, n, wₙ
                 h' = n + z (h - n)

The slopes are sums and products alone, written so that tensors can take the place of expressions:
that is the rule of any further order. `extra` are cotangents of the kept blocks themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .expr import Expr, arg, call, where

Slopes = tuple[tuple[Any, ...], tuple[Any, ...], Any, Any]


class Cell(NamedTuple):
    """A kind of cell; see Note [cells].

    `forward` takes the input's products, the state's, and the memory (lstm) or the state (gru); it
    gives the kept blocks, the memory if there is one, and the state. `backward` takes the
    cotangents of the state and of the memory, the kept blocks and what was `before` (lstm: the
    memory, gru: the state; else the state after the step); it gives the cotangents of the input's
    products, those of the state's where they are others, and those of the memory and the state
    before, unless the latter is zero but for what comes by way of the products.
    """

    gates: int
    kept: int
    memory: bool
    apart: bool  # the cotangents of the state's products are not those of the input's
    forward: tuple[Expr, ...]
    backward: tuple[Expr, ...]


def _sigmoid(x: Expr) -> Expr:
    return 1 / (1 + call("exp", -x))


def _tanh(x: Expr) -> Expr:
    return call("tanh", x)


def _lstm(x: Sequence[Expr], w: Sequence[Expr], c: Expr) -> tuple[Expr, ...]:
    i, f, g, o = (a + b for a, b in zip(x, w, strict=True))
    i, f, g, o = _sigmoid(i), _sigmoid(f), _tanh(g), _sigmoid(o)
    c = f * c + i * g
    return i, f, g, o, c, o * _tanh(c)


def _gru(x: Sequence[Expr], w: Sequence[Expr], h: Expr) -> tuple[Expr, ...]:
    r, z = _sigmoid(x[0] + w[0]), _sigmoid(x[1] + w[1])
    n = _tanh(x[2] + r * w[2])
    return r, z, n, w[2], n + z * (h - n)


def lstm_slopes(
    dh: Any,
    dc: Any,
    kept: Sequence[Any],
    before: Any,
    extra: Sequence[Any] = (0, 0, 0, 0),
    tanh: Callable[[Any], Any] = _tanh,
) -> Slopes:
    """Of the input's products, of the state's, of the memory, and of the state beside those."""
    i, f, g, o = kept
    after = tanh(f * before + i * g)
    dc = dc + dh * o * (1 - after * after)
    slopes = (
        _more(dc * g, extra[0]) * i * (1 - i),
        _more(dc * before, extra[1]) * f * (1 - f),
        _more(dc * i, extra[2]) * (1 - g * g),
        _more(dh * after, extra[3]) * o * (1 - o),
    )
    return slopes, slopes, dc * f, None


def gru_slopes(
    dh: Any,
    dc: Any,
    kept: Sequence[Any],
    before: Any,
    extra: Sequence[Any] = (0, 0, 0, 0),
    tanh: Callable[[Any], Any] = _tanh,
) -> Slopes:
    """As `lstm_slopes`."""
    r, z, n, w = kept
    dn = _more(dh * (1 - z), extra[2]) * (1 - n * n)
    dz = _more(dh * (before - n), extra[1]) * z * (1 - z)
    dr = _more(dn * w, extra[0]) * r * (1 - r)
    return (dr, dz, dn), (dr, dz, _more(dn * r, extra[3])), None, dh * z


def tanh_slopes(dh: Any, dc: Any, kept: Sequence[Any], after: Any, *unused: Any) -> Slopes:
    """As `lstm_slopes`."""
    slopes = (dh * (1 - after * after),)
    return slopes, slopes, None, None


def relu_slopes(dh: Any, dc: Any, kept: Sequence[Any], after: Any, *unused: Any) -> Slopes:
    """As `lstm_slopes`, of expressions."""
    slopes = (where(after > 0, dh, 0),)
    return slopes, slopes, None, None


def _more(slope: Any, extra: Any) -> Any:
    return slope if extra is None or extra.__class__ is int else slope + extra


def _cell(
    gates: int, kept: int, memory: bool, step: Callable[..., Any], slopes: Callable[..., Slopes]
) -> Cell:
    x, w = ([arg(k + i) for i in range(gates)] for k in (0, gates))
    forward = step(x, w, arg(2 * gates))
    first = 1 + memory
    blocks = [arg(first + i) for i in range(kept)]
    by_x, by_w, dc, dh = slopes(arg(0), arg(1) if memory else None, blocks, arg(first + kept))
    apart = by_x is not by_w
    backward = (*by_x, *(by_w if apart else ()), *([dc] if memory else []))
    if dh is not None:
        backward = (*backward, dh)
    return Cell(gates, kept, memory, apart, forward, backward)


CELLS: dict[str, Cell] = {
    "lstm": _cell(4, 4, True, _lstm, lstm_slopes),
    "gru": _cell(3, 4, False, _gru, gru_slopes),
    "tanh": _cell(1, 0, False, lambda x, w, h: (_tanh(x[0] + w[0]),), tanh_slopes),
    "relu": _cell(1, 0, False, lambda x, w, h: (call("maximum", x[0] + w[0], 0),), relu_slopes),
}
