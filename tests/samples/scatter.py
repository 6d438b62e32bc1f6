"""Samples for `undertow.ops.index.scatter`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, S, arr, bools, ints, op, singular

I = np.array  # noqa: E741
ROWS = I([[0, 2, 1, 0], [1, 1, 0, 2]])  # along dim 0 of (3, 4): duplicates in columns
COLS = I([[0, 0], [3, 1], [2, 2]])  # along dim 1 of (3, 4): duplicates in rows
ONCE = I([[0, 1], [3, 1], [2, 0]])  # along dim 1 of (3, 4): no duplicates


def places(shape, dim, index):
    """The gather positions, one index tuple for each element of `index`."""
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        yield at, tuple(to)


def zero_d(function):
    """A reference that sees zero-dimensional arrays as (1,)."""

    def run(x, dim, index, *rest, **more):
        shape = np.shape(index) if function is np_gather else x.shape
        rest = [np.atleast_1d(r) if isinstance(r, np.ndarray) else r for r in rest]
        return function(np.atleast_1d(x), dim, np.atleast_1d(index), *rest, **more).reshape(shape)

    return run


def np_gather(x, dim, index):
    out = np.zeros(index.shape, x.dtype)
    for at, to in places(x.shape, dim % x.ndim, index):
        out[at] = x[to]
    return out


op(
    "gather",
    zero_d(np_gather),
    [
        S(arr(3, 4), 0, ROWS),
        S(arr(3, 4), 1, COLS),
        S(arr(3, 4), -1, COLS[:2]),
        S(arr(4, 3).T, 1, COLS),
        S(arr(), 0, I([0, 0])),
        S(arr(), 0, I(0)),
        S(arr(3), 0, I(2)),
        S(arr(3, 4), 1, np.zeros((3, 0), np.int64)),
        S(ints(3, 4), 0, ROWS),
        S(arr(3, 4), 1, COLS.astype(np.int32)),
        S(bools(3, 4), 0, ROWS),
    ],
    bad=[
        Bad(S(arr(3, 4), 0, I([[3]])), IndexError, r"\[gather\] index 3 .* dimension 0 of size 3"),
        Bad(S(arr(3, 4), 0, I([[-1]])), IndexError, r"\[gather\] index -1"),
        Bad(S(arr(3, 4), 0, I([0])), ValueError, r"\(1,\) and \(3, 4\)"),
        Bad(S(arr(3, 4), 1, np.zeros((4, 1), int)), ValueError, r"\(4, 1\).*\(3, 4\).*dimension 0"),
        Bad(S(arr(3), 0, arr(2)), TypeError, r"index must be int64 or int32, got .*float64"),
        Bad(S(arr(3), 1, I([0])), IndexError, r"\[gather\] dim 1"),
    ],
)


def np_take_along(x, indices, dim=None):
    if dim is None:
        return x.reshape(-1)[indices.reshape(-1)]
    return np.take_along_axis(x, indices, dim)


op(
    "take_along_dim",
    np_take_along,
    [
        S(arr(3, 4), COLS, 1),
        S(arr(3, 4), I([[5, 1]])),
        S(arr(3, 4), I([[1], [-1], [0]]), dim=1),
        S(arr(3, 4), I([[1, 0]]), dim=1),
        S(arr(1, 4), COLS, dim=1),
        S(arr(3, 4), I([[2]]), 0),
    ],
    bad=[
        Bad(S(arr(3, 4), I([0]), 1), ValueError, r"\(3, 4\) and \(1,\)"),
        Bad(S(arr(3, 4), I([[4]]), 1), IndexError, r"index 4 .* size 4"),
    ],
)


def np_scatter(x, dim, index, src=None, value=None, reduce=None):
    src = value if src is None else src
    out = x.copy()
    for at, to in places(x.shape, dim % x.ndim, index):
        new = src[at] if isinstance(src, np.ndarray) else src
        out[to] = new if reduce is None else out[to] + new if reduce == "add" else out[to] * new
    return out


SCATTER_BAD = [
    Bad(S(arr(3, 4), 0, I([[3]]), arr(1, 1)), IndexError, r"index 3 .* dimension 0 of size 3"),
    Bad(S(arr(3, 4), 1, COLS, arr(2, 2)), ValueError, r"\(2, 2\).*\(3, 2\)"),
    Bad(S(arr(3, 4), 1, COLS, ints(3, 2)), TypeError, r"float64 and .*int64"),
    Bad(S(arr(3, 4), 1, I([0]), arr(1)), ValueError, r"\(1,\) and \(3, 4\)"),
]


def torch_scatter(x, dim, index, src=None, **more):
    """torch's, which cannot differentiate by a src that is larger than the index."""
    if getattr(src, "ndim", 0):
        src = src[tuple(slice(0, n) for n in index.shape)]
    return x.scatter(dim, index, src, **more) if src is not None else x.scatter(dim, index, **more)


