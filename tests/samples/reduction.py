"""Samples for `undertow.ops.reduction`."""

from __future__ import annotations

import numpy as np
from op_samples import Bad, Const, S, arr, bools, ints, op

import undertow as ut

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
    return [s for s in reduction_samples(make) if not any(
        isinstance(a, tuple) for a in [*s.args, *s.kwargs.values()])]  # fmt: skip


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


op("sum", np_reduce(np.sum),
   [*reduction_samples(), S(arr(0, 3)), S(arr(0, 3), 0), S(ints(3, 4), 1), S(bools(3, 4), 0),
    S(ints(3), dtype=ut.float64), S(ints(3).astype(np.int8)), S(arr(3, 4), axis=0, keepdims=True)],
   bad=[Bad(S(arr(3), 1), IndexError, r"\[sum\] dim 1"),
        Bad(S(arr(3, 3), (0, 0)), ut.errors.ArgumentError, r"\[sum\].*twice")])  # fmt: skip
op("mean", np_reduce(np.mean),
   [*reduction_samples(), S(ints(3, 4), 1, dtype=ut.float64), S(arr(0, 3), 1)],
   bad=[Bad(S(ints(3)), ut.errors.DTypeError, r"\[mean\].*int64.*dtype=ut.float32"),
        Bad(S(arr(3), -2), IndexError, r"\[mean\] dim -2")])  # fmt: skip
ZEROS = [np.array([2.0, 0.0, 3.0, -1.5]), np.array([0.0, 2.0, 0.0, 3.0]),
         np.array([[0.0, 1.5, 0.0, 0.0], [1.0, 2.0, 3.0, 0.0], [0.5, 2.0, 3.0, -1.0]])]  # fmt: skip
op("prod", np_reduce(np.prod),
   [*single_dim_samples(), *(S(z) for z in ZEROS), S(ZEROS[2], 1), S(ZEROS[2], 0, keepdim=True),
    S(ZEROS[2].T, -1), S(ints(3, 4), 1), S(bools(3)), S(arr(0)), S(arr(0, 3), 0), S(arr(2, 0), 0),
    S(ints(3), dtype=ut.float64), S(arr(1))],
   bad=[Bad(S(arr(3), 1), IndexError, r"\[prod\] dim 1")])  # fmt: skip
for name, reduce in (("amax", np.max), ("amin", np.min)):
    op(name, np_reduce(reduce),
       [*reduction_samples(), S(ints(3, 4), 1), S(bools(3, 4), 0), S(arr(0, 3), 1), S(WITH_NAN, 1)],
       bad=[Bad(S(arr(0, 3), 0), IndexError, rf"\[{name}\].*dim 0 of size 0.*\(0, 3\)"),
            Bad(S(arr(0)), IndexError, rf"\[{name}\]"),
            Bad(S(arr(3).astype(complex)), TypeError, rf"\[{name}\].*complex"),
            Bad(S(arr(3), 2), IndexError, rf"\[{name}\] dim 2")])  # fmt: skip
for name, reduce, position, pair in (("max", np.max, np.argmax, np.maximum),
                                     ("min", np.min, np.argmin, np.minimum)):  # fmt: skip
    op(name, np_extreme(reduce, position, pair),
       [*single_dim_samples(), S(arr(3, 4), arr(4, seed=1)), S(arr(3), other=arr(3, seed=1)),
        S(ints(3, 4), 1), S(ints(3, 4)), S(bools(3, 4), 1), S(arr(0, 3), 1), S(WITH_NAN, 1),
        S(WITH_NAN)],
       bad=[Bad(S(arr(0, 3), 0), IndexError, rf"\[{name}\].*dim 0 of size 0.*\(0, 3\)"),
            Bad(S(arr(0)), IndexError, rf"\[{name}\]"),
            Bad(S(arr(3), 2), IndexError, rf"\[{name}\] dim 2")])  # fmt: skip
    op(f"arg{name}", lambda x, dim=None, keepdim=False, p=position: p(
            x, axis=dim if np.ndim(x) else None, keepdims=keepdim),
       [*single_dim_samples(), S(TIES, 1), S(TIES), S(TIES, dim=None, keepdim=True), S(ints(3, 4), 1),
        S(ints(4, 3).T), S(arr(0, 3), 1), S(WITH_NAN, 1), S(WITH_NAN)], grad=False,
       bad=[Bad(S(arr(0, 3), 0), IndexError, rf"\[arg{name}\].*dim 0 of size 0.*\(0, 3\)"),
            Bad(S(arr(0)), IndexError, rf"\[arg{name}\]"),
            Bad(S(arr(3), 2), IndexError, rf"\[arg{name}\] dim 2")])  # fmt: skip
for name, reduce in (("any", np.any), ("all", np.all)):
    op(name, np_reduce(reduce),
       [*reduction_samples(bools), S(arr(3, 4), 0), S(ints(3, 4), 1), S(arr(0, 3)), S(arr(0, 3), 0),
        S(arr(0, 3), 1), S(np.array([0, 1, 0], np.uint8)), S(WITH_NAN)], grad=False,
       bad=[Bad(S(arr(3), 1), IndexError, rf"\[{name}\] dim 1")])  # fmt: skip


def np_logsumexp(x, dim, keepdim=False):
    if np.ndim(x) == 0:
        return np.asarray(x, float)
    with np.errstate(all="ignore"):
        return np.log(np.sum(np.exp(x), axis=dim, keepdims=keepdim))


op("logsumexp", np_logsumexp,
   [*(s for s in reduction_samples() if s.kwargs or len(s.args) > 1), S(ints(3, 4), 1),
    S(arr(2, 0), 1), S(arr(0, 2), 1), S(Const([[-INF, -INF], [-INF, 1.0], [INF, 2.0]]), 1),
    S(arr(3, 4), (0, 1))], rtol=1e-6,
   bad=[Bad(S(arr(3), 1), IndexError, r"\[logsumexp\] dim 1")])  # fmt: skip
