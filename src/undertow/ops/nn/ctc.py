"""Connectionist temporal classification: the likelihood of a labelling over all its alignments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ... import dtypes
from ...core.dispatch import apply, cast, elementwise
from ...core.op import elementwise_op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, BoundsError, DTypeError, ShapeError
from ...kernel import expr
from ..create.from_data import tensor
from ..elementwise.comparison import where
from ..elementwise.transcendental import exp
from ..shape.joining import cat, stack
from ..shape.movement import narrowed, selected
from .embedding import require_within
from .losses import reduced

_NEVER = float("-inf")


def _one_step(a: Any, b: Any, c: Any, skip: Any, score: Any) -> Any:
    c = c + skip
    peak = expr.call("maximum", expr.call("maximum", a, b), c)
    base = expr.where(peak == _NEVER, 0.0, peak)
    parts = [expr.call("exp", x - base) for x in (a, b, c)]
    return base + expr.call("log", parts[0] + parts[1] + parts[2]) + score


def _share(g: Any, x: Any, out: Any) -> Any:
    """The part of `out` that came from `x`; none at all where everything is impossible."""
    return g * exp(x - where(out == _NEVER, 0.0, out))


# log(exp(a) + exp(b) + exp(c + skip)) + score, whose gradient is 0, not NaN, where all is -inf.
_step = elementwise_op(
    "ctc_step",
    _one_step,
    inputs="a b c skip score",
    vjp={
        "a": lambda g, a, score, out: _share(g, a + score, out),
        "b": lambda g, b, score, out: _share(g, b + score, out),
        "c": lambda g, c, skip, score, out: _share(g, c + skip + score, out),
        "score": lambda g: g,
    },
)


@function(top=False, method=False, functional=True)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of label sequences, summed over all alignments with blanks.

    `log_probs` is (T, N, C) or (T, C); `targets` is (N, S), padded, or all labels concatenated.
    "mean" divides each loss by its target's length first. A target that does not fit into its
    input has loss infinity and gradient zero; `zero_infinity` makes that loss zero as well.

    The gradient is the derivative by `log_probs` themselves. (torch returns it plus
    `exp(log_probs)`, which is the same only behind a `log_softmax`.)

    >>> import undertow as ut
    >>> log_p = ut.full((2, 1, 2), 0.5).log()
    >>> ut.nn.functional.ctc_loss(log_p, ut.tensor([[1]]), [2], [1])  # -log(3/4)
    tensor(0.2877)
    """
    op = "ctc_loss"
    if log_probs.ndim not in (2, 3):
        raise ShapeError(f"[{op}] log_probs must be (T, N, C) or (T, C), got {log_probs.shape}")
    if not log_probs.is_floating_point():
        raise DTypeError(f"[{op}] log_probs must be floating, got {log_probs.dtype}")
    batched = log_probs.ndim == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise BoundsError(f"[{op}] blank {blank} is out of range for {classes} classes")
    inputs = _lengths(op, "input_lengths", input_lengths, batch, steps)
    lengths = _lengths(op, "target_lengths", target_lengths, batch, None)
    labels = _labels(op, targets, lengths, classes, blank, batched)
    loss = -_likelihood(log_probs, labels, inputs, lengths, blank)
    if zero_infinity:
        loss = where(loss == -_NEVER, 0.0, loss)
    if not batched:
        loss = loss.squeeze(0)
    if reduction == "mean":
        sizes = _integers(lengths, log_probs).clamp_min(1)
        loss = loss / (sizes if batched else sizes.squeeze(0))
    return reduced(op, loss, reduction)


