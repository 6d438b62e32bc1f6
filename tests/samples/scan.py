"""Samples for `undertow.ops.reduce.scan`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, bools, ints, op, singular

from .reduction import INF, NAN, ZEROS


def scan_samples(make=arr):
    """A dimension from either end, on awkward shapes."""
    return [
        S(make(4), 0),
        S(make(3, 4), 0),
        S(make(3, 4), dim=-1),
        S(make(2, 3, 4), 1),
        S(make(), 0),
        S(make(), -1),
        S(make(1, 3), 0),
        S(make(0, 3), 0),
        S(make(0, 3), 1),
        S(make(4, 3).T, 1),
    ]


def np_scan(function):
    """A NumPy scan with torch's argument names."""

    def run(x, dim, dtype=None):
        if np.ndim(x) == 0:
            return x
        return function(x, axis=dim) if dtype is None else function(x.astype(dtype.numpy), axis=dim)

    return run


def np_running(better):
    """`cummax` and `cummin` step by step."""

    def run(x, dim):
        values, where = np.array(x), np.zeros(np.shape(x), np.int64)
        v, w = (np.moveaxis(a, dim, 0) if a.ndim else a.reshape(1) for a in (values, where))
        for i in range(1, len(v)):
            new = better(v[i], v[i - 1]) | np.isnan(v[i].astype(float))
            v[i], w[i] = np.where(new, v[i], v[i - 1]), np.where(new, i, w[i - 1])
        return [values, where]

    return run


def bad_dim(name):
    return Bad(S(arr(3), 1), IndexError, rf"\[{name}\] dim 1")


for name, function in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
    op(
        name,
        np_scan(function),
        [
            *scan_samples(),
            *(S(z, -1) for z in ZEROS),
            S(ZEROS[2], 0),
            S(ZEROS[2].T, 0),
            S(ints(3, 4), 1),
            S(bools(5), 0),
            S(ints(3), 0, dtype=ut.float64),
            S(ints(3).astype(np.int8), 0),
        ],
        bad=[bad_dim(name)],
    )
RUNS = Const([[1.0, 3.0, 3.0, 0.0, 3.0], [NAN, 2.0, 2.0, NAN, 5.0], [-1.0, -1.0, -5.0, -5.0, 0.0]])
for name, better in (("cummax", np.greater_equal), ("cummin", np.less_equal)):
    op(
        name,
        np_running(better),
        [*scan_samples(), S(RUNS, 1), S(RUNS, 0), S(ints(3, 4), 1), S(bools(5), 0)],
        bad=[bad_dim(name), Bad(S(arr(2).astype(complex), 0), TypeError, rf"\[{name}\].*complex")],
    )


def np_logcumsumexp(x, dim):
    if x.dtype.kind == "c":
        return np.log(np.cumsum(np.exp(x), dim))
    return np.logaddexp.accumulate(x, axis=dim) if np.ndim(x) else x


op(
    "logcumsumexp",
    np_logcumsumexp,
    [
        *scan_samples(),
        S(np.array([700.0, 0.0, -700.0, 710.0, 3.0]), 0),
        S(np.array([-3000.0, 0.0, 3000.0]), 0),
        S(Const([-INF, -INF, 1.0, INF, 2.0, -INF]), 0),
    ],
    bad=[bad_dim("logcumsumexp"), Bad(S(ints(3), 0), TypeError, r"\[logcumsumexp\].*int64")],
)


def np_diff(x, n=1, dim=-1, prepend=None, append=None):
    x = np.concatenate([t for t in (prepend, x, append) if t is not None], axis=dim)
    return np.diff(x, min(n, x.shape[dim]), axis=dim) if n else x


op(
    "diff",
    np_diff,
    [
        S(arr(5)),
        S(arr(3, 4)),
        S(arr(3, 4), dim=0),
        S(arr(3, 4), 2, 0),
        S(arr(5, 3).T, 3),
        S(arr(3), 0),
        S(arr(3), 3),
        S(arr(3), 9),
        S(arr(1)),
        S(arr(2, 0)),
        S(ints(3, 4), 1),
        S(bools(6)),
        S(bools(6), 2),
        S(arr(2, 3), prepend=arr(2, 1, seed=1), append=arr(2, 2, seed=2)),
        S(arr(2, 3), 2, 0, arr(1, 3, seed=1)),
    ],
    bad=[
        Bad(S(arr()), IndexError, r"\[diff\].*at least 1"),
        Bad(S(arr(3), -1), ValueError, r"\[diff\] n.*-1"),
        Bad(S(arr(3), dim=1), IndexError, r"\[diff\] dim 1"),
        Bad(
            S(arr(2, 3), prepend=arr(3, 1)),
            ut.errors.ShapeError,
            r"\[diff\] prepend.*\(3, 1\).*\(2, 3\)",
        ),
        Bad(S(arr(2, 3), append=arr(3)), ut.errors.ShapeError, r"\[diff\] append"),
    ],
)


def np_trapezoid(y, x=None, *, dx=1, dim=-1):
    return np.trapezoid(y, x, dx, axis=dim)


def np_cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    y = np.moveaxis(y, dim, -1)
    gap = dx if x is None else np.diff(x if x.ndim == 1 else np.moveaxis(x, dim, -1))
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) * gap / 2, -1), -1, dim)


for name, torch_name, reference in (
    ("trapezoid", "trapezoid", np_trapezoid),
    ("trapz", "trapezoid", np_trapezoid),
    ("cumulative_trapezoid", "cumulative_trapezoid", np_cumulative_trapezoid),
):
    said = torch_name
    op(
        name,
        reference,
        [
            S(arr(4)),
            S(arr(3, 4)),
            S(arr(3, 4), dim=0),
            S(arr(3, 4), dx=0.5),
            S(arr(3, 4), arr(4, seed=1)),
            S(arr(3, 4), arr(3, seed=1), dim=0),
            S(arr(3, 4), arr(3, 4, seed=1), dim=-2),
            S(arr(2, 3, 4), arr(3, 4)),
            S(arr(2, 3, 4), arr(3, seed=1), dim=1),
            S(arr(4, 3).T),
            S(arr(2, 1)),
            S(arr(2, 0)),
            S(arr(0, 2)),
        ],
        torch=torch_name,
        method=False,
        check_dtype=True,
        bad=[
            Bad(S(arr()), IndexError, rf"\[{said}\]"),
            Bad(S(bools(3)), TypeError, rf"\[{said}\].*bool"),
            Bad(S(arr(2, 3), arr(2)), ut.errors.ShapeError, rf"\[{said}\].*2.*3"),
            Bad(S(arr(3), dim=1), IndexError, rf"\[{said}\] dim 1"),
        ],
    )

# Zeros, ties and what is not there yet ---------------------------------------------------------
singular("cumprod", S(np.array([2.0, 0.0, 3.0, 0.0]), 0), S(np.array([[0.0, 1.0], [2.0, 0.0]]), 1))
for _name in ("cummax", "cummin"):
    singular(_name, S(np.array([1.0, 1.0, 0.0, 1.0, 2.0]), 0))
singular("logcumsumexp", S(np.array([-np.inf, 0.0, 0.0]), 0), torch=False)  # torch's is NaN
