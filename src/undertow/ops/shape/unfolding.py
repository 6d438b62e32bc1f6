"""All windows of images as the columns of matrices, and back: unfold and fold."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...core.dispatch import apply, cast
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import DTypeError, ShapeError
from ...kernel.expr import trace
from ...kernel.windows import Geometry
from ...shapes import Ints, Shape, frozen, per_dim

_ADD = trace(lambda a, b: a + b, 2)


# Primitives: an adjoint pair -----------------------------------------------------------------
def _unfold_forward(k: Forms, x: Array, geometry: Geometry) -> Any:
    lead = x.shape[:2]
    if any(map(any, geometry.padding)):
        whole = k.full((*lead, *geometry.padded), 0, x.dtype)
        k.assign(k.slice(whole, _inside(geometry)), x)
        x = whole
    steps = [s // x.dtype.itemsize for s in x.strides]
    by_tap = [s * d for s, d in zip(steps[2:], geometry.dilation, strict=True)]
    by_window = [s * d for s, d in zip(steps[2:], geometry.stride, strict=True)]
    shape = (*lead, *geometry.kernel, *geometry.output)
    windows = k.copy(k.as_strided(x, shape, (*steps[:2], *by_tap, *by_window), 0))
    return k.reshape(windows, _columns(lead, geometry))


def _fold_forward(k: Forms, x: Array, geometry: Geometry) -> Any:
    channels = x.shape[1] // math.prod(geometry.kernel)
    lead = (x.shape[0], channels)
    split = (*lead, *geometry.kernel, *geometry.output)
    taps = k.reshape(x, split)
    taps = k.reshape(k.copy(x), split) if taps is None else taps
    whole = k.full((*lead, *geometry.padded), 0, x.dtype)
    for tap in itertools.product(*map(range, geometry.kernel)):
        place = [
            slice(t * gap, t * gap + (count - 1) * step + 1, step)
            for t, gap, count, step in zip(
                tap, geometry.dilation, geometry.output, geometry.stride, strict=True
            )
        ]
        target = k.slice(whole, (slice(None), slice(None), *place))
        part = k.slice(taps, (slice(None), slice(None), *tap))
        k.assign(target, k.map(_ADD, (target, part), x.dtype))
    return k.copy(k.slice(whole, _inside(geometry))) if any(map(any, geometry.padding)) else whole


def _inside(geometry: Geometry) -> tuple[slice, ...]:
    """Where the image is in its padding."""
    places = [
        slice(low, low + n) for n, (low, _) in zip(geometry.size, geometry.padding, strict=True)
    ]
    return (slice(None), slice(None), *places)


def _columns(lead: Shape, geometry: Geometry) -> Shape:
    return lead[0], lead[1] * math.prod(geometry.kernel), math.prod(geometry.output)


_unfold: Op = Op(
    "im2col",
    _unfold_forward,
    inputs="x",
    params="geometry",
    vjp={"x": lambda g, geometry: apply(_fold, (g,), (geometry,))},
)
_fold: Op = Op(
    "col2im",
    _fold_forward,
    inputs="x",
    params="geometry",
    vjp={"x": lambda g, geometry: apply(_unfold, (g,), (geometry,))},
)


@functools.lru_cache(maxsize=256)
def _geometry(
    op: str, size: Shape, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Geometry:
    geometry = Geometry(
        size,
        per_dim(op, "kernel_size", kernel_size, 2, 1),
        per_dim(op, "stride", stride, 2, 1),
        tuple((p, p) for p in per_dim(op, "padding", padding, 2)),
        (1, 1),
        per_dim(op, "dilation", dilation, 2, 1),
    )
    if not all(geometry.output):
        raise ShapeError(
            f"[{op}] windows of {geometry.extent} do not fit into images of {size}, with padding "
            f"{geometry.padded}"
        )
    return geometry


# Functions -----------------------------------------------------------------------------------
@function(top=False, method=False, functional=True)
def unfold(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Every window of images (N, C, H, W) or (C, H, W), laid out as a column: (N, C·kH·kW, L).

    A convolution is the product of a matrix of kernels with these columns.

    >>> import undertow as ut
    >>> ut.nn.functional.unfold(ut.arange(6.0).reshape(1, 1, 2, 3), (2, 2))
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    op = "unfold"
    if input.ndim not in (3, 4):
        raise ShapeError(f"[{op}] expects (N, C, H, W) or (C, H, W), got shape {input.shape}")
    x = input if input.ndim == 4 else input.unsqueeze(0)
    geometry = _geometry(
        op, x.shape[2:], frozen(kernel_size), frozen(dilation), frozen(padding), frozen(stride)
    )
    out = apply(_unfold, (x,), (geometry,))
    return out if input.ndim == 4 else out.squeeze(0)


@function(top=False, method=False, functional=True)
def fold(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Columns as `unfold` lays them out, added up where their windows were: its transpose.

    >>> import undertow as ut
    >>> ut.nn.functional.fold(ut.ones(1, 4, 2), (2, 3), (2, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    op = "fold"
    if input.ndim not in (2, 3):
        raise ShapeError(f"[{op}] expects (N, C·kH·kW, L) or (C·kH·kW, L), got shape {input.shape}")
    if input.dtype is dtypes.bool:
        raise DTypeError(f"[{op}] is not defined for bool tensors; convert them with .to(ut.int64)")
    geometry = _geometry(
        op,
        per_dim(op, "output_size", output_size, 2, 1),
        frozen(kernel_size),
        frozen(dilation),
        frozen(padding),
        frozen(stride),
    )
    rows, windows = input.shape[-2:]
    taps, count = math.prod(geometry.kernel), math.prod(geometry.output)
    if rows % taps or windows != count:
        raise ShapeError(
            f"[{op}] an output of size {geometry.size} has {count} windows of {geometry.kernel}, "
            f"so the input must be (…, C·{taps}, {count}), got shape {input.shape}"
        )
    x = input if input.ndim == 3 else input.unsqueeze(0)
    if x.dtype.itemsize == 2 and x.is_floating_point():
        x = cast(x, dtypes.float32)
    out = cast(apply(_fold, (x,), (geometry,)), input.dtype)
    return out if input.ndim == 3 else out.squeeze(0)
