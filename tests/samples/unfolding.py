"""Samples for `undertow.ops.shape.unfolding`."""

from __future__ import annotations

import itertools

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, op
from samples.convolution import several

SHAPE = ut.errors.ShapeError
ARGUMENT = ut.errors.ArgumentError


def places(size, kernel, dilation, padding, stride):
    """For each row and column of the result, the pixel of the padded image."""
    kernel, dilation, padding, stride = (several(v, 2) for v in (kernel, dilation, padding, stride))
    every = zip(size, kernel, dilation, padding, stride, strict=True)
    count = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in every]
    for row, tap in enumerate(itertools.product(*map(range, kernel))):
        for column, at in enumerate(itertools.product(*map(range, count))):
            yield (
                row,
                column,
                tuple(
                    i * s + t * d - p
                    for i, s, t, d, p in zip(at, stride, tap, dilation, padding, strict=True)
                ),
            )


def np_unfold(x, kernel, dilation=1, padding=0, stride=1):
    found = list(places(x.shape[-2:], kernel, dilation, padding, stride))
    taps, count = found[-1][0] + 1, found[-1][1] + 1
    out = np.zeros((*x.shape[:-2], taps, count), x.dtype)
    for row, column, (i, j) in found:
        if 0 <= i < x.shape[-2] and 0 <= j < x.shape[-1]:
            out[..., row, column] = x[..., i, j]
    return out.reshape(*x.shape[:-3], x.shape[-3] * taps, count)


def np_fold(x, output_size, kernel, dilation=1, padding=0, stride=1):
    size = several(output_size, 2)
    found = list(places(size, kernel, dilation, padding, stride))
    taps = found[-1][0] + 1
    x = x.reshape(*x.shape[:-2], x.shape[-2] // taps, taps, x.shape[-1])
    out = np.zeros((*x.shape[:-2], *size), x.dtype)
    for row, column, (i, j) in found:
        if 0 <= i < size[0] and 0 <= j < size[1]:
            out[..., i, j] += x[..., row, column]
    return out


op(
    "nn.functional.unfold",
    np_unfold,
    [
        S(arr(2, 2, 3, 4), 2),
        S(arr(2, 3, 4), (2, 3)),
        S(arr(1, 2, 5, 4), (2, 1), 2, 1, (2, 1)),
        S(arr(1, 1, 4, 4), 3, padding=(0, 2), stride=3),
        S(arr(0, 2, 3, 3), 2),
        S(arr(1, 4, 3, 2).transpose(0, 3, 1, 2), 2, 1, 1),
        S(arr(1, 1, 3, 3), (3, 3)),
    ],
    bad=[
        Bad(S(arr(3, 4), 2), SHAPE, r"\[unfold\].*\(3, 4\)"),
        Bad(S(arr(1, 1, 3, 4), 5), SHAPE, r"windows of \(5, 5\) do not fit into .*\(3, 4\)"),
        Bad(S(arr(1, 1, 3, 4), 2, 0), ARGUMENT, r"dilation must be at least 1"),
        Bad(S(arr(1, 1, 3, 4), 2, padding=-1), ARGUMENT, r"padding must be at least 0"),
        Bad(S(arr(1, 1, 3, 4), 2, stride=0), ARGUMENT, r"stride must be at least 1"),
        Bad(S(arr(1, 1, 3, 4), (2, 2, 2)), ARGUMENT, r"kernel_size must be an integer or 2"),
    ],
    method=False,
)
op(
    "nn.functional.fold",
    np_fold,
    [
        S(arr(2, 8, 6), (3, 4), 2),
        S(arr(4, 6), (3, 4), 2),
        S(arr(1, 6, 8), (3, 4), (2, 3), padding=1, stride=(2, 1)),
        S(arr(0, 4, 4), 3, 2),
        S(arr(6, 8, 1).T, (3, 4), 2),
        S(arr(1, 4, 4), (5, 5), 2, 2, 0, 2),
    ],
    bad=[
        Bad(S(arr(1, 4, 5), (3, 4), 2), SHAPE, r"\[fold\].*\(3, 4\) has 6 windows.*\(1, 4, 5\)"),
        Bad(S(arr(1, 5, 6), (3, 4), 2), SHAPE, r"\(…, C·4, 6\), got shape \(1, 5, 6\)"),
        Bad(S(arr(4), (3, 4), 2), SHAPE, r"\[fold\] expects"),
        Bad(S(arr(1, 4, 6), (1, 4), 2), SHAPE, r"do not fit"),
        Bad(S(bools(1, 4, 6), (3, 4), 2), ut.errors.DTypeError, r"bool"),
    ],
)
