"""Samples for `undertow.ops.shape.rearrange`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, ints, op

ShapeError, DimError = ut.errors.ShapeError, ut.errors.DimError
ArgumentError = ut.errors.ArgumentError

op(
    "flip",
    lambda x, dims: np.flip(x, dims) if x.ndim else x,
    [
        S(arr(2, 3), (0,)),
        S(arr(2, 3), (0, -1)),
        S(arr(2, 3), ()),
        S(arr(0, 3), (0,)),
        S(arr(), (0,)),
        S(arr(4, 3).T, (1,)),
        S(arr(2, 3), dims=(1,)),
        S(bools(3), (0,)),
    ],
    bad=[
        Bad(S(arr(2, 3), (2,)), DimError, r"\[flip\] dim 2"),
        Bad(S(arr(2, 3), (0, 0)), ArgumentError, r"\[flip\].*twice"),
    ],
)
op(
    "fliplr",
    np.fliplr,
    [S(arr(2, 3)), S(arr(2, 3, 2))],
    bad=[Bad(S(arr(3)), DimError, r"\[fliplr\].*got 1")],
)
op(
    "flipud",
    np.flipud,
    [S(arr(3)), S(arr(2, 3))],
    bad=[Bad(S(arr()), DimError, r"\[flipud\].*got 0")],
)
op(
    "roll",
    lambda x, shifts, dims=None: np_roll(x, shifts, dims),
    [
        S(arr(2, 3), 1),
        S(arr(2, 3), 1, 0),
        S(arr(2, 3), -4, 1),
        S(arr(2, 3), (1, 2), (0, 1)),
        S(arr(2, 3), (1, 2), (1, 1)),
        S(arr(2, 3), 3, 1),
        S(arr(0, 3), 1, 0),
        S(arr(0, 3), 1),
        S(arr(), 1),
        S(arr(4, 3).T, 2, 0),
        S(arr(2, 3), shifts=1, dims=-1),
        S(ints(4), 1),
    ],
    bad=[
        Bad(S(arr(2, 3), (1, 2)), ArgumentError, r"\[roll\] 2 shifts \(1, 2\)"),
        Bad(S(arr(2, 3), (1,), (0, 1)), ArgumentError, r"\[roll\] 1 shifts"),
        Bad(S(arr(2, 3), 1, 2), DimError, r"\[roll\] dim 2"),
    ],
)


def np_roll(x, shifts, dims):
    """NumPy's roll; it shifts a dimension that is named twice twice, as torch does."""
    return np.roll(x, shifts, dims)


op(
    "rot90",
    lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
    [S(arr(2, 3), k) for k in (-1, 0, 1, 2, 3, 5)]
    + [S(arr(2, 3, 4), 1, (2, 0)), S(arr(2, 3)), S(arr(2, 3, 4), 1, dims=(-1, 1))],
    bad=[
        Bad(S(arr(3)), ArgumentError, r"\[rot90\].*\(0, 1\) of 1"),
        Bad(S(arr(3, 3), 1, (0, 0)), ArgumentError, r"\[rot90\].*differ, got \(0, 0\)"),
        Bad(S(arr(3, 3), 1, (0, 2)), DimError, r"\[rot90\] dim 2"),
    ],
)
op(
    "Tensor.repeat",
    lambda x, *repeats: np.tile(x, () if repeats == ((),) else repeats),
    [
        S(arr(2, 3), 2, 2),
        S(arr(3), 2, 3),
        S(arr(), 2),
        S(arr(2, 3), 1, 1),
        S(arr(2, 3), 0, 2),
        S(arr(3, 2).T, 1, 2),
        S(arr(0, 2), 2, 2),
        S(arr(), ()),
        S(ints(2), 3),
    ],
    bad=[
        Bad(S(arr(2, 3), 2), ShapeError, r"\[repeat\].*2 dimensions.*\(2,\).*tile"),
        Bad(S(arr(2), -1), ArgumentError, r"\[repeat\].*negative, got \(-1,\)"),
    ],
)
op(
    "tile",
    lambda x, dims: np.tile(x, dims),
    [
        S(arr(2, 3), (2,)),
        S(arr(2, 3), (2, 1, 2)),
        S(arr(), (2,)),
        S(arr(2, 3), ()),
        S(arr(2, 3), dims=(1, 2)),
    ],
    bad=[Bad(S(arr(2), (-1,)), ArgumentError, r"\[tile\].*negative, got \(-1,\)")],
)
