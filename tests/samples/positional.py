"""Samples for `undertow.ops.nn.positional`: the references are those of nn.functional."""

from __future__ import annotations

import undertow as ut
from op_samples import TABLE, Bad, Const, S, arr, ints, op, positive

from . import (  # noqa: F401 (their entries)
    adaptive_pooling,
    batch_norm,
    convolution,
    embedding,
    normalisation,
    padding,
    pooling,
    sampling,
)

ARGUMENT = ut.errors.ArgumentError
W, B = arr(3, seed=1), arr(3, seed=2)
MEAN, VAR = Const(arr(3, seed=3)), Const(positive(3, seed=4))


def reference(name, rearranged=lambda *args: args):
    """The reference of nn.functional, with the arguments in its order."""
    return lambda *args: entry(name).reference(*rearranged(*args))


def entry(name):
    return TABLE.get(f"nn.functional.{name}") or TABLE[name]


op("layer_norm", reference("layer_norm"), [S(arr(2, 3), (3,), W, B, 1e-3), S(arr(2, 3), [2, 3])])
op("rms_norm", reference("rms_norm"), [S(arr(2, 3), (3,), W, 1e-3), S(arr(2, 3), [2, 3])])
op("group_norm", reference("group_norm"), [S(arr(2, 4), 2), S(arr(2, 3, 2), 3, W, B, 1e-3)])
for name in ("batch_norm", "instance_norm"):
    shape = (4, 3) if name == "batch_norm" else (2, 3, 4)
    op(
        name,
        reference(name, lambda x, w, b, mean, var, *rest: (x, mean, var, w, b, *rest[:-1])),
        [
            S(arr(*shape), W, B, None, None, True, 0.1, 1e-3, False),
            S(arr(*shape), None, None, MEAN, VAR, False, 0.1, 1e-3, False),
        ],
    )
for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"):
    op(
        name,
        lambda x, p, train: x,
        [S(arr(2, 3), 0.5, False), S(arr(2, 3), 0.0, True)],
        method=False,
        bad=[Bad(S(arr(2, 3), 1.5, True), ARGUMENT, "1.5")],
    )
op(
    "embedding",
    reference("embedding", lambda w, i, padding_idx=-1, *rest: (i, w)),
    [S(arr(4, 3), ints(2, 2, low=0, high=4)), S(Const(arr(4, 3)), ints(5, low=0, high=4), 1)],
)
op(
    "adaptive_max_pool1d",
    reference("adaptive_max_pool1d", lambda x, size: (x, size, True)),
    [S(arr(2, 2, 7), 3), S(arr(2, 6), [2])],
)
op(
    "max_pool1d_with_indices",
    reference(
        "max_pool1d",
        lambda x, kernel, stride=None, pads=0, dilation=1, ceil=False: (
            *(x, kernel, stride, pads, dilation, ceil, True),
        ),
    ),
    [S(arr(2, 2, 7), 3), S(arr(2, 6), [2], [1], [1])],
)
op(
    "affine_grid_generator",
    reference("affine_grid"),
    [S(arr(2, 2, 3), (2, 1, 3, 4), True), S(arr(1, 2, 3), (1, 1, 2, 2), False)],
)
op(
    "constant_pad_nd",
    reference("pad", lambda x, pad, value=0: (x, pad, "constant", value)),
    [S(arr(2, 3), (1, 2)), S(arr(2, 3), (0, 1, 2, 0), 1.5)],
)
MODES, BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
for name, shape in {
    "grid_sampler": (1, 2, 4, 3),
    "grid_sampler_2d": (1, 2, 4, 3),
    "grid_sampler_3d": (1, 1, 3, 4, 2),
}.items():
    dims = len(shape) - 2
    grid = arr(1, *[2] * dims, dims, seed=1, low=-0.9, high=0.9)
    op(
        name,
        reference("grid_sample", lambda x, g, m, b, a: (x, g, MODES[m], BORDERS[b], a)),
        [S(arr(*shape), grid, 0, b, a) for b, a in ((0, True), (1, False), (2, False))],
        bad=[
            Bad(S(arr(*shape), grid, 3, 0, True), ARGUMENT, "interpolation_mode.*2 .bicubic"),
            Bad(S(arr(*shape), grid, 0, -1, True), ARGUMENT, "padding_mode"),
        ],
    )


def np_convolution(x, w, bias, stride, pads, dilation, transposed, output_padding, groups):
    name = f"conv{'_transpose' * transposed}{w.ndim - 2}d"
    more = (output_padding, groups, dilation) if transposed else (dilation, groups)
    return entry(name).reference(x, w, bias, stride, pads, *more)


op(
    "convolution",
    np_convolution,
    [
        S(arr(2, 2, 6), arr(3, 2, 3), W, [2], [1], [1], False, [0], 1),
        S(arr(1, 2, 4, 5), arr(2, 1, 2, 3), None, [1, 2], [0, 1], [1, 1], False, [0, 0], 2),
        S(arr(2, 3, 4), arr(3, 2, 3), None, [2], [1], [1], True, [1], 1),
    ],
    bad=[Bad(S(arr(2, 2), arr(2, 2), None, 1, 0, 1, False, 0, 1), ARGUMENT, r"\(2, 2\)")],
)
