"""Samples for `undertow.ops.reduce.statistics`."""

from __future__ import annotations

import warnings

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, singular

from .reduction import NAN, reduction_samples, single_dim_samples


def np_moment(function, root):
    """`var` and `std` with torch's arguments, by their definition."""

    def run(x, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None:
            correction = int(unbiased)
        correction = 1 if correction is None else correction
        axis = None if dim is None or np.ndim(x) == 0 else dim
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            count = x.size / max(np.mean(x, axis=axis).size, 1)
            total = np.var(x, axis=axis, keepdims=keepdim) * count
            out = total / max(count - correction, 0)
            return function(np.sqrt(out) if root else out, np.mean(x, axis=axis, keepdims=keepdim))

    return run


moments = [
    *reduction_samples(),
    S(arr(4), False),
    S(arr(3, 4), 1, False),
    S(arr(3, 4), 1, True, True),
    S(arr(3, 4), correction=0),
    S(arr(3, 4), 0, correction=0.5, keepdim=True),
    S(arr(3, 4), unbiased=False),
    S(arr(5, 4).T, 1),
    S(arr(3, 0), 0),
]
moments = [s for s in moments if s.args[0].ndim]
for name, root in (("var", False), ("std", True)):
    bad = [
        Bad(S(ints(3)), ut.errors.DTypeError, rf"\[{name}(_mean)?\].*int64"),
        Bad(S(arr(3), 1), IndexError, rf"\[{name}(_mean)?\] dim 1"),
        Bad(S(arr(3), unbiased=True, correction=1), ValueError, rf"\[{name}(_mean)?\].*not both"),
    ]
    degenerate = [
        S(Const([[3.0]]), 1),
        S(Const(2.0)),
        S(Const(np.zeros(0))),
        S(Const([1.0, 2.0]), correction=3),
    ]
    op(name, np_moment(lambda out, mean: out, root), [*moments, *degenerate], bad=bad)
    op(
        f"{name}_mean",
        np_moment(lambda out, mean: [out, mean], root),
        [*moments, *degenerate],
        bad=bad,
    )


# Medians, modes and quantiles
SOME_NAN = Const([[1.0, NAN, 3.0, 2.0], [4.0, 2.0, 0.5, 7.0], [NAN, NAN, NAN, 1.0]])


def np_median(skip):
    """The lower median with its index, row by row."""

    def one(row):
        numbers = [i for i in range(len(row)) if row[i] == row[i]]
        if len(numbers) < len(row) and not skip:
            return next(i for i in range(len(row)) if row[i] != row[i])
        return sorted(numbers, key=lambda i: row[i])[(len(numbers) - 1) // 2]

    def run(x, dim=None, keepdim=False):
        if dim is None:
            return x.ravel()[one(x.ravel())] if x.size else NAN
        if not x.ndim:
            return [x, np.int64(0)]
        if not x.size:
            empty = np.zeros(np.max(np.ones(x.shape), axis=dim, keepdims=keepdim).shape)
            return [empty, empty.astype(np.int64)]
        index = np.expand_dims(np.apply_along_axis(one, dim, x), dim)
        both = [np.take_along_axis(x, index, dim), index]
        return both if keepdim else [np.squeeze(a, dim) for a in both]

    return run


for name, skip in (("median", False), ("nanmedian", True)):
    op(
        name,
        np_median(skip),
        [
            *single_dim_samples(),
            S(arr(5)),
            S(np.arange(6)[::-1].copy()),
            S(np.arange(12).reshape(3, 4), 1),
            S(arr(0)),
            S(arr(3, 0), 0),
            S(SOME_NAN),
            S(SOME_NAN, 1),
            S(SOME_NAN, 0, True),
        ],
        bad=[
            Bad(S(arr(0, 3), 0), IndexError, rf"\[{name}\].*dim 0 of size 0"),
            Bad(S(ints(0)), IndexError, rf"\[{name}\]"),
            Bad(S(arr(3), 1), IndexError, rf"\[{name}\] dim 1"),
        ],
    )


def np_mode(x, dim=-1, keepdim=False):
    """The most frequent, smallest value at its last index."""

    def one(row):
        best = min(row, key=lambda v: (-np.sum(row == v), v))
        return max(i for i in range(len(row)) if row[i] == best)

    if not x.ndim:
        return [x, np.int64(0)]
    index = np.expand_dims(np.apply_along_axis(one, dim, x), dim)
    both = [np.take_along_axis(x, index, dim), index]
    return both if keepdim else [np.squeeze(a, dim) for a in both]


op(
    "mode",
    np_mode,
    [
        S(ints(7, low=0, high=3)),
        S(ints(4, 6, low=0, high=3), 1),
        S(ints(4, 6, low=0, high=3), 0, True),
        S(arr(3, 4)),
        S(arr(4, 3).T, 0),
        S(arr()),
        S(arr(), 0, True),
        S(ints(2, 3, 4, low=0, high=2), dim=-2),
        S(ints(9, low=0, high=2).astype(bool)),
    ],
    bad=[
        Bad(S(arr(0)), IndexError, r"\[mode\].*dim 0 of size 0"),
        Bad(S(arr(3), 1), IndexError, r"\[mode\] dim 1"),
    ],
)


def np_quantile(function):
    def run(x, q, dim=None, keepdim=False, *, interpolation="linear"):
        axis = dim if x.ndim else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(x, q, axis=axis, keepdims=keepdim, method=interpolation)

    return run


Q = np.array([0.0, 0.1, 0.37, 0.5, 1.0])
for name, function in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
    op(
        name,
        np_quantile(function),
        [
            S(arr(5), 0.3),
            S(arr(3, 4), 0.5),
            S(arr(3, 4), 0.5, 0),
            S(arr(3, 4), 0.25, dim=-1, keepdim=True),
            S(arr(3, 4), Const(Q), 1),
            S(arr(3, 4), Const(Q), 0, True),
            S(arr(3, 4), Const(Q)),
            S(arr(3, 4), Const(Q), keepdim=True),
            S(arr(), 0.5),
            S(arr(), Const(Q), 0),
            S(arr(4, 3).T, 0.6, 1),
            S(arr(2, 3, 4), Const(Q), -2),
            S(arr(1), 0.7),
            S(arr(6), np.array([0.13, 0.68])),
            S(arr(6), np.array(0.31)),
            S(arr(2, 3), Const(np.zeros(0)), 1),
            *(
                S(arr(3, 6), Const(Q), 1, interpolation=how)
                for how in ("linear", "lower", "higher", "midpoint", "nearest")
            ),
            S(SOME_NAN, Const(Q), 1),
            S(SOME_NAN, 0.5),
            S(SOME_NAN, 0.5, 0, interpolation="nearest"),
            S(Const([[NAN, NAN], [NAN, 1.0]]), 0.5, 1),
        ],
        bad=[
            Bad(S(ints(3), 0.5), TypeError, rf"\[{name}\].*int64"),
            Bad(S(arr(3), 1.5), ValueError, rf"\[{name}\] q.*1.5"),
            Bad(S(arr(3), arr(2, 2)), ut.errors.ShapeError, rf"\[{name}\] q.*\(2, 2\)"),
            Bad(S(arr(0), 0.5), ut.errors.ShapeError, rf"\[{name}\].*empty"),
            Bad(S(arr(3), ints(2)), TypeError, rf"\[{name}\] q.*int64"),
            Bad(S(arr(3), 0.5, interpolation="x"), ValueError, rf"\[{name}\].*'x'"),
            Bad(S(arr(3), 0.5, 1), IndexError, rf"\[{name}\] dim 1"),
        ],
    )


def np_histc(x, bins=100, min=0, max=0):
    if min == max and x.size:
        min, max = x.min(), x.max()
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(x[~np.isnan(x)], bins, (min, max))[0].astype(float)


op(
    "histc",
    np_histc,
    [
        S(Const(arr(40))),
        S(Const(arr(40)), 7),
        S(Const(arr(5, 6).T), bins=4, min=-1, max=1),
        S(Const([1.0, 1.0]), 4),
        S(Const([]), 3),
        S(Const([1.0, 2.0, 1.0, 3.0, 0.0, 5.0]), 4, 0, 3),
        S(Const([NAN, 1.0, 2.0]), 2, 0, 3),
        S(Const(2.0), 3),
    ],
    grad=False,
    bad=[
        Bad(S(ints(3)), TypeError, r"\[histc\].*int64"),
        Bad(S(arr(3), 0), ValueError, r"\[histc\] bins.*0"),
        Bad(S(arr(3), 4, 3, 2), ValueError, r"\[histc\].*min=3"),
        Bad(S(Const([1.0, np.inf])), ValueError, r"\[histc\].*finite"),
    ],
)


def torch_bincount(x, weights=None, minlength=0):
    import torch

    return torch.bincount(x, None if weights is None else weights.detach(), minlength)


op(
    "bincount",
    lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength),
    [
        S(ints(9, low=0)),
        S(ints(9, low=0), minlength=20),
        S(ints(9, low=0), arr(9)),
        S(ints(9, low=0), Const(arr(9)), 3),
        S(ints(0), minlength=3),
        S(ints(9, low=0).astype(np.uint8)),
        S(ints(9, low=0), ints(9)),
    ],
    torch=torch_bincount,
    bad=[
        Bad(S(ints(5)), ValueError, r"\[bincount\].*-"),
        Bad(S(arr(3)), TypeError, r"\[bincount\].*float64"),
        Bad(S(ints(2, 2, low=0)), TypeError, r"\[bincount\].*\(2, 2\)"),
        Bad(S(ints(3, low=0), minlength=-1), ValueError, r"minlength"),
        Bad(
            S(ints(3, low=0), arr(2)), ut.errors.ShapeError, r"\[bincount\] weights.*\(2,\).*\(3,\)"
        ),
    ],
)

# Ties and constants ----------------------------------------------------------------------------
singular("var", S(np.array([2.0, 2.0, 2.0])), S(np.array([[0.0, 0.0], [1.0, 1.0]]), 1))
singular("std", S(np.array([2.0, 2.0, 2.0])), S(np.array([[0.0, 0.0], [1.0, 3.0]]), 1))
for _name in ("median", "nanmedian"):
    singular(_name, S(np.array([1.0, 2.0, 2.0, 3.0])), S(np.array([1.0, 2.0, 2.0, 3.0]), 0))
singular("quantile", S(np.array([1.0, 2.0, 2.0, 3.0]), 0.5), S(np.array([1.0, 1.0]), 0.25))