op(
    "scatter",
    zero_d(np_scatter),
    [
        S(arr(3, 4), 1, ONCE, arr(3, 2, seed=1)),
        S(arr(3, 4), 1, ONCE, arr(4, 5, seed=1)),
        S(arr(3, 4), 1, COLS, 2.5),
        S(arr(3, 4), -1, ONCE, value=1),
        S(arr(4, 3).T, 1, ONCE, 2),
        S(arr(), 0, I([0]), arr(1)),
        S(arr(3), 0, I(1), arr()),
        S(ints(3, 4), 1, COLS, 2),
        S(arr(3, 4), 1, np.zeros((3, 0), int), 1.0),
        S(arr(4), 0, np.zeros((0, 4), int), arr(0, 4)),
    ],
    bad=[
        *SCATTER_BAD,
        Bad(S(arr(3), 0, I([0])), ValueError, r"either src or value"),
        Bad(S(arr(3), 0, I([0]), 1, reduce="max"), ValueError, r"reduce must be .*'max'"),
    ],
    torch=torch_scatter,
)
op(
    "scatter_add",
    zero_d(lambda x, d, i, s: np_scatter(x, d, i, s, reduce="add")),
    [
        S(arr(3, 4), 1, COLS, arr(3, 2, seed=1)),
        S(arr(3, 4), 0, ROWS, arr(2, 4, seed=1)),
        S(arr(), 0, I(0), arr(seed=1)),
        S(ints(3, 4), 1, COLS, ints(3, 2)),
        S(arr(4, 3).T, 1, COLS, arr(2, 3, seed=1).T),
        S(arr(3, 4), 1, np.zeros((3, 0), int), arr(3, 0)),
    ],
    bad=SCATTER_BAD,
)

REDUCE = {
    "sum": lambda v: np.sum(v),
    "prod": lambda v: np.prod(v),
    "mean": lambda v: np.mean(v),
    "amax": lambda v: np.max(v),
    "amin": lambda v: np.min(v),
}


def np_scatter_reduce(x, dim, index, src, reduce, include_self=True):
    found = {}
    for at, to in places(x.shape, dim % x.ndim, index):
        found.setdefault(to, [x[to]] if include_self else []).append(src[at])
    out = x.copy()
    for to, values in found.items():
        result = REDUCE[reduce](np.array(values))
        out[to] = np.floor(result) if x.dtype.kind == "i" else result
    return out


TIES = I([[1.0, 2.0, 1.0, 3.0], [1.0, 2.0, 2.0, 0.5], [0.5, 1.5, 1.0, 3.0]])
ZEROS = I([[0.0, 2.0, 1.0, 3.0], [1.0, 0.0, 2.0, 0.5], [0.5, 1.5, 0.0, 3.0]])
op(
    "scatter_reduce",
    zero_d(np_scatter_reduce),
    [
        S(arr(3, 4), 1, COLS, arr(3, 2, seed=1), how, include_self=own)
        for how in REDUCE
        for own in (True, False)
    ]
    + [S(arr(3, 4), 0, ROWS, arr(2, 4, seed=1), how) for how in REDUCE]
    + [S(arr(3, 4), 1, COLS, ZEROS[:, :2], "prod", include_self=own) for own in (True, False)]
    + [
        S(ZEROS, 0, I([[0, 0, 0, 0], [0, 0, 2, 2], [0, 1, 2, 1]]), ZEROS[::-1].copy(), "prod"),
        S(arr(), 0, I([0]), arr(1, seed=1), "amax"),
        S(ints(5), 0, I([0, 0, 1]), ints(3), "mean"),
        S(ints(5), 0, I([0, 0, 1]), ints(3), "amin", include_self=False),
        S(arr(3), 0, np.zeros(0, int), arr(0), "prod"),
    ],
    bad=[
        Bad(S(arr(3), 0, I([0]), arr(1), "max"), ValueError, r"one of sum, prod.*'max'"),
        Bad(S(arr(3), 0, I([3]), arr(1), "sum"), IndexError, r"index 3"),
        Bad(S(arr(3), 0, I([0]), ints(1), "sum"), TypeError, r"float64 and .*int64"),
    ],
)

op(
    "index_select",
    lambda x, dim, index: np.take(x, np.atleast_1d(index), dim) if x.ndim else x,
    [
        S(arr(3, 4), 0, I([0, 2, 0])),
        S(arr(3, 4), -1, I([1, 1])),
        S(arr(2, 3, 4), 1, I([2])),
        S(arr(4, 3).T, 0, I([1])),
        S(arr(), 0, I([0])),
        S(arr(), 0, I(0)),
        S(arr(3, 4), 0, I(1)),
        S(arr(3), 0, np.zeros(0, int)),
        S(ints(3), 0, I([1], np.int32)),
    ],
    bad=[
        Bad(S(arr(3), 0, I([-1])), IndexError, r"\[index_select\] index -1"),
        Bad(S(arr(3, 4), 1, I([4])), IndexError, r"index 4 .* dimension 1 of size 4"),
        Bad(S(arr(3), 0, I([[0]])), IndexError, r"vector, got shape \(1, 1\)"),
        Bad(S(arr(), 0, I([0, 0])), ValueError, r"takes one index, got 2"),
    ],
)


