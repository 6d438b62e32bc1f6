"""Normalisation of channels: batch, instance, group and local response.

Note [channel norms]
As in Note [norms], y = (x - mean) rstd weight + bias over rows of n elements, but weight and bias
have one element for each row, or for several rows: in batch_norm a row is a channel of the whole
batch, in instance_norm a channel of one of its elements. With h = (x - mean) rstd the backward is
    dx = (g - Σ g / n - h Σ g h / n) rstd weight,   dweight = Σ g h and dbias = Σ g,
where the sums of rows that share a weight are added. One kernel computes what is wanted of the
three; with create_graph the rule is written in ops that have rules themselves.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import dtypes
from ..core.dispatch import apply, cast, sum_to
from ..core.modes import current, no_grad
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError
from ..kernel.expr import Expr, call
from ..kernel.row_program import Program, Tracer, rows
from ..kernel.windows import Geometry
from ..shapes import Shape, as_int
from .arithmetic import addcmul
from .movement import reshaped
from .pooling import window_sums
from .reduction import mean


# The op; see Note [channel norms] --------------------------------------------------------------
@functools.cache
def _forward_rows(weighted: bool, biased: bool) -> Program:
    def describe(p: Tracer, x: Expr, *more: Expr) -> None:
        *affine, n, eps = more
        middle = p.row(p.sum(x) / n)
        h = x - middle
        spread = p.row(p.sum(h * h) / n)
        scale = p.row(1.0 / call("sqrt", spread + eps))
        y = h * (p.row(scale * affine[0]) if weighted else scale)
        p.out(y + affine[-1] if biased else y)
        p.out_row(middle)
        p.out_row(spread)
        p.out_row(scale)

    return rows(describe, 1, weighted + biased, 2)


@functools.cache
def _backward_rows(weighted: bool, needs: tuple[bool, bool, bool]) -> Program:
    def describe(p: Tracer, g: Expr, x: Expr, *more: Expr) -> None:
        *affine, middle, scale, n = more
        h = (x - middle) * scale
        total = p.sum(g) if needs[0] or needs[2] else None
        product = p.sum(g * h) if needs[0] or needs[1] else None
        if total is not None and product is not None and needs[0]:
            slope = g - p.row(total / n) - h * p.row(product / n)
            p.out(slope * (p.row(scale * affine[0]) if weighted else scale))
        for needed, found in zip(needs[1:], (product, total), strict=True):
            if needed and found is not None:
                p.out_row(found)

    return rows(describe, 2, 2 + weighted, 1)


def _wide(x: Any) -> Any:
    """The dtype in which it is computed, and in which mean, variance and rstd are kept."""
    return dtypes.float64.numpy if x.dtype.itemsize == 8 else dtypes.float32.numpy


def _forward(k: Any, x: Any, weight: Any, bias: Any, dims: Shape, eps: float) -> Any:
    kinds = (x.dtype, *[_wide(x)] * 3)
    if not x.size:
        kept = tuple([1 if d in dims else n for d, n in enumerate(x.shape)])
        return (k.copy(x), *(k.full(kept, 0, t) for t in kinds[1:]))
    affine = [p for p in (weight, bias) if p is not None]
    n = math.prod([x.shape[d] for d in dims])
    program = _forward_rows(weight is not None, bias is not None)
    return k.rows(program, (x, *affine, float(n), eps), dims, kinds)


def _backward(
    k: Any, g: Any, x: Any, weight: Any, middle: Any, rstd: Any, dims: Shape, shapes: Any,
    needs: Any,
) -> Any:  # fmt: skip
    """What is needed of dx, dweight and dbias; `shapes` are those of the three, with dtypes."""
    wanted = [s for s, needed in zip(shapes, needs, strict=True) if needed]
    if not x.size:
        return tuple([k.full(shape, 0, t) for shape, t in wanted])
    n = math.prod([x.shape[d] for d in dims])
    operands = [o for o in (g, x, weight, middle, rstd) if o is not None]
    wide = _wide(x)
    kinds = [x.dtype] * needs[0] + [wide] * (needs[1] + needs[2])
    found = k.rows(_backward_rows(weight is not None, needs), (*operands, float(n)), dims, kinds)
    results = []
    for array, (shape, kind) in zip(found, wanted, strict=True):
        shared = tuple([d for d, size in enumerate(shape) if size != array.shape[d]])
        array = k.reduce("sum", array, shared, True) if shared else array
        results.append(array if array.dtype == kind else k.cast(array, kind))
    return tuple(results)


_channel_norm_backward = Op(
    "channel_norm_backward", _backward, inputs="g x weight middle rstd",
    params="dims shapes needs", outputs=3,
)  # fmt: skip


def _rule(
    g: Tensor, x: Tensor, weight: Tensor | None, out1: Tensor, out3: Tensor, dims: Shape,
    eps: float, like: Any, needs: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    if current().grad:
        found = iter(_composed(g, x, weight, dims, eps, like, needs))
    else:
        shapes = ((x.shape, x._array.dtype), *like)
        operands = (g, x, weight, out1, out3)
        found = iter(apply(_channel_norm_backward, operands, (dims, shapes, needs)))
    return tuple([next(found) if needed else None for needed in needs])


def _composed(
    g: Tensor, x: Tensor, weight: Tensor | None, dims: Shape, eps: float, like: Any,
    needs: tuple[bool, ...],
) -> list[Tensor]:  # fmt: skip
    """What is needed of the three, in ops that have rules of any order."""
    wide = dtypes.of_array(_wide(x._array))
    g, h = cast(g, wide), cast(x, wide)
    h = h - mean(h, dims, True)
    rstd = (mean(h * h, dims, True) + eps).rsqrt()
    h = h * rstd
    found = []
    if needs[0]:
        slope = g - mean(g, dims, True) - h * mean(g * h, dims, True)
        scale = rstd if weight is None else rstd * cast(weight, wide)
        found.append(cast(slope * scale, x.dtype))
    for needed, each, (shape, kind) in zip(needs[1:], (g * h, g), like, strict=True):
        if needed:
            found.append(cast(sum_to(each, shape), dtypes.of_array(kind)))
    return found


_channel_norm = Op(
    "channel_norm",
    lambda k, x, weight, bias, dims, eps, like: _forward(k, x, weight, bias, dims, eps),
    inputs="x weight bias",
    params="dims eps like",
    outputs=4,
    joint=_rule,
)


def _normed(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, dims: Shape, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`x` normalised over `dims`, with the mean and the variance, not corrected."""
    like = tuple([((), None) if p is None else (p.shape, p._array.dtype) for p in (weight, bias)])
    y, middle, spread, _ = apply(_channel_norm, (x, weight, bias), (dims, float(eps), like))
    return y, middle.detach(), spread.detach()


