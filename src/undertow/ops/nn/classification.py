"""Losses of class labels: cross entropy, negative log-likelihood, and the multi-class margins."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.dispatch import apply, cast, sum_to
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel.expr import Expr, call, trace, where
from ...kernel.row_program import Program, Tracer, rows
from ...shapes import Shape, check_fits
from ..elementwise.activation import logsigmoid
from ..index.indexing import index_by
from ..reduce.reduction import QUOTIENT, sum
from ..shape.movement import along
from .embedding import require_within
from .losses import REDUCTIONS, legacy_reduction, reduced, reduction_error
from .softmax import log_softmax, softmax, softmax_vjp

_SINGLE, _DOUBLE = dtypes.float32.numpy, dtypes.float64.numpy

# The entry of each target class, and its adjoint: entries put in place among zeros. A gather whose
# index has one position along `dim`, so that no two entries meet.
_pick = Op(
    "pick",
    lambda k, x, target, dim: k.slice(
        k.gather(x, dim, k.slice(target, along(dim, None))), along(dim, 0)
    ),
    inputs="x target",
    params="dim",
    vjp={"x": lambda g, target, dim, x_shape: apply(_unpick, (g, target), (dim, x_shape))},
)
_unpick: Op = Op(
    "unpick",
    lambda k, x, target, dim, shape: k.scatter(
        "set",
        k.full(shape, 0, x.dtype),
        dim,
        k.slice(target, along(dim, None)),
        k.slice(x, along(dim, None)),
        True,
    ),
    inputs="x target",
    params="dim shape",
    vjp={"x": lambda g, target, dim: apply(_pick, (g, target), (dim,))},
)


# Note [cross entropy]
# With class indices t the loss of a row is a (log Σ exp(x) - x_t) + b Σ w (log Σ exp(x) - x), where
# a is 1 - smoothing times the weight of class t, and b = smoothing / C. One kernel computes it, and
# keeps for each row its largest element and the sum of exponentials; the backward makes from them,
# in one kernel again, v ((a + b Σ w) p - a [column = t] - b w) with p = softmax(x). Neither the
# log-probabilities nor the one-hot targets are ever stored. Rows whose target is `ignore` have no
# loss, and v = 0; None: all of them count, which the CPU looks at, but a GPU would wait for.
@lru_cache(64)
def _forward_row(weighted: bool, smoothed: bool, ignore: int | None) -> Program:
    def describe(p: Tracer, x: Expr, *more: Expr) -> None:
        given = iter(more)
        w = next(given) if weighted and smoothed else 1.0
        target = next(given)
        scale = next(given) if weighted else 1.0
        peak = p.peak(x)
        total = p.sum(call("exp", x - peak))
        log_total = p.row(call("log", total))
        counts = None if ignore is None else call("ne", target, ignore)
        column = target if counts is None else where(counts, target, 0)
        loss = log_total - (p.pick(x, column) - peak)
        if smoothed:
            share, rest = given
            spread = p.sum(w * (log_total - (x - peak)))
            loss = loss * (scale * share if weighted else share) + spread * rest
        elif weighted:
            loss = loss * scale
        p.out_row(loss if counts is None else where(counts, loss, 0.0))
        p.out_row(peak)
        p.out_row(total)

    return rows(describe, 1 + (weighted and smoothed), 1 + weighted, 2 * smoothed)


@lru_cache(64)
def _slope_row(weighted: bool, smoothed: bool, ignore: int | None) -> Program:
    def describe(p: Tracer, x: Expr, *more: Expr) -> None:
        given = iter(more)
        w: Any = next(given) if weighted and smoothed else 1.0
        target, v, peak, total = (next(given) for _ in range(4))
        if ignore is not None:
            v = p.row(where(call("ne", target, ignore), v, 0.0))
        scale = next(given) if weighted else 1.0
        a: Any = v * scale if weighted else v
        factor = a
        rest: Any = 0.0
        if smoothed:
            share, part, classes = given
            a = p.row(a * share)
            rest = p.row(v * part)
            factor = a + rest * (p.sum(w) if weighted else classes)
        slope = call("exp", x - peak) * p.row(factor / total) - where(p.column == target, a, 0.0)
        p.out(slope - rest * w if smoothed else slope)

    return rows(describe, 1 + (weighted and smoothed), 4 + weighted, 3 * smoothed)


def _elements(k: Forms, x: Array, w: Array, dim: int, smoothing: float) -> tuple[Any, ...]:
    """The operands of both that have elements."""
    if w is None or not smoothing:
        return (x,)
    return x, k.reshape(w, (w.size, *[1] * (len(x.shape) - dim - 1)))


def cross_entropy_forward(
    k: Forms,
    x: Array,
    target: Array,
    scale: Array,
    w: Array,
    dim: int,
    smoothing: float,
    reduction: str,
    ignore: int | None = None,
) -> Any:
    """The losses, or what they are reduced to; and of each row, its peak and its sum."""
    at = along(dim, None)
    elements = _elements(k, x, w, dim, smoothing)
    per_row = (k.slice(target, at),) if w is None else (k.slice(target, at), k.slice(scale, at))
    numbers = (1 - smoothing, smoothing / x.shape[dim]) if smoothing else ()
    wide = _DOUBLE if x.dtype.itemsize == 8 else _SINGLE
    program = _forward_row(w is not None, bool(smoothing), ignore)
    operands = (*elements, *per_row, *numbers)
    loss, peak, total = k.rows(program, operands, (dim,), (x.dtype, wide, wide))
    if reduction == "none":
        loss = k.reshape(loss, target.shape)
    else:
        loss = k.reduce(reduction, loss, tuple(range(len(x.shape))), False)
    return loss, peak, total


def _slope_forward(
    k: Forms,
    x: Array,
    target: Array,
    scale: Array,
    w: Array,
    v: Array,
    peak: Any,
    total: Any,
    dim: int,
    smoothing: float,
    ignore: int | None = None,
) -> Any:
    at = along(dim, None)
    each = k.slice(v, at) if v.shape else v  # else it is the same for all of them
    per_row: tuple[Any, ...] = (k.slice(target, at), each, peak, total)
    if w is not None:
        per_row += (k.slice(scale, at),)
    operands = (*_elements(k, x, w, dim, smoothing), *per_row)
    classes = x.shape[dim]
    numbers = (1 - smoothing, smoothing / classes, float(classes)) if smoothing else ()
    program = _slope_row(w is not None, bool(smoothing), ignore)
    return k.rows(program, (*operands, *numbers), (dim,), (x.dtype,))[0]


def _slope_rules(
    x: Tensor, scale: Tensor | None, w: Tensor | None, dim: int, smoothing: float
) -> tuple[Tensor, Any, Any, Any]:
    """p, and a, b w and a + b Σ w of Note [cross entropy], in shapes that broadcast with p."""
    a: Any = 1 - smoothing
    if scale is not None:
        a = scale.unsqueeze(dim) * a
    b = smoothing / x.shape[dim]
    if w is None:
        return softmax(x, dim), a, b, a + smoothing
    return softmax(x, dim), a, w.reshape(-1, *[1] * (x.ndim - dim - 1)) * b, a + sum(w) * b


def _slope_rule_v(
    g: Tensor,
    x: Tensor,
    target: Tensor,
    scale: Tensor | None,
    w: Tensor | None,
    v_shape: Shape,
    dim: int,
    smoothing: float,
) -> Tensor:
    p, a, bw, factor = _slope_rules(x, scale, w, dim, smoothing)
    picked = apply(_pick, (g, target), (dim,))
    total = sum(g * (p * factor - bw), dim)
    return sum_to(total - picked * (a if scale is None else a.squeeze(dim)), v_shape)


def _slope_rule_x(
    g: Tensor,
    x: Tensor,
    scale: Tensor | None,
    w: Tensor | None,
    v: Tensor,
    dim: int,
    smoothing: float,
) -> Tensor:
    p, _, _, factor = _slope_rules(x, scale, w, dim, smoothing)
    return softmax_vjp(g, p, (dim,)) * ((v.unsqueeze(dim) if v.ndim else v) * factor)


cross_entropy_slope = Op(
    "cross_entropy_slope",
    _slope_forward,
    inputs="x target scale w v peak total",
    params="dim smoothing",
    vjp={"x": _slope_rule_x, "v": _slope_rule_v},
)


def _cross_entropy_rule(
    g: Tensor,
    x: Tensor,
    target: Tensor,
    scale: Tensor | None,
    w: Tensor | None,
    out1: Tensor,
    out2: Tensor,
    dim: int,
    smoothing: float,
    reduction: str,
    ignore: int | None,
) -> Tensor:
    v = g / target.numel() if reduction == "mean" else g
    if ignore is not None:
        kept = target != ignore
        v, target = v.where(kept, 0.0), target.where(kept, 0)
    # What the rows' extremes and sums depend on is in the rule of x.
    operands = (x, target, scale, w, v, out1.detach(), out2.detach())
    return apply(cross_entropy_slope, operands, (dim, smoothing))


def _bare_cross_entropy(
    k: Forms,
    g: Array,
    x: Array,
    target: Array,
    scale: Array,
    w: Array,
    peak: Array,
    total: Array,
    dim: int,
    smoothing: float,
    reduction: str,
    ignore: int | None,
) -> Any:
    """The same on arrays; see Note [bare rules]."""
    if reduction == "mean":
        g = k.map(QUOTIENT, (g, target.size), g.dtype)
    return _slope_forward(k, x, target, scale, w, g, peak, total, dim, smoothing, ignore)


_cross_entropy = Op(
    "cross_entropy",
    cross_entropy_forward,
    inputs="x target scale w",
    params="dim smoothing reduction ignore",
    outputs=3,
    differentiable=1,
    vjp={"x": _cross_entropy_rule},
    bare={"x": _bare_cross_entropy},
)


_OTHER = trace(lambda x, number: call("ne", x, number), 2)
_count = Op(
    "count_other",
    lambda k, x, number, dtype: k.map_reduce(
        "sum", _OTHER, (x, number), tuple(range(len(x.shape))), False, dtype
    ),
    inputs="x",
    params="number dtype",
)


# The class dimension of (C), (N, C), (N, C, d1 …) --------------------------------------------


def _labels(op: str, shape: Shape, target: Tensor) -> Tensor:
    """Class indices as int64, in the shape of the logits without its class dimension."""
    kind = target._array.dtype.kind
    if kind not in "iu":
        raise DTypeError(f"[{op}] class indices must be integers, got {target.dtype}")
    if not shape:
        raise ShapeError(f"[{op}] input needs a class dimension, got a tensor of 0 dimensions")
    expected = () if len(shape) == 1 else shape[:1] + shape[2:]
    if target._array.shape != expected:
        raise ShapeError(
            f"[{op}] an input of shape {shape} needs a target of shape {expected}, "
            f"got {target.shape}"
        )
    return cast(target, dtypes.int64)


def _check_weight(op: str, weight: Tensor, classes: int) -> None:
    if weight.shape != (classes,):
        raise ShapeError(
            f"[{op}] weight must have one entry for each of the {classes} classes, "
            f"got shape {weight.shape}"
        )


def _ignored(op: str, target: Tensor, classes: int, ignore_index: int) -> int | None:
    """The class index that does not count, None if it is known to be none; others must exist."""
    array = target._array
    if not 0 <= ignore_index < classes and backend_of(array).within(array, 0, classes):
        return None
    message = (
        f"[{op}] class index {{}} is out of range for {{}} classes; it must be from 0 to "
        f"{classes - 1}, or ignore_index={ignore_index}"
    )
    require_within(target, 0, classes, message, classes, but=ignore_index)
    return ignore_index


def class_weights(weight: Tensor, target: Tensor) -> Tensor:
    return index_by(weight, (target,), (0,))


def _nll(
    op: str,
    log_p: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float = 0.0,
) -> Tensor:
    """The loss of log-probabilities; smoothing mixes in the mean over classes."""
    target, kept, dim = checked_classes(op, log_p._array.shape, target, weight, ignore_index)
    picked: Tensor = apply(_pick, (log_p, target), (dim,))
    if weight is None and kept is None and not smoothing:
        return -reduced(op, picked, reduction)
    scale = None if weight is None else class_weights(weight, target)
    loss = -picked if scale is None else -picked * scale
    if smoothing:
        if weight is not None:
            log_p = log_p * weight.reshape(-1, *[1] * (log_p.ndim - dim - 1))
        loss = loss * (1 - smoothing) - log_p.sum(dim) * (smoothing / log_p.shape[dim])
    return reduced_rows(op, loss, scale, kept, reduction)


def _fused(
    op: str,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Tensor:
    """The loss of logits in one kernel; see Note [cross entropy]."""
    if reduction not in REDUCTIONS:
        raise reduction_error(op, reduction)
    shape = input._array.shape
    if weight is not None:  # the mean of rows that do not count alike is taken apart from them
        target, kept, dim = checked_classes(op, shape, target, weight, ignore_index)
        scale = class_weights(weight, target)
        operands = (input, target, scale, weight)
        loss: Tensor = apply(_cross_entropy, operands, (dim, smoothing, "none", None))[0]
        return reduced_rows(op, loss, scale, kept, reduction)
    target, dim = _labels(op, shape, target), min(len(shape) - 1, 1)
    ignore = _ignored(op, target, shape[dim], ignore_index)
    count = ignore is not None and reduction == "mean"
    params = (dim, smoothing, "sum" if count else reduction, ignore)
    loss = apply(_cross_entropy, (input, target, None, None), params)[0]
    return loss / apply(_count, (target,), (ignore, input._array.dtype)) if count else loss


def checked_classes(
    op: str, shape: Shape, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor | None, int]:
    """Class indices that all exist, which of them count (None: all), and the class dimension.

    `shape` is that of the logits.
    """
    target = _labels(op, shape, target)
    dim = min(len(shape) - 1, 1)
    classes = shape[dim]
    if weight is not None:
        _check_weight(op, weight, classes)
    ignored = _ignored(op, target, classes, ignore_index)
    if ignored is None:
        return target, None, dim
    kept = target != ignored
    return target.where(kept, 0), kept, dim


def reduced_rows(
    op: str, loss: Tensor, scale: Tensor | None, kept: Tensor | None, reduction: str
) -> Tensor:
    """Zero for the rows that do not count, then the reduction; the mean is weighted."""
    if kept is not None:
        loss = loss.where(kept, 0.0)
        scale = cast(kept, loss.dtype) if scale is None else scale.where(kept, 0.0)
    if reduction == "mean" and scale is not None:
        return sum(loss) / sum(scale)
    return reduced(op, loss, reduction)


@function(top=False, method=False, functional=True)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative of `input`, log-probabilities of shape (N, C, …), at the target classes.

    The mean is weighted by `weight`, and leaves out targets equal to `ignore_index`.

    >>> import undertow as ut
    >>> log_p = ut.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    >>> ut.nn.functional.nll_loss(log_p, ut.tensor([0, 1]), reduction="none")
    tensor([1.3863, 0.6931])
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    return _nll("nll_loss", input, target, weight, ignore_index, reduction)


@function(top=False, method=False, functional=True)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits (N, C, …) with class indices (N, …) or probabilities (N, C, …).

    >>> import undertow as ut
    >>> logits = ut.tensor([[0.0, 0.0], [100.0, 0.0]])
    >>> ut.nn.functional.cross_entropy(logits, ut.tensor([0, 1]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    op = "cross_entropy"
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"[{op}] label_smoothing must be from 0 to 1, got {label_smoothing}")
    x = input._array
    if not x.shape:
        raise ShapeError(f"[{op}] input needs a class dimension, got a tensor of 0 dimensions")
    dim = min(len(x.shape) - 1, 1)
    if target._array.dtype.kind in "biu":
        whole = weight is None or (not differentiated(weight) and weight.dtype is input.dtype)
        if whole and x.dtype.kind in "fV" and x.shape[dim]:
            return _fused(op, input, target, weight, ignore_index, reduction, label_smoothing)
        log_p = log_softmax(input, dim)
        return _nll(op, log_p, target, weight, ignore_index, reduction, label_smoothing)
    if target.shape != input.shape:
        raise ShapeError(
            f"[{op}] target probabilities need the input's shape {input.shape}, got "
            f"{target.shape}; class indices must be integers"
        )
    log_p = log_softmax(input, dim)
    classes = input.shape[dim]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    loss = log_p * target
    if weight is not None:
        _check_weight(op, weight, classes)
        loss = loss * weight.reshape(-1, *[1] * (input.ndim - dim - 1))
    return reduced(op, -loss.sum(dim), reduction)


# Margins between classes ---------------------------------------------------------------------
@function(top=False, method=False, functional=True)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far each other class comes within `margin` of the target's, to the power `p`.

    >>> import undertow as ut
    >>> scores = ut.tensor([[0.0, 0.0, 3.0]])
    >>> ut.nn.functional.multi_margin_loss(scores, ut.tensor([1]))
    tensor(1.6667)
    """
    op = "multi_margin_loss"
    if p not in (1, 2):
        raise ArgumentError(f"[{op}] p must be 1 or 2, got {p}")
    if not input.ndim:  # a number is the score of one class
        input = input.reshape(1)
    if input.ndim > 2 or not input.shape[-1]:
        raise ShapeError(f"[{op}] input must be (C) or (N, C) with C > 0, got {input.shape}")
    alone = input.ndim == 1 and target.shape == (1,)
    target = _labels(op, input._array.shape, target.reshape(()) if alone else target)
    classes = input.shape[-1]
    message = f"[{op}] class index {{}} is out of range for {{}} classes"
    require_within(target, 0, classes, message, classes)
    index = target.unsqueeze(-1)
    short = margin - input.gather(-1, index) + input
    others = target.new_ones(input.shape, dtype=dtypes.bool).scatter(-1, index, False)
    loss = short.where(others & (short > 0), 0.0)
    if p == 2:
        loss = loss * loss
    loss = loss.sum(-1) / classes
    if weight is not None:
        _check_weight(op, weight, classes)
        loss = loss * class_weights(weight, target)
    loss = loss.reshape(1) if alone else loss  # the target's shape
    return reduced(op, loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the classes that are no target come within 1 of those that are.

    A row of `target` lists its classes and ends at the first -1.

    >>> import undertow as ut
    >>> scores = ut.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> ut.nn.functional.multilabel_margin_loss(scores, ut.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """
    op = "multilabel_margin_loss"
    if input.ndim > 2 or input.shape != target.shape:
        raise ShapeError(
            f"[{op}] input and target must both be (C) or (N, C), "
            f"got {input.shape} and {target.shape}"
        )
    if target._array.dtype.kind not in "iu":
        raise DTypeError(f"[{op}] class indices must be integers, got {target.dtype}")
    if not input.ndim:
        input, target = input.reshape(1), target.reshape(1)
    classes = input.shape[-1]
    target = cast(target, dtypes.int64)
    message = f"[{op}] class index {{}} is out of range for {{}} classes; -1 ends a row's list"
    require_within(target, -1, classes, message, classes)
    listed = (target >= 0).cumprod(-1) > 0
    index = target.where(listed, 0)
    counts = index.new_zeros(input.shape).scatter_add(-1, index, cast(listed, dtypes.int64))
    pairs = listed.unsqueeze(-1) & (counts == 0).unsqueeze(-2)
    short = 1 - input.gather(-1, index).unsqueeze(-1) + input.unsqueeze(-2)
    loss = short.where(pairs & (short > 0), 0.0).sum((-2, -1)) / classes
    return reduced(op, loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of each class's logit, averaged over the classes.

    >>> import undertow as ut
    >>> logits, labels = ut.zeros(1, 2), ut.tensor([[1.0, 0.0]])
    >>> ut.nn.functional.multilabel_soft_margin_loss(logits, labels)
    tensor(0.6931)
    """
    op = "multilabel_soft_margin_loss"
    if not input.ndim:
        raise ShapeError(f"[{op}] input needs a class dimension, got a tensor of 0 dimensions")
    loss = (target - 1) * logsigmoid(-input) - target * logsigmoid(input)
    if weight is not None:
        check_fits(op, "weight", weight.shape, input.shape)
        loss = loss * weight
    return reduced(op, loss.sum(-1) / input.shape[-1], reduction, size_average, reduce)
