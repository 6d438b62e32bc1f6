"""Losses between values: regression, probabilities and likelihoods."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ...core.dispatch import elementwise
from ...core.op import elementwise_op
from ...core.register import function
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import ArgumentError, ShapeError
from ...kernel.expr import call, where
from ...shapes import check_fits
from ..create.creation import full_like
from ..elementwise.activation import logsigmoid
from ..elementwise.comparison import holds
from ..elementwise.extremes import clamp_min, maximum, minimum
from ..elementwise.transcendental import log, log1p
from ..reduce.reduction import as_floating, mean, sum
from ..shape.movement import unsqueeze

REDUCTIONS = ("mean", "sum", "none")


def reduced(
    op: str, loss: Tensor, reduction: str, size_average: Any = None, reduce: Any = None
) -> Tensor:
    """The mean, the sum or all of the losses."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction == "mean":
        return mean(loss)
    if reduction == "sum":
        return sum(loss)
    if reduction == "none":
        return loss
    raise reduction_error(op, reduction)


def reduction_error(op: str, reduction: Any, known: tuple[str, ...] = REDUCTIONS) -> ArgumentError:
    """What to raise for an unknown `reduction`."""
    return ArgumentError(
        f"[{op}] reduction must be one of {', '.join(map(repr, known))}, got {reduction!r}"
    )


def legacy_reduction(size_average: bool | None, reduce: bool | None) -> str:
    """What torch's arguments from before `reduction` mean, with its warning."""
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.",
        stacklevel=4,
    )
    return meant


