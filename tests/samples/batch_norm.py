"""Samples for `undertow.ops.nn.batch_norm`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, positive

SHAPE = ut.errors.ShapeError
DTYPE = ut.errors.DTypeError
ARGUMENT = ut.errors.ArgumentError


def beside(p, x):
    return p if p is None else np.reshape(p, (1, -1, *[1] * (x.ndim - 2)))


def normed(x, dims, weight, bias, eps, mean=None, var=None):
    if mean is None:
        mean, var = x.mean(dims, keepdims=True), x.var(dims, keepdims=True)
    y = (x - mean) / np.sqrt(var + eps)
    y = y if weight is None else y * beside(weight, x)
    return y if bias is None else y + beside(bias, x)


def np_batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    if not x.size:
        return x
    kept = () if training else (beside(running_mean, x), beside(running_var, x))
    return normed(x, (0, *range(2, x.ndim)), weight, bias, eps, *kept)


def np_instance_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    kept = () if use_input_stats else (beside(running_mean, x), beside(running_var, x))
    return normed(x, tuple(range(2, x.ndim)), weight, bias, eps, *kept)


def np_group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    rows = x.reshape(x.shape[0], num_groups, -1) if x.size else x
    y = normed(rows, 2, None, None, eps).reshape(x.shape) if x.size else x
    y = y if weight is None else y * beside(weight, x)
    return y if bias is None else y + beside(bias, x)


def np_local_response_norm(x, size, alpha=0.0001, beta=0.75, k=1.0):
    means = np.zeros_like(x)
    for c in range(x.shape[1]):
        seen = x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1]
        means[:, c] = (seen**2).sum(1) / size
    return x / (k + alpha * means) ** beta


def with_weight(name, place):
    """torch's function, given ones where it cannot differentiate a bias without a weight."""

    def run(*args, **named):
        import torch

        args = list(args)
        bias = args[place + 1] if len(args) > place + 1 else named.get("bias")
        given = args[place] if len(args) > place else named.get("weight")
        if given is None and bias is not None:
            if len(args) > place:
                args[place] = torch.ones_like(bias)
            else:
                named["weight"] = torch.ones_like(bias)
        return getattr(torch.nn.functional, name)(*args, **named)

    return run


def kept(count):
    """Running statistics."""
    return Const(arr(count, seed=3)), Const(positive(count, seed=4))


def wb(count):
    return arr(count, seed=1), arr(count, seed=2)


def bad(name, *more):
    """What every normalisation of channels refuses."""
    where = {"batch_norm": (None, None), "group_norm": (1,), "instance_norm": (None, None)}[name]
    return [
        Bad(S(arr(3), *where), SHAPE, rf"\[{name}\] expects \(N, C, …\), got shape \(3,\)"),
        Bad(S(ints(2, 3, 4), *where), DTYPE, rf"\[{name}\] expects a floating tensor, .*int64"),
        Bad(
            S(arr(2, 3, 4), *where, arr(2)), SHAPE, r"weight .* the 3 channels .* got shape \(2,\)"
        ),
        Bad(S(arr(2, 3, 4), *where, None, arr(1, 3)), SHAPE, r"bias must have one element"),
        Bad(S(arr(2, 3, 4), *where, ints(3)), DTYPE, r"weight is undertow.int64 beside"),
        *more,
    ]


