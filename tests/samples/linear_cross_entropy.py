"""Samples for `undertow.ops.nn.linear_cross_entropy`."""

from __future__ import annotations

import importlib

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, positive

from .classification import cross_entropy

ARGUMENT, SHAPE = ut.errors.ArgumentError, ut.errors.ShapeError
X, W, B = arr(5, 3), arr(4, 3, seed=1), arr(4, seed=2)
TARGET = ints(5, low=0, high=4)
IGNORED = np.array([1, -100, 3, 0, -100])
CLASSES = Const(positive(4, seed=9))
TWO = ut.nn.LinearCrossEntropyOptions(batch_chunk_size=2)


def np_linear_cross_entropy(
    x, w, target, linear_bias=None, ignore_index=None, options=None, **more
):
    logits = np.moveaxis(np.tensordot(w, x, (-1, -1)), -1, 0) if x.ndim == 2 else w @ x
    if linear_bias is not None:
        logits = logits + linear_bias
    if ignore_index is not None:
        more["ignore_index"] = ignore_index
    return cross_entropy(logits, target, **more)


def torch_linear_cross_entropy(*args, options=None, **more):
    """Torch's, whole: in chunks it has no second derivatives."""
    functional = importlib.import_module("torch.nn.functional")
    return functional.linear_cross_entropy(*args, **more)


CALLS = [
    S(X, W, TARGET),
    S(X, W, TARGET, linear_bias=B),
    S(X, W, TARGET, linear_bias=B, reduction="sum", label_smoothing=0.1, weight=CLASSES),
    S(X, W, TARGET, reduction="none", label_smoothing=0.3),
    S(X, W, IGNORED, linear_bias=B, weight=CLASSES),
    S(X, W, TARGET, ignore_index=2, reduction="none"),
    S(X[0], W, np.array(1), linear_bias=B),
    S(arr(3, 5).T, arr(3, 4).T, TARGET, reduction="sum"),
    S(X[:0], W, TARGET[:0], reduction="sum"),
]
op(
    "nn.functional.linear_cross_entropy",
    np_linear_cross_entropy,
    [
        *CALLS,
        *(S(*s.args, **s.kwargs, options=TWO) for s in CALLS),
        S(X, W, TARGET, options=ut.nn.LinearCrossEntropyOptions()),
        S(arr(2, 3), arr(4, 2, 3), ints(2, 2, low=0, high=4), linear_bias=arr(4, 2)),
        S(X, W, Const(positive(5, 4)), linear_bias=B),
    ],
    torch=torch_linear_cross_entropy,
    bad=[
        Bad(S(arr(4, 2), arr(5, 3), ints(4)), SHAPE, r"\(classes, in\).*in = 2"),
        Bad(S(arr(2, 4, 3), arr(5, 3), ints(4)), SHAPE, r"\(N, in\).*\(2, 4, 3\)"),
        Bad(S(X, W, TARGET, linear_bias=arr(3)), SHAPE, r"linear_bias.*\(4,\).*\(3,\)"),
        Bad(S(X[0], arr(4, 2, 3), TARGET), SHAPE, r"\(4, 2, 3\) needs an input \(N, in\)"),
        Bad(S(X, W, TARGET[:4], options=TWO), SHAPE, r"target of shape \(5,\)"),
        Bad(S(X, W, TARGET + 4, options=TWO), IndexError, r"class index"),
        Bad(S(X, W, arr(5, 4), ignore_index=1), ARGUMENT, "probabilities"),
        Bad(S(X, W, TARGET, reduction="max"), ARGUMENT, "reduction"),
    ],
)
