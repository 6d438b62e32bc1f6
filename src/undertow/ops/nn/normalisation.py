"""Normalisation over trailing dimensions, one kernel each way: layer_norm, rms_norm; renorm."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...backends.base import Array, Dims, Forms
from ...core.dispatch import apply, cast, sum_to
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel.expr import Expr, call
from ...kernel.row_program import Program, Tracer, rows
from ...shapes import Ints, as_shape, wrap_dim
from ..reduce.reduction import mean

# Note [norms]
# y = (x - mean) rstd weight + bias over rows of n elements, where rms_norm has mean = 0. The
# forward keeps mean and rstd, and with h = (x - mean) rstd and v = g weight the backward is
#     dx = (v - Σ v / n - h Σ v h / n) rstd,   dweight = Σ g h and dbias = Σ g over all rows,
# again without the first sum for rms_norm. One kernel computes what is wanted of the three. What is
# differentiated once more is written in ops that have rules themselves. Without a weight the map
# from g to dx is its own transpose, so a tangent of x goes the way of a cotangent.
#
# Note [centres]
# The mean of a row is some ulp off, and of a row that is constant, or nearly so, rstd magnifies
# that. So elements are counted from a centre near the mean: its first element if that is as near as
# rounding may have moved the mean, else the mean itself. The mean of these deviations corrects the
# centre, and its square their variance. Of a constant row all of them are zero, and exactly so.
NEAR = 2.0**-14
_SINGLE, _DOUBLE = dtypes.float32.numpy, dtypes.float64.numpy


def moments(p: Tracer, x: Expr, n: Expr) -> tuple[Expr, Expr]:
    """The mean and the variance of a row; see Note [centres]."""
    rough, first = p.sum(x) / n, p.first(x)
    near = call("abs", first - rough) <= call("abs", rough) * NEAR
    centre = p.row(call("where", near, first, rough))
    deviation = p.keep(x - centre)
    offset = p.row(p.sum(deviation) / n)
    squares = p.sum(deviation * deviation) / n
    return p.row(centre + offset), call("maximum", squares - offset * offset, 0.0)


@functools.cache
def _forward_rows(centred: bool, weighted: bool, biased: bool) -> Program:
    def describe(p: Tracer, x: Expr, *more: Expr) -> None:
        *affine, n, eps = more
        middle, spread = moments(p, x, n) if centred else (None, p.sum(x * x) / n)
        scale = p.row(1.0 / call("sqrt", spread + eps))
        y = (x if middle is None else x - middle) * scale
        if weighted:
            y = y * affine[0]
        p.out(y + affine[-1] if biased else y)
        if middle is not None:
            p.out_row(middle)
        p.out_row(scale)

    return rows(describe, 1 + weighted + biased, 0, 2)


@functools.cache
def _backward_rows(centred: bool, weighted: bool, needs: tuple[bool, bool, bool]) -> Program:
    def describe(p: Tracer, g: Expr, x: Expr, *more: Expr) -> None:
        *operands, scale, n = more
        h = x - operands[-1] if centred else x
        h = h * scale
        if needs[0]:
            v = g * operands[0] if weighted else g
            slope = v - h * p.row(p.sum(v * h) / n)
            if centred:
                slope = slope - p.row(p.sum(v) / n)
            p.out(slope * scale)
        if needs[1]:
            p.out_column(g * h)
        if needs[2]:
            p.out_column(g)

    return rows(describe, 2 + weighted, 1 + centred, 1)


def _wide(x: Any) -> Any:
    """The dtype in which it is computed, and in which mean and rstd are kept."""
    return _DOUBLE if x.dtype.itemsize == 8 else _SINGLE


def _forward(
    k: Forms, x: Array, weight: Array, bias: Array, dims: Dims, eps: float, centred: bool
) -> Any:
    wide = _wide(x)
    kinds = (x.dtype, wide, wide) if centred else (x.dtype, wide)
    if not x.size:
        kept = tuple([1 if d in dims else n for d, n in enumerate(x.shape)])
        return (k.copy(x), *(k.full(kept, 0, t) for t in kinds[1:]))
    n = float(math.prod(x.shape[dims[0] :]))  # they are the last ones
    program = _forward_rows(centred, weight is not None, bias is not None)
    if weight is not None and bias is not None:
        return k.rows(program, (x, weight, bias, n, eps), dims, kinds)
    affine = [p for p in (weight, bias) if p is not None]
    return k.rows(program, (x, *affine, n, eps), dims, kinds)


def _backward(
    k: Forms,
    g: Array,
    x: Array,
    weight: Array,
    middle: Any,
    rstd: Any,
    dims: Dims,
    kind: Any,
    needs: Any,
) -> Any:
    """What is needed of dx, dweight and dbias; `kind` is the dtype of the last two."""
    shape = tuple([x.shape[d] for d in dims])
    each = ((x.shape, x.dtype), (shape, kind), (shape, kind))
    wanted = [w for w, needed in zip(each, needs, strict=True) if needed]
    if not x.size:
        return tuple([k.full(s, 0, t) for s, t in wanted])
    program = _backward_rows(middle is not None, weight is not None, needs)
    operands = [o for o in (g, x, weight, middle, rstd) if o is not None]
    found = k.rows(program, (*operands, float(math.prod(shape))), dims, [t for _, t in wanted])
    # dx stays as it is: a leaf keeps an array as its gradient only if that is no view.
    return tuple(
        [f if f.shape == s else k.reshape(f, s) for f, (s, _) in zip(found, wanted, strict=True)]
    )


def bare_joint(found: Sequence[Any], needs: tuple[bool, ...]) -> Sequence[Any]:
    """What was needed, with None in the place of what was not."""
    if len(found) == len(needs):
        return found
    given = iter(found)
    return [next(given) if needed else None for needed in needs]


_norm_backward = Op(
    "norm_backward", _backward, inputs="g x weight middle rstd", params="dims kind needs", outputs=3
)


def _rule(
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    middle: Tensor | None,
    rstd: Tensor,
    dims: Any,
    eps: float,
    kind: Any,
    needs: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The cotangents of x, weight and bias, where they are needed; see Note [norms]."""
    if differentiated(g, x, weight):
        found = iter(_composed(g, x, weight, middle, dims, eps, kind, needs))
    else:
        found = iter(apply(_norm_backward, (g, x, weight, middle, rstd), (dims, kind, needs)))
    return tuple([next(found) if needed else None for needed in needs])


