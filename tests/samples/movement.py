"""Samples for `undertow.ops.shape.movement`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, ints, op

ShapeError, DimError = ut.errors.ShapeError, ut.errors.DimError
ArgumentError, BoundsError = ut.errors.ArgumentError, ut.errors.BoundsError


def shape_of(given):
    """A shape given as `2, 3` or `(2, 3)`."""
    return given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


# The same elements in another shape ------------------------------------------------------------
op(
    "reshape",
    lambda x, shape: np.reshape(x, shape),
    [
        S(arr(2, 6), (3, 4)),
        S(arr(2, 6), (-1,)),
        S(arr(2, 6), (2, 6)),
        S(arr(), (1, 1)),
        S(arr(1), ()),
        S(arr(4, 3).T, (2, 6)),
        S(arr(2, 8)[:, ::2], (2, 2, -1)),
        S(arr(0, 3), (3, 0)),
        S(arr(2, 6), shape=(4, 3)),
        S(ints(2, 3), (3, 2)),
        S(bools(4), (2, 2)),
    ],
    bad=[
        Bad(S(arr(2, 3), (4, 2)), ShapeError, r"\[reshape\] shape \(4, 2\) holds 8 .* got 6"),
        Bad(S(arr(2, 3), (-1, -1)), ShapeError, r"\[reshape\].*at most one -1"),
        Bad(S(arr(2, 3), (-1, 4)), ShapeError, r"\[reshape\] cannot infer"),
        Bad(S(arr(0, 3), (-1, 0)), ShapeError, r"\[reshape\] cannot infer"),
        Bad(S(arr(2, 3), (2.0, 3)), TypeError, r"\[reshape\].*integer.*2\.0"),
    ],
)
op(
    "Tensor.view",
    lambda x, *shape: np.reshape(x, shape_of(shape)),
    [
        S(arr(2, 6), 3, 4),
        S(arr(2, 6), (3, -1)),
        S(arr(2, 6), 12),
        S(arr(), 1),
        S(arr(1), ()),
        S(arr(4, 3).T, 3, 2, 2),
        S(arr(0, 3), 3, 0),
        S(arr(3, 8)[:, ::2], 3, 2, 2),
    ],
    bad=[
        Bad(
            S(arr(4, 3).T, 12),
            ShapeError,
            r"\[view\].*shape \(3, 4\) with strides \(1, 3\).*\(12,\).*reshape.*contiguous",
        ),
        Bad(S(arr(4), 3), ShapeError, r"\[view\] shape \(3,\) holds 3"),
        Bad(S(ints(3), ut.complex128), ShapeError, r"\[view\].*int64.*complex128"),
    ],
)
op(
    "Tensor.view_as",
    lambda x, other: x.reshape(other.shape),
    [S(arr(2, 6), ints(3, 4)), S(arr(), ints(1, 1))],
    bad=[Bad(S(arr(4), ints(3)), ShapeError, r"\[view_as\] shape \(3,\)")],
)
op(
    "Tensor.reshape_as",
    lambda x, other: x.reshape(other.shape),
    [S(arr(2, 6), ints(3, 4)), S(arr(6, 2).T, ints(4, 3))],
    bad=[Bad(S(arr(4), ints(3)), ShapeError, r"\[reshape_as\] shape \(3,\)")],
)


def np_flatten(x, start_dim=0, end_dim=-1):
    """Dimensions joined, by NumPy."""
    shape = x.shape or (1,)
    end = end_dim % len(shape) + 1
    start = start_dim % len(shape)
    return x.reshape(*shape[:start], int(np.prod(shape[start:end])), *shape[end:])


op(
    "flatten",
    np_flatten,
    [
        S(arr(2, 3, 4)),
        S(arr(2, 3, 4), 1),
        S(arr(2, 3, 4), 0, 1),
        S(arr(2, 3, 4), -2, -1),
        S(arr(2, 3, 4), 1, 1),
        S(arr()),
        S(arr(3)),
        S(arr(4, 3).T),
        S(arr(0, 3, 2), 1),
    ],
    bad=[
        Bad(S(arr(2, 3), 1, 0), ArgumentError, r"\[flatten\] start_dim 1 .* end_dim 0"),
        Bad(S(arr(2, 3), 2), DimError, r"\[flatten\] start_dim 2"),
    ],
)
op("ravel", np.ravel, [S(arr(2, 3)), S(arr()), S(arr(4, 3).T), S(arr(0, 2))])
op(
    "unflatten",
    lambda x, dim, sizes: np_unflatten(x, dim, sizes),
    [
        S(arr(2, 12), 1, (3, 4)),
        S(arr(12, 2), -2, (3, -1)),
        S(arr(4), 0, (4,)),
        S(arr(0), 0, (0, 3)),
        S(arr(6, 4).T, 1, (2, 3)),
        S(arr(3, 4), dim=1, sizes=(2, 2, 1)),
    ],
    bad=[
        Bad(S(arr(4), 0, (3, -1)), ShapeError, r"\[unflatten\].*4 elements"),
        Bad(S(arr(4), 0, ()), ArgumentError, r"\[unflatten\].*at least one"),
        Bad(S(arr(), 0, (1,)), DimError, r"\[unflatten\].*0 dimensions"),
        Bad(S(arr(4), 1, (2, 2)), DimError, r"\[unflatten\] dim 1"),
    ],
)


def np_unflatten(x, dim, sizes):
    """One dimension split, by NumPy."""
    d = dim % x.ndim
    part = np.empty(x.shape[d]).reshape(sizes).shape
    return x.reshape(*x.shape[:d], *part, *x.shape[d + 1 :])


def np_squeeze(x, dim=None):
    """Only those that have size 1, by NumPy."""
    if dim is None:
        return np.squeeze(x)
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    if not x.ndim:
        return x
    return np.squeeze(x, tuple(d % x.ndim for d in dims if x.shape[d] == 1))


op(
    "squeeze",
    np_squeeze,
    [
        S(arr(1, 3, 1)),
        S(arr(1, 3, 1), 0),
        S(arr(1, 3, 1), 1),
        S(arr(1, 3, 1), (0, -1)),
        S(arr(1, 3, 1), (0, 1)),
        S(arr()),
        S(arr(), 0),
        S(arr(3, 1, 4).T),
        S(arr(1, 0)),
        S(arr(1, 3), ()),
        S(arr(1, 3, 1), dim=-1),
    ],
    bad=[
        Bad(S(arr(1, 3), 2), DimError, r"\[squeeze\] dim 2"),
        Bad(S(arr(1, 1), (0, 0)), ArgumentError, r"\[squeeze\].*twice"),
    ],
)
op(
    "unsqueeze",
    lambda x, dim: np.expand_dims(x, dim),
    [
        S(arr(2, 3), 0),
        S(arr(2, 3), 2),
        S(arr(2, 3), -1),
        S(arr(2, 3), -3),
        S(arr(), 0),
        S(arr(3, 2).T, 1),
        S(arr(0), 0),
    ],
    bad=[Bad(S(arr(2, 3), 3), DimError, r"\[unsqueeze\] dim 3")],
)

# The dimensions in another order ---------------------------------------------------------------
op(
    "permute",
    lambda x, dims: np.transpose(x, dims),
    [
        S(arr(2, 3, 4), (2, 0, 1)),
        S(arr(2, 3, 4), (-1, 1, 0)),
        S(arr(), ()),
        S(arr(2, 0), (1, 0)),
        S(arr(2, 3, 4), dims=(1, 2, 0)),
        S(arr(4, 3).T, (1, 0)),
    ],
    bad=[
        Bad(S(arr(2, 3), (0,)), ArgumentError, r"\[permute\] dims \(0,\).*2 dimensions"),
        Bad(S(arr(2, 3), (0, 0)), ArgumentError, r"\[permute\] dims \(0, 0\)"),
        Bad(S(arr(2, 3), (0, 2)), DimError, r"\[permute\] dim 2"),
    ],
)


def np_swap(x, a, b):
    """Two dimensions exchanged; a zero-dimensional tensor as it is."""
    return np.swapaxes(x, a, b) if x.ndim else x


SWAPS = [
    S(arr(2, 3, 4), 0, 2),
    S(arr(2, 3, 4), -1, 1),
    S(arr(2, 3), 1, 1),
    S(arr(), 0, -1),
    S(arr(3), 0, 0),
    S(arr(0, 3), 0, 1),
    S(arr(4, 3).T, 0, 1),
]
for _name in ("transpose", "swapaxes", "swapdims"):
    op(
        _name,
        np_swap,
        SWAPS,
        inplace=False,
        bad=[
            Bad(S(arr(2, 3), 0, 2), DimError, rf"\[{_name}\] dim1 2"),
            Bad(S(arr(2, 3), 0, 1.5), TypeError, rf"\[{_name}\] \w+1.*1\.5"),
        ],
    )
op(
    "t",
    np.transpose,
    [S(arr(2, 3)), S(arr(3)), S(arr()), S(arr(0, 2)), S(arr(4, 3).T)],
    inplace=False,
    bad=[Bad(S(arr(2, 3, 4)), DimError, r"\[t\].*at most 2 dimensions, got 3")],
)
op(
    "adjoint",
    lambda x: np.conj(np.swapaxes(x, -1, -2)),
    [S(arr(2, 3)), S(arr(2, 3, 4)), S(ints(2, 2) + 1j * ints(2, 2, seed=1))],
    bad=[Bad(S(arr(3)), DimError, r"\[adjoint\].*at least 2 dimensions, got 1")],
)
MOVES = [
    S(arr(2, 3, 4), 0, -1),
    S(arr(2, 3, 4), (0, 1), (1, 0)),
    S(arr(2, 3, 4), (2, 0), (0, 1)),
    S(arr(), 0, 0),
    S(arr(3), 0, 0),
    S(arr(2, 3, 4), source=-1, destination=0),
]
for _name in ("movedim", "moveaxis"):
    op(
        _name,
        lambda x, source, destination: np.moveaxis(x, source, destination) if x.ndim else x,
        MOVES,
        bad=[
            Bad(S(arr(2, 3), (0, 1), (0,)), ArgumentError, rf"\[{_name}\].*\(0, 1\) and \(0,\)"),
            Bad(S(arr(2, 3), (0, 0), (0, 1)), ArgumentError, rf"\[{_name}\].*distinct"),
            Bad(S(arr(2, 3), 2, 0), DimError, rf"\[{_name}\] dim 2"),
        ],
    )

# Broadcasting ----------------------------------------------------------------------------------
EXPANDS = [
    S(arr(3, 1), (3, 4)),
    S(arr(3), (2, 3)),
    S(arr(), (2, 2)),
    S(arr(1), (0,)),
    S(arr(1, 3), (2, 3)),
    S(arr(3), (3,)),
    S(arr(1, 3).T, (3, 2)),
    S(arr(), ()),
]
op(
    "Tensor.expand",
    lambda x, *s: np.broadcast_to(
        x,
        [
            n if n >= 0 else x.shape[i - len(shape_of(s)) + x.ndim]
            for i, n in enumerate(shape_of(s))
        ],
    ),
    [*EXPANDS, S(arr(3, 1), -1, 4), S(arr(1, 3), 2, 2, -1)],
    bad=[
        Bad(S(arr(3), 4), ShapeError, r"\[expand\] shape \(3,\).*\(4,\).*size 4.*3"),
        Bad(S(arr(3), -1, 3), ShapeError, r"\[expand\].*new dimension"),
        Bad(S(arr(2, 3), 3), ShapeError, r"\[expand\] \(3,\) has fewer dimensions"),
    ],
)
op(
    "Tensor.expand_as",
    lambda x, other: np.broadcast_to(x, other.shape),
    [S(arr(3, 1), ints(3, 4)), S(arr(), ints(2))],
    bad=[Bad(S(arr(3), ints(4)), ShapeError, r"\[expand_as\]")],
)
op(
    "broadcast_to",
    np.broadcast_to,
    EXPANDS,
    bad=[Bad(S(arr(3), (4,)), ShapeError, r"\[broadcast_to\] shape \(3,\)")],
)

# Slicing ---------------------------------------------------------------------------------------
op(
    "narrow",
    lambda x, dim, start, length: np.take(
        x, np.arange(int(start) % (x.shape[dim] + (int(start) >= 0)), x.shape[dim])[:length], dim
    ),
    [
        S(arr(3, 4), 1, 1, 2),
        S(arr(3, 4), -1, -2, 2),
        S(arr(3, 4), 0, 3, 0),
        S(arr(3, 4), 0, 0, 3),
        S(arr(4, 3).T, 1, 1, 2),
        S(arr(0, 2), 0, 0, 0),
        S(arr(3, 4), 1, ints(low=1, high=2), 2),
    ],
    bad=[
        Bad(S(arr(3), 0, 2, 2), BoundsError, r"\[narrow\] start 2 and length 2 .* size 3"),
        Bad(S(arr(3), 0, 4, 0), BoundsError, r"\[narrow\] start 4"),
        Bad(S(arr(3), 0, 0, -1), BoundsError, r"\[narrow\].*length -1"),
        Bad(S(arr(3), 1, 0, 1), DimError, r"\[narrow\] dim 1"),
        Bad(S(arr(), 0, 0, 1), DimError, r"\[narrow\].*at least 1 dimension"),
    ],
)
op(
    "select",
    lambda x, dim, index: np.take(x, index, dim),
    [
        S(arr(3, 4), 0, 1),
        S(arr(3, 4), 1, -1),
        S(arr(3), 0, 0),
        S(arr(4, 3).T, 0, 2),
        S(arr(2, 0), 0, 1),
    ],
    bad=[
        Bad(S(arr(3), 0, 3), BoundsError, r"\[select\] index 3 .* size 3"),
        Bad(S(arr(3), 0, -4), BoundsError, r"\[select\] index -4"),
        Bad(S(arr(), 0, 0), DimError, r"\[select\].*at least 1 dimension"),
        Bad(S(arr(3), 1, 0), DimError, r"\[select\] dim 1"),
    ],
)
op("Tensor.contiguous", lambda x: x, [S(arr(2, 3)), S(arr(4, 3).T), S(arr()), S(arr(2, 6)[:, ::2])])