op(
    "nn.functional.batch_norm",
    np_batch_norm,
    [
        S(arr(4, 3), None, None, *wb(3), True),
        S(arr(2, 3, 4), None, None, training=True),
        S(arr(2, 3, 4), *kept(3), *wb(3), True, 0.3),
        S(arr(2, 2, 2, 3), *kept(2), *wb(2), True),
        S(arr(1, 2, 2, 1, 3), None, None, *wb(2), training=True, eps=0.1),
        S(arr(2, 3, 4), None, None, arr(3, seed=1), None, True),
        S(arr(2, 3, 4), None, None, None, arr(3, seed=1), True),
        S(Const(arr(2, 3, 4)), None, None, *wb(3), True),
        S(arr(2, 3, 4), *kept(3)),
        S(arr(2, 3, 4), None, None, Const(arr(3)), arr(3, seed=1), True),
        S(arr(2, 3, 4), *kept(3), *wb(3)),
        S(arr(1, 3), *kept(3), *wb(3), eps=0.5),
        S(arr(2, 3, 4), *kept(3), None, arr(3, seed=1)),
        S(arr(2, 5, 3).transpose(0, 2, 1), *kept(3), *wb(3), True),
        S(arr(4, 3, 2).T, None, None, arr(6, seed=1)[::2], arr(3, seed=2), True),
    ],
    torch=with_weight("batch_norm", 3),
    bad=bad(
        "batch_norm",
        Bad(S(arr(2, 3), None, None), ARGUMENT, r"needs running_mean and running_var unless"),
        Bad(S(arr(2, 3), Const(arr(3)), None, training=True), ARGUMENT, r"together, or neither"),
        Bad(S(arr(2, 3), Const(arr(2)), Const(arr(3))), SHAPE, r"running_mean must have one"),
        Bad(S(arr(1, 3, 1), None, None, training=True), SHAPE, r"more than one.*\(1, 3, 1\)"),
        Bad(S(arr(2, 3), *kept(3), training=True, momentum=None), ARGUMENT, r"num_batches"),
    ),
)
op(
    "nn.functional.instance_norm",
    np_instance_norm,
    [
        S(arr(2, 3, 4)),
        S(arr(2, 3, 4), *kept(3), *wb(3)),
        S(arr(2, 2, 2, 3), None, None, *wb(2)),
        S(arr(2, 3, 4), *kept(3), *wb(3), False),
        S(arr(1, 2, 2, 2, 2), weight=arr(2, seed=1)),
        S(arr(2, 3, 4), bias=arr(3, seed=1), eps=0.1),
        S(arr(2, 3), *kept(3), use_input_stats=False),
        S(arr(2, 5, 3).transpose(0, 2, 1), None, None, *wb(3)),
    ],
    torch=with_weight("instance_norm", 3),
    bad=bad(
        "instance_norm",
        Bad(S(arr(2, 3, 1)), SHAPE, r"\[instance_norm\] needs more than one element"),
        Bad(S(arr(2, 3, 4), use_input_stats=False), ARGUMENT, r"without use_input_stats"),
    ),
)
op(
    "nn.functional.group_norm",
    np_group_norm,
    [
        S(arr(2, 4, 3), 2),
        S(arr(2, 4, 3), 2, *wb(4)),
        S(arr(2, 6), 3, *wb(6)),
        S(arr(1, 4, 2, 3), 1, *wb(4)),
        S(arr(2, 4, 2, 2), 4, arr(4, seed=1), eps=0.1),
        S(arr(2, 4, 3), 2, None, arr(4, seed=1)),
        S(arr(0, 4, 3), 2, *wb(4)),
        S(arr(2, 3, 4).transpose(0, 2, 1), 2, *wb(4)),
    ],
    torch=with_weight("group_norm", 2),
    bad=bad(
        "group_norm",
        Bad(S(arr(2, 4, 3), 3), ARGUMENT, r"num_groups must divide the 4 channels .* got 3"),
        Bad(S(arr(2, 4, 3), 0), ARGUMENT, r"got 0"),
        Bad(S(arr(1, 4, 1), 4), SHAPE, r"more than one element in a group"),
    ),
)
op(
    "nn.functional.local_response_norm",
    np_local_response_norm,
    [
        S(arr(2, 5, 3), 3, 0.5),
        S(arr(1, 5, 2, 2), 2, 0.5, 0.7, 2.0),
        S(arr(1, 3, 2, 2, 2), 4, 1.0),
        S(arr(2, 3, 4), 1),
        S(arr(1, 2, 3), 9, 0.1),
        S(arr(3, 5, 2).T, 3, 0.5),
    ],
    bad=[
        Bad(S(arr(2, 3), 3), SHAPE, r"\[local_response_norm\].*\(2, 3\)"),
        Bad(S(arr(2, 3, 4), 0), ARGUMENT, r"size must be at least 1, got 0"),
        Bad(S(ints(2, 3, 4), 2), DTYPE, r"floating"),
    ],
)
