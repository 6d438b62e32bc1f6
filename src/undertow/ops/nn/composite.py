"""Layers and distances as plain functions over ops: linear layers, norms of differences."""

from __future__ import annotations

import math
from typing import Any

from ...backends.base import Array, Forms
from ...core.dispatch import apply, expand
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import Ints, broadcast_shapes, check_fits, wrap_dim
from ..elementwise.extremes import clamp_min
from ..linalg.matmul import matmul, product, size_of
from ..reduce.reduction import norm, sum
from ..shape.joining import promoted
from ..shape.movement import in_shape, reshape, reshaped
from .embedding import steps


# Layers --------------------------------------------------------------------------------------
@function(top=False, method=False, functional=True)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`, for a weight of shape (out, in) or (in).

    >>> import undertow as ut
    >>> ut.nn.functional.linear(ut.tensor([1.0, 2.0]), ut.tensor([[3.0, 4.0]]), ut.tensor([5.0]))
    tensor([16.])
    """
    x, w = input._array, weight._array
    sizes, out_in = x.shape, w.shape
    if not 1 <= len(out_in) <= 2 or not sizes or sizes[-1] != out_in[-1]:
        raise ShapeError(
            f"[linear] expects an input (…, in) and a weight (out, in) or (in), got shapes "
            f"{input.shape} and {weight.shape}"
        )
    if (
        len(out_in) != 2
        or x.dtype != w.dtype
        or x.dtype.kind not in "fV"
        or (bias is not None and (bias._array.shape != out_in[:1] or bias._array.dtype != w.dtype))
    ):
        return _biased("linear", matmul(input, weight.t()), bias)
    return apply(_linear, (input, weight, bias))


def _as_rows(k: Forms, x: Array) -> Any:
    """Whatever is before the last dimension as one."""
    shape = x.shape
    return x if len(shape) == 2 else in_shape(k, x, (math.prod(shape[:-1]), shape[-1]))


def _linear_forward(k: Forms, x: Array, w: Array, b: Array | None) -> Any:
    shape = x.shape
    if len(shape) == 2:
        return k.matmul(x, k.transposed(w), b)
    return k.reshape(k.matmul(_as_rows(k, x), k.transposed(w), b), (*shape[:-1], w.shape[0]))


def _linear_by_input(k: Forms, g: Array, w: Array) -> Any:
    return k.reshape(k.matmul(_as_rows(k, g), w), (*g.shape[:-1], w.shape[1]))


def _linear_by_weight(g: Tensor, x: Tensor) -> Tensor:
    (outputs,), (inputs,) = g._array.shape[-1:], x._array.shape[-1:]
    count = math.prod(g._array.shape[:-1])
    return product(reshaped(g, (count, outputs)), reshaped(x, (count, inputs)), True)


_linear = Op(
    "linear",
    _linear_forward,
    inputs="x w b",
    vjp={
        "x": lambda g, w: matmul(g, w),
        "w": _linear_by_weight,
        "b": lambda g: sum(g, tuple(range(g.ndim - 1))) if g.ndim > 1 else g,
    },
    bare={
        "x": _linear_by_input,
        "w": lambda k, g, x: k.matmul(k.transposed(_as_rows(k, g)), _as_rows(k, x)),
        "b": lambda k, g: (
            k.reduce("sum", g, tuple(range(len(g.shape) - 1)), False) if len(g.shape) > 1 else g
        ),
    },
)
_linear.factors = (lambda k, g, w: (g, w), lambda k, g, x: (k.transposed(g), x), None)


@function(method=False, functional=True)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1ᵀ W input2 + bias` for each matrix W of `weight`, shape (out, in1, in2).

    >>> import undertow as ut
    >>> a, b, w = ut.tensor([[1.0, 2.0]]), ut.tensor([[3.0]]), ut.ones(4, 2, 1)
    >>> ut.nn.functional.bilinear(a, b, w)
    tensor([[9., 9., 9., 9.]])
    """
    if (
        weight.ndim != 3
        or not input1.ndim
        or input1.shape[:-1] != input2.shape[:-1]
        or (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]
    ):
        raise ShapeError(
            "[bilinear] expects inputs (…, in1) and (…, in2) and a weight (out, in1, in2), got "
            f"shapes {input1.shape}, {input2.shape} and {weight.shape}"
        )
    lead = input1.shape[:-1]
    out_size, first, second = weight.shape
    left = input1.reshape(math.prod(lead), first)
    right = input2.reshape(math.prod(lead), second, 1)
    halfway = left.matmul(weight.permute(1, 0, 2).reshape(first, out_size * second))
    out = matmul(halfway.reshape(math.prod(lead), out_size, second), right)
    return _biased("bilinear", reshape(out, (*lead, out_size)), bias)


def _biased(op: str, out: Tensor, bias: Tensor | None) -> Tensor:
    """`out + bias`, in the shape of `out`."""
    if bias is None:
        return out
    check_fits(op, "bias", bias.shape, out.shape)
    total: Tensor = out + bias
    return total


# Distances -----------------------------------------------------------------------------------
@function(method=False, functional=True)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms count as at least `eps`.

    >>> import undertow as ut
    >>> ut.cosine_similarity(ut.tensor([3.0, 4.0]), ut.tensor([6.0, 8.0]), dim=0)
    tensor(1.)
    """
    op = "cosine_similarity"
    x1, x2 = promoted([x1, x2])
    if not x1.is_floating_point():
        raise DTypeError(f"[{op}] expects floating tensors, got {x1.dtype}; convert them first")
    if not eps >= 0:
        raise ArgumentError(f"[{op}] eps must not be negative, got {eps}")
    shape = broadcast_shapes(op, x1.shape, x2.shape)
    dim = wrap_dim(op, dim, len(shape))
    x1, x2 = expand(x1, shape), expand(x2, shape)
    return sum(normalize(x1, 2.0, dim, eps) * normalize(x2, 2.0, dim, eps), dim)


@function(top=False, method=False, functional=True, out=True)
def normalize(input: Tensor, p: float = 2.0, dim: Ints = 1, eps: float = 1e-12) -> Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where the norm is smaller.

    >>> import undertow as ut
    >>> ut.nn.functional.normalize(ut.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / clamp_min(norm(input, p, dim, True), eps)


@function(method=False, functional=True)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of `x1 - x2 + eps` along the last dimension.

    >>> import undertow as ut
    >>> ut.pairwise_distance(ut.tensor([[3.0, 0.0]]), ut.tensor([[0.0, 4.0]]), eps=0.0)
    tensor([5.])
    """
    return norm(x1 - x2 + eps, p, -1, keepdim)


@function(method=False, functional=True)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distances of all pairs of rows i < j, in order.

    >>> import undertow as ut
    >>> ut.pdist(ut.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    if input.ndim != 2:
        raise ShapeError(f"[pdist] expects rows (N, D), got shape {input.shape}")
    if not input.is_floating_point():
        raise DTypeError(f"[pdist] expects a floating tensor, got {input.dtype}")
    if p < 0:
        raise ArgumentError(f"[pdist] p must not be negative, got {p}")
    place = steps(input.shape[0], input)
    pairs = (place.unsqueeze(1) < place).nonzero()
    first, second = pairs.unbind(1)
    return size_of(input.index_select(0, first) - input.index_select(0, second), p)
