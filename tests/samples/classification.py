"""Samples for `undertow.ops.nn.classification`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, positive, singular

from .losses import bad, bce_logits, ratio, reduced, reductions

F = "nn.functional."
ArgumentError, BoundsError, ShapeError = (
    ut.errors.ArgumentError,
    ut.errors.BoundsError,
    ut.errors.ShapeError,
)


def labels(*shape, classes=4, seed=3):
    return ints(*shape, low=0, high=classes, seed=seed)


def rows(x, target):
    """Inputs (M, C) and targets (M) of an input whose class dimension is the second or only one."""
    x = np.moveaxis(x, min(x.ndim - 1, 1), -1)
    return x.reshape(-1, x.shape[-1]), target.reshape(-1)


def nll(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Row by row, with the smoothed one-hot distribution."""
    flat, wanted = rows(x, target)
    classes = flat.shape[1]
    weight = np.ones(classes) if weight is None else weight
    losses, total = [], 0.0
    for row, t in zip(flat, wanted, strict=True):
        if t == ignore_index:
            losses.append(0.0)
            continue
        loss = -row[t] * weight[t] * (1 - label_smoothing)
        if label_smoothing:
            loss -= np.sum(row * weight) * label_smoothing / classes
        losses.append(loss)
        total += weight[t]
    losses = np.array(losses).reshape(target.shape)
    return ratio(losses.sum(), total) if reduction == "mean" else reduced(losses, reduction)


