"""Samples for `undertow.ops.shape.strided`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, op

ArgumentError, BoundsError, DimError, DTypeError, ShapeError = (
    ut.errors.ArgumentError,
    ut.errors.BoundsError,
    ut.errors.DimError,
    ut.errors.DTypeError,
    ut.errors.ShapeError,
)


def np_as_strided(x, size, stride, storage_offset=0):
    """A view of the memory of a dense array by strides in elements."""
    x = x.copy(order="K")
    memory = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,))
    return np.lib.stride_tricks.as_strided(
        memory[storage_offset:], size, [s * x.itemsize for s in stride]
    )


op(
    "as_strided",
    np_as_strided,
    [
        S(arr(6), (2, 2), (2, 1)),
        S(arr(6), (3, 3), (1, 1), 1),  # overlapping output
        S(arr(4, 3).T, (2, 3), (3, 1), 2),
        S(arr(6), (2, 3), (0, 1)),
        S(arr(6), (0, 2), (1, 1)),
        S(arr(6), (), ()),
        S(arr(2, 3), size=(2,), stride=(5,), storage_offset=0),
        S(arr(), (1,), (7,)),
    ],
    bad=[
        Bad(S(arr(6), (2,), (6,)), BoundsError, r"\[as_strided\].*element 6 of a storage of 6"),
        Bad(S(arr(6), (2,), (-1,)), ArgumentError, r"\[as_strided\].*\(-1,\)"),
        Bad(S(arr(6), (2, 2), (1,)), ArgumentError, r"\[as_strided\] takes as many"),
    ],
)


def np_unfold(x, dimension, size, step):
    """All windows, by NumPy."""
    if not x.ndim:
        return x.reshape(1)[:size]
    if size == 0:
        shape = list(x.shape)
        shape[dimension] = shape[dimension] // step + 1
        return np.zeros((*shape, 0))
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dimension)
    return windows[(slice(None),) * (dimension % x.ndim) + (slice(None, None, step),)]


op(
    "Tensor.unfold",
    np_unfold,
    [
        S(arr(7), 0, 3, 2),
        S(arr(7), 0, 2, 3),
        S(arr(7), 0, 7, 1),
        S(arr(3, 5), 1, 3, 1),
        S(arr(5, 3), 0, 2, 1),
        S(arr(5, 3).T, -1, 4, 1),
        S(arr(), 0, 1, 1),
        S(arr(3), 0, 0, 1),
        S(arr(2, 6, 2), 1, 5, 2),
        S(arr(3), dimension=0, size=1, step=5),
    ],
    bad=[
        Bad(S(arr(3), 0, 4, 1), ArgumentError, r"\[unfold\].*3.*got size 4"),
        Bad(S(arr(3), 0, 1, 0), ArgumentError, r"\[unfold\].*step 0"),
        Bad(S(arr(3), 1, 1, 1), DimError, r"\[unfold\] dimension 1"),
    ],
)
