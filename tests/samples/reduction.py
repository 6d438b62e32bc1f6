"""Samples for `undertow.ops.reduce.reduction`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, bools, ints, op, singular

INF, NAN = np.inf, np.nan
TIES = np.array([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [-1.0, -5.0, -1.0, -5.0]])
WITH_NAN = Const([[1.0, NAN, 3.0], [NAN, NAN, NAN], [4.0, 2.0, 0.5]])


def reduction_samples(make=arr):
    """Every way of naming dimensions, on awkward shapes."""
    return [
        S(make(3, 4)),
        S(make(3, 4), 0),
        S(make(3, 4), dim=-1, keepdim=True),
        S(make(2, 3, 4), (0, 2)),
        S(make(2, 3, 4), dim=(0, -1), keepdim=True),
        S(make()),
        S(make(), 0),
        S(make(4, 3).T, 1),
    ]


def single_dim_samples(make=arr):
    """The same for functions that take one dimension."""
    return [
        s
        for s in reduction_samples(make)
        if not any(isinstance(a, tuple) for a in [*s.args, *s.kwargs.values()])
    ]


def np_reduce(function):
    """A NumPy reduction with torch's argument names."""

    def run(x, dim=None, keepdim=False, dtype=None, axis=None, keepdims=False):
        dim = axis if dim is None else dim
        keepdim = keepdim or keepdims
        if np.ndim(x) == 0 or dim == ():
            dim = None
        if dtype is not None:
            x = x.astype(dtype.numpy)
        return function(x, axis=dim, keepdims=keepdim)

    return run


def np_extreme(reduce, position, pair):
    """`max` and `min` in their three forms."""

    def run(x, dim=None, keepdim=False, other=None):
        other = dim if isinstance(dim, np.ndarray) else other
        if other is not None:
            return pair(x, other)
        if dim is None:
            return reduce(x)
        if np.ndim(x) == 0:
            return [x, np.int64(0)]
        return [reduce(x, axis=dim, keepdims=keepdim), position(x, axis=dim, keepdims=keepdim)]

    return run


op(
    "sum",
    np_reduce(np.sum),
    [
        *reduction_samples(),
        S(arr(0, 3)),
        S(arr(0, 3), 0),
        S(ints(3, 4), 1),
        S(bools(3, 4), 0),
        S(ints(3), dtype=ut.float64),
        S(ints(3).astype(np.int8)),
        S(arr(3, 4), axis=0, keepdims=True),
    ],
    bad=[
        Bad(S(arr(3), 1), IndexError, r"\[sum\] dim 1"),
        Bad(S(arr(3, 3), (0, 0)), ut.errors.ArgumentError, r"\[sum\].*twice"),
    ],
)
op(
    "mean",
    np_reduce(np.mean),
    [*reduction_samples(), S(ints(3, 4), 1, dtype=ut.float64), S(arr(0, 3), 1)],
    bad=[
        Bad(S(ints(3)), ut.errors.DTypeError, r"\[mean\].*int64.*dtype=ut.float32"),
        Bad(S(arr(3), -2), IndexError, r"\[mean\] dim -2"),
    ],
)
ZEROS = [
    np.array([2.0, 0.0, 3.0, -1.5]),
    np.array([0.0, 2.0, 0.0, 3.0]),
    np.array([[0.0, 1.5, 0.0, 0.0], [1.0, 2.0, 3.0, 0.0], [0.5, 2.0, 3.0, -1.0]]),
]
op(
    "prod",
    np_reduce(np.prod),
    [
        *single_dim_samples(),
        *(S(z) for z in ZEROS),
        S(ZEROS[2], 1),
        S(ZEROS[2], 0, keepdim=True),
        S(ZEROS[2].T, -1),
        S(ints(3, 4), 1),
        S(bools(3)),
        S(arr(0)),
        S(arr(0, 3), 0),
        S(arr(2, 0), 0),
        S(ints(3), dtype=ut.float64),
        S(arr(1)),
    ],
    bad=[Bad(S(arr(3), 1), IndexError, r"\[prod\] dim 1")],
)
for name, reduce in (("amax", np.max), ("amin", np.min)):
    op(
        name,
        np_reduce(reduce),
        [
            *reduction_samples(),
            S(ints(3, 4), 1),
            S(bools(3, 4), 0),
            S(arr(0, 3), 1),
            S(WITH_NAN, 1),
        ],
        bad=[
            Bad(S(arr(0, 3), 0), IndexError, rf"\[{name}\].*dim 0 of size 0.*\(0, 3\)"),
            Bad(S(arr(0)), IndexError, rf"\[{name}\]"),
            Bad(S(arr(3).astype(complex)), TypeError, rf"\[{name}\].*complex"),
            Bad(S(arr(3), 2), IndexError, rf"\[{name}\] dim 2"),
        ],
    )
