"""Normalisation of channels: batch, instance, group and local response.

Note [channel norms]
As in Note [norms], y = (x - mean) rstd weight + bias over rows of n elements, but weight and bias
have one element for each row, or for several rows: in batch_norm a row is a channel of the whole
batch, in instance_norm a channel of one of its elements. With h = (x - mean) rstd the backward is
    dx = (g - Σ g / n - h Σ g h / n) rstd weight,   dweight = Σ g h and dbias = Σ g,
where the sums of rows that share a weight are added. By fixed statistics, dx = g rstd weight. One
kernel computes what is wanted of the three; with create_graph the rule is written in ops that have
rules themselves. The ops take vectors with an element for each channel, which is dimension 1.

In group_norm a row has several weights. With v = g weight,
    dx = (v - Σ v / n - h Σ v h / n) rstd,
and the sums of g h and of g over each channel, from one kernel, are enough to find everything else,
from another. It is the same with one group as with as many as there are channels.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import dtypes
from ..backends.base import Array, Forms
from ..core.dispatch import apply, cast
from ..core.inplace import write
from ..core.modes import current, no_grad
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError
from ..kernel.expr import Expr, arg, call
from ..kernel.row_program import Program, Tracer, rows
from ..kernel.windows import Geometry
from ..shapes import Shape, as_int
from .movement import reshaped
from .normalisation import _forward_rows as layer_rows
from .normalisation import centred, moments
from .pooling import window_sums
from .reduction import mean

_PRODUCT = arg(0) * arg(1)
_SINGLE, _DOUBLE = dtypes.float32.numpy, dtypes.float64.numpy


# The kernels; see Note [channel norms] ---------------------------------------------------------
@functools.cache
def _forward_rows(weighted: bool, biased: bool, moved: bool) -> Program:
    def describe(p: Tracer, x: Expr, *more: Expr) -> None:
        *affine, n, eps, keep, gain, gain_var = more
        middle, spread = moments(p, x, n)
        spread = p.row(spread)
        scale = p.row(1.0 / call("sqrt", spread + eps))
        y = (x - middle) * (p.row(scale * affine[0]) if weighted else scale)
        p.out(y + affine[weighted] if biased else y)
        p.out_row(middle)
        p.out_row(scale)
        if moved:
            p.out_row(affine[-2] * keep + middle * gain)
            p.out_row(affine[-1] * keep + spread * gain_var)
        else:
            p.out_row(spread)

    return rows(describe, 1, weighted + biased + 2 * moved, 5)


@functools.cache
def _fixed_rows(weighted: bool, biased: bool) -> Program:
    def describe(p: Tracer, x: Expr, *more: Expr) -> None:
        *affine, middle, spread, eps = more
        rstd = p.row(1.0 / call("sqrt", spread + eps))
        scale = p.row(rstd * affine[0]) if weighted else rstd
        y = (x - middle) * scale
        p.out(y + affine[-1] if biased else y)
        p.out_row(middle)
        p.out_row(rstd)

    return rows(describe, 1, weighted + biased + 2, 1)


@functools.cache
def _backward_rows(weighted: bool, fixed: bool, needs: tuple[bool, ...]) -> Program:
    def describe(p: Tracer, g: Expr, x: Expr, *more: Expr) -> None:
        *affine, middle, scale, n = more
        h = (x - middle) * scale
        sums = needs[0] and not fixed
        total = p.sum(g) if sums or needs[2] else None
        product = p.sum(g * h) if sums or needs[1] else None
        if needs[0]:
            slope = g
            if sums and total is not None and product is not None:
                slope = g - p.row(total / n) - h * p.row(product / n)
            p.out(slope * (p.row(scale * affine[0]) if weighted else scale))
        for needed, found in zip(needs[1:3], (product, total), strict=True):
            if needed and found is not None:
                p.out_row(found)

    return rows(describe, 2, 2 + weighted, 1)


def _wide(x: Any) -> Any:
    """The dtype in which it is computed, and in which mean, variance and rstd are kept."""
    return _DOUBLE if x.dtype.itemsize == 8 else _SINGLE


def _vectors(k: Forms, x: Array, *given: Any) -> list[Any]:
    """Those that are given, in a shape that broadcasts with `x`."""
    listed = [p for p in given if p is not None]
    if len(x.shape) == 2:
        return listed
    shape = (1, x.shape[1], *(1,) * (len(x.shape) - 2))
    return [_in_shape(k, p, shape) for p in listed]


def _in_shape(k: Forms, x: Array, shape: Shape) -> Any:
    view = k.reshape(x, shape)
    return k.reshape(k.copy(x), shape) if view is None else view


def _kept(x: Any, dims: Shape) -> Shape:
    return tuple([1 if d in dims else n for d, n in enumerate(x.shape)])


def _forward(
    k: Forms,
    x: Array,
    weight: Array,
    bias: Array,
    mean: Array,
    var: Array,
    dims: Shape,
    eps: float,
    momentum: float,
) -> Any:
    """The result, mean and rstd; then the running statistics if they are given, or the variance."""
    kinds = (x.dtype, *[_wide(x)] * 2)
    if not x.size:
        kinds = (*kinds, *kinds[1:])
        return (k.copy(x), *(k.full(_kept(x, dims), 0, t) for t in kinds[1:]))
    n = math.prod([x.shape[d] for d in dims])
    program = _forward_rows(weight is not None, bias is not None, mean is not None)
    numbers = (float(n), eps, 1 - momentum, momentum, momentum * (n / max(n - 1, 1)))
    kinds = (*kinds, kinds[1]) if mean is None else (*kinds, mean.dtype, var.dtype)
    operands = (x, *_vectors(k, x, weight, bias, mean, var), *numbers)
    y, middle, rstd, *more = k.rows(program, operands, dims, kinds)
    if mean is not None:
        more = [k.reshape(found, mean.shape) for found in more]
    return (y, middle, rstd, *more)


def _fixed_forward(
    k: Forms, x: Array, weight: Array, bias: Array, mean: Array, var: Array, eps: float
) -> Any:
    """The result, mean and rstd."""
    dims = _channel_dims(len(x.shape))
    kinds = (x.dtype, *[_wide(x)] * 2)
    if not x.size:
        return (k.copy(x), *(k.full(_kept(x, dims), 0, t) for t in kinds[1:]))
    program = _fixed_rows(weight is not None, bias is not None)
    return k.rows(program, (x, *_vectors(k, x, weight, bias, mean, var), eps), dims, kinds)


def _channel_dims(rank: int) -> Shape:
    """All but the channels."""
    return (0, *range(2, rank))


def _backward(
    k: Forms,
    g: Array,
    x: Array,
    weight: Array,
    middle: Any,
    rstd: Any,
    dims: Shape,
    fixed: bool,
    kinds: Any,
    needs: Any,
) -> Any:
    """What is needed of dx, dweight and dbias; `kinds` are the dtypes of the last two."""
    channels = (x.shape[1],)
    if not x.size:
        return _zeros(k, x, channels, kinds, needs)
    n = math.prod([x.shape[d] for d in dims])
    wide = _wide(x)
    types = [x.dtype] * needs[0] + [wide] * (needs[1] + needs[2])
    operands = (g, x, *_vectors(k, x, weight), middle, rstd, float(n))
    program = _backward_rows(weight is not None, fixed, needs)
    found = list(k.rows(program, operands, dims, types))
    for i, kind in enumerate([t for t, needed in zip(kinds, needs[1:], strict=False) if needed]):
        at = i + needs[0]
        array = found[at]
        if array.shape[0] > 1:  # rows that share a weight
            array = k.reduce("sum", array, (0,), True)
        array = k.reshape(array, channels)
        found[at] = array if array.dtype == kind else k.cast(array, kind)
    return tuple(found)


def _zeros(k: Forms, x: Array, channels: Shape, kinds: Any, needs: Any) -> Any:
    each = ((x.shape, x.dtype), *((channels, kind) for kind in kinds))
    wanted = [e for e, needed in zip(each, needs, strict=False) if needed]
    return tuple([k.full(shape, 0, kind) for shape, kind in wanted])


_channel_norm_backward = Op(
    "channel_norm_backward",
    _backward,
    inputs="g x weight middle rstd",
    params="dims fixed kinds needs",
    outputs=3,
)


# The ops -------------------------------------------------------------------------------------
def _rule(
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    middle: Tensor,
    rstd: Tensor,
    dims: Shape,
    eps: float | None,
    kinds: Any,
    needs: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The cotangents of x, weight and bias; without `eps` the statistics are fixed."""
    if current().grad:
        found = iter(_composed(g, x, weight, middle, rstd, dims, eps, kinds, needs))
    else:
        operands, params = (g, x, weight, middle, rstd), (dims, eps is None, kinds, needs)
        found = iter(apply(_channel_norm_backward, operands, params))
    return tuple([next(found) if needed else None for needed in needs])