def centred(x: Tensor, middle: Tensor, dims: Any) -> Tensor:
    """`x` less its mean, which `middle` is but for rounding; see Note [centres]."""
    h = x - middle.detach()
    return h - mean(h, dims, True)


def _composed(
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    middle: Tensor | None,
    dims: Any,
    eps: float,
    kind: Any,
    needs: tuple[bool, ...],
) -> list[Tensor]:
    """What is needed of the three, in ops that have rules of any order."""
    wide = dtypes.of_array(_wide(x._array))
    g = cast(g, wide)
    h, rstd = _normalised(cast(x, wide), middle, dims, eps)
    found = []
    if needs[0]:
        v = g if weight is None else g * cast(weight, wide)
        slope = v - h * mean(v * h, dims, True)
        if middle is not None:
            slope = slope - mean(v, dims, True)
        found.append(cast(slope * rstd, x.dtype))
    shape = tuple(x.shape[d] for d in dims)
    for needed, each in zip(needs[1:], (g * h, g), strict=True):
        if needed:
            found.append(cast(sum_to(each, shape), dtypes.of_array(kind)))
    return found


def _normalised(x: Tensor, middle: Tensor | None, dims: Any, eps: float) -> tuple[Tensor, Tensor]:
    """h and rstd of Note [norms], in ops that have rules of any order."""
    h = x if middle is None else centred(x, middle, dims)
    rstd = (mean(h * h, dims, True) + eps).rsqrt()
    return h * rstd, rstd


def _tangent(
    ts: Sequence[Tensor | None],
    x: Tensor,
    weight: Tensor | None,
    middle: Tensor | None,
    rstd: Tensor,
    dims: Any,
    eps: float,
) -> Tensor:
    """The tangent of the result: a term for each of x, weight and bias that has one."""
    moved, by_weight, *by_bias = ts
    terms = [t for t in by_bias if t is not None]
    if moved is not None:
        only = (True, False, False)
        (along, _, _) = _rule(moved, x, None, middle, rstd, dims, eps, None, only)
        assert along is not None
        terms.append(along if weight is None else along * weight)
    if by_weight is not None:
        wide = dtypes.of_array(_wide(x._array))
        terms.append(by_weight * _normalised(cast(x, wide), middle, dims, eps)[0])
    return functools.reduce(operator.add, terms)


_layer_norm = Op(
    "layer_norm",
    lambda k, x, weight, bias, dims, eps, kind: _forward(k, x, weight, bias, dims, eps, True),
    inputs="x weight bias",
    params="dims eps kind",
    outputs=3,
    differentiable=1,
    joint=lambda g, x, weight, out1, out2, dims, eps, kind, needs: _rule(
        g, x, weight, out1, out2, dims, eps, kind, needs
    ),
    jvp=lambda ts, x, weight, out1, out2, dims, eps: _tangent(ts, x, weight, out1, out2, dims, eps),
    bare=lambda k, g, x, weight, out1, out2, dims, eps, kind, needs: bare_joint(
        _backward(k, g, x, weight, out1, out2, dims, kind, needs), needs
    ),
)
_rms_norm = Op(
    "rms_norm",
    lambda k, x, weight, dims, eps, kind: _forward(k, x, weight, None, dims, eps, False),
    inputs="x weight",
    params="dims eps kind",
    outputs=2,
    differentiable=1,
    joint=lambda g, x, weight, out1, dims, eps, kind, needs: _rule(
        g, x, weight, None, out1, dims, eps, kind, (*needs, False)
    )[:2],
    jvp=lambda ts, x, weight, out1, dims, eps: _tangent(ts, x, weight, None, out1, dims, eps),
    bare=lambda k, g, x, weight, out1, dims, eps, kind, needs: bare_joint(
        _backward(k, g, x, weight, None, out1, dims, kind, (*needs, False)), needs
    ),
)


