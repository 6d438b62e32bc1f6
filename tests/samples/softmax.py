"""Samples for `undertow.ops.nn.softmax`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, singular

NEVER = -np.inf


def softmax(x, dim=None, dtype=None):
    """Softmax by its definition, shifted."""
    x = np.asarray(x, dtype.numpy if dtype else None)
    if x.size == 0:
        return x
    axis = None if x.ndim == 0 else dim
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, dim=None, dtype=None):
    """The logarithm of the softmax, by logaddexp."""
    x = np.asarray(x, dtype.numpy if dtype else None)
    if x.ndim == 0:
        return np.zeros(())
    return x - np.logaddexp.reduce(x, axis=dim, keepdims=True) if x.size else x


def samples():
    """Every dim of awkward shapes, and rows that reach into the infinities."""
    return [
        S(arr(3, 4), 1),
        S(arr(3, 4), dim=0),
        S(arr(2, 3, 4), -2),
        S(arr(), 0),
        S(arr(), -1),
        S(arr(1, 3), 0),  # one element to choose from
        S(arr(0, 3), 1),
        S(arr(3, 0), 1),
        S(arr(4, 3).T, 1),
        S(arr(2, 6)[:, ::2], 1),
        S(ints(3, 4), 1, dtype=ut.float64),
        S(np.float32(arr(3, 4)), 1, dtype=ut.float64),
        S(Const([[1000.0, 0.0], [-1000.0, 1000.0], [NEVER, 3.0]]), 1),
    ]


def bad(name):
    """What every one of them refuses."""
    return [
        Bad(S(arr(3), 1), IndexError, rf"\[{name}\] dim 1"),
        Bad(S(ints(3), 0), TypeError, rf"\[{name}\].*int64"),
        Bad(S(arr(3) * 1j, 0), TypeError, rf"\[{name}\].*complex128"),
    ]


op("softmax", softmax, samples(), bad=bad("softmax"))
op("log_softmax", log_softmax, samples(), bad=bad("log_softmax"))
op(
    "nn.functional.softmin",
    lambda x, dim=None, dtype=None: softmax(-x, dim, dtype),
    samples()[:10],
    bad=bad("softmin"),
)
op(
    "nn.functional.gumbel_softmax",
    None,
    [
        S(arr(3, 4)),
        S(arr(2, 3), tau=0.5, dim=0),
        S(Const(arr(2, 3)), hard=True, dim=0),
        S(arr()),
        S(arr(0, 3)),
        S(arr(4, 3).T),
    ],
    torch=None,
    bad=[
        Bad(S(arr(3), tau=0), ut.errors.ArgumentError, r"\[gumbel_softmax\] tau.*0"),
        Bad(S(ints(3)), TypeError, r"\[gumbel_softmax\].*int64"),
    ],
)

# Rows that lean on infinity --------------------------------------------------------------------
_lean = np.array([[0.0, 0.0, -np.inf], [0.0, 0.0, 0.0]])
for _name in ("softmax", "log_softmax"):
    singular(_name, S(_lean[1:], 1), S(_lean[:1, :2], 1))
