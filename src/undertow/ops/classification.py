"""Losses of class labels: cross entropy, negative log-likelihood, and the multi-class margins."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.dispatch import apply, cast
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError, BoundsError, DTypeError, ShapeError
from ..shapes import check_fits
from .activation import logsigmoid
from .embedding import value_range
from .indexing import index_by
from .losses import legacy_error, reduced
from .movement import along
from .reduction import sum
from .softmax import log_softmax

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


# The class dimension of (C), (N, C), (N, C, d1 …) --------------------------------------------


def _labels(op: str, input: Tensor, target: Tensor) -> Tensor:
    """Class indices as int64, in the input's shape without its class dimension."""
    kind = target._array.dtype.kind
    if kind not in "iu":
        raise DTypeError(f"[{op}] class indices must be integers, got {target.dtype}")
    if not input.ndim:
        raise ShapeError(f"[{op}] input needs a class dimension, got a tensor of 0 dimensions")
    shape = input.shape
    expected = () if len(shape) == 1 else shape[:1] + shape[2:]
    if target.shape != expected:
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


def _kept(op: str, target: Tensor, classes: int, ignore_index: int) -> tuple[Tensor, Tensor | None]:
    """Class indices that all exist, and which of them count (None: all)."""
    low, high = value_range(target)
    if low >= 0 and high < classes and not low <= ignore_index <= high:
        return target, None
    kept = target != ignore_index
    safe = target.where(kept, 0)
    low, high = value_range(safe)
    if low < 0 or high >= classes:
        raise BoundsError(
            f"[{op}] class index {low if low < 0 else high} is out of range for {classes} classes; "
            f"it must be from 0 to {classes - 1}, or ignore_index={ignore_index}"
        )
    return safe, kept


def _class_weights(weight: Tensor, target: Tensor) -> Tensor:
    return index_by(weight, (target,), (0,))


def _nll(
    op: str, log_p: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int,
    reduction: str, smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """What `nll_loss` and `cross_entropy` share; smoothing mixes in the mean over classes."""
    target = _labels(op, log_p, target)
    dim = min(log_p.ndim - 1, 1)
    classes = log_p.shape[dim]
    if weight is not None:
        _check_weight(op, weight, classes)
    target, kept = _kept(op, target, classes, ignore_index)
    picked: Tensor = apply(_pick, (log_p, target), (dim,))
    if weight is None and kept is None and not smoothing:
        return -reduced(op, picked, reduction)
    scale = None if weight is None else _class_weights(weight, target)
    loss = -picked if scale is None else -picked * scale
    if smoothing:
        if weight is not None:
            log_p = log_p * weight.reshape(-1, *[1] * (log_p.ndim - dim - 1))
        loss = loss * (1 - smoothing) - log_p.sum(dim) * (smoothing / classes)
    if kept is not None:
        loss = loss.where(kept, 0.0)
        scale = cast(kept, loss.dtype) if scale is None else scale.where(kept, 0.0)
    if reduction == "mean" and scale is not None:
        return sum(loss) / sum(scale)
    return reduced(op, loss, reduction)


@function(top=False, method=False, functional=True)
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative of `input`, log-probabilities of shape (N, C, …), at the target classes.

    The mean is weighted by `weight`, and leaves out targets equal to `ignore_index`.

    >>> import undertow as ut
    >>> log_p = ut.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    >>> ut.nn.functional.nll_loss(log_p, ut.tensor([0, 1]), reduction="none")
    tensor([1.3863, 0.6931])
    """
    if size_average is not None or reduce is not None:
        raise legacy_error("nll_loss", size_average, reduce)
    return _nll("nll_loss", input, target, weight, ignore_index, reduction)


@function(top=False, method=False, functional=True)
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """The cross entropy of logits (N, C, …) with class indices (N, …) or probabilities (N, C, …).

    >>> import undertow as ut
    >>> logits = ut.tensor([[0.0, 0.0], [100.0, 0.0]])
    >>> ut.nn.functional.cross_entropy(logits, ut.tensor([0, 1]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    op = "cross_entropy"
    if size_average is not None or reduce is not None:
        raise legacy_error(op, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"[{op}] label_smoothing must be from 0 to 1, got {label_smoothing}")
    if not input.ndim:
        raise ShapeError(f"[{op}] input needs a class dimension, got a tensor of 0 dimensions")
    dim = min(input.ndim - 1, 1)
    log_p = log_softmax(input, dim)
    if target._array.dtype.kind in "biu":
        return _nll(op, log_p, target, weight, ignore_index, reduction, label_smoothing)
    if target.shape != input.shape:
        raise ShapeError(
            f"[{op}] target probabilities need the input's shape {input.shape}, got "
            f"{target.shape}; class indices must be integers"
        )
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
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """How far each other class comes within `margin` of the target's, to the power `p`.

    >>> import undertow as ut
    >>> scores = ut.tensor([[0.0, 0.0, 3.0]])
    >>> ut.nn.functional.multi_margin_loss(scores, ut.tensor([1]))
    tensor(1.6667)
    """
    op = "multi_margin_loss"
    if p not in (1, 2):
        raise ArgumentError(f"[{op}] p must be 1 or 2, got {p}")
    if input.ndim not in (1, 2) or not input.shape[-1]:
        raise ShapeError(f"[{op}] input must be (C) or (N, C) with C > 0, got {input.shape}")
    if input.ndim == 1 and target.shape == (1,):
        target = target.reshape(())
    target = _labels(op, input, target)
    classes = input.shape[-1]
    low, high = value_range(target)
    if low < 0 or high >= classes:
        raise BoundsError(
            f"[{op}] class index {low if low < 0 else high} is out of range for {classes} classes"
        )
    index = target.unsqueeze(-1)
    short = margin - input.gather(-1, index) + input
    others = target.new_ones(input.shape, dtype=dtypes.bool).scatter(-1, index, False)
    loss = short.where(others & (short > 0), 0.0)
    if p == 2:
        loss = loss * loss
    loss = loss.sum(-1) / classes
    if weight is not None:
        _check_weight(op, weight, classes)
        loss = loss * _class_weights(weight, target)
    return reduced(op, loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
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
    low, high = value_range(target)
    if low < -1 or high >= classes:
        raise BoundsError(
            f"[{op}] class index {low if low < -1 else high} is out of range for {classes} "
            "classes; -1 ends a row's list"
        )
    listed = (target >= 0).cumprod(-1) > 0
    index = target.where(listed, 0)
    counts = index.new_zeros(input.shape).scatter_add(-1, index, cast(listed, dtypes.int64))
    pairs = listed.unsqueeze(-1) & (counts == 0).unsqueeze(-2)
    short = 1 - input.gather(-1, index).unsqueeze(-1) + input.unsqueeze(-2)
    loss = short.where(pairs & (short > 0), 0.0).sum((-2, -1)) / classes
    return reduced(op, loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
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