def _composed(
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    middle: Tensor,
    rstd: Tensor,
    dims: Shape,
    eps: float | None,
    kinds: Any,
    needs: tuple[bool, ...],
) -> list[Tensor]:
    """What is needed of the three, in ops that have rules of any order."""
    wide = dtypes.of_array(_wide(x._array))
    g, h = cast(g, wide), cast(x, wide)
    if not x.numel():  # nothing has a mean
        eps = None
    if eps is None:
        rstd = rstd.detach()
        h = (h - middle.detach()) * rstd
    else:
        h = centred(h, middle, dims)
        rstd = (mean(h * h, dims, True) + eps).rsqrt()
        h = h * rstd
    found = []
    if needs[0]:
        slope = g
        if eps is not None:
            slope = g - mean(g, dims, True) - h * mean(g * h, dims, True)
        scale = rstd if weight is None else rstd * cast(_beside(weight, x), wide)
        found.append(cast(slope * scale, x.dtype))
    for needed, each, kind in zip(needs[1:], (g * h, g), kinds, strict=False):
        if needed:
            found.append(cast(each.sum(_channel_dims(x.ndim)), dtypes.of_array(kind)))
    return found


_channel_norm = Op(
    "channel_norm",
    lambda k, x, weight, bias, mean, var, dims, eps, kinds, momentum: _forward(
        k, x, weight, bias, mean, var, dims, eps, momentum
    ),
    inputs="x weight bias mean var",
    params="dims eps kinds momentum",
    outputs=5,
    joint=lambda g, x, weight, out1, out2, dims, eps, kinds, needs: _rule(
        g, x, weight, out1, out2, dims, eps, kinds, needs
    ),
)
_fixed_norm = Op(
    "fixed_norm",
    lambda k, x, weight, bias, mean, var, eps, kinds: _fixed_forward(
        k, x, weight, bias, mean, var, eps
    ),
    inputs="x weight bias mean var",
    params="eps kinds",
    outputs=3,
    joint=lambda g, x, weight, out1, out2, kinds, needs: _rule(
        g, x, weight, out1, out2, _channel_dims(x.ndim), None, kinds, needs
    ),
)


