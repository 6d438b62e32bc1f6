"""The cross entropy of a linear layer's output, whole or without ever storing that output.

Note [chunks of logits]
With many classes the logits are by far the largest tensor of a language model. With `options` they
are made for some rows of the input at a time and forgotten: the forward keeps of each row its
largest logit and the sum of exponentials, and the backward makes the logits of a chunk again. It is
written in ops, so there are second derivatives; their graph holds the logits again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...core.autocast import autocast_on
from ...core.dispatch import apply, cast
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...dtypes import DType
from ...errors import ArgumentError, ShapeError
from ..shape.joining import cat
from .classification import (
    checked_classes,
    class_weights,
    cross_entropy,
    cross_entropy_forward,
    cross_entropy_slope,
    reduced_rows,
)
from .composite import linear
from .losses import REDUCTIONS

_POLICIES = ("auto", "accurate", "balanced", "compact")
_HALF = (dtypes.float16, dtypes.bfloat16)


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` goes through the rows of its input.

    `batch_chunk_size` is a number of rows; otherwise `chunking_method` chooses it so that the
    logits of a chunk are about as large as the input ("aspect_ratio"), or N times smaller
    ("aspect_ratio:N"; "auto" is 2). `allow_retain_graph`, `acc_policy` and `acc_dtype` are torch's
    and change nothing here: a graph may be kept, and sums of half precision are in float32.

    >>> import undertow as ut
    >>> ut.nn.LinearCrossEntropyOptions(batch_chunk_size=64).rows(1000, 32, 50000)
    64
    >>> ut.nn.LinearCrossEntropyOptions().rows(1024, 64, 4096)
    8
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: DType | None = None

    def __post_init__(self) -> None:
        size, floats = self.batch_chunk_size, (*_HALF, dtypes.float32, dtypes.float64)
        if self.acc_policy not in _POLICIES:
            raise ArgumentError(_wrong("acc_policy", " or ".join(_POLICIES), self.acc_policy))
        if size is not None and (type(size) is not int or size < 1):
            raise ArgumentError(_wrong("batch_chunk_size", "a positive int or None", size))
        if self.acc_dtype is not None and self.acc_dtype not in floats:
            raise ArgumentError(_wrong("acc_dtype", "a floating dtype or None", self.acc_dtype))
        self._parts()

    def _parts(self) -> int:
        """How many times smaller the logits of a chunk are than the input; 0: not asked for."""
        if self.chunking_method is None:
            return 0
        name, _, factor = self.chunking_method.partition(":")
        if self.chunking_method == "auto":
            return 0 if self.batch_chunk_size else 2
        if self.chunking_method == "aspect_ratio":
            return 1
        if name != "aspect_ratio" or not factor.isdigit() or not int(factor):
            wanted = '"auto", "aspect_ratio", "aspect_ratio:N" or None'
            raise ArgumentError(_wrong("chunking_method", wanted, self.chunking_method))
        return int(factor)

    def rows(self, batch: int, features: int, classes: int) -> int:
        """The rows of a chunk, for an input (batch, features)."""
        given, parts = self.batch_chunk_size, self._parts()
        if not parts:
            return max(1, min(given or batch, batch))
        target = -(-batch // max(1, -(-classes // max(1, features))))
        found = max(1, min((1 << max(0, target - 1).bit_length()) // parts, batch))
        if given not in (None, found):
            raise ArgumentError(
                f"[LinearCrossEntropyOptions] batch_chunk_size={given} and chunking_method="
                f"{self.chunking_method!r}, which gives {found}, do not agree; pass one of them"
            )
        return found


def _wrong(what: str, wanted: str, got: Any) -> str:
    return f"[LinearCrossEntropyOptions] {what} must be {wanted}, got {got!r}"


def _chunks(rows: int, size: int) -> Iterator[slice]:
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def _forward(
    k: Forms,
    x: Array,
    weight: Array,
    bias: Array | None,
    target: Array,
    scale: Array | None,
    w: Array | None,
    size: int,
    smoothing: float,
) -> Any:
    """The loss of each row, its largest logit and its sum of exponentials."""
    wide = (dtypes.float64 if x.dtype.itemsize == 8 else dtypes.float32).numpy
    rows = x.shape[0]
    kinds = (((rows,), x.dtype), ((rows, 1), wide), ((rows, 1), wide))
    outs = tuple(k.empty(shape, dtype) for shape, dtype in kinds)
    turned = k.permute(weight, (1, 0))
    for part in _chunks(rows, size):
        at = (part,)
        logits = k.matmul(k.slice(x, at), turned, bias)
        each = None if scale is None else k.slice(scale, at)
        found = cross_entropy_forward(k, logits, k.slice(target, at), each, w, 1, smoothing, "none")
        for out, value in zip(outs, found, strict=True):
            k.assign(k.slice(out, at), value)
    return outs


def _rule(
    g: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    scale: Tensor | None,
    w: Tensor | None,
    out1: Tensor,
    out2: Tensor,
    size: int,
    smoothing: float,
    needs: Any,
) -> Any:
    """The gradients of x, weight and bias, chunk after chunk."""
    peak, total = out1.detach(), out2.detach()
    by_x: list[Tensor] = []
    sums: list[Any] = [None, None]  # of the weight, of the bias
    for part in _chunks(x.shape[0], size):
        piece = x[part]
        each = None if scale is None else scale[part]
        operands = (linear(piece, weight, bias), target[part], each, w, g[part])
        slope = apply(cross_entropy_slope, (*operands, peak[part], total[part]), (1, smoothing))
        if needs[0]:
            by_x.append(slope @ weight)
        if needs[1]:
            sums[0] = _added(sums[0], slope.t() @ piece)
        if needs[2]:
            sums[1] = _added(sums[1], slope.sum(0))
    by_weight, by_bias = (s if s is None else cast(s, x.dtype) for s in sums)
    return cat(by_x) if by_x else None, by_weight, by_bias, None, None, None


def _added(total: Tensor | None, more: Tensor) -> Tensor:
    if more.dtype in _HALF:
        more = cast(more, dtypes.float32)
    return more if total is None else total.add_(more)


_chunked = Op(
    "linear_cross_entropy",
    _forward,
    inputs="x weight bias target scale w",
    params="size smoothing",
    outputs=3,
    differentiable=1,
    joint=_rule,
)


def _checked_logits(
    input: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, ignore_index: int | None
) -> tuple[int, ...]:
    """The shape of the logits."""
    op = "linear_cross_entropy"
    if input.ndim not in (1, 2):
        raise ShapeError(f"[{op}] input must be (in) or (N, in), got shape {input.shape}")
    if weight.ndim < 2 or weight.shape[-1] != input.shape[-1]:
        raise ShapeError(
            f"[{op}] linear_weight must be (classes, in) or (classes, d1 …, in) with in = "
            f"{input.shape[-1]}, got shape {weight.shape}"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise ShapeError(
            f"[{op}] linear_bias must have the shape {weight.shape[:-1]}, got {bias.shape}"
        )
    if weight.ndim > 2 and input.ndim == 1:
        raise ShapeError(
            f"[{op}] a linear_weight of shape {weight.shape} needs an input (N, in), got "
            f"{input.shape}"
        )
    shape = (*input.shape[:-1], *weight.shape[:-1])
    if target.shape == shape and ignore_index is not None:
        raise ArgumentError(
            f"[{op}] ignore_index={ignore_index} has no meaning for probabilities; leave it out"
        )
    return shape


@function(top=False, method=False, functional=True)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    A weight (classes, d1 …, in) is for targets (N, d1 …). With `options` (see
    `nn.LinearCrossEntropyOptions`) the logits are made in chunks and never stored.

    >>> import undertow as ut
    >>> x, w = ut.zeros(2, 3), ut.zeros(4, 3)
    >>> ut.nn.functional.linear_cross_entropy(x, w, ut.tensor([0, 1]))
    tensor(1.3863)
    """
    shape = _checked_logits(input, linear_weight, linear_bias, target, ignore_index)
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        # Else the plain way answers, or says what is wrong.
        fixed = weight is None or (not differentiated(weight) and weight.dtype is input.dtype)
        sound = reduction in REDUCTIONS and 0 <= label_smoothing <= 1 and input.is_floating_point()
        biases = [] if linear_bias is None else [linear_bias]
        alike = all(t.dtype is input.dtype for t in (linear_weight, *biases))
        sound = sound and alike and input.numel() > 0 and not autocast_on()
        if fixed and sound and target.dtype is dtypes.int64 and linear_weight.ndim == 2:
            operands = (input, linear_weight, linear_bias, target, weight)
            return _in_chunks(*operands, reduction, ignored, label_smoothing, options)
        if input.numel():
            warnings.warn(
                "[linear_cross_entropy] options are ignored: chunks need class indices (int64), a "
                "linear_weight of two dimensions, class weights of its dtype without gradient, and "
                f"no autocast; got a target of {target.dtype} and linear_weight of shape "
                f"{linear_weight.shape}",
                stacklevel=2,
            )
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1))
    return cross_entropy(
        logits.reshape(shape),
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _in_chunks(
    input: Tensor,
    linear_weight: Tensor,
    linear_bias: Tensor | None,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignored: int,
    smoothing: float,
    options: LinearCrossEntropyOptions,
) -> Tensor:
    """See Note [chunks of logits]."""
    op = "linear_cross_entropy"
    classes, features = linear_weight.shape
    lead = input.shape[:-1]
    target, kept, _ = checked_classes(op, (*lead, classes), target, weight, ignored)
    scale = None if weight is None else class_weights(weight, target)
    rows = input.reshape(-1, features), linear_weight, linear_bias, target.reshape(-1)
    each = None if scale is None else scale.reshape(-1)
    size = options.rows(rows[0].shape[0], features, classes)
    loss = apply(_chunked, (*rows, each, weight), (size, float(smoothing)))[0]
    return reduced_rows(op, loss.reshape(lead), scale, kept, reduction)
