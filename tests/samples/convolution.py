"""Samples for `undertow.ops.nn.convolution`."""

from __future__ import annotations

import itertools

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, bools, ints, op

SHAPE = ut.errors.ShapeError
DTYPE = ut.errors.DTypeError
ARGUMENT = ut.errors.ArgumentError


def several(value, rank):
    """One integer for each dimension."""
    listed = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return listed * rank if len(listed) == 1 else listed


def pairs(padding, sizes, kernel, stride, dilation):
    """Low and high padding of every dimension, by the definitions in the docstrings."""
    rank = len(sizes)
    if padding == "valid":
        return [(0, 0)] * rank
    if padding == "same":
        found = []
        for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
            windows = (n + s - 1) // s
            missing = max(0, (windows - 1) * s + d * (k - 1) + 1 - n)
            found.append((missing // 2, missing - missing // 2))
        return found
    if isinstance(padding, (list, tuple)) and isinstance(padding[0], (list, tuple)):
        return list(padding)
    return [(p, p) for p in several(padding, rank)]


NUMPY_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def np_conv(rank):
    """The definition: a sum for every output element."""

    def run(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, padding_mode="zeros"):
        if x.ndim == rank + 1:
            return run(x[None], w, bias, stride, padding, dilation, groups, padding_mode)[0]
        stride, dilation = several(stride, rank), several(dilation, rank)
        pads = pairs(padding, x.shape[2:], w.shape[2:], stride, dilation)
        grown = np.pad(
            x,
            [(0, 0), (0, 0)] + [(max(a, 0), max(b, 0)) for a, b in pads],
            NUMPY_MODES[padding_mode],
        )
        cut = [
            slice(max(-a, 0), n - max(-b, 0))
            for (a, b), n in zip(pads, grown.shape[2:], strict=True)
        ]
        x = grown[(slice(None), slice(None), *cut)]
        sizes = [
            (n - d * (k - 1) - 1) // s + 1
            for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True)
        ]
        out = np.zeros((len(x), len(w), *sizes), x.dtype)
        inputs, outputs = w.shape[1], len(w) // groups
        for o in range(len(w)):
            first = o // outputs * inputs
            for at in itertools.product(*map(range, sizes)):
                window = [
                    slice(p * s, p * s + d * (k - 1) + 1, d)
                    for p, s, d, k in zip(at, stride, dilation, w.shape[2:], strict=True)
                ]
                seen = x[(slice(None), slice(first, first + inputs), *window)]
                out[(slice(None), o, *at)] = (seen * w[o]).sum(tuple(range(1, x.ndim)))
        return out if bias is None else out + bias.reshape(-1, *[1] * rank)

    return run


def np_conv_transpose(rank):
    """The definition: every input element adds the kernel to the output around it."""

    def run(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        if x.ndim == rank + 1:
            return run(x[None], w, bias, stride, padding, output_padding, groups, dilation)[0]
        stride, dilation = several(stride, rank), several(dilation, rank)
        pads = pairs(padding, x.shape[2:], w.shape[2:], stride, dilation)
        more = several(output_padding, rank)
        whole = [
            (n - 1) * s + d * (k - 1) + 1 + e
            for n, s, d, k, e in zip(x.shape[2:], stride, dilation, w.shape[2:], more, strict=True)
        ]
        inputs, outputs = w.shape[0] // groups, w.shape[1]
        out = np.zeros((len(x), outputs * groups, *whole), x.dtype)
        for c in range(x.shape[1]):
            first = c // inputs * outputs
            for at in itertools.product(*map(range, x.shape[2:])):
                window = [
                    slice(p * s, p * s + d * (k - 1) + 1, d)
                    for p, s, d, k in zip(at, stride, dilation, w.shape[2:], strict=True)
                ]
                value = x[(slice(None), c, *at)].reshape(-1, *[1] * (rank + 1))
                out[(slice(None), slice(first, first + outputs), *window)] += value * w[c]
        cut = [slice(low, n - high) for (low, high), n in zip(pads, whole, strict=True)]
        out = out[(slice(None), slice(None), *cut)]
        return out if bias is None else out + bias.reshape(-1, *[1] * rank)

    return run


def torch_conv(rank):
    """torch's convolution, with the paddings that it does not have made by its `pad`."""

    def run(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, padding_mode="zeros"):
        import torch.nn.functional as F

        simple = isinstance(padding, int) or padding == "valid" or isinstance(padding[0], int)
        if simple and padding_mode == "zeros":
            return getattr(F, f"conv{rank}d")(x, w, bias, stride, padding, dilation, groups)
        every = several(stride, rank), several(dilation, rank)
        pads = pairs(padding, x.shape[-rank:], w.shape[2:], *every)
        mode = "constant" if padding_mode == "zeros" else padding_mode
        x = F.pad(x, [p for pair in reversed(pads) for p in pair], mode)
        return getattr(F, f"conv{rank}d")(x, w, bias, stride, 0, dilation, groups)

    return run


def w_(*shape):
    return arr(*shape, seed=1)


def b_(size):
    return arr(size, seed=2)


CONV_BAD = [
    Bad(
        S(arr(1, 6, 5), w_(4, 2, 3), groups=2),
        SHAPE,
        r"\[conv1d\].*\(4, 2, 3\) takes 2 input channels per group; with groups=2 .* 4, got 6",
    ),
    Bad(S(arr(1, 6, 5), w_(4, 3, 3), None, 1, 0, 1, 4), SHAPE, r"groups=4 the input needs 12"),
    Bad(S(arr(1, 6, 5), w_(3, 3, 3), groups=2), SHAPE, r"3 output channels.*2 groups"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3, 3)), SHAPE, r"\[conv1d\].*\(1, 2, 5\) and \(3, 2, 3, 3\)"),
    Bad(S(arr(5), w_(3, 2, 3)), SHAPE, r"\(N, C, …\) or \(C, …\)"),
    Bad(S(arr(1, 1, 2, 5), w_(3, 2, 3)), SHAPE, r"3 dimensions"),
    Bad(S(arr(1, 2, 3), w_(3, 2, 4)), SHAPE, r"size \(4,\) needs .* at least \(4,\).*\(3,\)"),
    Bad(S(arr(1, 2, 4), w_(3, 2, 3), dilation=2), SHAPE, r"dilated \(2,\), needs .* \(5,\)"),
    Bad(S(arr(1, 2, 4), w_(3, 2, 3), padding=[(1, -3)]), SHAPE, r"has \(4,\), with padding \(2,\)"),
    Bad(S(arr(1, 2, 3), w_(3, 2, 0)), SHAPE, r"the kernel is empty"),
    Bad(S(arr(1, 2, 5), w_(0, 2, 3)), SHAPE, r"0 output channels"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), stride=0), ARGUMENT, r"stride must be at least 1, got 0"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), dilation=0), ARGUMENT, r"dilation must be at least 1"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), padding=-1), ARGUMENT, r"padding must be at least 0, got -1"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), padding=(1, 2)), ARGUMENT, r"an integer or 1 of them"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), padding=[(1, 2), (0, 0)]), ARGUMENT, r"each of 1 dimensions"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), padding="full"), ARGUMENT, r"'valid', 'same'.*'full'"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), stride=1.5), DTYPE, r"stride must be an integer, got float"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), groups=0), ARGUMENT, r"groups must be at least 1, got 0"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), b_(2)), SHAPE, r"each of 3 output channels.*\(2,\)"),
    Bad(S(arr(1, 2, 5), ints(3, 2, 3)), DTYPE, r"input undertow.float64 and weight undertow.int64"),
    Bad(S(arr(1, 2, 5), w_(3, 2, 3), ints(3)), DTYPE, r"and bias undertow.int64"),
    Bad(S(bools(1, 2, 5), bools(3, 2, 3)), DTYPE, r"\[conv1d\].*bool"),
    Bad(S(arr(1, 2, 5), 3.0), DTYPE, r"\[conv1d\] weight must be a Tensor, got float"),
    Bad(
        S(arr(1, 2, 5), w_(3, 2, 3), padding=1, padding_mode="edge"),
        ARGUMENT,
        r"\[conv1d\] padding_mode must be one of zeros, reflect, replicate, circular, got 'edge'",
    ),
    Bad(
        S(arr(1, 2, 2), w_(3, 2, 3), padding=2, padding_mode="reflect"),
        SHAPE,
        r"\[conv1d\] reflect padding \(2, 2\) reaches beyond a dimension of 2 elements",
    ),
    Bad(
        S(arr(1, 2, 2), w_(3, 2, 3), padding=3, padding_mode="circular"),
        SHAPE,
        r"\[conv1d\] circular padding \(3, 3\) wraps around more than once",
    ),
]

