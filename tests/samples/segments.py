"""Samples for `undertow.ops.reduce.segments`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, S, arr, ints, op

START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}
UFUNC = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def np_segment_reduce(x, reduce, *, lengths=None, offsets=None, axis=0, initial=None):
    """By its definition, run by run."""
    lengths = np.diff(offsets) if lengths is None else lengths
    if lengths.ndim > 1:
        rows = zip(x, lengths, strict=True)
        return np.stack([np_segment_reduce(r, reduce, lengths=n, initial=initial) for r, n in rows])
    out, at = [], 0
    for n in lengths:
        start = START[reduce] if initial is None else initial
        run = UFUNC[reduce].reduce(x[at : at + n], axis=0, initial=start)
        with np.errstate(invalid="ignore"):
            divide = reduce == "mean" and (n or initial is None)
            out.append(run / np.float64(n) if divide else run)
        at += n
    return np.stack(out)


op(
    "segment_reduce",
    np_segment_reduce,
    [
        *(S(arr(6), kind, lengths=np.array([1, 3, 2])) for kind in START),
        *(S(arr(6, 2), kind, offsets=np.array([0, 2, 2, 6]), initial=0.5) for kind in START),
        S(arr(2, 4, 3), "sum", lengths=np.array([[1, 3], [2, 2]]), axis=1),
        S(arr(2, 4), "mean", lengths=np.array([[1, 3], [2, 2]]), axis=1),
        S(arr(3), "prod", lengths=np.array([0, 3])),
    ],
    bad=[
        Bad(S(arr(4), "sum", lengths=np.array([1, 4])), ValueError, "the lengths must add up to 4"),
        Bad(S(arr(4), "median", lengths=np.array([4])), ValueError, "reduce must be one of"),
        Bad(S(ints(4), "sum", lengths=np.array([4])), TypeError, "needs floating"),
        Bad(S(arr(4), "sum"), ValueError, "needs lengths or offsets"),
        Bad(S(arr(4), "sum", lengths=np.array([5, -1])), ValueError, "must not be negative"),
        Bad(S(arr(4), "sum", indices=np.array([4])), NotImplementedError, "not indices"),
        Bad(S(arr(4, 2), "sum", lengths=np.array([2]), axis=1), ValueError, "before axis 1"),
    ],
    torch_gradgrad=False,
)