def _weighted(op: str, loss: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    if weight.shape != input.shape:
        raise ShapeError(
            f"[{op}] weight must have the shape of the input, {input.shape}, got {weight.shape}"
        )
    return loss * weight


# Regression ----------------------------------------------------------------------------------
_squared_error = elementwise_op(
    "squared_error",
    lambda a, b: (a - b) * (a - b),
    inputs="a b",
    domain="bif",
    vjp={"a": lambda g, a, b: (a - b) * g * 2, "b": lambda g, a, b: (b - a) * g * 2},
)

# z²/2 near zero, a line beyond ±delta; its slope is z clamped to ±delta.
_huber = elementwise_op(
    "huber",
    lambda z, delta: where(
        call("abs", z) <= delta, z * z * 0.5, (call("abs", z) - delta * 0.5) * delta
    ),
    inputs="z delta",
    domain="bif",
    vjp={"z": lambda g, z, delta: g * minimum(maximum(z, -delta), delta)},
)


@function(top=False, method=False, functional=True)
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared error; with `weight` its mean is the weighted mean.

    >>> import undertow as ut
    >>> ut.nn.functional.mse_loss(ut.tensor([1.0, 2.0]), ut.tensor([1.0, 4.0]))
    tensor(2.)
    """
    _compare_sizes(input, target)
    loss = elementwise(_squared_error, input, target)
    return _mean_by_weight("mse_loss", loss, input, weight, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute error; with `weight` its mean is the weighted mean.

    >>> import undertow as ut
    >>> ut.nn.functional.l1_loss(ut.tensor([1.0, 2.0]), ut.tensor([1.0, 4.0]))
    tensor(1.)
    """
    _compare_sizes(input, target)
    loss = (input - target).abs()
    return _mean_by_weight("l1_loss", loss, input, weight, reduction, size_average, reduce)


def _compare_sizes(input: Tensor, target: Tensor) -> None:
    """Warn of a target that is broadcast: (N, 1) beside (N) is N × N, and hardly ever meant."""
    if input._array.shape != target._array.shape:
        warnings.warn(
            f"Using a target size ({tuple(target.shape)}) that is different to the input size "
            f"({tuple(input.shape)}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size.",
            stacklevel=4,
        )


def _mean_by_weight(
    op: str,
    loss: Tensor,
    input: Tensor,
    weight: Tensor | None,
    reduction: str,
    size_average: bool | None,
    reduce: bool | None,
) -> Tensor:
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if weight is not None:
        loss = _weighted(op, loss, input, weight)
        if reduction == "mean":
            return sum(loss) / sum(weight)
    return reduced(op, loss, reduction)


@function(top=False, method=False, functional=True)
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The absolute error, rounded off to a parabola where it is below `beta`.

    >>> import undertow as ut
    >>> ut.nn.functional.smooth_l1_loss(ut.tensor([0.5, 3.0]), ut.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    if beta < 0:
        raise ArgumentError(f"[smooth_l1_loss] beta must not be negative, got {beta}")
    _compare_sizes(input, target)
    error = input - target
    loss = elementwise(_huber, error, float(beta)) / beta if beta else error.abs()
    return reduced("smooth_l1_loss", loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squared error up to `delta`, and beyond it a line of slope `delta`.

    >>> import undertow as ut
    >>> ut.nn.functional.huber_loss(ut.tensor([1.0, 4.0]), ut.zeros(2), reduction="none", delta=2.0)
    tensor([0.5000, 6.0000])
    """
    if not delta > 0:
        raise ArgumentError(f"[huber_loss] delta must be greater than 0, got {delta}")
    _compare_sizes(input, target)
    loss = elementwise(_huber, input - target, float(delta))
    if weight is not None:
        loss = _weighted("huber_loss", loss, input, weight)
    return reduced("huber_loss", loss, reduction)


# Probabilities -------------------------------------------------------------------------------

# The logarithms stop at -100 and the slope's denominator at 1e-12, so that a probability of exactly
# 0 or 1 gives large finite numbers.
_bce = elementwise_op(
    "bce",
    lambda p, t: (
        (t - 1.0) * call("maximum", call("log1p", -p), -100.0)
        - t * call("maximum", call("log", p), -100.0)
    ),
    inputs="p t",
    kind="float",
    vjp={
        "p": lambda g, p, t: g * (p - t) / clamp_min((1.0 - p) * p, 1e-12),
        "t": lambda g, p: g * (clamp_min(log1p(-p), -100.0) - clamp_min(log(p), -100.0)),
    },
)


@function(top=False, method=False, functional=True)
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`-(target * log(input) + (1 - target) * log(1 - input))` of probabilities.

    The logarithms are cut off at -100. From logits, use `binary_cross_entropy_with_logits`.

    >>> import undertow as ut
    >>> ut.nn.functional.binary_cross_entropy(ut.tensor([0.5, 1.0]), ut.tensor([1.0, 1.0]))
    tensor(0.3466)
    """
    if input.shape != target.shape:
        raise ShapeError(
            f"[binary_cross_entropy] input and target must have one shape, "
            f"got {input.shape} and {target.shape}"
        )
    for name, t in (("input", input), ("target", target)):
        if not holds((t >= 0) & (t <= 1)):
            raise ArgumentError(
                f"[binary_cross_entropy] {name} must be probabilities from 0 to 1, got values from "
                f"{float(t.min()):g} to {float(t.max()):g}; for logits use "
                "binary_cross_entropy_with_logits"
            )
    loss = elementwise(_bce, input, target)
    if weight is not None:
        check_fits("binary_cross_entropy", "weight", weight.shape, input.shape)
        loss = loss * weight
    return reduced("binary_cross_entropy", loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy(sigmoid(input), target)`, accurate for logits of any size.

    `pos_weight` multiplies the part of the positive examples.

    >>> import undertow as ut
    >>> ut.nn.functional.binary_cross_entropy_with_logits(ut.tensor([1000.0]), ut.tensor([0.0]))
    tensor(1000.)
    """
    if input.shape != target.shape:
        raise ShapeError(
            f"[binary_cross_entropy_with_logits] input and target must have one shape, "
            f"got {input.shape} and {target.shape}"
        )
    log_p = logsigmoid(input)
    if pos_weight is not None:
        check_fits("binary_cross_entropy_with_logits", "pos_weight", pos_weight.shape, input.shape)
        log_p = log_p * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - log_p
    if weight is not None:
        check_fits("binary_cross_entropy_with_logits", "weight", weight.shape, input.shape)
        loss = loss * weight
    return reduced("binary_cross_entropy_with_logits", loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """`target * (log(target) - input)`, where `input` holds log-probabilities.

    The divergence in mathematics' sense is `reduction="batchmean"`; "mean" divides by the number
    of elements.

    >>> import undertow as ut
    >>> log_q = ut.tensor([[0.5, 0.5]]).log()
    >>> ut.nn.functional.kl_div(log_q, ut.tensor([[1.0, 0.0]]), reduction="batchmean")
    tensor(0.6931)
    """
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = target.xlogy(target) - target * input
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction == "batchmean":
        total = reduced("kl_div", loss, "sum")
        return total / input.shape[0] if input.ndim else total
    if reduction not in REDUCTIONS:
        raise reduction_error("kl_div", reduction, ("batchmean", *REDUCTIONS))
    return reduced("kl_div", loss, reduction)


# Likelihoods ---------------------------------------------------------------------------------
@function(top=False, method=False, functional=True)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of counts `target` whose rate is `exp(input)` or `input`.

    `full` adds Stirling's approximation of `log(target!)` for targets above 1.

    >>> import undertow as ut
    >>> ut.nn.functional.poisson_nll_loss(ut.tensor([0.0]), ut.tensor([3.0]))
    tensor(1.)
    """
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        above = target > 1
        count = target.where(above, 1.0)
        stirling = count * count.log() - count + 0.5 * (2 * math.pi * count).log()
        loss = loss + stirling.where(above, 0.0)
    return reduced("poisson_nll_loss", loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | Number,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of `target` under normals with mean `input`, variance `var`.

    Variances below `eps` count as `eps`, and their gradient is the one at `eps`. `full` adds the
    constant `log(2π) / 2`.

    >>> import undertow as ut
    >>> ut.nn.functional.gaussian_nll_loss(ut.tensor([1.0]), ut.tensor([3.0]), ut.tensor([1.0]))
    tensor(2.)
    """
    variance = _variance(input, var)
    floor = (clamp_min(variance, eps) - variance).detach()
    variance = variance + floor
    error = input - target
    loss = (variance.log() + error * error / variance) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced("gaussian_nll_loss", loss, reduction)


def _variance(input: Tensor, var: Any) -> Tensor:
    """`var` checked and in a shape that broadcasts to the input's."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ArgumentError(f"[gaussian_nll_loss] var must not be negative, got {var}")
        return full_like(as_floating(input), var)
    if not holds(~(var < 0)):
        raise ArgumentError(
            f"[gaussian_nll_loss] var must not be negative, its smallest entry is "
            f"{float(var.min()):g}"
        )
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        return unsqueeze(var, -1)
    if var.ndim == input.ndim:
        differing = [v for v, i in zip(var.shape, input.shape, strict=True) if v != i]
        if differing == [1]:
            return var
    raise ShapeError(
        f"[gaussian_nll_loss] var must have the input's shape {input.shape}, that shape without "
        f"its last dimension, or with a 1 in one place; got {var.shape}"
    )