def _kinds(*given: Tensor | None) -> Any:
    return tuple([None if p is None else p._array.dtype for p in given])


def _by_running(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Every channel by the statistics that were kept for it."""
    operands = (x, weight, bias, running_mean, running_var)
    y: Tensor = apply(_fixed_norm, operands, (float(eps), _kinds(weight, bias)))[0]
    return y


# Groups of channels --------------------------------------------------------------------------
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
    return _in_shape(k, x, (n, groups, c // groups, math.prod(x.shape[2:])))


def _group_forward(k: Forms, x: Array, weight: Array, bias: Array, groups: int, eps: float) -> Any:
    """The result, mean and rstd."""
    kinds = (x.dtype, *[_wide(x)] * 2)
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
        return _zeros(k, x, channels, kinds, needs)
    groups, wide = middle.shape[1], _wide(x)
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
            k.reshape(k.copy(k.expand(o, sums[0].shape)), _kept(x, dims))
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
    if current().grad:
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
    wide = dtypes.of_array(_wide(x._array))
    groups = middle.shape[1]
    rows_shape = (x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    g, h = cast(g, wide), reshaped(cast(x, wide), rows_shape)
    h = centred(h, reshaped(middle, (x.shape[0], groups, 1)), (2,))
    rstd = (mean(h * h, (2,), True) + eps).rsqrt()
    h = h * rstd
    found = []
    if needs[0]:
        v = reshaped(g if weight is None else g * cast(_beside(weight, x), wide), rows_shape)
        slope = (v - mean(v, (2,), True) - h * mean(v * h, (2,), True)) * rstd
        found.append(cast(reshaped(slope, x.shape), x.dtype))
    h = reshaped(h, x.shape)
    for needed, each, kind in zip(needs[1:], (g * h, g), kinds, strict=True):
        if needed:
            found.append(cast(each.sum(_channel_dims(x.ndim)), dtypes.of_array(kind)))
    return found


_group_norm = Op(
    "group_norm",
    lambda k, x, weight, bias, groups, eps, kinds: _group_forward(k, x, weight, bias, groups, eps),
    inputs="x weight bias",
    params="groups eps kinds",
    outputs=3,
    joint=_group_rule,
)


# Arguments -----------------------------------------------------------------------------------
def _check(op: str, x: Tensor, least: int, eps: float, **each: Tensor | None) -> None:
    """Raise unless `x` is floating and what belongs to its channels fits them."""
    array = x._array
    shape = array.shape
    if len(shape) < least:
        rest = ", …" if least == 2 else ", L, …"
        raise ShapeError(f"[{op}] expects (N, C{rest}), got shape {x.shape}")
    if array.dtype.kind in "biuc":
        raise DTypeError(f"[{op}] expects a floating tensor, got {x.dtype}; convert it first")
    if not eps >= 0:
        raise ArgumentError(f"[{op}] eps must not be negative, got {eps}")
    kinds, channels = (array.dtype, _wide(array)), (shape[1],)
    for name, given in each.items():
        if given is None:
            continue
        if given._array.shape != channels:
            raise ShapeError(
                f"[{op}] {name} must have one element for each of the {x.shape[1]} channels of "
                f"shape {x.shape}, got shape {given.shape}"
            )
        if given._array.dtype not in kinds:
            wide = dtypes.of_array(kinds[1])
            raise DTypeError(
                f"[{op}] {name} is {given.dtype} beside an input of {x.dtype}; it must be {wide}"
                + (f" or {x.dtype}" if wide is not x.dtype else "")
            )


def _check_running(op: str, running_mean: Tensor | None, running_var: Tensor | None) -> None:
    if (running_mean is None) != (running_var is None):
        raise ArgumentError(f"[{op}] takes running_mean and running_var together, or neither")
    for name, t in (("running_mean", running_mean), ("running_var", running_var)):
        if t is not None and t.requires_grad:
            raise ArgumentError(f"[{op}] {name} has no gradient; pass {name}.detach()")


def _beside(p: Tensor, x: Tensor) -> Tensor:
    """A vector of channels in a shape that broadcasts with `x`."""
    return reshaped(p, (1, p.shape[0], *(1,) * (x.ndim - 2)))


def _update(running: Tensor, found: Tensor, momentum: float) -> None:
    """Move kept statistics towards those of this batch, in place."""
    with no_grad():
        step = cast(reshaped(found, running.shape), running.dtype)
        running.mul_(1 - momentum).add_(step * momentum)


def _momentum(op: str, momentum: float | None, tracked: Tensor | None) -> float:
    """How far running statistics move by one more batch."""
    if tracked is not None and (tracked.dtype.is_floating_point or tracked.numel() != 1):
        raise ArgumentError(
            f"[{op}] num_batches_tracked must be one integer, got {tracked.dtype} of shape "
            f"{tracked.shape}"
        )
    if momentum is not None:
        return float(momentum)
    if tracked is None:
        raise ArgumentError(
            f"[{op}] a momentum of None, for the mean over all batches, needs num_batches_tracked, "
            "an integer tensor that counts them"
        )
    return 1 / (int(tracked) + 1)


# Functions -----------------------------------------------------------------------------------
@function(top=False, method=False, functional=True)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | None = 0.1,
    eps: float = 1e-05,
    *,
    num_batches_tracked: Tensor | None = None,
) -> Tensor:
    """Each channel of (N, C, …) with mean 0 and variance 1, times `weight` plus `bias`.

    In training by the mean and variance of the batch, towards which `running_mean` and
    `running_var` move in place by `momentum` (the latter towards the unbiased variance); otherwise
    by those two. `num_batches_tracked`, which torch's layers have, counts the batches seen in
    training; with a momentum of None the running ones are then the means over all of them.

    >>> import undertow as ut
    >>> x, running = ut.tensor([[1.0], [3.0]]), ut.zeros(1)
    >>> ut.nn.functional.batch_norm(x, running, ut.ones(1), training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> running
    tensor([0.2000])
    """
    op = "batch_norm"
    _check(
        op,
        input,
        2,
        eps,
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
    )
    _check_running(op, running_mean, running_var)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                f"[{op}] needs running_mean and running_var unless training, got None"
            )
        return _by_running(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // max(input.shape[1], 1)
    if count == 1:
        raise ShapeError(
            f"[{op}] training needs more than one element in a channel, got shape {input.shape}"
        )
    momentum = _momentum(op, momentum, num_batches_tracked)
    operands = (input, weight, bias, running_mean, running_var)
    params = (_channel_dims(input.ndim), float(eps), _kinds(weight, bias), momentum)
    y, _, _, *moved = apply(_channel_norm, operands, params)
    moves = running_mean is not None and running_var is not None and count
    if moves or num_batches_tracked is not None:
        with no_grad():
            if num_batches_tracked is not None:
                write(op, num_batches_tracked, num_batches_tracked + 1)
            if running_mean is not None and running_var is not None and count:
                write(op, running_mean, moved[0])
                write(op, running_var, moved[1])
    return y


@function(top=False, method=False, functional=True)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Each channel of each element of (N, C, L, …) with mean 0 and variance 1.

    Then the channels are multiplied by `weight`, and `bias` is added. The running statistics move
    towards the means over the batch, as in `batch_norm`; without `use_input_stats` they are used.

    >>> import undertow as ut
    >>> ut.nn.functional.instance_norm(ut.tensor([[[1.0, 3.0], [0.0, 8.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    op = "instance_norm"
    _check(
        op,
        input,
        2,
        eps,
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
    )
    _check_running(op, running_mean, running_var)
    momentum = float(momentum)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                f"[{op}] needs running_mean and running_var without use_input_stats, got None"
            )
        return _by_running(input, running_mean, running_var, weight, bias, eps)
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ShapeError(
            f"[{op}] needs more than one element in a channel, got shape {input.shape}"
        )
    dims = tuple(range(2, input.ndim))
    params = (dims, float(eps), _kinds(weight, bias), 0.0)
    y, middle, _, spread, *_ = apply(_channel_norm, (input, weight, bias, None, None), params)
    if running_mean is not None and running_var is not None and input.numel():
        _update(running_mean, middle.detach().mean(0), momentum)
        _update(running_var, spread.detach().mean(0) * (count / (count - 1)), momentum)
    return y


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
    _check(op, input, 2, eps, weight=weight, bias=bias)
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
    params = (groups, float(eps), _kinds(weight, bias))
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
    _check(op, input, 3, 0)
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
    x = cast(input, dtypes.of_array(_wide(input._array)))
    means = window_sums(x * x, geometry) / width
    return cast(x / (means * alpha + k) ** beta, input.dtype)