for name, reduce, position, pair in (
    ("max", np.max, np.argmax, np.maximum),
    ("min", np.min, np.argmin, np.minimum),
):
    op(
        name,
        np_extreme(reduce, position, pair),
        [
            *single_dim_samples(),
            S(arr(3, 4), arr(4, seed=1)),
            S(arr(3), other=arr(3, seed=1)),
            S(ints(3, 4), 1),
            S(ints(3, 4)),
            S(bools(3, 4), 1),
            S(arr(0, 3), 1),
            S(WITH_NAN, 1),
            S(WITH_NAN),
        ],
        bad=[
            Bad(S(arr(0, 3), 0), IndexError, rf"\[{name}\].*dim 0 of size 0.*\(0, 3\)"),
            Bad(S(arr(0)), IndexError, rf"\[{name}\]"),
            Bad(S(arr(3), 2), IndexError, rf"\[{name}\] dim 2"),
        ],
    )
    op(
        f"arg{name}",
        lambda x, dim=None, keepdim=False, p=position: p(
            x, axis=dim if np.ndim(x) else None, keepdims=keepdim
        ),
        [
            *single_dim_samples(),
            S(TIES, 1),
            S(TIES),
            S(TIES, dim=None, keepdim=True),
            S(ints(3, 4), 1),
            S(ints(4, 3).T),
            S(arr(0, 3), 1),
            S(WITH_NAN, 1),
            S(WITH_NAN),
        ],
        grad=False,
        bad=[
            Bad(S(arr(0, 3), 0), IndexError, rf"\[arg{name}\].*dim 0 of size 0.*\(0, 3\)"),
            Bad(S(arr(0)), IndexError, rf"\[arg{name}\]"),
            Bad(S(arr(3), 2), IndexError, rf"\[arg{name}\] dim 2"),
        ],
    )
for name, reduce in (("any", np.any), ("all", np.all)):
    op(
        name,
        np_reduce(reduce),
        [
            *reduction_samples(bools),
            S(arr(3, 4), 0),
            S(ints(3, 4), 1),
            S(arr(0, 3)),
            S(arr(0, 3), 0),
            S(arr(0, 3), 1),
            S(np.array([0, 1, 0], np.uint8)),
            S(WITH_NAN),
        ],
        grad=False,
        bad=[Bad(S(arr(3), 1), IndexError, rf"\[{name}\] dim 1")],
    )


def np_logsumexp(x, dim, keepdim=False):
    if np.ndim(x) == 0:
        return np.asarray(x, float)
    with np.errstate(all="ignore"):
        return np.log(np.sum(np.exp(x), axis=dim, keepdims=keepdim))


op(
    "logsumexp",
    np_logsumexp,
    [
        *(s for s in reduction_samples() if s.kwargs or len(s.args) > 1),
        S(ints(3, 4), 1),
        S(arr(2, 0), 1),
        S(arr(0, 2), 1),
        S(Const([[-INF, -INF], [-INF, 1.0], [INF, 2.0]]), 1),
        S(arr(3, 4), (0, 1)),
    ],
    rtol=1e-6,
    bad=[Bad(S(arr(3), 1), IndexError, r"\[logsumexp\] dim 1")],
)
op(
    "nansum",
    np_reduce(np.nansum),
    [
        *reduction_samples(),
        S(WITH_NAN),
        S(WITH_NAN, 1),
        S(ints(3, 4), 1),
        S(bools(3)),
        S(arr(0, 3), 0),
        S(ints(3), dtype=ut.float64),
    ],
    bad=[Bad(S(arr(3), 1), IndexError, r"\[nansum\] dim 1")],
)


def np_nanmean(x, dim=None, keepdim=False, dtype=None):
    x = np.asarray(x, float)
    there = ~np.isnan(x)
    axis = dim if x.ndim else None
    with np.errstate(all="ignore"):
        return np.nansum(x, axis=axis, keepdims=keepdim) / there.sum(axis=axis, keepdims=keepdim)


op(
    "nanmean",
    np_nanmean,
    [*reduction_samples(), S(WITH_NAN), S(WITH_NAN, 1), S(WITH_NAN, (0, 1), True)],
    bad=[Bad(S(ints(3)), TypeError, r"\[nanmean\].*int64")],
)
op(
    "count_nonzero",
    lambda x, dim=None: np.count_nonzero(x, axis=dim if np.ndim(x) else None),
    [
        S(arr(3, 4)),
        S(ints(3, 4), 0),
        S(ints(2, 3, 4), (0, -1)),
        S(bools(3, 4), dim=1),
        S(WITH_NAN, 0),
        S(arr()),
        S(arr(), 0),
        S(arr(0, 3), 0),
    ],
    grad=False,
    bad=[Bad(S(arr(3), 1), IndexError, r"\[count_nonzero\] dim 1")],
)


def np_aminmax(x, *, dim=None, keepdim=False):
    axis = dim if np.ndim(x) else None
    return [f(x, axis=axis, keepdims=keepdim) for f in (np.min, np.max)]


