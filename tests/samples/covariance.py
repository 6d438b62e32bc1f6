"""Samples for `undertow.ops.reduce.covariance`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, ints, op, positive


def np_cov(x, *, correction=1, fweights=None, aweights=None):
    """NumPy's, where no degrees of freedom are left: infinite, not an error."""
    return np.squeeze(np.cov(x, ddof=correction, fweights=fweights, aweights=aweights))


op(
    "cov",
    np_cov,
    [
        S(arr(3, 5)),
        S(arr(5)),
        S(arr(5, 3).T),
        S(arr(3, 5), correction=0),
        S(arr(3, 5), fweights=ints(5, low=1)),
        S(arr(3, 5), aweights=positive(5)),
        S(arr(2, 5), fweights=ints(5, low=1), aweights=positive(5)),
        S(ints(2, 4)),
    ],
    bad=[
        Bad(S(arr(2, 2, 2)), RuntimeError, r"\[cov\] needs at most two dim"),
        Bad(S(arr(2, 3), fweights=arr(3)), TypeError, r"\[cov\] fweights must be integers"),
        Bad(S(arr(2, 3), aweights=ints(3)), TypeError, r"\[cov\] aweights must be floating"),
        Bad(S(arr(2, 3), aweights=positive(2)), ValueError, r"\[cov\] aweights must have one"),
        Bad(S(arr(2, 2), fweights=np.array([1, -1])), ValueError, r"\[cov\] fweights must not"),
        Bad(S(arr(2, 2) > 0), ut.errors.DTypeError, r"\[cov\] needs numbers"),
    ],
)
op(
    "corrcoef",
    np.corrcoef,
    [S(arr(3, 5)), S(arr(4)), S(arr(5, 3).T)],
    bad=[Bad(S(arr(2, 2, 2)), RuntimeError, r"\[corrcoef\] needs at most")],
)
