"""Samples for `undertow.ops.nn.recurrent`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, op

ArgumentError, DTypeError, ShapeError = (
    ut.errors.ArgumentError,
    ut.errors.DTypeError,
    ut.errors.ShapeError,
)
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


# The definitions, one sequence and one step at a time -------------------------------------------
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, h, c, w_ih, w_hh, b_ih=0.0, b_hh=0.0, w_hr=None):
    """The state and the memory of one sequence after one step."""
    a, b = w_ih @ x + b_ih, w_hh @ h + b_hh
    if kind == "lstm":
        i, f, g, o = np.split(a + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h if w_hr is None else w_hr @ h), c
    if kind == "gru":
        (r, z, n), (r_h, z_h, n_h) = np.split(a, 3), np.split(b, 3)
        r, z = sigmoid(r + r_h), sigmoid(z + z_h)
        n = np.tanh(n + r * n_h)
        return (1 - z) * n + z * h, c
    return (np.tanh if kind == "rnn_tanh" else lambda v: np.maximum(v, 0))(a + b), c


def sequence(kind, xs, h, c, weights, reverse):
    """All states of one sequence in one direction, the last one and the last memory."""
    states = [None] * len(xs)
    for t in range(len(xs))[::-1] if reverse else range(len(xs)):
        h, c = step(kind, xs[t], h, c, *weights)
        states[t] = h
    return np.array(states), h, c


def network(kind, sequences, h, c, params, biased, layers, bidirectional):
    """The states of each sequence in the last layer, and all last states and memories."""
    directions = 1 + bidirectional
    each = len(params) // (layers * directions)
    last_h, last_c = np.empty_like(h), np.empty_like(c)
    for n, xs in enumerate(sequences):
        for layer in range(layers):
            outs = []
            for way in range(directions):
                at = layer * directions + way
                ih, hh, *rest = params[at * each : (at + 1) * each]
                biases, w_hr = (rest[:2], rest[2:]) if biased else ((0.0, 0.0), rest)
                weights = (ih, hh, *biases, *w_hr)
                found = sequence(kind, xs, h[at, n], c[at, n], weights, bool(way))
                outs.append(found[0])
                last_h[at, n], last_c[at, n] = found[1:]
            xs = np.concatenate(outs, 1)
        sequences[n] = xs
    return sequences, last_h, last_c


def reference(kind):
    def run(*args):
        packed = not isinstance(args[3], bool)
        x, *args = args
        sizes = args.pop(0) if packed else None
        hx, params, biased, layers, _, _, bidirectional, *first = args
        h, c = hx if kind == "lstm" else (hx, np.zeros_like(hx))
        if packed:
            starts = np.cumsum([0, *sizes])
            batch = [
                np.array([x[s + n] for s, size in zip(starts, sizes, strict=False) if n < size])
                for n in range(sizes[0])
            ]
        else:
            batch = list(x if first[0] else x.swapaxes(0, 1))
        batch, h, c = network(
            kind, batch, h.copy(), c.copy(), params, biased, layers, bidirectional
        )
        if packed:
            out = np.array([batch[n][t] for t, size in enumerate(sizes) for n in range(size)])
        else:
            out = np.array(batch) if first[0] else np.array(batch).swapaxes(0, 1)
        return (out, h, c) if kind == "lstm" else (out, h)

    return run


# Samples ----------------------------------------------------------------------------------------
def weights(kind, features, size, layers=1, directions=1, biased=True, projected=0):
    """Parameters in the order of torch's."""
    rows, state = GATES[kind] * size, projected or size
    found = []
    for layer in range(layers):
        for _ in range(directions):
            wide = state * directions if layer else features
            shapes = [(rows, wide), (rows, state), *([(rows,), (rows,)] if biased else [])]
            shapes += [(state, size)] if projected else []
            found += [arr(*s, seed=len(found) + i) * 0.6 for i, s in enumerate(shapes)]
    return found


def states(kind, count, batch, size, memory=None):
    h, c = arr(count, batch, size, seed=51), arr(count, batch, memory or size, seed=52)
    return (h, c) if kind == "lstm" else h