op(
    "conv1d",
    np_conv(1),
    [
        S(arr(2, 3, 7), w_(4, 3, 3), b_(4)),
        S(arr(1, 1, 5), w_(1, 1, 3)),
        S(arr(2, 2, 6), w_(3, 2, 1), b_(3)),
        S(arr(3, 8), w_(2, 3, 3), b_(2), padding=1),
        S(arr(2, 4, 9), w_(6, 2, 3), b_(6), 2, 2, 2, 2),
        S(arr(1, 3, 6), w_(6, 1, 2), None, 1, 1, 1, 3),  # depthwise, two kernels for each channel
        S(arr(2, 2, 6), w_(3, 2, 3), padding="same"),
        S(arr(1, 2, 6), w_(3, 2, 4), padding="same"),
        S(arr(1, 2, 7), w_(2, 2, 3), padding="same", stride=2),
        S(arr(1, 2, 8), w_(2, 2, 4), padding="same", stride=3, dilation=2),
        S(arr(1, 2, 9), w_(2, 2, 2), padding="same", stride=4),
        S(arr(1, 2, 6), w_(3, 2, 3), padding="valid", stride=3),
        S(arr(1, 2, 6), w_(3, 2, 3), b_(3), padding=[(0, 2)]),
        S(arr(2, 2, 7), w_(3, 2, 3), padding=((3, -2),), stride=2),
        S(arr(1, 2, 7), w_(2, 2, 2), padding=[(-1, -2)]),
        S(arr(0, 2, 5), w_(3, 2, 3), b_(3)),
        S(arr(7, 3, 2).T, w_(3, 3, 4).T, b_(8)[::2]),  # non-contiguous
        S(arr(2, 5, 3).transpose(0, 2, 1), w_(4, 3, 2)),  # channels last
        S(arr(1, 2, 12)[:, :, ::2], w_(2, 2, 3), stride=2),
        S(arr(1, 2, 3), w_(2, 2, 3)),
        S(Const(arr(1, 2, 5)), w_(3, 2, 3)),
        S(arr(1, 2, 5), Const(w_(3, 2, 3)), b_(3)),
        S(Const(arr(1, 2, 5)), Const(w_(3, 2, 3)), b_(3)),
        S(ints(1, 2, 5), ints(3, 2, 3), ints(3)),
        S(arr(1, 2, 6), w_(2, 2, 3), stride=(2,), padding=[1], dilation=(1,)),
        S(arr(2, 2, 5), w_(3, 2, 3), b_(3), padding=2, padding_mode="reflect"),
        S(arr(2, 5), w_(3, 2, 3), padding=[(3, 1)], padding_mode="replicate", stride=2),
        S(arr(2, 4, 5), w_(4, 2, 4), padding="same", padding_mode="circular", groups=2),
        S(arr(1, 2, 6), w_(2, 2, 2), padding=[(-1, 2)], padding_mode="reflect"),
        S(arr(1, 2, 4), w_(2, 2, 3), padding="valid", padding_mode="circular"),
    ],
    torch=torch_conv(1),
    bad=CONV_BAD,
)
op(
    "conv2d",
    np_conv(2),
    [
        S(arr(2, 2, 4, 5), w_(3, 2, 2, 3), b_(3)),
        S(arr(2, 5, 4), w_(3, 2, 3, 1), b_(3), 1, (1, 0)),
        S(arr(1, 4, 6, 5), w_(4, 2, 3, 2), None, (2, 1), (1, 2), (1, 2), 2),
        S(arr(1, 3, 4, 4), w_(3, 1, 3, 3), b_(3), 1, 1, 1, 3),  # depthwise
        S(arr(2, 3, 3, 3), w_(2, 3, 1, 1), b_(2)),  # pointwise
        S(arr(1, 2, 5, 6), w_(2, 2, 3, 2), padding="same", stride=(2, 3)),
        S(arr(1, 2, 4, 4), w_(2, 2, 2, 3), padding="same", dilation=2),
        S(arr(1, 1, 4, 5), w_(2, 1, 2, 2), padding=((1, 0), (-1, 2))),
        S(arr(0, 2, 4, 4), w_(3, 2, 2, 2)),
        S(ints(1, 2, 4, 4), ints(3, 2, 3, 3), padding=1),
        S(arr(1, 4, 5, 2).transpose(0, 3, 1, 2), w_(3, 2, 2, 2), stride=2),  # channels last
        S(arr(1, 4, 4), w_(2, 1, 4, 2)),
        S(arr(1, 2, 3, 4), w_(2, 2, 3, 3), b_(2), padding=(1, 2), padding_mode="circular"),
        S(arr(1, 2, 3, 4), w_(2, 2, 2, 3), padding="same", padding_mode="reflect"),
        S(arr(1, 1, 3, 3), w_(1, 1, 2, 2), None, 2, ((0, 3), (1, 0)), padding_mode="replicate"),
    ],
    torch=torch_conv(2),
    bad=[
        Bad(S(arr(1, 2, 4, 4), w_(2, 2, 3, 3), stride=(1, 0)), ARGUMENT, r"\(1, 0\)"),
        Bad(S(arr(1, 2, 4, 4), w_(2, 2, 5, 3)), SHAPE, r"\[conv2d\].*\(5, 3\).*\(4, 4\)"),
        Bad(S(arr(1, 2, 4), w_(2, 2, 3)), SHAPE, r"4 dimensions"),
        Bad(S(arr(1, 2, 4, 4), w_(2, 2, 3, 3), stride=(1, 1, 1)), ARGUMENT, r"2 of them"),
    ],
)
op(
    "conv3d",
    np_conv(3),
    [
        S(arr(1, 2, 3, 3, 3), w_(2, 2, 2, 2, 2), b_(2)),
        S(arr(2, 3, 3, 4), w_(2, 2, 1, 2, 2)),
        S(arr(1, 2, 4, 3, 3), w_(2, 1, 2, 3, 2), None, (2, 1, 1), (1, 1, 0), (2, 1, 2), 2),
        S(arr(1, 1, 3, 2, 4), w_(1, 1, 2, 2, 3), padding="same", stride=2),
        S(arr(1, 1, 3, 3, 2), w_(1, 1, 2, 2, 2), padding=((1, 0), (0, 0), (0, 1))),
        S(arr(1, 1, 2, 3, 2), w_(1, 1, 2, 2, 3), padding=(1, 0, 1), padding_mode="reflect"),
    ],
    torch=torch_conv(3),
    bad=[Bad(S(arr(1, 1, 2, 2, 2), w_(1, 1, 1, 3, 1)), SHAPE, r"\[conv3d\]")],
)

