"""Normalisation of groups of channels, and by neighbouring channels.

Note [group norms]
As in Note [channel norms], but a row has several weights. With v = g weight,
    dx = (v - Σ v / n - h Σ v h / n) rstd,
and the sums of g h and of g over each channel, from one kernel, are enough to find everything else,
from another. It is the same with one group as with as many as there are channels.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.dual import LEVELS
from ...core.dispatch import apply, cast
from ...core.modes import current
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...kernel.expr import Expr, arg
from ...kernel.row_program import Program, Tracer, rows
from ...kernel.windows import Geometry
from ...shapes import as_int
from ..reduce.reduction import mean
from ..shape.movement import in_shape, reshaped
from .batch_norm import (
    beside,
    channel_dims,
    check_channels,
    kept,
    kinds_of,
    wide_dtype,
    zero_gradients,
)
from .normalisation import _forward_rows as layer_rows
from .normalisation import bare_joint, centred
from .pooling import window_sums

_PRODUCT = arg(0) * arg(1)


@functools.cache
def _channel_sums() -> Program:
    def describe(p: Tracer, g: Expr, x: Expr, middle: Expr, rstd: Expr) -> None:
        p.out_row(p.sum(g * ((x - middle) * rstd)))
        p.out_row(p.sum(g))

    return rows(describe, 2, 2)


@functools.cache
def _slope_rows(weighted: bool) -> Program:
    def describe(p: Tracer, g: Expr, x: Expr, *more: Expr) -> None:
        *weight, middle, rstd, product, total, n = more
        v = g * weight[0] if weighted else g
        h = (x - middle) * rstd
        p.out((v - p.row(total / n) - h * p.row(product / n)) * rstd)

    return rows(describe, 2, 4 + weighted, 1)


def _by_group(k: Forms, x: Array, groups: int) -> Any:
    """(N, groups, channels of a group, elements of a channel), also of a vector of channels."""
    n, c = x.shape[:2] if len(x.shape) > 1 else (1, x.shape[0])
    return in_shape(k, x, (n, groups, c // groups, math.prod(x.shape[2:])))


def _group_forward(k: Forms, x: Array, weight: Array, bias: Array, groups: int, eps: float) -> Any:
    """The result, mean and rstd."""
    kinds = (x.dtype, *[wide_dtype(x)] * 2)
    if not x.size:
        return (k.copy(x), *(k.full((x.shape[0], groups, 1, 1), 0, t) for t in kinds[1:]))
    grouped = _by_group(k, x, groups)
    affine = [_by_group(k, p, groups) for p in (weight, bias) if p is not None]
    program = layer_rows(True, weight is not None, bias is not None)
    n = math.prod(grouped.shape[2:])
    y, *statistics = k.rows(program, (grouped, *affine, float(n), eps), (2, 3), kinds)
    return (k.reshape(y, x.shape), *statistics)


def _group_backward(
    k: Forms, g: Array, x: Array, weight: Array, middle: Any, rstd: Any, kinds: Any, needs: Any
) -> Any:
    """What is needed of dx, dweight and dbias; `kinds` are the dtypes of the last two."""
    channels = (x.shape[1],)
    if not x.size:
        return zero_gradients(k, x, channels, kinds, needs)
    groups, wide = middle.shape[1], wide_dtype(x)
    inner, outer = _by_group(k, x, groups), _by_group(k, g, groups)
    sums = k.rows(_channel_sums(), (outer, inner, middle, rstd), (3,), (wide, wide))
    found: list[Array] = []
    if needs[0]:
        factor = [] if weight is None else [_by_group(k, weight, groups)]
        if weight is None:
            totals = [k.reduce("sum", each, (2,), True) for each in sums]
        else:
            scale = factor[0] if weight.dtype == wide else k.cast(factor[0], wide)
            totals = [
                k.map_reduce("sum", _PRODUCT, (each, scale), (2,), True, wide) for each in sums
            ]
        n = float(math.prod(inner.shape[2:]))
        # Of x itself, not by groups: a leaf keeps an array as its gradient only if it is no view.
        dims = tuple(range(2, len(x.shape)))
        known = [
            k.reshape(k.copy(k.expand(o, sums[0].shape)), kept(x, dims))
            for o in (*factor, middle, rstd, *totals)
        ]
        found += k.rows(_slope_rows(weight is not None), (g, x, *known, n), dims, (x.dtype,))
    for needed, each, kind in zip(needs[1:], sums, kinds, strict=True):
        if needed:
            total = k.reshape(k.reduce("sum", each, (0,), True), channels)
            found.append(total if total.dtype == kind else k.cast(total, kind))
    return tuple(found)


_group_norm_backward = Op(
    "group_norm_backward",
    _group_backward,
    inputs="g x weight middle rstd",
    params="kinds needs",
    outputs=3,
)


def _group_rule(
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    out1: Tensor,
    out2: Tensor,
    eps: float,
    kinds: Any,
    needs: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    if current().grad or LEVELS:
        found = iter(_group_composed(g, x, weight, out1, eps, kinds, needs))
    else:
        operands = (g, x, weight, out1, out2)
        found = iter(apply(_group_norm_backward, operands, (kinds, needs)))
    return tuple([next(found) if needed else None for needed in needs])


def _group_composed(
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    middle: Tensor,
    eps: float,
    kinds: Any,
    needs: tuple[bool, ...],
) -> list[Tensor]:
    """What is needed of the three, in ops that have rules of any order."""
    wide = dtypes.of_array(wide_dtype(x._array))
    groups = middle.shape[1]
    rows_shape = (x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    g, h = cast(g, wide), reshaped(cast(x, wide), rows_shape)
    h = centred(h, reshaped(middle, (x.shape[0], groups, 1)), (2,))
    rstd = (mean(h * h, (2,), True) + eps).rsqrt()
    h = h * rstd
    found = []
    if needs[0]:
        v = reshaped(g if weight is None else g * cast(beside(weight, x), wide), rows_shape)
        slope = (v - mean(v, (2,), True) - h * mean(v * h, (2,), True)) * rstd
        found.append(cast(reshaped(slope, x.shape), x.dtype))
    h = reshaped(h, x.shape)
    for needed, each, kind in zip(needs[1:], (g * h, g), kinds, strict=True):
        if needed:
            found.append(cast(each.sum(channel_dims(x.ndim)), dtypes.of_array(kind)))
    return found


_group_norm = Op(
    "group_norm",
    lambda k, x, weight, bias, groups, eps, kinds: _group_forward(k, x, weight, bias, groups, eps),
    inputs="x weight bias",
    params="groups eps kinds",
    outputs=3,
    differentiable=1,
    joint=_group_rule,
    bare=lambda k, g, x, weight, out1, out2, eps, kinds, needs: bare_joint(
        _group_backward(k, g, x, weight, out1, out2, kinds, needs), needs
    ),
)


@function(top=False, method=False, functional=True)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Each of `num_groups` groups of channels of each element of (N, C, …) with mean 0, variance 1.

    Then the channels are multiplied by `weight`, and `bias` is added.

    >>> import undertow as ut
    >>> ut.nn.functional.group_norm(ut.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    op = "group_norm"
    check_channels(op, input, 2, weight=weight, bias=bias)
    groups = as_int(op, "num_groups", num_groups)
    c = input.shape[1]
    if groups < 1 or c % groups:
        raise ArgumentError(
            f"[{op}] num_groups must divide the {c} channels of shape {input.shape}, got {groups}"
        )
    if input.numel() == groups:
        raise ShapeError(
            f"[{op}] needs more than one element in a group, got shape {input.shape} and "
            f"num_groups={groups}"
        )
    params = (groups, float(eps), kinds_of(weight, bias))
    y: Tensor = apply(_group_norm, (input, weight, bias), params)[0]
    return y


@function(top=False, method=False, functional=True)
def local_response_norm(
    input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`input / (k + alpha · m)^beta`, where m is the mean square of `size` neighbouring channels.

    Channels beyond the first and the last count as zero.

    >>> import undertow as ut
    >>> ut.nn.functional.local_response_norm(ut.full((1, 1, 2), 2.0), 1, alpha=1, beta=1)
    tensor([[[0.4000, 0.4000]]])
    """
    op = "local_response_norm"
    check_channels(op, input, 3)
    width = as_int(op, "size", size)
    if width < 1:
        raise ArgumentError(f"[{op}] size must be at least 1, got {width}")
    if not input.numel():
        return input.clone()
    rank = input.ndim - 1
    rest = rank - 1
    geometry = Geometry(
        input.shape[1:],
        (width, *(1,) * rest),
        (1,) * rank,
        ((width // 2, (width - 1) // 2), *((0, 0),) * rest),
        (1,) * rank,
        (1,) * rank,
    )
    x = cast(input, dtypes.of_array(wide_dtype(input._array)))
    means = window_sums(x * x, geometry) / width
    return cast(x / (means * alpha + k) ** beta, input.dtype)
