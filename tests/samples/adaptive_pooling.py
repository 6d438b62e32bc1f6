"""Samples for `undertow.ops.nn.adaptive_pooling`."""

from __future__ import annotations

import itertools

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, ints, op
from samples.convolution import several

SHAPE = ut.errors.ShapeError
DTYPE = ut.errors.DTypeError
ARGUMENT = ut.errors.ArgumentError


def adaptive(rank, reduce):
    """Windows from floor(i n / m) to ceil((i + 1) n / m)."""

    def run(x, output_size, return_indices=False):
        sizes = x.shape[-rank:]
        target = several(output_size, rank)
        target = [n if m is None else m for n, m in zip(sizes, target, strict=True)]
        out = np.zeros((*x.shape[:-rank], *target))
        places = np.zeros(out.shape, np.int64)
        for at in itertools.product(*map(range, target)):
            cells = list(
                itertools.product(
                    *(
                        range(i * n // m, -(-(i + 1) * n // m))
                        for i, n, m in zip(at, sizes, target, strict=True)
                    )
                )
            )
            seen = np.stack([x[(..., *cell)] for cell in cells], -1)
            flat = np.array([np.ravel_multi_index(cell, sizes) for cell in cells])
            out[(..., *at)] = reduce(seen, -1)
            places[(..., *at)] = flat[seen.argmax(-1)]
        return (out, places) if return_indices else out

    return run


def bad(name):
    return [
        Bad(S(arr(5), 2), SHAPE, rf"\[{name}\].*\(5,\)"),
        Bad(S(arr(1, 2, 0), 2), SHAPE, r"nothing to pool"),
        Bad(S(arr(1, 2, 5), -1), ARGUMENT, r"output_size must be at least 0, got"),
        Bad(S(arr(1, 2, 5), (2, 2)), ARGUMENT, r"output_size must be an integer or 1 of them"),
        Bad(S(arr(1, 2, 5), 1.5), DTYPE, r"output_size must be an integer, got float 1.5"),
        Bad(S(ints(1, 2, 5), 2), DTYPE, r"floating tensor, got undertow.int64"),
    ]


ONE = [
    S(arr(2, 3, 6), 3),
    S(arr(3, 7), 3),
    S(arr(1, 2, 5), 1),
    S(arr(1, 2, 4), 7),
    S(arr(1, 2, 5), 5),
    S(arr(0, 2, 5), 3),
    S(arr(7, 2, 1).T, (4,)),
]
TWO = [
    S(arr(2, 2, 4, 6), (2, 3)),
    S(arr(2, 5, 7), 3),
    S(arr(1, 2, 4, 5), (None, 3)),
    S(arr(1, 2, 6, 5), (3, 2)),
    S(arr(1, 2, 4, 4), 1),
    S(arr(1, 2, 3, 3), (5, 1)),
    S(arr(1, 5, 4, 2).transpose(0, 3, 1, 2), (3, 4)),
]
THREE = [
    S(arr(1, 2, 4, 3, 5), (2, 3, 2)),
    S(arr(1, 2, 3, 4), 2),
    S(arr(1, 1, 4, 2, 2), (None, 1, 2)),
]


def indexed(samples):
    return samples + [S(*s.args, return_indices=True) for s in samples]


op("adaptive_avg_pool1d", adaptive(1, np.mean), ONE, bad=bad("adaptive_avg_pool1d"))
op(
    "nn.functional.adaptive_avg_pool2d",
    adaptive(2, np.mean),
    TWO,
    bad=[
        Bad(S(arr(4, 4), 2), SHAPE, r"\[adaptive_avg_pool2d\]"),
        Bad(S(arr(1, 4, 4), (2,)), ARGUMENT, r"2 of them"),
    ],
)
op(
    "nn.functional.adaptive_avg_pool3d",
    adaptive(3, np.mean),
    THREE,
    bad=[Bad(S(arr(1, 4, 4), 2), SHAPE, r"\[adaptive_avg_pool3d\]")],
)
op(
    "nn.functional.adaptive_max_pool1d",
    adaptive(1, np.max),
    indexed(ONE),
    bad=bad("adaptive_max_pool1d"),
)
op(
    "nn.functional.adaptive_max_pool2d",
    adaptive(2, np.max),
    indexed(TWO),
    bad=[Bad(S(arr(4, 4), 2), SHAPE, r"\[adaptive_max_pool2d\]")],
)
op(
    "nn.functional.adaptive_max_pool3d",
    adaptive(3, np.max),
    indexed(THREE),
    bad=[Bad(S(arr(1, 4, 4), 2), SHAPE, r"\[adaptive_max_pool3d\]")],
)
