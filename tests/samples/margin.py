"""Samples for `undertow.ops.nn.margin`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, op, singular

from .losses import bad, reduced, reductions

F = "nn.functional."
ArgumentError, ShapeError = ut.errors.ArgumentError, ut.errors.ShapeError


def signs(*shape, seed=0):
    return np.random.default_rng(seed).choice([-1, 1], shape)


def hinge(z):
    return np.maximum(z, 0)


op(
    F + "soft_margin_loss",
    lambda x, y, reduction="mean": reduced(np.logaddexp(0, -x * y), reduction),
    [
        *reductions(arr(3, 4), Const(signs(3, 4))),
        S(arr(3), Const(arr(3, seed=1))),
        S(arr(), Const(arr(seed=1))),
        S(arr(0, 2), Const(arr(0, 2))),
        S(arr(4, 3).T, Const(signs(3, 4))),
    ],
    bad=[
        *bad("soft_margin_loss", arr(3), arr(3)),
        Bad(S(arr(3), arr(4)), ShapeError, r"\(3,\) and \(4,\)"),
    ],
)


def hinge_embedding(x, y, margin=1.0, reduction="mean"):
    return reduced(np.where(y != 1, hinge(margin - x), 0) + np.where(y != -1, x, 0), reduction)


op(
    F + "hinge_embedding_loss",
    hinge_embedding,
    [
        *reductions(arr(3, 4), signs(3, 4)),
        S(arr(3, 4), Const(signs(4)), margin=0.3),
        S(arr(), signs()),
        S(arr(0), signs(0)),
        S(arr(3), np.array([0, 1, 2])),
    ],
    bad=bad("hinge_embedding_loss", arr(3), signs(3)),
)

op(
    F + "margin_ranking_loss",
    lambda a, b, y, margin=0, reduction="mean": reduced(hinge(-y * (a - b) + margin), reduction),
    [
        *reductions(arr(3, 4), arr(3, 4, seed=1), signs(3, 4)),
        S(arr(3), arr(3, seed=1), signs(3), 0.7),
        S(arr(), arr(seed=1), signs()),
        S(arr(0), arr(0), signs(0)),
        S(arr(3, 1), arr(1, 4), signs(3, 4), 1.5),
    ],
    bad=[
        *bad("margin_ranking_loss", arr(3), arr(3), signs(3)),
        Bad(S(arr(3), arr(3), signs(1, 3)), ShapeError, r"\(3,\), \(3,\) and \(1, 3\)"),
    ],
)


def cosine_embedding(a, b, y, margin=0, reduction="mean"):
    cos = (a * b).sum(-1) / np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
    loss = np.where(y == 1, 1 - cos, 0) + np.where(y == -1, hinge(cos - margin), 0)
    return reduced(loss, reduction)


op(
    F + "cosine_embedding_loss",
    cosine_embedding,
    [
        *reductions(arr(5, 4), arr(5, 4, seed=1), signs(5)),
        S(arr(5, 4), arr(5, 4, seed=1), signs(5), margin=-0.5),
        S(arr(4), arr(4, seed=1), signs()),
        S(arr(0, 4), arr(0, 4), signs(0)),
        S(Const(np.zeros((2, 3))), Const(arr(2, 3)), signs(2)),
    ],
    bad=[
        *bad("cosine_embedding_loss", arr(3, 2), arr(3, 2), signs(3)),
        Bad(S(arr(3, 2), arr(3, 2), signs(3, 1)), ShapeError, r"\(3, 2\) and \(3, 1\)"),
        Bad(S(arr(3), arr(3), signs(3)), ShapeError, "with a target"),
    ],
)


def distance(a, b, p=2, eps=1e-6):
    return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def triplet(a, b, c, margin=1.0, p=2, eps=1e-6, swap=False, reduction="mean"):
    far = distance(a, c, p, eps)
    if swap:
        far = np.minimum(far, distance(b, c, p, eps))
    return reduced(hinge(distance(a, b, p, eps) - far + margin), reduction)


def three(*shape):
    return [arr(*shape, seed=i) for i in range(3)]


op(
    F + "triplet_margin_loss",
    triplet,
    [
        *reductions(*three(5, 4)),
        S(*three(5, 4), margin=2.5, p=1),
        S(*three(5, 4), swap=True),
        S(*three(4)),
        S(*three(0, 4)),
        S(*three(2, 3, 4), eps=0.1, p=3.0),
    ],
    bad=[
        *bad("triplet_margin_loss", *three(3, 2)),
        Bad(S(*three(3, 2), margin=0), ArgumentError, "margin must be greater than 0, got 0"),
        Bad(S(arr(3, 2), arr(3, 2), arr(2)), ShapeError, r"\(3, 2\), \(3, 2\) and \(2,\)"),
    ],
)


def l1(a, b):
    return abs(a - b).sum(-1)


def triplet_by(a, b, c, distance_function=distance, margin=1.0, swap=False, reduction="mean"):
    far = distance_function(a, c)
    if swap:
        far = np.minimum(far, distance_function(b, c))
    return reduced(hinge(distance_function(a, b) - far + margin), reduction)


op(
    F + "triplet_margin_with_distance_loss",
    triplet_by,
    [
        *reductions(*three(5, 4)),
        S(*three(5, 4), distance_function=l1, margin=2.0),
        S(*three(5, 4), distance_function=l1, swap=True),
        S(*three(0, 4)),
    ],
    bad=[
        Bad(S(*three(3, 2), margin=0), ArgumentError, "margin must be greater than 0, got 0"),
        Bad(S(*three(3, 2), reduction="x"), ArgumentError, "'x'"),
        Bad(S(arr(3, 2), arr(3, 2), arr(2)), ShapeError, "number of dimensions"),
    ],
)

# Kinks -----------------------------------------------------------------------------------------
_ones = np.array([1.0, -1.0, 1.0])
singular("nn.functional.hinge_embedding_loss", S(np.array([0.0, 1.0, 1.0]), Const(_ones)))
singular("nn.functional.margin_ranking_loss", S(np.zeros(3), np.zeros(3), Const(_ones), margin=0.0))
singular(
    "nn.functional.triplet_margin_loss", S(*[np.array([[1.0, 2.0]])] * 2, np.array([[1.0, 3.0]]))
)
