"""Pooling to a given size: windows that are as equal as they can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...core.dispatch import apply, cast, table
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...kernel import tables
from ...kernel.windows import Geometry, Spans
from ...shapes import Shape, per_dim
from .pooling import check_planes, indices, largest, unpick, unpicked, window_sums


def _target(op: str, x: Tensor, output_size: Any, rank: int) -> Shape:
    """The size to pool to; None keeps a dimension's."""
    listed = output_size if isinstance(output_size, Sequence) else (output_size,) * rank
    if len(listed) != rank:
        raise ArgumentError(
            f"[{op}] output_size must be an integer or {rank} of them, or None, got {output_size!r}"
        )
    sizes = x.shape[-rank:]
    chosen = [n if wanted is None else wanted for n, wanted in zip(sizes, listed, strict=True)]
    return per_dim(op, "output_size", chosen, rank)


def _even(size: Shape, target: Shape) -> Geometry | None:
    """The windows, if the size divides evenly."""
    if any(not m or n % m for n, m in zip(size, target, strict=True)):
        return None
    widths = tuple([n // m for n, m in zip(size, target, strict=True)])
    rank = len(size)
    return Geometry(size, widths, widths, ((0, 0),) * rank, (1,) * rank, (1,) * rank)


def _empty(k: Forms, x: Array, spans: Spans) -> Any:
    """The result's shape, and whether there is nothing to find."""
    shape = (*x.shape[: len(x.shape) - len(spans.size)], *spans.output)
    return shape, 0 in shape or 0 in x.shape


def _sum_forward(k: Forms, x: Array, spans: Spans) -> Any:
    shape, nothing = _empty(k, x, spans)
    return k.full(shape, 0, x.dtype) if nothing else k.spans("sum", x, spans.output)


def _max_forward(k: Forms, x: Array, spans: Spans) -> Any:
    shape, nothing = _empty(k, x, spans)
    if nothing:
        return k.full(shape, 0, x.dtype), k.full(shape, 0, dtypes.int64.numpy)
    return k.spans("max", x, spans.output)


_span_sum: Op = Op(
    "span_sum",
    _sum_forward,
    inputs="x",
    params="spans",
    vjp={"x": lambda g, spans: apply(_span_sum, (g,), (spans.of_input,))},
    bare={"x": lambda k, g, spans: _sum_forward(k, g, spans.of_input)},
)
_span_max = Op(
    "span_max",
    _max_forward,
    inputs="x",
    params="spans",
    outputs=2,
    differentiable=1,
    vjp={"x": lambda g, out1, spans, x_shape: unpick(g, out1, len(spans.size), x_shape)},
    bare={"x": lambda k, g, out1, spans, x_shape: unpicked(k, g, out1, len(spans.size), x_shape)},
)


def adaptive_mean(op: str, x: Tensor, output_size: Any, rank: int) -> Tensor:
    """The means of windows over the last dimensions."""
    check_planes(op, x, rank)
    target, size = _target(op, x, output_size, rank), x.shape[-rank:]
    wide = cast(x, dtypes.float32) if x.dtype.itemsize == 2 else x
    if target == (1,) * rank:
        out = wide.mean(tuple(range(x.ndim - rank, x.ndim)), True)
    elif target == size:
        out = x.clone()
    elif even := _even(size, target):
        out = window_sums(wide, even, math.prod(even.kernel))
    else:
        spans = Spans(size, target)
        sums = apply(_span_sum, (wide,), (spans,))
        out = sums / table(x, tables.span_counts, spans, wide.dtype.numpy)
    return cast(out, x.dtype)


def _adaptive_max(op: str, x: Tensor, output_size: Any, rank: int, return_indices: bool) -> Any:
    check_planes(op, x, rank)
    target, size = _target(op, x, output_size, rank), x.shape[-rank:]
    even = _even(size, target)
    if even is not None:
        values, places = largest(x, even)
    else:
        values, places = apply(_span_max, (x,), (Spans(size, target),))
    return (values, indices(places)) if return_indices else values


@function(method=False, functional=True)
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of `output_size` windows that cover signals (N, C, L) or (C, L).

    >>> import undertow as ut
    >>> ut.adaptive_avg_pool1d(ut.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]), 2)
    tensor([[2., 4.]])
    """
    return adaptive_mean("adaptive_avg_pool1d", input, output_size, 1)


@function(top=False, method=False, functional=True)
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover images (N, C, H, W) or (C, H, W), as many as `output_size`.

    An integer is for both dimensions; None keeps the size of one.

    >>> import undertow as ut
    >>> ut.nn.functional.adaptive_avg_pool2d(ut.tensor([[[1.0, 2.0], [3.0, 4.0]]]), (None, 1))
    tensor([[[1.5000],
             [3.5000]]])
    """
    return adaptive_mean("adaptive_avg_pool2d", input, output_size, 2)


@function(top=False, method=False, functional=True)
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover (N, C, D, H, W) or (C, D, H, W); see `adaptive_avg_pool2d`.

    >>> import undertow as ut
    >>> ut.nn.functional.adaptive_avg_pool3d(ut.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return adaptive_mean("adaptive_avg_pool3d", input, output_size, 3)


@function(top=False, method=False, functional=True)
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of `output_size` windows that cover signals (N, C, L) or (C, L).

    With `return_indices`, also where they were, of equal ones the first.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0, 5.0, 2.0, 4.0, 3.0]])
    >>> ut.nn.functional.adaptive_max_pool1d(x, 2, return_indices=True)
    (tensor([[5., 4.]]), tensor([[1, 3]]))
    """
    return _adaptive_max("adaptive_max_pool1d", input, output_size, 1, return_indices)


@function(top=False, method=False, functional=True)
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows that cover (N, C, H, W) or (C, H, W).

    `output_size` is as in `adaptive_avg_pool2d`, the indices as in `max_pool2d`.

    >>> import undertow as ut
    >>> ut.nn.functional.adaptive_max_pool2d(ut.tensor([[[1.0, 2.0], [3.0, 4.0]]]), (1, None))
    tensor([[[3., 4.]]])
    """
    return _adaptive_max("adaptive_max_pool2d", input, output_size, 2, return_indices)


@function(top=False, method=False, functional=True)
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows that cover (N, C, D, H, W); see `adaptive_max_pool2d`.

    >>> import undertow as ut
    >>> ut.nn.functional.adaptive_max_pool3d(ut.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    return _adaptive_max("adaptive_max_pool3d", input, output_size, 3, return_indices)