TRANSPOSE_BAD = [
    Bad(S(arr(1, 3, 5), w_(4, 2, 3)), SHAPE, r"\[conv_transpose1d\].*4 input channels.* with 3"),
    Bad(S(arr(1, 3, 5), w_(3, 2, 3), groups=2), SHAPE, r"2 groups must divide"),
    Bad(
        S(arr(1, 3, 5), w_(3, 2, 3), output_padding=1),
        ARGUMENT,
        r"output_padding must be less than stride or dilation.*\(1,\), stride \(1,\)",
    ),
    Bad(S(arr(1, 3, 2), w_(3, 2, 2), padding=2), SHAPE, r"would give an output of size \(-1,\)"),
    Bad(S(arr(1, 3, 2), w_(3, 2, 2), padding="same"), ARGUMENT, r"got 'same'"),
    Bad(S(arr(1, 3, 5), w_(3, 2)), SHAPE, r"\(C, O / groups, …\) of 3 dimensions"),
    Bad(S(arr(1, 3, 5), w_(3, 2, 3), b_(3)), SHAPE, r"each of 2 output channels"),
    Bad(S(arr(1, 3, 5), w_(3, 2, 0)), SHAPE, r"empty"),
    Bad(S(arr(1, 3, 5), w_(3, 2, 3), stride=0), ARGUMENT, r"stride"),
    Bad(S(arr(1, 3, 5), ints(3, 2, 3)), DTYPE, r"int64"),
]


