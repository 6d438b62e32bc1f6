"""Samples for `undertow.ops.nn.ctc`."""

from __future__ import annotations

import itertools

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op

ArgumentError, BoundsError, ShapeError = (
    ut.errors.ArgumentError,
    ut.errors.BoundsError,
    ut.errors.ShapeError,
)


NEVER = -np.inf


def log_probs(*shape, seed=0):
    x = arr(*shape, seed=seed)
    return x - np.logaddexp.reduce(x, axis=-1, keepdims=True)


def collapsed(path, blank):
    """A path without repetitions, then without blanks."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def ctc(lp, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """By its definition: the sum over every path that collapses to the labels."""
    unbatched = lp.ndim == 2
    lp = lp[:, None] if unbatched else lp
    frames, sizes = (np.atleast_1d(n).tolist() for n in (input_lengths, target_lengths))
    losses, start = [], 0
    for n, (frame_count, size) in enumerate(zip(frames, sizes, strict=True)):
        if targets.ndim == 2:
            wanted = targets[n, :size].tolist()
        else:
            wanted = targets[start : start + size].tolist()
        start += size
        total = sum(
            np.exp(sum(lp[t, n, label] for t, label in enumerate(path)))
            for path in itertools.product(range(lp.shape[2]), repeat=frame_count)
            if collapsed(path, blank) == wanted
        )
        loss = -np.log(total) if total else np.inf
        losses.append(0.0 if zero_infinity and loss == np.inf else loss)
    losses = np.array(losses)[0] if unbatched else np.array(losses)
    if reduction == "mean":
        weights = np.maximum(sizes[0] if unbatched else sizes, 1)
        return np.mean(losses / weights)
    return losses.sum() if reduction == "sum" else losses


def forward_only(lp, *args, **kwargs):
    """torch's gradient is right only behind a log_softmax; see test_torch_ctc.py."""
    import torch

    return torch.nn.functional.ctc_loss(lp.detach(), *args, **kwargs)


PADDED = np.array([[1, 2, 2], [2, 1, 0], [1, 1, 1]])
op(
    "nn.functional.ctc_loss",
    ctc,
    [
        *(
            S(log_probs(5, 3, 3), PADDED, [5, 4, 5], [3, 2, 1], reduction=r)
            for r in ("mean", "sum", "none")
        ),
        S(log_probs(5, 3, 3), PADDED, np.array([5, 5, 5]), np.array([2, 2, 2])),
        S(log_probs(5, 2, 3), np.array([1, 2, 2]), (5, 4), (1, 2)),  # concatenated
        S(log_probs(5, 2, 3), np.array([[1, 1], [2, 2]]), [5, 3], [2, 2]),  # just enough frames
        S(Const(log_probs(4, 2, 3)), np.array([[1, 1], [2, 1]]), [2, 4], [2, 2], reduction="none"),
        S(log_probs(4, 2, 3), np.array([[1, 1], [2, 1]]), [2, 4], [2, 2], zero_infinity=True),
        S(log_probs(4, 2, 3), np.array([[1, 2], [0, 0]]), [4, 3], [2, 0], reduction="none"),
        S(log_probs(3, 2, 3), np.zeros((2, 0), int), [3, 1], [0, 0]),  # nothing was said
        S(log_probs(3, 2, 3), np.array([[0, 1], [1, 0]]), [3, 3], [2, 1], blank=2),
        S(log_probs(3, 2, 3), np.array([[0, 7], [1, -1]]), [3, 3], [1, 1], blank=2),  # padding
        S(log_probs(1, 1, 3), np.array([[2]]), [1], [1]),
        S(log_probs(4, 3), np.array([1, 2]), np.array(4), np.array(2)),  # one without a batch
        S(log_probs(4, 3), np.array([1, 2]), np.array(3), np.array(2), reduction="none"),
        S(arr(3, 4, 2).T, np.ones((4, 1), int), [2] * 4, [1] * 4),  # non-contiguous
        S(
            Const([[[NEVER, 0.0, NEVER]], [[0.0, NEVER, NEVER]], [[-0.5, NEVER, -0.5]]]),
            np.array([[1, 2]]),
            [3],
            [2],
        ),
    ],
    torch=forward_only,
    bad=[
        Bad(
            S(arr(3, 2, 3), PADDED[:2], [4, 3], [1, 1]),
            ArgumentError,
            r"input_lengths.*at most the 3 steps.*got 4",
        ),
        Bad(S(arr(3, 2, 3), PADDED[:2], [3, 3], [1, -1]), ArgumentError, r"target_lengths.*got -1"),
        Bad(
            S(arr(3, 2, 3), PADDED[:2], [3], [1, 1]), ShapeError, "input_lengths.*2 entries, got 1"
        ),
        Bad(S(arr(3, 2, 3), PADDED[:2], [3, 3], [4, 1]), ShapeError, r"\(2, 4\).*\(2, 3\)"),
        Bad(S(arr(3, 2, 3), np.array([1, 2]), [3, 3], [2, 1]), ShapeError, "3 labels.*got 2"),
        Bad(
            S(arr(3, 2, 3), np.array([[3], [1]]), [3, 3], [1, 1]),
            BoundsError,
            "label 3 is out of range for 3 classes",
        ),
        Bad(
            S(arr(3, 2, 3), PADDED[:2], [3, 3], [1, 1], blank=3), BoundsError, "blank 3.*3 classes"
        ),
        Bad(S(arr(3, 2, 3), arr(2, 1), [3, 3], [1, 1]), TypeError, "targets.*float64"),
        Bad(S(ints(3, 2, 3), PADDED[:2], [3, 3], [1, 1]), TypeError, "log_probs.*int64"),
        Bad(S(arr(3), PADDED[:2], [3, 3], [1, 1]), ShapeError, r"\(3,\)"),
        Bad(S(arr(3, 2, 3), PADDED[:2], arr(2), [1, 1]), TypeError, "input_lengths.*float64"),
        Bad(S(arr(3, 2, 3), PADDED[:2], [3, 3], [1, 1], reduction="x"), ArgumentError, "'x'"),
    ],
)
