"""Samples for `undertow.ops.nn.fractional_pooling`."""

from __future__ import annotations

import itertools

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op
from samples.convolution import several

SHAPE = ut.errors.ShapeError
DTYPE = ut.errors.DTypeError
ARGUMENT = ut.errors.ArgumentError


def fractional(rank):
    """Window after window, with the starts of Graham's paper."""

    def run(x, kernel_size, output_size=None, output_ratio=None, return_indices=False, drawn=None):
        sizes, kernel = x.shape[-rank:], several(kernel_size, rank)
        if output_size is None:
            target = [int(n * r) for n, r in zip(sizes, several(output_ratio, rank), strict=True)]
        else:
            target = several(output_size, rank)
        out = np.zeros((*x.shape[:-rank], *target))
        places = np.zeros(out.shape, np.int64)
        lead = x.shape[:-rank]
        for plane in itertools.product(*map(range, lead)):
            own = drawn.reshape(*lead, rank)[plane]
            own = own[::-1] if rank == 2 else own
            starts = []
            for u, n, m, k in zip(own, sizes, target, kernel, strict=True):
                step = (n - k) / (m - 1) if m > 1 else 0
                starts.append([int((i + u) * step) - int(u * step) for i in range(m - 1)] + [n - k])
            for at in itertools.product(*map(range, target)):
                begin = [s[i] for s, i in zip(starts, at, strict=True)]
                window = tuple(slice(b, b + k) for b, k in zip(begin, kernel, strict=True))
                seen = x[plane][window]
                best = np.unravel_index(seen.argmax(), seen.shape)
                cell = tuple(b + i for b, i in zip(begin, best, strict=True))
                out[(*plane, *at)] = x[(*plane, *cell)]
                places[(*plane, *at)] = np.ravel_multi_index(cell, sizes)
        return (out, places) if return_indices else out

    return run


def torch_fractional(rank):
    """torch's function takes a ratio for each dimension, and hands one number on to fail."""

    def run(x, kernel_size, output_size=None, output_ratio=None, *more):
        import torch.nn.functional as F

        ratio = None if output_ratio is None else several(output_ratio, rank)
        return getattr(F, f"fractional_max_pool{rank}d")(x, kernel_size, output_size, ratio, *more)

    return run


def u_(*shape):
    return Const(arr(*shape, seed=5, low=0.0, high=1.0))


op(
    "nn.functional.fractional_max_pool2d",
    fractional(2),
    [
        S(arr(2, 2, 6, 7), 2, (3, 4), None, False, u_(2, 2, 2)),
        S(arr(2, 2, 6, 7), (3, 2), (4, 3), None, True, u_(2, 2, 2)),
        S(arr(3, 5, 5), 1, 5, None, False, u_(1, 3, 2)),
        S(arr(1, 5, 6), 2, 1, None, True, u_(1, 1, 2)),
        S(arr(1, 2, 7, 5), 2, None, 0.6, False, u_(1, 2, 2)),
        S(arr(1, 2, 7, 8), 3, None, (0.5, 0.4), True, u_(1, 2, 2)),
        S(arr(0, 2, 5, 5), 2, 3, None, False, u_(0, 2, 2)),
        S(arr(1, 6, 5, 2).transpose(0, 3, 1, 2), 2, (3, 2), None, False, u_(1, 2, 2)),
    ],
    torch=torch_fractional(2),
    bad=[
        Bad(S(arr(1, 4, 4), 2), ARGUMENT, r"\[fractional_max_pool2d\] needs output_size or"),
        Bad(S(arr(4, 4), 2, 2), SHAPE, r"\[fractional_max_pool2d\].*\(4, 4\)"),
        Bad(S(arr(1, 4, 4), 2, 4), SHAPE, r"\(4, 4\) windows of \(2, 2\) do not fit.*\(4, 4\)"),
        Bad(S(arr(1, 4, 4), 4, None, 0.5), SHAPE, r"\(2, 2\) windows of \(4, 4\) do not fit"),
        Bad(S(arr(1, 4, 4), 2, None, 1.5), ARGUMENT, r"between 0 and 1.*got 1.5"),
        Bad(S(arr(1, 4, 4), 2, None, (0.5,)), ARGUMENT, r"or 2 of them"),
        Bad(S(arr(1, 4, 4), 0, 2), ARGUMENT, r"kernel_size must be at least 1"),
        Bad(S(ints(1, 4, 4), 2, 2), DTYPE, r"floating tensor, got undertow.int64"),
        Bad(
            S(arr(2, 4, 4), 2, 2, None, False, u_(2, 2)),
            SHAPE,
            r"_random_samples must be \(1, 2, 2\), got \(2, 2\)",
        ),
        Bad(
            S(arr(1, 4, 4), 2, 2, None, False, ints(1, 1, 2)),
            DTYPE,
            r"_random_samples must be undertow.float64 like the input, got undertow.int64",
        ),
    ],
)
op(
    "nn.functional.fractional_max_pool3d",
    fractional(3),
    [
        S(arr(1, 2, 4, 5, 4), 2, (2, 3, 2), None, True, u_(1, 2, 3)),
        S(arr(2, 5, 4, 4), (1, 2, 2), None, (0.5, 0.5, 0.6), False, u_(1, 2, 3)),
    ],
    torch=torch_fractional(3),
    bad=[Bad(S(arr(1, 4, 4), 2, 2), SHAPE, r"\[fractional_max_pool3d\]")],
)
