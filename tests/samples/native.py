"""Samples for `undertow.ops.nn.native`: the references are the formulas."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, op, positive

ARGUMENT, SHAPE = ut.errors.ArgumentError, ut.errors.ShapeError
W, B = arr(4, seed=1), arr(4, seed=2)


def normed(x, dims, eps):
    mean, rstd = x.mean(dims, keepdims=True), 1 / np.sqrt(x.var(dims, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def scaled(y, weight, bias, axis=1):
    shape = [-1 if i == axis % y.ndim else 1 for i in range(y.ndim)]
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def layer_norm(x, shape, weight, bias, eps):
    y, mean, rstd = normed(x, tuple(range(-len(shape), 0)), eps)
    return scaled(y, weight, bias, -1), mean, rstd


def group_norm(x, weight, bias, n, c, size, group, eps):
    y, mean, rstd = normed(x.reshape(n, group, -1), -1, eps)
    return scaled(y.reshape(x.shape), weight, bias), mean[..., 0], rstd[..., 0]


def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        shape = (1, -1, *[1] * (x.ndim - 2))
        y = (x - running_mean.reshape(shape)) / np.sqrt(running_var.reshape(shape) + eps)
        return scaled(y, weight, bias), np.empty(0), np.empty(0)
    y, mean, rstd = normed(x, (0, *range(2, x.ndim)), eps)
    return scaled(y, weight, bias), mean.ravel(), rstd.ravel()


op(
    "native_layer_norm",
    layer_norm,
    [S(arr(3, 4), (4,), W, B, 1e-3), S(arr(2, 3, 4), [3, 4], None, None, 1e-3)],
    bad=[Bad(S(arr(3, 4), (3,), None, None, 1e-3), SHAPE, "layer_norm")],
)
op(
    "native_group_norm",
    group_norm,
    [S(arr(3, 4), None, None, 3, 4, 1, 2, 1e-3), S(arr(2, 4, 3, 2), W, B, 2, 4, 6, 2, 1e-3)],
    bad=[Bad(S(arr(3, 4), None, None, 3, 4, 2, 2, 1e-3), SHAPE, r"HxW are 3, 4 and 2.*\(3, 4\)")],
)
op(
    "native_batch_norm",
    batch_norm,
    [
        S(arr(3, 4), W, B, None, None, True, 0.1, 1e-3),
        S(arr(2, 4, 3), None, None, None, None, True, 0.1, 1e-3),
        S(arr(3, 4), W, B, Const(arr(4, seed=3)), Const(positive(4)), False, 0.1, 1e-3),
    ],
)
op(
    "native_dropout",
    lambda x, p, train: (x, np.ones(x.shape, bool)),
    [S(arr(3, 4), 0.5, False), S(arr(3), 0.0, True)],
    bad=[Bad(S(arr(3), 1.5, True), ARGUMENT, "1.5")],
)
op(
    "native_dropout_backward",
    lambda g, mask, scale: g * mask * scale,
    [S(arr(3), Const(np.array([True, False, True])), 2.0)],
    torch="ops.aten.native_dropout_backward",
)