# Arguments -----------------------------------------------------------------------------------
def _check(op: str, x: Tensor, least: int, eps: float, **each: Tensor | None) -> None:
    """Raise unless `x` is floating and what belongs to its channels fits them."""
    if x.ndim < least:
        rest = ", …" if least == 2 else ", L, …"
        raise ShapeError(f"[{op}] expects (N, C{rest}), got shape {x.shape}")
    if not x.is_floating_point():
        raise DTypeError(f"[{op}] expects a floating tensor, got {x.dtype}; convert it first")
    if not eps >= 0:
        raise ArgumentError(f"[{op}] eps must not be negative, got {eps}")
    wide = dtypes.of_array(_wide(x._array))
    for name, given in each.items():
        if given is None:
            continue
        if given.shape != (x.shape[1],):
            raise ShapeError(
                f"[{op}] {name} must have one element for each of the {x.shape[1]} channels of "
                f"shape {x.shape}, got shape {given.shape}"
            )
        if given.dtype not in (x.dtype, wide):
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


def _beside(p: Tensor | None, x: Tensor) -> Tensor | None:
    """A vector of channels in a shape that broadcasts with `x`."""
    return None if p is None else reshaped(p, (1, p.shape[0], *(1,) * (x.ndim - 2)))


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """`x` times the weights of its channels plus their biases."""
    scale, shift = _beside(weight, x), _beside(bias, x)
    if scale is None:
        return x if shift is None else x + shift
    return x * scale if shift is None else addcmul(shift, x, scale)