def _prepared(
    op: str, input: Tensor, normalized_shape: Any, refused: str = "biuc", **affine: Tensor | None
) -> tuple[tuple[int, ...], Any]:
    """The dims to normalise over, and the dtype of weight and bias."""
    x = input._array
    if x.dtype.kind in refused:
        raise DTypeError(f"[{op}] expects a floating tensor, got {input.dtype}; convert it first")
    shape = normalized_shape
    if shape.__class__ is not tuple or x.shape[-len(shape) :] != shape:
        shape = as_shape(op, normalized_shape)
    if not shape:
        raise ShapeError(f"[{op}] normalized_shape must name at least one dimension, got ()")
    rank = len(x.shape)
    if x.shape[-len(shape) :] != shape:
        raise ShapeError(
            f"[{op}] normalized_shape {shape} must be the last dimensions of the input, which has "
            f"shape {input.shape}"
        )
    kinds = (x.dtype, _wide(x))
    kind = None
    for name, given in affine.items():
        if given is None:
            continue
        own = given._array
        if own.dtype is x.dtype and own.shape == shape and (kind is None or kind is x.dtype):
            kind = x.dtype
            continue
        if own.shape != shape:
            raise ShapeError(
                f"[{op}] {name} must have the shape {shape} of normalized_shape, got {given.shape}"
            )
        if own.dtype not in kinds or kind not in (None, own.dtype):
            wide = dtypes.of_array(kinds[1])
            raise DTypeError(
                f"[{op}] {name} is {given.dtype} beside an input of {input.dtype}; weight and bias "
                f"must both be {input.dtype}"
                + (f" or both {wide}" if wide is not input.dtype else "")
            )
        kind = own.dtype
    return tuple(range(rank - len(shape), rank)), kind


@function(top=False, method=False, functional=True)
def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """`input` with mean 0 and variance 1 over its last dimensions, times `weight` plus `bias`.

    `normalized_shape` tells the sizes of those dimensions. The variance, of all elements and not
    corrected, is taken to be larger by `eps`.

    >>> import undertow as ut
    >>> ut.nn.functional.layer_norm(ut.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    dims, kind = _prepared("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return apply(_layer_norm, (input, weight, bias), (dims, float(eps), kind))[0]


@function(top=False, method=False, functional=True)
def rms_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`input` divided by the root of the mean of its squares over its last dimensions.

    `normalized_shape` tells the sizes of those dimensions, `weight` multiplies the result. `eps` is
    added to the mean; by default it is that of the dtype, for half precision that of float32.

    >>> import undertow as ut
    >>> ut.nn.functional.rms_norm(ut.tensor([[3.0, 3.0], [-4.0, 4.0]]), (2,))
    tensor([[ 1.,  1.],
            [-1.,  1.]])
    """
    if input.is_complex():
        return _complex_rms_norm(input, normalized_shape, weight, eps)
    dims, kind = _prepared("rms_norm", input, normalized_shape, weight=weight)
    if eps is None:
        eps = dtypes.finfo(dtypes.of_array(_wide(input._array))).eps
    return apply(_rms_norm, (input, weight), (dims, float(eps), kind))[0]


def _complex_rms_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None, eps: float | None
) -> Tensor:
    """By torch's formula: the mean is that of the squares, not of the squared absolute values."""
    dims, _ = _prepared("rms_norm", input, normalized_shape, "biu", weight=weight)
    if eps is None:
        eps = dtypes.finfo(input.dtype).eps
    y: Tensor = input * ((input * input).mean(dims, keepdim=True) + eps).rsqrt()
    return y if weight is None else y * weight


@function(inplace=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """`input` with each slice along `dim` whose p-norm is above `maxnorm` scaled down to it.

    >>> import undertow as ut
    >>> ut.renorm(ut.tensor([[1.0, 1.0], [3.0, 4.0]]), 2, 0, 2.5)
    tensor([[1.0000, 1.0000],
            [1.5000, 2.0000]])
    """
    if input.ndim < 2:
        raise ShapeError(f"[renorm] needs two dimensions at least, got shape {input.shape}")
    if p <= 0 or maxnorm < 0:
        raise ArgumentError(f"[renorm] p must be above 0 and maxnorm not below, got {p}, {maxnorm}")
    kept = wrap_dim("renorm", dim, input.ndim)
    others = tuple(d for d in range(input.ndim) if d != kept)
    norms = input.norm(p, others, keepdim=True)
    beyond = norms > maxnorm
    return input * (maxnorm / (norms + 1e-7)).where(beyond, norms.detach() * 0 + 1)