def np_index(combine):
    """A reference for the index_… family, slice by slice."""

    def run(x, dim, index, source, *rest, alpha=1, **more):
        out = np.array(np.atleast_1d(x))
        source = np.atleast_1d(source) * alpha
        for n, i in enumerate(np.atleast_1d(index)):
            to = (slice(None),) * (dim % out.ndim) + (i,)
            at = (slice(None),) * (dim % out.ndim) + (n,)
            out[to] = combine(out[to], source[at])
        return out.reshape(x.shape)

    return run


FAMILY_BAD = [
    Bad(S(arr(3, 4), 0, I([3]), arr(1, 4)), IndexError, r"index 3 .* size 3"),
    Bad(S(arr(3, 4), 0, I([-1]), arr(1, 4)), IndexError, r"index -1"),
    Bad(S(arr(3, 4), 0, I([0]), arr(1, 3)), ValueError, r"\(1, 4\).*\(1, 3\)"),
    Bad(S(arr(3, 4), 0, I([0]), ints(1, 4)), TypeError, r"float64 and .*int64"),
    Bad(S(arr(3, 4), 0, I([[0]]), arr(1, 4)), IndexError, r"vector"),
]
op(
    "index_add",
    np_index(np.add),
    [
        S(arr(3, 4), 0, I([0, 2, 0]), arr(3, 4, seed=1)),
        S(arr(3, 4), 1, I([3, 3]), arr(3, 2, seed=1)),
        S(arr(3, 4), -1, I([1]), arr(3, 1, seed=1), alpha=2.5),
        S(arr(), 0, I([0]), arr(seed=1)),
        S(arr(4, 3).T, 0, I([1, 1]), arr(2, 4, seed=1)),
        S(ints(3), 0, I([1, 1]), ints(2), alpha=2),
        S(arr(3), 0, np.zeros(0, int), arr(0)),
    ],
    bad=FAMILY_BAD,
)
op(
    "index_copy",
    np_index(lambda old, new: new),
    [
        S(arr(3, 4), 0, I([0, 2]), arr(2, 4, seed=1)),
        S(arr(3, 4), 1, I([3, 0]), arr(3, 2, seed=1)),
        S(arr(), 0, I([0]), arr(seed=1)),
        S(arr(4, 3).T, 0, I([1]), arr(1, 4, seed=1)),
        S(ints(3), 0, I([1]), ints(1)),
    ],
    bad=FAMILY_BAD,
)


def np_index_fill(x, dim, index, value):
    out = np.array(np.atleast_1d(x))
    out[(slice(None),) * (dim % out.ndim) + (np.atleast_1d(index),)] = value
    return out.reshape(x.shape)


op(
    "index_fill",
    np_index_fill,
    [
        S(arr(3, 4), 0, I([0, 2]), 1.5),
        S(arr(3, 4), 1, I([3, -1]), 2),
        S(arr(3, 4), 0, I([1]), arr()),
        S(arr(), 0, I([0]), 1),
        S(ints(3), 0, I([1]), 2),
        S(arr(4, 3).T, -1, I([0]), 1),
    ],
    bad=[
        Bad(S(arr(3), 0, I([3]), 1), IndexError, r"index 3"),
        Bad(S(arr(3), 0, I([0]), arr(2)), ValueError, r"zero-dimensional"),
        Bad(S(ints(3), 0, I([0]), float("inf")), ValueError, r"inf .*int64"),
    ],
)


def np_index_reduce(x, dim, index, source, reduce, include_self=True):
    shape = [1] * source.ndim
    shape[dim] = len(index)
    full = np.broadcast_to(index.reshape(shape), source.shape)
    return np_scatter_reduce(x, dim, full, source, reduce, include_self)


op(
    "index_reduce",
    np_index_reduce,
    [
        S(
            arr(3, 4),
            d,
            I([0, 2, 0]),
            arr(*((3, 4) if d == 0 else (3, 3)), seed=1),
            how,
            include_self=own,
        )
        for how in ("prod", "mean", "amax", "amin")
        for own in (True, False)
        for d in (0, 1)
    ]
    + [S(arr(3, 4), 0, I([0, 0]), ZEROS[:2], "prod")],
    bad=[
        Bad(S(arr(3), 0, I([0]), arr(1), "sum"), ValueError, r"one of prod.*'sum'"),
        *(Bad(S(*b.sample.args, "amax"), b.error, b.match) for b in FAMILY_BAD),
    ],
)

# Ties and zeros --------------------------------------------------------------------------------
_into, _from = np.array([1.0, 0.0, 2.0]), np.array([1.0, 0.0, 0.0, 2.0])
_where = np.array([0, 1, 1, 2])
for _reduce in ("amax", "amin", "prod", "mean"):
    singular("scatter_reduce", S(_into, 0, _where, _from, _reduce))
    singular("index_reduce", S(_into, 0, _where, _from, _reduce))