def torch_transposed(rank):
    """torch's transposed convolution, with asymmetric padding cut off behind it."""

    def run(x, w, bias=None, stride=1, padding=0, *more, **named):
        import torch.nn.functional as F

        run = getattr(F, f"conv_transpose{rank}d")
        if isinstance(padding, int) or isinstance(padding[0], int):
            return run(x, w, bias, stride, padding, *more, **named)
        out = run(x, w, bias, stride, 0, *more, **named)
        return F.pad(out, [-p for pair in reversed(padding) for p in pair])

    return run


op(
    "conv_transpose1d",
    np_conv_transpose(1),
    [
        S(arr(2, 3, 4), w_(3, 2, 3), b_(2)),
        S(arr(1, 1, 1), w_(1, 1, 1)),
        S(arr(3, 5), w_(3, 2, 2), stride=3),
        S(arr(2, 4, 4), w_(4, 3, 3), b_(6), 2, 1, 1, 2, 2),
        S(arr(1, 2, 4), w_(2, 1, 2), None, 1, 0, 1, 1, 2),  # output_padding up to the dilation
        S(arr(1, 2, 4), w_(2, 2, 3), padding=2, stride=2),
        S(arr(0, 2, 4), w_(2, 3, 3), b_(3)),
        S(arr(1, 2, 4), w_(2, 2, 4), padding=[(0, 3)], stride=2),
        S(arr(4, 2, 1).T, w_(3, 2, 2).T, b_(2)),
        S(ints(1, 2, 4), ints(2, 3, 3), stride=2),
    ],
    torch=torch_transposed(1),
    bad=TRANSPOSE_BAD,
)
op(
    "conv_transpose2d",
    np_conv_transpose(2),
    [
        S(arr(1, 2, 3, 2), w_(2, 3, 2, 3), b_(3)),
        S(arr(2, 2, 3), w_(2, 1, 3, 3), stride=(2, 1)),
        S(arr(1, 4, 2, 3), w_(4, 1, 3, 2), b_(2), (2, 3), (1, 0), (1, 2), 2, (2, 1)),
        S(arr(1, 3, 3, 2).transpose(0, 2, 1, 3), w_(3, 2, 2, 2)),
    ],
    torch=torch_transposed(2),
    bad=[Bad(S(arr(1, 2, 3, 3), w_(2, 2, 2)), SHAPE, r"\[conv_transpose2d\]")],
)
op(
    "conv_transpose3d",
    np_conv_transpose(3),
    [
        S(arr(1, 2, 2, 2, 2), w_(2, 2, 2, 1, 2), b_(2)),
        S(arr(1, 2, 2, 1, 2), w_(2, 1, 2, 2, 2), None, 2, (1, 0, 1), 1, 2),
    ],
    torch=torch_transposed(3),
    bad=[Bad(S(arr(1, 2, 3, 3), w_(2, 2, 2)), SHAPE, r"\[conv_transpose3d\]")],
)
