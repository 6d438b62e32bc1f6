"""Samples for `undertow.ops.nn.normalisation`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, positive

F = "nn.functional."
ShapeError = ut.errors.ShapeError


def axes(x, shape):
    shape = (shape,) if isinstance(shape, int) else shape
    return tuple(range(x.ndim - len(shape), x.ndim))


def layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    """By its definition."""
    if not x.size:
        return x
    d = axes(x, shape)
    y = (x - x.mean(d, keepdims=True)) / np.sqrt(x.var(d, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rms_norm(x, shape, weight=None, eps=None):
    """By its definition."""
    if not x.size:
        return x
    eps = np.finfo(x.dtype).eps if eps is None else eps
    y = x / np.sqrt((x**2).mean(axes(x, shape), keepdims=True) + eps)
    return y if weight is None else y * weight


def torch_layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    """Its second derivative fails with a bias but no weight."""
    import torch

    if weight is None and bias is not None:
        weight = torch.ones_like(bias)
    return torch.nn.functional.layer_norm(x, shape, weight, bias, eps)


W, B = arr(4, seed=5), arr(4, seed=6)
SHAPES = [
    S(arr(3, 4), (4,)),
    S(arr(3, 4), (4,), W),
    S(Const(arr(3, 4)), (4,), W),
    S(arr(3, 4), (4,), Const(W)),
    S(arr(2, 3, 4), [3, 4], arr(3, 4, seed=5)),
    S(arr(2, 3, 4), (2, 3, 4)),
    S(arr(4), (4,), W),
    S(arr(3, 4), (4,), W, eps=0.5),
    S(arr(4, 3).T, (4,), W),
    S(arr(2, 8)[:, ::2], (4,), W),
    S(arr(4, 3, 2).transpose(2, 1, 0), (3, 4), arr(4, 3, seed=5).T),
    S(arr(0, 4), (4,), W),
    S(arr(2, 0), (0,), arr(0)),
    S(positive(2, 1), (1,), arr(1)),
]
BAD = [
    (S(arr(3, 4), (3,)), ShapeError, r"normalized_shape \(3,\).*\(3, 4\)"),
    (S(arr(4), (3, 4)), ShapeError, r"\(3, 4\).*\(4,\)"),
    (S(arr(3, 4), ()), ShapeError, "at least one dimension"),
    (S(arr(3, 4), (4,), arr(3)), ShapeError, r"weight.*\(4,\).*\(3,\)"),
    (S(arr(3, 4), (4,), np.float32(arr(4))), TypeError, "weight is undertow.float32.*float64"),
    (S(ints(3, 4), (4,)), TypeError, "int64"),
]
op(
    F + "layer_norm",
    layer_norm,
    [
        *SHAPES,
        S(arr(3, 4), (4,), W, B),
        S(arr(3, 4), (4,), None, B),
        S(arr(3, 4), (4,), bias=B),
        S(Const(arr(3, 4)), (4,), Const(W), B),
        S(arr(2, 3, 4), (3, 4), arr(3, 4, seed=5), arr(3, 4, seed=6), 0.1),
        S(arr(0, 4), (4,), W, B),
        S(Const([[1e8, 1e8 + 1, 1e8 + 2]]), (3,)),
    ],
    torch=torch_layer_norm,
    bad=[
        *(Bad(s, e, r"\[layer_norm\].*" + m) for s, e, m in BAD),
        Bad(S(arr(3, 4), (4,), W, arr(3)), ShapeError, r"\[layer_norm\] bias.*\(3,\)"),
        Bad(S(arr(3, 4), (4,), None, np.float32(B)), TypeError, "bias is undertow.float32"),
    ],
)
op(
    F + "rms_norm",
    rms_norm,
    [*SHAPES, S(arr(3, 4), (4,), None, 0.1), S(Const(np.zeros((2, 3))), (3,))],
    bad=[Bad(s, e, r"\[rms_norm\].*" + m) for s, e, m in BAD],
)


def np_renorm(x, p, dim, maxnorm):
    """By its definition, slice by slice."""
    moved = np.moveaxis(x, dim, 0)
    norms = [np.linalg.norm(s.reshape(-1), p) for s in moved]
    scale = np.array([maxnorm / (n + 1e-7) if n > maxnorm else 1.0 for n in norms])
    return np.moveaxis(moved * scale.reshape(-1, *(1,) * (x.ndim - 1)), 0, dim)


op(
    "renorm",
    np_renorm,
    [S(arr(3, 4), 2, 0, 2.0), S(arr(3, 4), 1, 1, 2.5), S(arr(2, 3, 4), np.inf, -1, 1.5)],
    bad=[
        Bad(S(arr(3), 2, 0, 1.0), ValueError, r"\[renorm\] needs two dimensions"),
        Bad(S(arr(3, 2), 0, 0, 1.0), ValueError, r"\[renorm\] p must be above 0"),
    ],
)