def cross_entropy(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    dim = min(x.ndim - 1, 1)
    log_p = x - np.logaddexp.reduce(x, axis=dim, keepdims=True)
    if target.dtype.kind in "iu":
        return nll(log_p, target, weight, ignore_index, reduction, label_smoothing)
    target = target * (1 - label_smoothing) + label_smoothing / x.shape[dim]
    if weight is not None:
        target = target * weight.reshape([-1 if i == dim else 1 for i in range(x.ndim)])
    return reduced(-(log_p * target).sum(dim), reduction)


WEIGHT = Const(positive(4, seed=9))
IGNORED = np.array([1, -100, 3, 0, -100])
BY_LABEL = [
    *reductions(arr(5, 4), labels(5)),
    *reductions(arr(5, 4), labels(5), WEIGHT),
    *reductions(arr(5, 4), IGNORED),
    *reductions(arr(5, 4), IGNORED, WEIGHT),
    S(arr(5, 4), labels(5), ignore_index=1),
    S(arr(5, 4), labels(5), WEIGHT, ignore_index=2, reduction="none"),
    S(Const(arr(5, 4)), np.full(5, -100)),  # nothing counts: NaN
    S(arr(5, 4), np.full(5, -100), reduction="sum"),
    S(arr(4), labels()),
    S(arr(4), labels(), WEIGHT),
    S(Const(arr(4)), np.array(-100)),
    S(arr(2, 4, 3), labels(2, 3), WEIGHT),
    S(arr(2, 4, 3, 2), labels(2, 3, 2), reduction="none"),
    *reductions(arr(0, 4), labels(0)),
    S(arr(4, 5).T, labels(5)),
]
BAD_LABELS = [
    (S(arr(3, 4), np.array([0, 4, 1])), BoundsError, "class index 4 is out of range for 4 classes"),
    (S(arr(3, 4), np.array([0, -1, 1])), BoundsError, "class index -1.*ignore_index=-100"),
    (S(arr(3, 4), np.array([9, -100, 1])), BoundsError, "class index 9"),
    (S(arr(3, 4), labels(2)), ShapeError, r"\(3, 4\).*\(3,\).*\(2,\)"),
    (S(arr(2, 4, 3), labels(3, 2)), ShapeError, r"\(2, 3\), got \(3, 2\)"),
    (S(arr(), labels()), ShapeError, "class dimension"),
    (S(arr(3, 4), labels(3), arr(3)), ShapeError, r"4 classes, got shape \(3,\)"),
    (S(arr(3, 4), np.array([True, False, True])), TypeError, "bool"),
]

op(
    F + "nll_loss",
    nll,
    BY_LABEL,
    bad=[
        *(Bad(s, e, r"\[nll_loss\].*" + m) for s, e, m in BAD_LABELS),
        *bad("nll_loss", arr(3, 4), labels(3)),
        Bad(S(arr(3, 4), arr(3)), TypeError, r"\[nll_loss\].*float64"),
    ],
)


def smoothed(sample):
    return S(*sample.args, label_smoothing=0.3, **sample.kwargs)


BY_PROBABILITY = [
    *reductions(arr(5, 4), positive(5, 4)),
    S(arr(5, 4), positive(5, 4), WEIGHT),
    S(arr(4), positive(4)),
    S(arr(2, 4, 3), positive(2, 4, 3), WEIGHT, reduction="none"),
    S(arr(0, 4), positive(0, 4)),
]
op(
    F + "cross_entropy",
    cross_entropy,
    [
        *BY_LABEL,
        *map(smoothed, BY_LABEL),
        *BY_PROBABILITY,
        *map(smoothed, BY_PROBABILITY),
        S(Const([[-np.inf, 2.0, 1.0], [0.0, -np.inf, 1e4]]), np.array([1, 0]), reduction="none"),
    ],
    bad=[
        *(Bad(s, e, r"\[cross_entropy\].*" + m) for s, e, m in BAD_LABELS),
        *bad("cross_entropy", arr(3, 4), labels(3)),
        Bad(S(arr(3, 4), arr(3)), ShapeError, r"\(3, 4\), got \(3,\); class indices"),
        Bad(S(arr(3, 4), labels(3), label_smoothing=1.5), ArgumentError, "from 0 to 1, got 1.5"),
        Bad(S(ints(3, 4), labels(3)), TypeError, "int64"),
    ],
)


# Margins -------------------------------------------------------------------------------------
def multi_margin(x, target, p=1, margin=1.0, weight=None, reduction="mean"):
    flat, wanted = rows(x, target)
    losses = []
    for row, t in zip(flat, wanted, strict=True):
        short = [max(0.0, margin - row[t] + v) ** p for j, v in enumerate(row) if j != t]
        losses.append(sum(short) / len(row) * (1 if weight is None else weight[t]))
    return reduced(np.array(losses).reshape(np.shape(target) if x.ndim > 1 else ()), reduction)


op(
    F + "multi_margin_loss",
    multi_margin,
    [
        *reductions(arr(5, 4), labels(5)),
        S(arr(5, 4), labels(5), 2, 0.5),
        S(arr(5, 4), labels(5), weight=WEIGHT, reduction="none"),
        S(arr(4), labels()),
        S(arr(4), labels(1)),
        S(arr(0, 4), labels(0), reduction="none"),
        S(arr(4, 5).T, labels(5), p=2),
    ],
    torch_gradgrad=False,
    bad=[
        *bad("multi_margin_loss", arr(3, 4), labels(3)),
        Bad(S(arr(3, 4), labels(3), p=3), ArgumentError, "p must be 1 or 2, got 3"),
        Bad(S(arr(3, 4), np.array([0, 4, 1])), BoundsError, "class index 4.*4 classes"),
        Bad(S(arr(3, 4, 2), labels(3)), ShapeError, r"\(3, 4, 2\)"),
        Bad(S(arr(3, 4), labels(2)), ShapeError, r"\(3,\), got \(2,\)"),
        Bad(S(arr(3, 4), labels(3), weight=arr(2)), ShapeError, "4 classes"),
    ],
)


def multilabel_margin(x, target, reduction="mean"):
    losses = []
    for row, wanted in zip(np.atleast_2d(x), np.atleast_2d(target), strict=True):
        listed = list(wanted)
        listed = listed[: listed.index(-1)] if -1 in listed else listed
        losses.append(
            sum(
                max(0.0, 1 - row[t] + row[j])
                for t in listed
                for j in range(len(row))
                if j not in listed
            )
            / len(row)
        )
    return reduced(np.array(losses).reshape(x.shape[:-1]), reduction)


LISTS = np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, 3], [2, 2, -1, -1]])
op(
    F + "multilabel_margin_loss",
    multilabel_margin,
    [
        *reductions(arr(4, 4), LISTS),
        S(arr(4), np.array([1, -1, 0, 0])),
        S(arr(0, 4), labels(0, 4), reduction="none"),
        S(arr(), np.array(0)),
        S(arr(4, 4).T, LISTS),
    ],
    torch_gradgrad=False,
    bad=[
        *bad("multilabel_margin_loss", arr(4, 4), LISTS),
        Bad(S(arr(2, 3), labels(2, 2)), ShapeError, r"\(2, 3\) and \(2, 2\)"),
        Bad(S(arr(3), np.array([3, 0, 0])), BoundsError, "class index 3.*3 classes"),
        Bad(S(arr(3), np.array([-2, 0, 0])), BoundsError, "class index -2"),
        Bad(S(arr(3), arr(3)), TypeError, "float64"),
    ],
)


def multilabel_soft_margin(x, target, weight=None, reduction="mean"):
    return reduced(bce_logits(x, target, weight, "none").mean(-1), reduction)


op(
    F + "multilabel_soft_margin_loss",
    multilabel_soft_margin,
    [
        *reductions(arr(3, 4), positive(3, 4)),
        S(arr(4), positive(4)),
        S(arr(2, 3, 4), arr(4)),
        S(arr(3, 4), Const(labels(3, 4, classes=2)), WEIGHT),
        S(arr(0, 4), arr(0, 4)),
        S(Const([[1e4, -1e4]]), Const([[0.0, 1.0]])),
    ],
    bad=[
        *bad("multilabel_soft_margin_loss", arr(3, 4), arr(3, 4)),
        Bad(S(arr(), arr()), ShapeError, "class dimension"),
    ],
)

# Kinks -----------------------------------------------------------------------------------------
singular("nn.functional.multi_margin_loss", S(np.array([[1.0, 0.0, 1.0]]), np.array([0])))
