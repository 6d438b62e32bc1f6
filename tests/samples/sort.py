"""Samples for `undertow.ops.reduce.sort`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, bools, ints, op, singular

from .reduction import NAN, TIES, WITH_NAN

ONE_NAN = Const([[1.0, NAN, 3.0, 2.0], [4.0, 2.0, 0.5, NAN]])


def sort_samples():
    """A dimension from either end, on awkward shapes."""
    return [
        S(arr(5)),
        S(arr(3, 4), 0),
        S(arr(3, 4), dim=1, descending=True),
        S(arr(2, 3, 4), -2, True),
        S(arr()),
        S(arr(), 0),
        S(arr(0, 3)),
        S(arr(0, 3), 0),
        S(arr(1)),
        S(arr(4, 3).T, 1),
        S(ints(6)),
        S(bools(5)),
        S(ONE_NAN, 1),
        S(ONE_NAN, 1, True),
        S(Const(TIES), dim=1, stable=True),
        S(Const(TIES), dim=1, descending=True, stable=True),
        S(ints(20, high=0), stable=True, descending=True),
    ]


def np_sort(x, dim=-1, descending=False, stable=False):
    """Order by insertion, element by element."""
    x = np.asarray(x)
    if not x.ndim:
        return [x, np.int64(0)]

    def order(row):
        def key(i):
            v = row[i]
            rank = (1, 0.0) if v != v else (0, float(v))
            return (-rank[0], -rank[1]) if descending else rank

        return np.array(sorted(range(len(row)), key=key), np.int64)

    if x.size:
        index = np.apply_along_axis(order, dim, x.astype(float))
    else:
        index = np.zeros(x.shape, np.int64)
    return [np.take_along_axis(x, index, dim), index]


def bad(name, first=(), **kwargs):
    return [
        Bad(S(arr(3), *first, dim=1), IndexError, rf"\[{name}\] dim 1"),
        Bad(S(arr(3).astype(complex), *first), TypeError, rf"\[{name}\].*complex"),
    ]


op("sort", np_sort, sort_samples(), bad=bad("sort"))
op(
    "argsort",
    lambda *a, **k: np_sort(*a, **k)[1],
    sort_samples(),
    grad=False,
    bad=bad("argsort"),
    torch=None,
)  # the sort above compares with torch
op(
    "msort",
    lambda x: np_sort(x, 0)[0],
    [S(arr(3, 4)), S(arr()), S(arr(0, 3)), S(arr(4, 3).T), S(ints(3, 4))],
    bad=[Bad(S(arr(3).astype(complex)), TypeError, r"\[msort\].*complex")],
)


def np_topk(x, k, dim=-1, largest=True, sorted=True):
    values, index = np_sort(x, dim, largest)
    return [np.take(a, range(k), dim) if np.ndim(a) else a for a in (values, index)]


op(
    "topk",
    np_topk,
    [
        S(arr(5), 2),
        S(arr(3, 4), 2, 0),
        S(arr(3, 4), 3, 1, False),
        S(arr(2, 3, 4), k=1, dim=-2, largest=True),
        S(arr(), 1),
        S(arr(), 0, 0),
        S(arr(3), 0),
        S(arr(3), 3),
        S(arr(4, 3).T, 2, 1),
        S(arr(2, 0), 0),
        S(np.arange(7)[::-1].copy(), 3),
        S(ONE_NAN, 2),
        S(ONE_NAN, 4, 1, False),
    ],
    bad=[
        *bad("topk", (1,)),
        Bad(S(arr(3), 4), ValueError, r"\[topk\] k=4.*size 3"),
        Bad(S(arr(3), -1), ValueError, r"\[topk\] k=-1"),
    ],
)


def np_kthvalue(x, k, dim=-1, keepdim=False):
    values, index = np_sort(x, dim)
    return [
        np.take(a, [k - 1] if keepdim else k - 1, dim) if np.ndim(a) else a for a in (values, index)
    ]


op(
    "kthvalue",
    np_kthvalue,
    [
        S(arr(5), 2),
        S(arr(3, 4), 2, 0),
        S(arr(3, 4), 4, 1, True),
        S(arr(2, 3, 4), k=1, dim=-2),
        S(arr(), 1),
        S(arr(), 1, 0, True),
        S(arr(4, 3).T, 2, 1),
        S(np.arange(7)[::-1].copy(), 3),
        S(ONE_NAN, 4),
        S(ONE_NAN, 2),
        S(arr(0, 3), 2),
    ],
    bad=[
        *bad("kthvalue", (1,)),
        Bad(S(arr(3), 4), ValueError, r"\[kthvalue\] k=4.*size 3"),
        Bad(S(arr(3), 0), ValueError, r"\[kthvalue\] k=0.*1 to 3"),
    ],
)


def np_unique(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
    out = np.unique(x, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    inverse = out[1].reshape(np.shape(x) if dim is None else -1)
    found = [out[0], *([inverse] if return_inverse else []), *([out[2]] if return_counts else [])]
    return found if len(found) > 1 else found[0]


EVERYTHING = {"return_inverse": True, "return_counts": True}
op(
    "unique",
    np_unique,
    [
        S(ints(12)),
        S(ints(12), **EVERYTHING),
        S(ints(3, 5), **EVERYTHING),
        S(ints(4, 2, low=0, high=2), dim=0, **EVERYTHING),
        S(ints(2, 5, low=0, high=2), dim=-1, **EVERYTHING),
        S(ints(3, 2, 2, low=0, high=2).T, True, True, dim=1),
        S(ints(), **EVERYTHING),
        S(ints(0), **EVERYTHING),
        S(ints(0, 3), dim=0, **EVERYTHING),
        S(bools(5), return_counts=True),
        S(Const(TIES), return_counts=True),
        S(WITH_NAN, return_counts=True),
    ],
    grad=False,
    bad=[
        Bad(S(ints(2, 0), dim=0), ut.errors.ShapeError, r"\[unique\].*\(2, 0\)"),
        Bad(S(ints(), dim=0), IndexError, r"\[unique\]"),
        Bad(S(ints(3), dim=1), IndexError, r"\[unique\] dim 1"),
    ],
)


def np_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    rows = np.reshape(x, (-1, 1)) if dim is None else np.moveaxis(x, dim, 0)
    flat = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
    new = [i for i in range(len(flat)) if i == 0 or (flat[i] != flat[i - 1]).any()]
    starts = np.array(new, np.int64)
    values = rows[starts][:, 0] if dim is None else np.moveaxis(rows[starts], 0, dim)
    inverse = np.searchsorted(starts, np.arange(len(flat)), side="right") - 1
    inverse = inverse.reshape(np.shape(x)) if dim is None else inverse
    counts = np.diff([*starts, len(flat)]) if new else np.zeros(0)
    found = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return found if len(found) > 1 else values


RUNS = np.array([1, 1, 2, 2, 3, 1, 1, 2])
op(
    "unique_consecutive",
    np_consecutive,
    [
        S(RUNS),
        S(RUNS, **EVERYTHING),
        S(RUNS.reshape(2, 4), **EVERYTHING),
        S(np.array([[1, 1, 2], [1, 1, 2], [0, 1, 2], [1, 1, 2]]), dim=0, **EVERYTHING),
        S(np.array([[1, 1, 2], [1, 1, 2]]), return_inverse=True, dim=-1),
        S(ints(0), **EVERYTHING),
        S(bools(9), return_counts=True),
        S(Const(TIES), return_counts=True),
    ],
    grad=False,
    bad=[
        Bad(S(ints(2, 0), dim=0), ut.errors.ShapeError, r"\[unique_consecutive\]"),
        Bad(S(ints(), dim=0), IndexError, r"\[unique_consecutive\]"),
    ],
)


def np_searchsorted(edges, values, *, out_int32=False, right=False, side=None, sorter=None):
    side = side or ("right" if right else "left")
    if sorter is not None:
        edges = np.take_along_axis(edges, sorter, -1)
    if edges.ndim == 1:
        return np.searchsorted(edges, values, side)
    rows = zip(
        edges.reshape(-1, edges.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True
    )
    return np.reshape([np.searchsorted(e, v, side) for e, v in rows], values.shape)


EDGES = np.array([1, 3, 3, 5])
GRID = np.sort(arr(2, 3, 4), -1)
op(
    "searchsorted",
    np_searchsorted,
    [
        S(EDGES, ints(7)),
        S(EDGES, ints(7), right=True),
        S(EDGES, ints(2, 3, seed=3), side="right"),
        S(EDGES, 3),
        S(EDGES, 3.5),
        S(EDGES, arr(5, low=0, high=6)),
        S(Const(GRID), Const(arr(2, 3, 5, seed=2))),
        S(EDGES, np.array(4)),
        S(EDGES, ints(4), out_int32=True),
        S(EDGES[::-1].copy(), ints(5), sorter=np.array([3, 2, 1, 0])),
        S(ints(0), ints(3)),
        S(EDGES, ints(0)),
        S(Const(EDGES), Const([NAN, 2.0])),
        S(EDGES, ints(3), right=True, side="right"),
    ],
    grad=False,
    method=False,
    bad=[
        Bad(S(np.array(1), ints(3)), ut.errors.ShapeError, r"\[searchsorted\].*1 dimension"),
        Bad(S(GRID, ints(3)), ut.errors.ShapeError, r"\[searchsorted\].*\(2, 3, 4\).*\(3,\)"),
        Bad(S(EDGES, ints(3) * 1j), TypeError, r"\[searchsorted\].*complex128"),
        Bad(S(EDGES, ints(3), side="x"), ValueError, r"\[searchsorted\].*'x'"),
        Bad(S(EDGES, ints(3), side="left", right=True), ValueError, r"\[searchsorted\].*agree"),
        Bad(
            S(EDGES, ints(3), sorter=np.array([0, 1])),
            ut.errors.ShapeError,
            r"\[searchsorted\] sorter",
        ),
        Bad(
            S(EDGES, ints(3), sorter=np.array([0, 1, 2, 9])), IndexError, r"\[searchsorted\] sorter"
        ),
    ],
)
op(
    "bucketize",
    lambda x, edges, out_int32=False, right=False: np_searchsorted(edges, x, right=right),
    [
        S(ints(7), EDGES),
        S(ints(7), EDGES, right=True),
        S(arr(2, 3), Const(EDGES)),
        S(3, EDGES),
        S(ints(3), EDGES, out_int32=True),
    ],
    grad=False,
    method=False,
    bad=[
        Bad(S(ints(3), GRID), ut.errors.ShapeError, r"\[bucketize\].*\(2, 3, 4\)"),
        Bad(S(ints(3), EDGES * 1j), TypeError, r"\[bucketize\].*complex128"),
    ],
)

# Ties ------------------------------------------------------------------------------------------
_equal = np.array([2.0, 1.0, 2.0, 1.0])
singular("sort", S(_equal, stable=True), S(_equal, stable=True, descending=True))
singular("msort", S(_equal))
singular("topk", S(_equal, 1), S(_equal, 3), torch=False)  # torch does not say which it takes
singular("kthvalue", S(_equal, 2))