def _by_running(
    x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None,
    bias: Tensor | None, eps: float,
) -> Tensor:  # fmt: skip
    """Every channel by the statistics that were kept for it."""
    wide = dtypes.of_array(_wide(x._array))
    scale = (cast(running_var, wide) + eps).rsqrt()
    scale = scale if weight is None else scale * cast(weight, wide)
    shift = -cast(running_mean, wide) * scale
    shift = shift if bias is None else shift + cast(bias, wide)
    return cast(_affine(cast(x, wide), scale, shift), x.dtype)


def _update(running: Tensor | None, found: Tensor, momentum: float) -> None:
    """Move kept statistics towards those of this batch, in place."""
    if running is not None:
        with no_grad():
            step = cast(reshaped(found, running.shape), running.dtype)
            running.mul_(1 - momentum).add_(step * momentum)


# Functions -----------------------------------------------------------------------------------
@function(top=False, method=False, functional=True)
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Each channel of (N, C, …) with mean 0 and variance 1, times `weight` plus `bias`.

    In training by the mean and variance of the batch, towards which `running_mean` and
    `running_var` move in place by `momentum` (the latter towards the unbiased variance); otherwise
    by those two.

    >>> import undertow as ut
    >>> x, running = ut.tensor([[1.0], [3.0]]), ut.zeros(1)
    >>> ut.nn.functional.batch_norm(x, running, ut.ones(1), training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> running
    tensor([0.2000])
    """
    op = "batch_norm"
    _check(op, input, 2, eps, running_mean=running_mean, running_var=running_var, weight=weight,
           bias=bias)  # fmt: skip
    _check_running(op, running_mean, running_var)
    momentum = float(momentum)
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
    dims = (0, *range(2, input.ndim))
    y, middle, spread = _normed(input, _beside(weight, input), _beside(bias, input), dims, eps)
    if count:
        _update(running_mean, middle, momentum)
        _update(running_var, spread * (count / (count - 1)), momentum)
    return y


@function(top=False, method=False, functional=True)
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Each channel of each element of (N, C, L, …) with mean 0 and variance 1.

    Then the channels are multiplied by `weight`, and `bias` is added. The running statistics move
    towards the means over the batch, as in `batch_norm`; without `use_input_stats` they are used.

    >>> import undertow as ut
    >>> ut.nn.functional.instance_norm(ut.tensor([[[1.0, 3.0], [0.0, 8.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    op = "instance_norm"
    _check(op, input, 2, eps, running_mean=running_mean, running_var=running_var, weight=weight,
           bias=bias)  # fmt: skip
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
    y, middle, spread = _normed(input, _beside(weight, input), _beside(bias, input), dims, eps)
    if input.numel():
        _update(running_mean, middle.mean(0), momentum)
        _update(running_var, spread.mean(0) * (count / (count - 1)), momentum)
    return y


@function(top=False, method=False, functional=True)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Each of `num_groups` groups of channels of each element of (N, C, …) with mean 0, variance 1.

    Then the channels are multiplied by `weight`, and `bias` is added.

    >>> import undertow as ut
    >>> ut.nn.functional.group_norm(ut.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    op = "group_norm"
    _check(op, input, 2, eps, weight=weight, bias=bias)
    groups = as_int(op, "num_groups", num_groups)
    n, c = input.shape[:2]
    if groups < 1 or c % groups:
        raise ArgumentError(
            f"[{op}] num_groups must divide the {c} channels of shape {input.shape}, got {groups}"
        )
    if input.numel() == groups:
        raise ShapeError(
            f"[{op}] needs more than one element in a group, got shape {input.shape} and "
            f"num_groups={groups}"
        )
    wide = dtypes.of_array(_wide(input._array))
    rest = math.prod(input.shape[2:]) * (c // groups)
    y = _normed(cast(reshaped(input, (n, groups, rest)), wide), None, None, (2,), eps)[0]
    scale, shift = (None if p is None else cast(p, wide) for p in (weight, bias))
    return cast(_affine(reshaped(y, input.shape), scale, shift), input.dtype)


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
        input.shape[1:], (width, *(1,) * rest), (1,) * rank,
        ((width // 2, (width - 1) // 2), *((0, 0),) * rest), (1,) * rank, (1,) * rank,
    )  # fmt: skip
    x = cast(input, dtypes.of_array(_wide(input._array)))
    means = window_sums(x * x, geometry) / width
    return cast(x / (means * alpha + k) ** beta, input.dtype)