def _likelihood(
    log_probs: Tensor, labels: Tensor, inputs: list[int], lengths: list[int], blank: int
) -> Tensor:
    """The log-likelihood of each labelling, by the forward recursion over states.

    A labelling of S labels has 2S + 1 states: blank, label, blank, … . alpha[n, s] is the
    log-likelihood of being in state s now. From one step to the next a state stays, moves on by
    one, or skips a blank between two different labels.
    """
    steps, batch, _ = log_probs.shape
    size = 2 * labels.shape[1] + 1
    states = _interleaved(labels, blank)
    ends_at = set(inputs)
    scores = _rows(log_probs.gather(2, states.expand(steps, batch, size)), max(inputs, default=0))
    gap = log_probs.new_full((batch, 2), _NEVER)
    free = log_probs.new_zeros(())
    skip = cat([gap[:, :size], where(states[:, 2:] != states[:, :-2], free, _NEVER)], 1)
    # Before the first step nothing has been said: the one state that fits is the first.
    later = log_probs.new_full((batch, size - 1), _NEVER)
    alpha = result = cat([log_probs.new_zeros((batch, 1)), later], 1)
    if not any(inputs):  # no step will be looked at, and the gradient is zero
        result = result + log_probs[:0].sum()
    frames = _integers(inputs, log_probs).unsqueeze(1)
    for t, score in enumerate(scores, 1):
        before = cat([gap, alpha], 1)
        one, two = narrowed(before, 1, 1, size), narrowed(before, 1, 0, size)
        alpha = apply(_step, (alpha, one, two, skip, score))
        if t in ends_at:
            result = where(frames == t, alpha, result)
    ends = [[2 * n, max(2 * n - 1, 0)] for n in lengths]  # the last blank, or the last label
    last = result.gather(1, _integers(ends, log_probs).reshape(batch, 2))
    end_label = where(_integers(lengths, log_probs) > 0, last[:, 1], _NEVER)
    return elementwise(_step, last[:, 0], end_label, _NEVER, 0.0, 0.0)


def _interleaved(labels: Tensor, blank: int) -> Tensor:
    """blank, label, blank, label, …, blank."""
    batch, count = labels.shape
    blanks = labels.new_full((batch, count + 1), blank)
    pairs = stack([blanks[:, :-1], labels], -1).reshape(batch, 2 * count)
    return cat([pairs, blanks[:, -1:]], 1)


def _rows(x: Tensor, count: int) -> list[Tensor]:
    """The first `count` entries of x, halved again and again.

    The gradient of each slice is as large as what it was cut from: cutting every row from the
    whole would make the backward quadratic in the number of rows.
    """
    if count <= 8:
        return [selected(x, 0, t) for t in range(count)]
    half = count // 2
    return _rows(x[:half], half) + _rows(x[half:count], count - half)


# Arguments -----------------------------------------------------------------------------------
def _integers(values: Iterable[Any], like: Tensor) -> Tensor:
    return tensor(list(values), dtype=dtypes.int64, device=like.device)


def _lengths(op: str, name: str, given: Any, batch: int, limit: int | None) -> list[int]:
    if isinstance(given, Tensor):
        if given._array.dtype.kind not in "iu":
            raise DTypeError(f"[{op}] {name} must be integers, got {given.dtype}")
        given = given.reshape(-1).tolist()
    values = [int(n) for n in given] if isinstance(given, Sequence) else [int(given)]
    if len(values) != batch:
        raise ShapeError(f"[{op}] {name} must have {batch} entries, got {len(values)}")
    for n in values:
        if n < 0 or (limit is not None and n > limit):
            bound = "" if limit is None else f" and at most the {limit} steps of log_probs"
            raise ArgumentError(f"[{op}] {name} must be at least 0{bound}, got {n}")
    return values


def _labels(
    op: str, targets: Tensor, lengths: list[int], classes: int, blank: int, batched: bool
) -> Tensor:
    """The labels as (N, longest), with blanks behind the shorter ones."""
    if targets._array.dtype.kind not in "iu":
        raise DTypeError(f"[{op}] targets must be integers, got {targets.dtype}")
    targets = cast(targets, dtypes.int64)
    longest = max(lengths, default=0)
    column = _integers(range(longest), targets)
    used = column < _integers(lengths, targets).unsqueeze(1)
    if targets.ndim == 2 and batched:
        if targets.shape[0] != len(lengths) or targets.shape[1] < longest:
            raise ShapeError(
                f"[{op}] padded targets must be at least ({len(lengths)}, {longest}) for these "
                f"target_lengths, got {targets.shape}"
            )
        found = targets[:, :longest]
    elif targets.ndim == 1:
        if targets.shape[0] != sum(lengths) and (batched or targets.shape[0] < longest):
            raise ShapeError(
                f"[{op}] concatenated targets must have the {sum(lengths)} labels that "
                f"target_lengths add up to, got {targets.shape[0]}"
            )
        starts = [sum(lengths[:n]) for n in range(len(lengths))]
        place = where(used, column + _integers(starts, targets).unsqueeze(1), 0)
        found = targets[place] if targets.numel() else place
    else:
        raise ShapeError(
            f"[{op}] targets must be (N, S) or all labels concatenated, got shape {targets.shape}"
        )
    labels: Tensor = where(used, found, blank)
    message = f"[{op}] label {{}} is out of range for {{}} classes"
    require_within(labels, 0, classes, message, classes)
    return labels
