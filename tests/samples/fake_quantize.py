"""Samples for `ops.elementwise.fake_quantize`; its gradient, no derivative: test_fake_quantize."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op

ARGUMENT, SHAPE = ut.errors.ArgumentError, ut.errors.ShapeError
SCALE, ZERO = Const(np.array([0.5, 0.25, 1.0])), ints(3, low=-2, high=3)


def seen(x, scale, zero, low, high):
    return (np.clip(np.round(x / scale) + zero, low, high) - zero) * scale


def by_channel(x, scale, zero, axis, low, high):
    shape = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    return seen(x, scale.reshape(shape), zero.reshape(shape), low, high)


def torch_by_channel(x, scale, zero, axis, *ends):
    """torch takes these dtypes only, and no axis from the end."""
    import torch

    given = x, scale.float(), zero.int(), axis % x.ndim
    return torch.fake_quantize_per_channel_affine(*given, *ends)


op(
    "fake_quantize_per_tensor_affine",
    seen,
    [S(Const(arr(3, 4)), 0.25, 1, -4, 5), S(Const(arr(5)), 0.5, 0, 0, 255)],
    bad=[Bad(S(arr(3), 0.5, 0, 7, 0), ARGUMENT, "quant_min 7")],
)
op(
    "fake_quantize_per_channel_affine",
    by_channel,
    [S(Const(arr(3, 4)), SCALE, ZERO, 0, -4, 5), S(Const(arr(2, 3, 2)), SCALE, ZERO, -2, 0, 9)],
    torch=torch_by_channel,
    bad=[Bad(S(arr(3, 4), SCALE, ZERO, 1, 0, 7), SHAPE, r"each of the 4 indices.*\(3,\)")],
)