def samples(kind):
    x = arr(3, 2, 2, seed=50)
    no_more = (0.0, False, False, False)
    yield S(x, states(kind, 1, 2, 3), weights(kind, 2, 3), True, 1, *no_more)
    yield S(x, states(kind, 1, 2, 2), weights(kind, 2, 2, biased=False), False, 1, *no_more)
    deep = weights(kind, 2, 2, 2, 2)
    yield S(x, states(kind, 4, 3, 2), deep, True, 2, 0.0, True, True, True)  # batch first
    yield S(x[:1], states(kind, 1, 2, 1), weights(kind, 2, 1), True, 1, *no_more)  # one step
    # Packed: lengths 3, 2 and 1, then three alike.
    ragged, equal = np.array([3, 2, 1]), np.array([3, 3])
    data = arr(6, 2, seed=50)
    yield S(data, ragged, states(kind, 1, 3, 2), weights(kind, 2, 2), True, 1, 0.0, False, False)
    yield S(data, ragged, states(kind, 4, 3, 2), deep, True, 2, 0.0, False, True)
    yield S(data, equal, states(kind, 1, 3, 2), weights(kind, 2, 2), True, 1, 0.0, False, False)
    if kind == "lstm":
        narrow = weights(kind, 2, 3, 2, 2, projected=2)
        yield S(x, states(kind, 4, 2, 2, 3), narrow, True, 2, 0.0, False, True, False)
        yield S(data, ragged, states(kind, 4, 3, 2, 3), narrow, True, 2, 0.0, False, True)


def bad(kind):
    x, h = arr(3, 2, 2), states(kind, 1, 2, 3)
    good = weights(kind, 2, 3)
    rest = (True, 1, 0.0, False, False, False)
    yield Bad(S(x[0], h, good, *rest), ShapeError, rf"\[{kind}\] input must have 3 dimensions")
    yield Bad(S(x[:0], h, good, *rest), ShapeError, "at least one step")
    yield Bad(S(x[:, :1], h, good, *rest), ShapeError, r"hx must be .*\(1, 1, size\)")
    yield Bad(S(x[:, :, :1], h, good, *rest), ShapeError, r"w_ih of layer 0 must be .*1 features")
    yield Bad(S(x, h, good[:2], *rest), ArgumentError, "need 4 weights, got 2")
    yield Bad(S(x, h, [*good[:3], good[3][:1]], *rest), ShapeError, "b_hh of layer 0 must be")
    yield Bad(S(x.astype("f"), h, good, *rest), DTypeError, "one dtype, got .*32 and .*64")
    yield Bad(S(x.astype("l"), h, good, *rest), DTypeError, "input must be floating")
    yield Bad(S(x, h, good, True, 1), ArgumentError, "got 5 arguments")
    data, more = arr(6, 2), (good, True, 1, 0.0, False, False)
    for sizes in ([3, 2, 2], [2, 3, 1], [6, 0], []):
        given = np.array(sizes, np.int64)
        yield Bad(S(data, given, h, *more), ArgumentError, "batch_sizes must be at least one")
    yield Bad(S(data, arr(3), h, *more), DTypeError, "batch_sizes must be integers")
    yield Bad(S(arr(6, 2, 2), np.array([3, 3]), h, *more), ShapeError, "packed data must be")
    if kind == "lstm":
        yield Bad(S(x, h[0], good, *rest), ArgumentError, "hx must be a pair")
        yield Bad(S(x, (h[0], h[1][..., :1]), good, *rest), ShapeError, "memory must have size 3")


for name in GATES:
    op(name, reference(name), samples(name), bad=list(bad(name)))


def cell_reference(kind):
    def run(x, hx, *weights):
        h, c = hx if kind == "lstm" else (hx, hx)
        rows = [step(kind, *row, *weights) for row in zip(x, h, c, strict=True)]
        h, c = (np.array(part).reshape(h.shape) for part in zip(*rows, strict=True))
        return (h, c) if kind == "lstm" else h

    return run


def cell_samples(kind):
    def hx(batch, size):
        found = states(kind, 1, batch, size)
        return tuple(t[0] for t in found) if kind == "lstm" else found[0]

    yield S(arr(3, 2), hx(3, 2), *weights(kind, 2, 2))
    yield S(arr(3, 2), hx(3, 2), *weights(kind, 2, 2, biased=False))
    yield S(arr(2, 1).T, hx(1, 3), *weights(kind, 2, 3))  # non-contiguous


def cell_bad(kind):
    h = arr(3, 2)
    hx = (h, h) if kind == "lstm" else h
    more = weights(kind, 2, 2)
    yield Bad(S(arr(3), hx, *more), ShapeError, r"input must be \(batch, features\)")
    yield Bad(S(arr(2, 2), hx, *more), ShapeError, r"hx must be \(2, 2\)")
    yield Bad(S(arr(3, 4), hx, *more), ShapeError, "w_ih must be .* input of 4 features")
    yield Bad(S(ints_like(arr(3, 2)), hx, *more), DTypeError, "input must be floating")


def ints_like(x):
    return x.astype(np.int64)


for kind in GATES:
    op(f"{kind}_cell", cell_reference(kind), cell_samples(kind), bad=list(cell_bad(kind)))
