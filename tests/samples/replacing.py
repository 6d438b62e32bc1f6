"""Samples for `undertow.ops.shape.replacing`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, ints, op

ArgumentError, BoundsError, DimError, ShapeError = (
    ut.errors.ArgumentError,
    ut.errors.BoundsError,
    ut.errors.DimError,
    ut.errors.ShapeError,
)


def replace(view):
    """A copy of the first argument whose view is set to the second."""

    def run(x, src, *args, **kwargs):
        out = np.array(x)
        view(out, *args, **kwargs)[...] = src
        return out

    return run


op(
    "select_scatter",
    replace(lambda x, dim, index: np.moveaxis(x, dim, 0)[index, ...]),
    [
        S(arr(2, 3), arr(3, seed=1), 0, 1),
        S(arr(2, 3), arr(2, seed=1), -1, -1),
        S(arr(3, 2).T, arr(2, seed=1), 1, 0),
        S(arr(2), arr(seed=1), 0, 0),
        S(arr(2, 3), ints(3), 0, 1),
    ],
    bad=[
        Bad(S(arr(2, 3), arr(2), 0, 1), ShapeError, r"\[select_scatter\].*\(3,\), got \(2,\)"),
        Bad(S(arr(2, 3), arr(3), 0, 2), BoundsError, r"index 2"),
        Bad(S(arr(2, 3), arr(3), 2, 0), DimError, r"dim 2"),
    ],
)


def np_slice(x, dim=0, start=None, end=None, step=1):
    """A slice along one dimension."""
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


op(
    "slice_scatter",
    replace(np_slice),
    [
        S(arr(4, 3), arr(2, 3, seed=1), 0, 1, 3),
        S(arr(2, 3), arr(2, 2, seed=1), 1, 0, 10, 2),
        S(arr(2, 3), arr(2, 1, seed=1), -1, -1),
        S(arr(2, 3), arr(2, 3, seed=1)),
        S(arr(3), arr(0), 0, 2, 1),
        S(arr(6), arr(2, seed=1), start=1, end=-1, step=3),
    ],
    bad=[
        Bad(S(arr(4), arr(3), 0, 0, 2), ShapeError, r"\[slice_scatter\].*\(2,\), got \(3,\)"),
        Bad(S(arr(4), arr(3), 0, 0, 2, 0), ArgumentError, r"\[slice_scatter\] step .* 0"),
        Bad(S(arr(), arr(3)), DimError, r"\[slice_scatter\]"),
    ],
)


def np_diagonal(x, offset=0, dim1=0, dim2=1):
    """A diagonal as a view that can be written."""
    view = np.diagonal(x, offset, dim1, dim2)
    view.flags.writeable = True
    return view


op(
    "diagonal_scatter",
    replace(np_diagonal),
    [
        S(arr(3, 3), arr(3, seed=1)),
        S(arr(2, 4), arr(2, seed=1), 1),
        S(arr(3, 2).T, arr(1, seed=1), -1),
        S(arr(2, 3, 4), arr(3, 2, seed=1), 0, 0, 2),
        S(arr(2, 2), arr(0), 5),
    ],
    bad=[
        Bad(S(arr(3, 3), arr(2)), ShapeError, r"\[diagonal_scatter\].*\(3,\), got \(2,\)"),
        Bad(S(arr(3, 3), arr(3), 0, 1, 1), ArgumentError, r"\[diagonal_scatter\].*differ"),
    ],
)


def np_as_strided(x, size, stride, storage_offset=0):
    """A view of memory by strides in elements."""
    memory = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,))
    return np.lib.stride_tricks.as_strided(
        memory[storage_offset:], size, [s * x.itemsize for s in stride]
    )


# torch 2.13 gives `input` the gradient of the replaced elements instead of the others'.
op(
    "as_strided_scatter",
    replace(np_as_strided),
    torch=None,
    samples=[
        S(arr(6), arr(2, seed=1), (2,), (3,)),
        S(arr(6), arr(2, 2, seed=1), (2, 2), (3, 1), 1),
    ],
    bad=[
        Bad(S(arr(6), arr(3), (2,), (3,)), ShapeError, r"\[as_strided_scatter\].*\(2,\)"),
        Bad(S(arr(6), arr(3), (3,), (3,)), BoundsError, r"\[as_strided_scatter\].*6"),
    ],
)
