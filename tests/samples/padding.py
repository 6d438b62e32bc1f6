"""Samples for `undertow.ops.shape.padding`."""

from __future__ import annotations

import math

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, bools, ints, op

SHAPE = ut.errors.ShapeError
ARGUMENT = ut.errors.ArgumentError
NUMPY = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def np_pad(x, pad, mode="constant", value=None):
    """NumPy's pad; what is cut off is cut off first where that matters (circular), else last."""
    if not x.ndim:
        return x
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]

    def cut(x):
        return x[
            tuple(
                slice(max(-low, 0), n - max(-high, 0))
                for n, (low, high) in zip(x.shape, pairs, strict=True)
            )
        ]

    more = {"constant_values": value or 0} if mode == "constant" else {}
    grown = [(max(low, 0), max(high, 0)) for low, high in pairs]
    if mode == "circular":
        return np.pad(cut(x), grown, "wrap")
    return cut(np.pad(x, grown, NUMPY[mode], **more))


EVERY = (
    [S(arr(2, 3, 5), (2, 1), mode) for mode in NUMPY]
    + [S(arr(2, 3, 5), (-1, 2), mode) for mode in NUMPY]
    + [S(arr(2, 4, 5), (2, 0, -1, 3), mode) for mode in NUMPY]
    + [S(arr(1, 2, 3, 4, 2), (1, 1, 3, 2, 0, 2), mode=mode) for mode in NUMPY]
    + [S(arr(2, 5, 3).transpose(0, 2, 1), [4, 4], mode) for mode in NUMPY]
    + [S(ints(2, 4), (1, 2), mode) for mode in NUMPY]
    + [S(arr(0, 2, 3), (1, 1), mode) for mode in NUMPY]
    + [S(arr(2, 4), (-1, -2), mode) for mode in NUMPY]
    + [S(arr(2, 4), (0, 0), mode) for mode in NUMPY]
)

op(
    "nn.functional.pad",
    np_pad,
    [
        *EVERY,
        S(arr(3), (1, 2), value=1.5),
        S(Const(arr(2, 3)), (1, 0, 2, 1), "constant", -math.inf),
        S(arr(2, 3), ()),
        S(arr(), ()),
        S(arr(2, 3), (-2, -1)),
        S(arr(2, 0), (1, 1), value=2.0),
        S(arr(3), (-3, 2)),
        S(ints(2, 3), (1, 1), value=7),
        S(bools(3), (1, 1), value=True),
        S(arr(1, 3), (7, 5), "replicate"),
        S(arr(1, 3), (3, 3), "circular"),
    ],
    bad=[
        Bad(S(arr(3), (1, 1, 1)), ARGUMENT, r"\[pad\].*\(low, high\).*\(1, 1, 1\)"),
        Bad(S(arr(3), (1, 1, 1, 1)), ARGUMENT, r"the 1 dimensions of \(3,\)"),
        Bad(S(arr(3), 2), ARGUMENT, r"got 2"),
        Bad(S(arr(3), (1, 1), "mirror"), ARGUMENT, r"constant, reflect.*'mirror'"),
        Bad(S(arr(2, 3), (-2, -2)), SHAPE, r"cuts more off \(2, 3\) than there is: \(2, -1\)"),
        Bad(S(arr(2, 3), (3, 0), "reflect"), SHAPE, r"reflect padding \(3, 0\).* 3 elements"),
        Bad(S(arr(2, 0), (1, 0), "replicate"), SHAPE, r"replicate.* 0 elements"),
        Bad(S(arr(2, 3), (0, 4), "circular"), SHAPE, r"circular.*more than once.*3 elements"),
        Bad(S(arr(2, 3), (-1, 3), "circular"), SHAPE, r"has 2 elements"),
        Bad(S(arr(2, 3), (1, 1), "reflect", 2.0), ARGUMENT, r"'reflect' takes no value, got 2.0"),
        Bad(S(arr(3), (1.5, 1)), ut.errors.DTypeError, r"pad must be an integer"),
        Bad(S(arr(3), (1, 1), value="x"), ut.errors.UndertowError, r"\[pad\]"),
    ],
)
