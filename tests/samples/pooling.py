"""Samples for `undertow.ops.nn.pooling`."""

from __future__ import annotations

import itertools
import math

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, ints, op, positive, singular
from samples.convolution import several

SHAPE = ut.errors.ShapeError
DTYPE = ut.errors.DTypeError
ARGUMENT = ut.errors.ArgumentError


def windows(size, kernel, stride, pad, dilation, ceil):
    """For each window of a dimension: where it begins and ends, and its elements that exist."""
    extent = dilation * (kernel - 1) + 1
    exact = (size + 2 * pad - extent) / stride
    count = (math.ceil(exact) if ceil else math.floor(exact)) + 1
    if ceil and (count - 1) * stride >= size + pad:
        count -= 1
    for start in range(-pad, -pad + count * stride, stride):
        inside = [start + t * dilation for t in range(kernel)]
        yield start, start + extent, [i for i in inside if 0 <= i < size]


def pooled(rank, x, kernel, stride, pad, dilation, ceil):
    """For each output position, the windows along every dimension."""
    every = [several(v, rank) for v in (kernel, stride or kernel, pad, dilation)]
    sizes = x.shape[-rank:]
    lists = [list(windows(n, *each, ceil)) for n, *each in zip(sizes, *every, strict=True)]
    shape = [len(one) for one in lists]
    for at in itertools.product(*map(range, shape)):
        yield shape, at, [one[i] for one, i in zip(lists, at, strict=True)]


def np_max(rank):
    def run(
        x, kernel, stride=None, pad=0, dilation=1, ceil_mode=False, return_indices=False, **named
    ):
        pad, dilation = named.get("padding", pad), named.get("dilation", dilation)
        out = places = None
        for shape, at, spans in pooled(rank, x, kernel, stride, pad, dilation, ceil_mode):
            if out is None:
                out = np.zeros((*x.shape[:-rank], *shape), x.dtype)
                places = np.zeros(out.shape, np.int64)
            cells = list(itertools.product(*(inside for _, _, inside in spans)))
            seen = np.stack([x[(..., *cell)] for cell in cells], -1)
            flat = np.array([np.ravel_multi_index(cell, x.shape[-rank:]) for cell in cells])
            out[(..., *at)] = seen.max(-1)
            places[(..., *at)] = flat[seen.argmax(-1)]
        return (out, places) if return_indices else out

    return run


