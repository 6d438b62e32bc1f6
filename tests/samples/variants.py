"""Samples for `undertow.ops.nn.variants`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import TABLE, Bad, Const, S, arr, op, singular

F = "nn.functional."
ARGUMENT, SHAPE = ut.errors.ArgumentError, ut.errors.ShapeError


def entry(name):
    return TABLE.get(name) or TABLE[F + name]


def plain(name):
    """The function of nn.functional, which may have a namesake at the top."""
    return TABLE.get(F + name) or TABLE[name]


# Pooling, always with indices: the samples of the plain form ------------------------------------
def with_indices(name):
    def reference(*args, _random_samples=None, **kwargs):
        drawn = {} if _random_samples is None else {"drawn": _random_samples}
        return plain(name).reference(*args, **{**kwargs, **drawn, "return_indices": True})

    return reference


SIZES = {1: (2, 3, 8), 2: (2, 2, 6, 5), 3: (1, 2, 4, 5, 4)}
for rank, shape in SIZES.items():
    op(
        f"{F}max_pool{rank}d_with_indices",
        with_indices(f"max_pool{rank}d"),
        [S(arr(*shape), 2), S(arr(*shape), 3, 2, 1), S(arr(*shape[1:]), 2, 1, ceil_mode=True)],
        bad=[Bad(S(arr(4), 2), SHAPE, rf"\[max_pool{rank}d.*\(4,\)")],
    )
    op(
        f"{F}adaptive_max_pool{rank}d_with_indices",
        with_indices(f"adaptive_max_pool{rank}d"),
        [S(arr(*shape), 2), S(arr(*shape[1:]), 3)],
        bad=[Bad(S(arr(4), 2), SHAPE, rf"\[adaptive_max_pool{rank}d.*\(4,\)")],
    )
for rank in (2, 3):
    given = {"_random_samples": Const(np.linspace(0.1, 0.9, 2 * rank).reshape(1, 2, rank))}
    op(
        f"{F}fractional_max_pool{rank}d_with_indices",
        with_indices(f"fractional_max_pool{rank}d"),
        [S(arr(1, 2, *(6,) * rank), 2, 3, **given)],
        bad=[Bad(S(arr(1, 2, *(6,) * rank), 2), ARGUMENT, "needs output_size or")],
    )


# Resizing under its old names -----------------------------------------------------------------
def resized(mode, align):
    def reference(x, size=None, scale_factor=None, *more):
        chosen = more or (mode, align)
        return entry("interpolate").reference(x, size, scale_factor, *chosen)

    return reference


op(
    F + "upsample",
    resized("nearest", None),
    [
        S(arr(1, 2, 3), 5),
        S(arr(1, 2, 3, 4), None, 2.0),
        S(arr(1, 2, 3, 4), (5, 6), None, "bilinear", True),
    ],
    bad=[Bad(S(arr(1, 2, 3)), ARGUMENT, "size")],
)
op(
    F + "upsample_nearest",
    resized("nearest", None),
    [S(arr(1, 2, 3), 5), S(arr(1, 2, 3, 4), None, 2)],
)
op(
    F + "upsample_bilinear",
    resized("bilinear", True),
    [S(arr(1, 2, 3, 4), (5, 6)), S(arr(1, 2, 3, 4), None, 2)],
)


# A leaky ReLU of chance -----------------------------------------------------------------------
def np_rrelu(x, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    assert not training or lower == upper  # else it is random: tests/test_activations_of_chance
    return np.where(x > 0, x, x * (lower + upper) / 2)


for prefix in ("", F):
    op(
        f"{prefix}rrelu",
        np_rrelu,
        [S(arr(3, 4)), S(arr(4), 0.25, 0.75), S(arr(2, 3), 0.5, 0.5, True), S(arr(0, 3)), S(arr())],
        bad=[Bad(S(arr(3), 0.5, 0.25), ARGUMENT, r"lower 0\.5 must not exceed upper 0\.25")],
    )
    op(f"{prefix}rrelu_", np_rrelu, [S(Const(arr(3, 4)), 0.25, 0.75)], grad=False, method=False)
singular(F + "rrelu", S(np.array([0.0, -0.0, 1.0, -1.0])))


# Two in one -----------------------------------------------------------------------------------
def np_conv_tbc(x, weight, bias, pad=0):
    x = np.pad(x, ((pad, pad), (0, 0), (0, 0)))
    width = weight.shape[0]
    steps = [
        sum(x[t + i] @ weight[i] for i in range(width)) + bias for t in range(len(x) - width + 1)
    ]
    return np.stack(steps)


for prefix in ("", F):
    op(
        f"{prefix}conv_tbc",
        np_conv_tbc,
        [
            S(arr(5, 2, 3), arr(3, 3, 4, seed=1), arr(4, seed=2)),
            S(arr(4, 1, 2), arr(2, 2, 3, seed=1), arr(3, seed=2), 1),
        ],
        bad=[Bad(S(arr(5, 3), arr(3, 3, 4), arr(4)), SHAPE, r"\(time, batch, in\).*\(5, 3\)")],
    )