op(
    "aminmax",
    np_aminmax,
    [
        S(arr(3, 4)),
        S(arr(3, 4), dim=0),
        S(arr(3, 4), dim=-1, keepdim=True),
        S(arr()),
        S(arr(), dim=0),
        S(arr(3, 4), keepdim=True),
        S(arr(4, 3).T, dim=1),
        S(ints(3, 4)),
        S(WITH_NAN, dim=1),
    ],
    bad=[
        Bad(S(arr(0, 3), dim=0), IndexError, r"\[aminmax\].*dim 0 of size 0"),
        Bad(S(arr(3), dim=1), IndexError, r"\[aminmax\] dim 1"),
    ],
)


def np_norm(x, p="fro", dim=None, keepdim=False, dtype=None):
    signed, x = x, np.abs(x if dtype is None else x.astype(dtype.numpy))
    axis = dim if np.ndim(x) else None
    if p == "nuc":
        return np.linalg.norm(signed, "nuc", dim, keepdim)
    if p in (None, "fro"):
        p = 2
    with np.errstate(all="ignore"):
        if p == 0:
            return np.sum(x != 0, axis=axis, keepdims=keepdim).astype(x.dtype)
        if abs(p) == INF:
            return (np.max if p > 0 else np.min)(x, axis=axis, keepdims=keepdim)
        return np.sum(x**p, axis=axis, keepdims=keepdim) ** (1.0 / p)


POWERS = (0, 0.5, 1, 1.5, 2, 2.0, 2.5, 3, -1, -2, INF, -INF)
op(
    "norm",
    np_norm,
    [
        *(S(s.args[0], 2.5, *s.args[1:], **s.kwargs) for s in reduction_samples()),
        *(S(arr(3, 4), p) for p in POWERS),
        *(S(arr(3, 4), p, 1, keepdim=True) for p in POWERS),
        S(arr(3, 4)),
        S(arr(3, 4), dim=0),
        S(arr(3, 4), "fro", (0, 1)),
        S(arr(3, 4), "nuc"),
        S(arr(2, 3, 4), "nuc", (0, 2), True),
        S(arr(0)),
        S(arr(2, 0), INF, 0),
        S(arr(0, 2), 1, 0),
        S(arr(), 3),
        S(arr(3, 4), None),
        S(arr(2, 3), 2, 0, dtype=ut.float64),
    ],
    bad=[
        Bad(S(ints(3)), TypeError, r"\[norm\].*int64"),
        Bad(S(arr(3), "x"), ValueError, r"\[norm\].*'x'"),
        Bad(S(arr(3), 2, 1), IndexError, r"\[norm\] dim 1"),
        Bad(S(arr(0), INF), IndexError, r"\[norm\]"),
        Bad(S(arr(2, 2, 2), "nuc"), ValueError, r"\[norm\].*two dimensions"),
        Bad(S(arr(3) * 1j, dtype=ut.float64), TypeError, r"\[norm\].*float64.*complex128"),
    ],
)


def torch_dist(x, y, p=2):
    """torch's own raises in the backward of p=0."""
    import torch

    return torch.dist(x, y, p) if p else torch.norm(x - y, p)


op(
    "dist",
    lambda x, y, p=2: np_norm(x - y, p),
    [
        S(arr(3), arr(3, seed=1)),
        S(arr(3, 4), arr(4, seed=1), 3),
        S(arr(3, 1), arr(4, seed=1), INF),
        S(arr(), arr(seed=1), 1),
        S(arr(3), arr(3, seed=1), 0),
        S(arr(4, 3).T, arr(3, 4, seed=1), 1.5),
    ],
    torch=torch_dist,
    bad=[
        Bad(S(ints(3), ints(3)), TypeError, r"\[dist\].*int64"),
        Bad(S(arr(3), arr(4)), ut.errors.ShapeError, r"\(3,\) and \(4,\)"),
    ],
)

# Ties, zeros and empty norms -------------------------------------------------------------------
_tied = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]])
for _name in ("amax", "amin", "aminmax"):
    singular(_name, S(_tied), S(_tied, dim=1))
for _name in ("max", "min"):
    singular(_name, S(_tied), S(_tied, dim=1))
_zeros = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
singular("prod", S(_zeros), S(_zeros, 0), S(_zeros, 1), S(np.array([0.0, 2.0, 3.0])))
for _p in (1, 2, 3, np.inf, -np.inf, 1.5, 0):
    singular("norm", S(np.zeros(3), _p), S(np.array([1.0, -2.0, 0.0]), _p))
singular("norm", S(np.zeros((2, 3)), 2, 1), S(np.array([[2.0, -2.0], [1.0, 1.0]]), np.inf, 1))
for _p in (1, 2, 3, np.inf):
    singular("dist", S(np.array([1.0, 2.0]), np.array([1.0, 2.0]), _p))
singular("logsumexp", S(np.array([[0.0, 0.0], [-np.inf, 1.0]]), 1))