def np_avg(rank):
    def run(
        x,
        kernel,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        out = None
        pads = several(padding, rank)
        for shape, at, spans in pooled(rank, x, kernel, stride, padding, 1, ceil_mode):
            if out is None:
                out = np.zeros((*x.shape[:-rank], *shape))
            cells = list(itertools.product(*(inside for _, _, inside in spans)))
            total = sum(x[(..., *cell)] for cell in cells)
            count = len(cells)
            if count_include_pad:
                count = math.prod(
                    min(end, n + p) - start
                    for (start, end, _), n, p in zip(spans, x.shape[-rank:], pads, strict=True)
                )
            out[(..., *at)] = total / (divisor_override or count)
        return out

    return run


def np_lp(rank):
    def run(x, p, kernel, stride=None, ceil_mode=False):
        if math.isinf(p):
            sign = math.copysign(1, p)
            return sign * np_max(rank)(sign * abs(x), kernel, stride, ceil_mode=ceil_mode)
        means = np_avg(rank)(x**p, kernel, stride, ceil_mode=ceil_mode)
        return (means * math.prod(several(kernel, rank))) ** (1 / p)

    return run


def np_unpool(rank):
    def run(x, indices, kernel, stride=None, padding=0, output_size=None):
        size = [
            (n - 1) * s + k - 2 * p
            for n, k, s, p in zip(
                x.shape[-rank:],
                several(kernel, rank),
                several(stride or kernel, rank),
                several(padding, rank),
                strict=True,
            )
        ]
        size = list(output_size)[-rank:] if output_size else size
        out = np.zeros((*x.shape[:-rank], math.prod(size)), x.dtype)
        lines = (*x.shape[:-rank], math.prod(x.shape[-rank:]))
        np.put_along_axis(out, indices.reshape(lines), x.reshape(lines), -1)
        return out.reshape(*x.shape[:-rank], *size)

    return run


def common_bad(name, x, more=()):
    """What every pooling of signals refuses; `more` are the arguments before the kernel's size."""
    return [
        Bad(S(arr(5), *more, 2), SHAPE, rf"\[{name}\].*\(5,\)"),
        Bad(S(arr(1, 1, 1, 5), *more, 2), SHAPE, r"3 or 2 dimensions"),
        Bad(S(x, *more, 0), ARGUMENT, rf"\[{name}\] kernel_size must be at least 1, got 0"),
        Bad(S(x, *more, 2, 0), ARGUMENT, r"stride must be at least 1, got 0"),
        Bad(S(x, *more, (2, 2)), ARGUMENT, r"kernel_size must be an integer or 1 of them"),
        Bad(S(x, *more, 9), SHAPE, r"windows of \(9,\) do not fit .* \(6,\)"),
        Bad(S(arr(1, 2, 0), *more, 1), SHAPE, r"nothing to pool.*\(1, 2, 0\)"),
        Bad(S(bools(1, 2, 6), *more, 2), DTYPE, r"floating tensor, got undertow.bool"),
    ]


PADS = [
    Bad(S(arr(1, 2, 6), 3, 1, 2), ARGUMENT, r"at most half of kernel_size, got 2 and 3"),
    Bad(S(arr(1, 2, 6), 3, 1, -1), ARGUMENT, r"padding must be at least 0"),
]

op(
    "max_pool1d",
    np_max(1),
    [
        S(arr(2, 3, 7), 3),
        S(arr(3, 7), 2, 1),
        S(arr(1, 2, 7), 3, 2, 1),
        S(arr(1, 2, 8), 2, 3, 1, 2),
        S(arr(1, 2, 8), 3, 3, ceil_mode=True),
        S(arr(1, 1, 5), 5),
        S(arr(0, 2, 6), 2),
        S(arr(2, 2, 6), (2,), [1], return_indices=True),
        S(arr(7, 2, 1).T, 3, 2, return_indices=True),
        S(arr(1, 2, 6), 1, 2),
        S(arr(1, 1, 9), 4, 2, padding=2, dilation=1, ceil_mode=True, return_indices=True),
    ],
    torch="nn.functional.max_pool1d",
    bad=[
        *common_bad("max_pool1d", arr(1, 2, 6)),
        *PADS,
        Bad(S(arr(1, 2, 6), 3, dilation=0), ARGUMENT, r"dilation must be at least 1"),
        Bad(S(arr(1, 2, 6), 3, dilation=3), SHAPE, r"windows of \(7,\)"),
    ],
)
op(
    "max_pool2d",
    np_max(2),
    [
        S(arr(2, 2, 4, 6), 2),
        S(arr(2, 5, 5), (3, 2), 1, (1, 0), return_indices=True),
        S(arr(1, 2, 6, 5), (2, 3), (3, 1), (1, 1), (2, 1), True, return_indices=True),
        S(arr(1, 5, 4, 2).transpose(0, 3, 1, 2), 3, 2, 1, return_indices=True),
        S(ints(1, 4, 4), 2, 1),
        S(arr(0, 1, 4, 4), 2),
        S(arr(1, 1, 3, 3), 3),
    ],
    torch="nn.functional.max_pool2d",
    bad=[
        Bad(S(arr(1, 4), 2), SHAPE, r"\[max_pool2d\]"),
        Bad(S(arr(1, 1, 4, 4), (2, 5)), SHAPE, r"\(2, 5\) do not fit"),
    ],
)
op(
    "max_pool3d",
    np_max(3),
    [
        S(arr(1, 2, 2, 4, 3), 2),
        S(arr(2, 3, 4, 4), (1, 3, 2), (1, 1, 2), (0, 1, 1), return_indices=True),
        S(arr(1, 1, 4, 3, 5), 2, 2, 1, (1, 2, 1), True, return_indices=True),
    ],
    torch="nn.functional.max_pool3d",
    bad=[Bad(S(arr(1, 4, 4), 2), SHAPE, r"\[max_pool3d\]")],
)

op(
    "avg_pool1d",
    np_avg(1),
    [
        S(arr(2, 3, 7), 3),
        S(arr(3, 7), 2, 1),
        S(arr(1, 2, 7), 3, 2, 1),
        S(arr(1, 2, 7), 3, 2, 1, False, False),
        S(arr(1, 2, 8), 3, 3, 0, True),
        S(arr(1, 2, 7), 4, 3, 2, True, False),
        S(arr(1, 2, 7), 4, 3, 2, True),
        S(arr(0, 2, 6), 2),
        S(arr(7, 2, 1).T, (3,), [2]),
        S(arr(1, 1, 5), 5),
        S(arr(1, 2, 3), 1),
    ],
    bad=[
        *common_bad("avg_pool1d", arr(1, 2, 6)),
        *PADS,
        Bad(S(ints(1, 2, 6), 2), DTYPE, r"floating tensor, got undertow.int64"),
    ],
)
op(
    "nn.functional.avg_pool2d",
    np_avg(2),
    [
        S(arr(2, 2, 4, 6), 2),
        S(arr(2, 5, 5), (3, 2), 1, (1, 0)),
        S(arr(1, 2, 5, 6), 3, 2, 1, True, False),
        S(arr(1, 2, 5, 6), 3, 2, 1, True, True),
        S(arr(1, 2, 5, 5), 2, 1, 1, divisor_override=3),
        S(arr(1, 1, 4, 4), 2, divisor_override=-1),
        S(arr(1, 5, 4, 2).transpose(0, 3, 1, 2), 3, 2, 1),
    ],
    bad=[
        Bad(S(arr(1, 4), 2), SHAPE, r"\[avg_pool2d\]"),
        Bad(S(arr(1, 4, 4), 2, divisor_override=0), ARGUMENT, r"divisor_override must not be 0"),
    ],
)
op(
    "nn.functional.avg_pool3d",
    np_avg(3),
    [
        S(arr(1, 2, 2, 4, 3), 2),
        S(arr(2, 3, 4, 4), (1, 3, 2), (1, 1, 2), (0, 1, 1), False, False),
        S(arr(1, 1, 4, 3, 5), 2, 2, 1, True),
        S(arr(1, 2, 2, 2), 2, divisor_override=5),
    ],
    bad=[Bad(S(arr(1, 4, 4), 2), SHAPE, r"\[avg_pool3d\]")],
)

op(
    "nn.functional.lp_pool1d",
    np_lp(1),
    [S(positive(2, 3, 7), p, 3, 2) for p in (1, 2, 3, 2.5, -1, math.inf, -math.inf)]
    + [S(arr(3, 7), 2, 2), S(positive(1, 2, 8), 2, 3, ceil_mode=True), S(arr(1, 2, 6), 2.0, 2, 1)],
    bad=[
        *common_bad("lp_pool1d", arr(1, 2, 6), (2,)),
        Bad(S(arr(1, 2, 6), 0, 2), ARGUMENT, r"norm_type must not be 0"),
    ],
)
op(
    "nn.functional.lp_pool2d",
    np_lp(2),
    [S(arr(1, 2, 4, 5), 2, (2, 3)), S(positive(2, 5, 5), 3, 2, (2, 1), True)],
    bad=[Bad(S(arr(1, 4), 2, 2), SHAPE, r"\[lp_pool2d\]")],
)
op(
    "nn.functional.lp_pool3d",
    np_lp(3),
    [S(arr(1, 2, 2, 4, 3), 2, 2), S(positive(1, 3, 4, 4), 1.5, (1, 2, 2), 1)],
    bad=[Bad(S(arr(1, 4, 4), 2, 2), SHAPE, r"\[lp_pool3d\]")],
)

FIRST = np.array([[[1, 2, 5]], [[0, 3, 4]]])
op(
    "nn.functional.max_unpool1d",
    np_unpool(1),
    [
        S(arr(2, 1, 3), FIRST, 2),
        S(arr(1, 3), FIRST[0], 2, 2, 0, (7,)),
        S(arr(2, 1, 3), FIRST, 3, 2, 1, output_size=(2, 1, 6)),
        S(arr(0, 1, 3), FIRST[:0], 2),
    ],
    bad=[
        Bad(S(arr(1, 1, 3), FIRST, 2), SHAPE, r"one shape, got \(1, 1, 3\) and \(2, 1, 3\)"),
        Bad(S(arr(2, 1, 3), FIRST.astype(np.int32), 2), DTYPE, r"indices must be int64"),
        Bad(S(arr(2, 1, 3), FIRST + 5, 2), ut.errors.BoundsError, r"\[max_unpool1d\] index 10"),
        Bad(
            S(arr(2, 1, 3), FIRST, 2, output_size=(8,)),
            SHAPE,
            r"\(8,\) is not near \(6,\).*less than the stride \(2,\)",
        ),
        Bad(S(arr(2, 1, 3), FIRST, 2, output_size=(2, 3)), ARGUMENT, r"output_size"),
        Bad(S(arr(2, 1, 3), FIRST, 2, 1, 2), SHAPE, r"would have size \(0,\)"),
    ],
)
op(
    "nn.functional.max_unpool2d",
    np_unpool(2),
    [
        S(arr(1, 1, 2, 2), np.array([[[[0, 3], [9, 14]]]]), 2),
        S(arr(1, 1, 2), np.array([[[4, 1]]]), (2, 3), (2, 2), output_size=(3, 6)),
    ],
    bad=[Bad(S(arr(2, 3), ints(2, 3), 2), SHAPE, r"\[max_unpool2d\]")],
)
op(
    "nn.functional.max_unpool3d",
    np_unpool(3),
    [S(arr(1, 1, 1, 2, 1), np.array([[[[[5], [11]]]]]), 2)],
    bad=[Bad(S(arr(2, 3), ints(2, 3), 2), SHAPE, r"\[max_unpool3d\]")],
)

# Ties, and windows without anything in them ----------------------------------------------------
_even = np.array([[[1.0, 1.0, 0.0, 0.0, 2.0, 2.0]]])
singular("max_pool1d", S(_even, 2), S(_even, 3, 1))
singular("max_pool2d", S(_even[None], (1, 2)))
singular("nn.functional.lp_pool1d", S(_even, 2.0, 2), S(_even * 0, 2.0, 2))
singular("nn.functional.lp_pool1d", S(_even, 1.0, 2), torch=False)  # torch: no slope where it is 0
