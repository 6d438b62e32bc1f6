"""Samples for `undertow.ops.reduce.masked`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, S, arr, bools, ints, op, positive

MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])


def kept(x, mask):
    """A masked array of NumPy's."""
    return np.ma.masked_array(
        x, mask=np.zeros(x.shape, bool) if mask is None else ~np.broadcast_to(mask, x.shape)
    )


def plain(found, fill=np.nan):
    return np.asarray(np.ma.filled(found, fill))


def reduced(name, fill):
    """One of NumPy's reductions of masked arrays."""

    def run(x, dim=None, *, keepdim=False, dtype=None, mask=None, correction=1):
        axis = tuple(range(x.ndim)) if dim is None else dim
        more = {"ddof": correction} if name in ("var", "std") else {}
        return plain(getattr(np.ma, name)(kept(x, mask), axis=axis, keepdims=keepdim, **more), fill)

    return run


def samples(*more):
    x = arr(3, 4)
    return [
        S(x, mask=MASK),
        S(x, 1, mask=MASK),
        S(x, 0, keepdim=True, mask=MASK),
        S(x, (0, 1), mask=MASK[:1]),
        S(x, 1),
        *more,
    ]


BAD = [
    Bad(S(arr(3, 4), mask=bools(2, 4)), ValueError, "mask"),
    Bad(S(arr(3), mask=MASK), ValueError, "mask"),
]
op("masked.sum", reduced("sum", 0), samples(S(ints(3, 4), 1, mask=MASK)), bad=BAD)
op("masked.prod", reduced("prod", 1), samples(), bad=BAD)
op("masked.mean", reduced("mean", np.nan), samples(), bad=BAD)
op("masked.amax", reduced("max", -np.inf), samples(), bad=BAD)
op("masked.amin", reduced("min", np.inf), samples(), bad=BAD)
op("masked.var", reduced("var", np.nan), samples(S(arr(3, 4), 1, correction=0, mask=MASK)), bad=BAD)
op("masked.std", reduced("std", np.nan), samples(S(arr(3, 4), 1, correction=0, mask=MASK)), bad=BAD)


def np_logsumexp(x, dim=None, *, keepdim=False, mask=None):
    axis = tuple(range(x.ndim)) if dim is None else dim
    return np.log(plain(np.ma.sum(np.exp(kept(x, mask)), axis=axis, keepdims=keepdim), 0))


op("masked.logsumexp", np_logsumexp, samples(), bad=BAD)


def np_position(name, fill):
    def run(x, dim=None, *, keepdim=False, mask=None):
        return getattr(np, name)(plain(kept(x, mask), fill), axis=dim, keepdims=keepdim)

    return run


places = [S(arr(3, 4), mask=MASK), S(arr(3, 4), 1, mask=MASK), S(arr(3, 4), 0, keepdim=True)]
op("masked.argmax", np_position("argmax", -np.inf), places, grad=False)
op("masked.argmin", np_position("argmin", np.inf), places, grad=False)


def np_along(fill, compute):
    return lambda x, dim, *, mask=None: compute(plain(kept(x, mask), fill), dim)


def np_softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def np_log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


rows = [S(arr(3, 4), 1, mask=MASK), S(arr(3, 4), 0, mask=MASK), S(arr(3, 4), -1)]
op("masked.cumsum", np_along(0, np.cumsum), rows)
op("masked.cumprod", np_along(1, np.cumprod), rows)
op("masked.softmax", np_along(-np.inf, np_softmax), rows)
op("masked.softmin", np_along(np.inf, lambda x, axis: np_softmax(-x, axis)), rows)
op("masked.log_softmax", np_along(-np.inf, lambda x, axis: np_log(np_softmax(x, axis))), rows[2:])
op(
    "masked.median",
    lambda x, dim=-1, *, keepdim=False, mask=None: np.nanquantile(
        plain(kept(x, mask)), 0.5, axis=dim, keepdims=keepdim, method="lower"
    ),
    [S(arr(3, 4), 1, mask=MASK), S(arr(3, 4), 0, keepdim=True, mask=MASK), S(arr(3, 4))],
)


def np_norm(x, ord=2.0, dim=None, *, keepdim=False, mask=None):
    filled = plain(kept(x, mask), 0 if ord >= 0 else np.inf)
    axis = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
    if ord in (np.inf, -np.inf):
        reduce = np.max if ord > 0 else np.min
        return reduce(np.abs(filled), axis=axis, keepdims=keepdim)
    return np.sum(np.abs(filled) ** ord, axis=axis, keepdims=keepdim) ** (1 / ord)


op(
    "masked.norm",
    np_norm,
    [
        S(arr(3, 4), mask=MASK),
        S(arr(3, 4), 1.0, 1, mask=MASK),
        S(arr(3, 4), 3.0, (0, 1), keepdim=True, mask=MASK),
        S(arr(3, 4), np.inf, 0, mask=MASK),
        S(arr(3, 4), -np.inf, 1, mask=MASK),
    ],
)
op(
    "masked.normalize",
    lambda x, ord, dim, *, mask=None: (
        plain(kept(x, mask), 0) / np_norm(x, ord, dim, keepdim=True, mask=mask)
    ),
    [S(arr(3, 4), 2.0, 1, mask=MASK), S(arr(3, 4), 1.0, 0)],
)


def np_logaddexp(x, y, *, input_mask=None, other_mask=None):
    return np.logaddexp(plain(kept(x, input_mask), -np.inf), plain(kept(y, other_mask), -np.inf))


op(
    "masked.logaddexp",
    np_logaddexp,
    [
        S(arr(3, 4), arr(3, 4, seed=1), input_mask=MASK),
        S(arr(3, 4), positive(3, 4), other_mask=MASK),
    ],
    torch_gradgrad=False,  # NaN there
)
