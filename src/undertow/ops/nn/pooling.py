"""Pooling: the largest element, the mean or the norm of windows, and what undoes it.

Note [pooling]
A maximum keeps where it was found, so that its derivative reads and writes at those places: `pick`
and `unpick`, an adjoint pair. Sums of windows are a convolution with ones and transposed into
themselves, with the geometry of Note [convolution geometry]. A mean divides the sums by how many
elements a window counts. The high padding is what ends the last window, whatever the rounding.
One window that is everything is a reduction, whose kernels are for just that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...core.dispatch import apply, cast, table
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel import tables
from ...kernel.expr import call, trace
from ...kernel.windows import Geometry
from ...shapes import Ints, Shape, frozen, per_dim
from ..elementwise.comparison import where
from ..shape.movement import reshaped


# Primitives ----------------------------------------------------------------------------------
def _flat(k: Forms, x: Array, rank: int) -> Any:
    """The last `rank` dimensions made one."""
    lead = x.shape[: len(x.shape) - rank]
    shape = (*lead, math.prod(x.shape[len(lead) :]))
    view = k.reshape(x, shape)
    return k.reshape(k.copy(x), shape) if view is None else view


def _pick_forward(k: Forms, x: Array, index: Array, rank: int) -> Any:
    index_, lead = _flat(k, index, rank), len(x.shape) - rank
    return k.reshape(k.gather(_flat(k, x, rank), lead, index_), index.shape)


def unpicked(k: Forms, x: Array, index: Array, rank: int, shape: Shape) -> Any:
    # Not a view of what is written to: a leaf keeps an array as its gradient only if it is none.
    out = k.full(shape, 0, x.dtype)
    lead = len(shape) - rank
    k.scatter("add", _flat(k, out, rank), lead, _flat(k, index, rank), _flat(k, x, rank), True)
    return out


_pick = Op(
    "pool_pick",
    _pick_forward,
    inputs="x index",
    params="rank",
    vjp={"x": lambda g, index, rank, x_shape: apply(_unpick, (g, index), (rank, x_shape))},
)
_unpick: Op = Op(
    "pool_unpick",
    unpicked,
    inputs="x index",
    params="rank shape",
    vjp={"x": lambda g, index, rank: apply(_pick, (g, index), (rank,))},
)


_IS_NAN = trace(lambda x: call("isnan", x), 1)


def _max_forward(k: Forms, x: Array, geometry: Geometry) -> Any:
    rank = len(geometry.size)
    if not _everything(geometry) or not x.size:
        return k.window("max", x, geometry.kernel, *geometry.steps)
    flat = _flat(k, x, rank)
    shape = (*flat.shape[:-1], *(1,) * rank)
    values, places = k.reduce("first_max", flat, (len(shape) - rank,), True)
    whole = k.whole(values)
    every = tuple(range(len(whole.shape)))
    if values.dtype.kind not in "iu" and k.base.to_host(
        k.base.map_reduce("any", _IS_NAN, (whole,), every, False, dtypes.bool.numpy)
    ):
        return k.window("max", x, geometry.kernel, *geometry.steps)  # of several NaN, the last one
    return k.reshape(values, shape), k.reshape(places, shape)


def _everything(geometry: Geometry) -> bool:
    """Whether there is one window, and it is the whole."""
    ones = (1,) * len(geometry.size)
    steps = (((0, 0),) * len(ones), ones, ones)
    return geometry.kernel == geometry.size and geometry.steps[1:] == steps


_max_pool = Op(
    "max_pool",
    _max_forward,
    inputs="x",
    params="geometry",
    outputs=2,
    differentiable=1,
    vjp={
        "x": lambda g, out1, geometry, x_shape: apply(
            _unpick, (g, out1), (len(geometry.kernel), x_shape)
        )
    },
    bare={
        "x": lambda k, g, out1, geometry, x_shape: unpicked(
            k, g, out1, len(geometry.kernel), x_shape
        )
    },
)


def _sum_forward(k: Forms, x: Array, geometry: Geometry, divisor: float) -> Any:
    return k.window("sum", x, geometry.kernel, *geometry.steps, divisor)


_sum_pool: Op = Op(
    "sum_pool",
    _sum_forward,
    inputs="x",
    params="geometry divisor",
    vjp={"x": lambda g, geometry, divisor: apply(_sum_pool, (g,), (geometry.of_input, divisor))},
    bare={"x": lambda k, g, geometry, divisor: _sum_forward(k, g, geometry.of_input, divisor)},
)


def pick(x: Tensor, index: Tensor, rank: int) -> Tensor:
    """The elements of `x` at positions in its last `rank` dimensions, flattened."""
    return apply(_pick, (x, index), (rank,))


def unpick(x: Tensor, index: Tensor, rank: int, shape: Shape) -> Tensor:
    """Zeros of a shape with the elements of `x` added at those positions."""
    return apply(_unpick, (x, index), (rank, shape))


def largest(x: Tensor, geometry: Geometry) -> tuple[Tensor, Tensor]:
    """The largest element of each window over the last dimensions, and where it is in them.

    The places have the dtype that is best for reading and writing there; see `indices`.
    """
    return apply(_max_pool, (x,), (geometry,))


def indices(places: Tensor) -> Tensor:
    """Places as they are given to the caller."""
    return cast(places, dtypes.int64)


def window_sums(x: Tensor, geometry: Geometry, divisor: float = 1.0) -> Tensor:
    """The sum of each window over the last dimensions, divided."""
    if _everything(geometry):
        total = x.sum(tuple(range(x.ndim - len(geometry.size), x.ndim)), keepdim=True)
        return total if divisor == 1 else total / divisor
    return apply(_sum_pool, (x,), (geometry, float(divisor)))


# Arguments -----------------------------------------------------------------------------------
def check_planes(op: str, x: Tensor, rank: int, floating: bool = True) -> None:
    """Raise unless `x` is (N, C, …) or (C, …) with something in every plane."""
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            f"[{op}] expects (N, C, …) or (C, …) of {rank + 2} or {rank + 1} dimensions, got "
            f"shape {x.shape}"
        )
    if 0 in x.shape[-rank:]:
        raise ShapeError(f"[{op}] there is nothing to pool in an input of shape {x.shape}")
    if not x.is_floating_point() and (floating or x.dtype is dtypes.bool or x.is_complex()):
        raise DTypeError(
            f"[{op}] expects a floating tensor, got {x.dtype}; convert it with .to(ut.float32)"
        )


@functools.lru_cache(maxsize=1024)
def _geometry(
    op: str,
    size: Shape,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Geometry:
    rank = len(size)
    kernel = per_dim(op, "kernel_size", kernel_size, rank, 1)
    steps = kernel if stride in (None, ()) else per_dim(op, "stride", stride, rank, 1)
    pads = per_dim(op, "padding", padding, rank)
    gaps = per_dim(op, "dilation", dilation, rank, 1)
    for pad, width in zip(pads, kernel, strict=True):
        if pad > width // 2:
            raise ArgumentError(
                f"[{op}] padding must be at most half of kernel_size, got {padding!r} and "
                f"{kernel_size!r}"
            )
    plain = Geometry(size, kernel, steps, tuple((p, p) for p in pads), (1,) * rank, gaps)
    pairs = []
    for n, extent, step, pad in zip(size, plain.extent, steps, pads, strict=True):
        rest = n + 2 * pad - extent
        count = (-(-rest // step) if ceil_mode else rest // step) + 1
        if ceil_mode and (count - 1) * step >= n + pad:  # it would begin in the padding
            count -= 1
        if count < 1:
            raise ShapeError(
                f"[{op}] windows of {plain.extent} do not fit into an input of size {size} with "
                f"padding {pads}"
            )
        pairs.append((pad, (count - 1) * step + extent - n - pad))
    return plain._replace(padding=tuple(pairs))


# Maximum -------------------------------------------------------------------------------------
def _max(
    op: str,
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    check_planes(op, input, rank, floating=False)
    geometry = _geometry(
        op,
        input.shape[-rank:],
        frozen(kernel_size),
        frozen(stride),
        frozen(padding),
        frozen(dilation),
        bool(ceil_mode),
    )
    values, places = largest(input, geometry)
    return (values, indices(places)) if return_indices else values


@function(method=False, functional=True)
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of signals (N, C, L) or (C, L).

    `stride` is `kernel_size` unless given. `ceil_mode` adds the window that only begins inside.
    With `return_indices`, also where the elements were, of equal ones the first.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0, 5.0, 2.0, 4.0, 3.0]])
    >>> ut.max_pool1d(x, 2, ceil_mode=True)
    tensor([[5., 4., 3.]])
    >>> ut.max_pool1d(x, 3, stride=1, return_indices=True)
    (tensor([[5., 5., 4.]]), tensor([[1, 1, 3]]))
    """
    return _max(
        "max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@function(method=False, functional=True)
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of images (N, C, H, W) or (C, H, W); see `max_pool1d`.

    The indices count the elements of an image row by row.

    >>> import undertow as ut
    >>> ut.max_pool2d(ut.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2, return_indices=True)
    (tensor([[[4.]]]), tensor([[[2]]]))
    """
    return _max(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@function(method=False, functional=True)
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`.

    >>> import undertow as ut
    >>> ut.max_pool3d(ut.arange(8.0).reshape(1, 2, 2, 2), (1, 2, 2))
    tensor([[[[3.]],
    <BLANKLINE>
             [[7.]]]])
    """
    return _max(
        "max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


# Mean ----------------------------------------------------------------------------------------
def _average(
    op: str,
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    check_planes(op, input, rank)
    geometry = _geometry(
        op,
        input.shape[-rank:],
        frozen(kernel_size),
        frozen(stride),
        frozen(padding),
        1,
        bool(ceil_mode),
    )
    if divisor_override == 0:
        raise ArgumentError(f"[{op}] divisor_override must not be 0")
    counts = divisor_override or tables.window_counts(geometry, bool(count_include_pad))
    different = not isinstance(counts, (int, float))
    single = different or _everything(geometry)  # rounded after the division
    wide = cast(input, dtypes.float32) if input.dtype.itemsize == 2 and single else input
    if not different:
        return cast(window_sums(wide, geometry, counts), input.dtype)
    how = (geometry, bool(count_include_pad), wide.dtype.numpy)
    counts = table(input, tables.window_counts_as, *how)
    return cast(window_sums(wide, geometry) / counts, input.dtype)


@function(method=False, functional=True)
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of signals (N, C, L) or (C, L).

    `stride` is `kernel_size` unless given. The padding, which is zero, counts unless
    `count_include_pad` is false; what `ceil_mode` adds beyond it never does.

    >>> import undertow as ut
    >>> x = ut.tensor([[2.0, 4.0, 6.0]])
    >>> ut.avg_pool1d(x, 2, padding=1)
    tensor([[1., 5.]])
    >>> ut.avg_pool1d(x, 2, padding=1, count_include_pad=False)
    tensor([[2., 5.]])
    """
    return _average(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


@function(top=False, method=False, functional=True)
def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of images (N, C, H, W) or (C, H, W); see `avg_pool1d`.

    `divisor_override` divides the sums instead of how many elements a window has.

    >>> import undertow as ut
    >>> ut.nn.functional.avg_pool2d(ut.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2)
    tensor([[[2.5000]]])
    """
    return _average(
        "avg_pool2d",
        2,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


@function(top=False, method=False, functional=True)
def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W); see `avg_pool2d`.

    >>> import undertow as ut
    >>> ut.nn.functional.avg_pool3d(ut.arange(8.0).reshape(1, 2, 2, 2), 2, divisor_override=7)
    tensor([[[[4.]]]])
    """
    return _average(
        "avg_pool3d",
        3,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


# Norm ----------------------------------------------------------------------------------------
def _lp(
    op: str,
    rank: int,
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any,
    ceil_mode: bool,
) -> Tensor:
    if norm_type == 0:
        raise ArgumentError(f"[{op}] norm_type must not be 0")
    if math.isinf(norm_type):
        size = abs(input) if norm_type > 0 else -abs(input)
        top: Tensor = _max(op, rank, size, kernel_size, stride, 0, 1, ceil_mode, False)
        return top if norm_type > 0 else -top
    check_planes(op, input, rank)
    mean = _average(op, rank, input**norm_type, kernel_size, stride, 0, ceil_mode, True, None)
    count = math.prod(per_dim(op, "kernel_size", kernel_size, rank))
    if norm_type == 1:  # a sum, which has a slope everywhere
        total: Tensor = mean * count
        return total
    some = mean != 0  # elsewhere the root has no slope
    root: Tensor = where(some, (where(some, mean, 1) * count) ** (1 / norm_type), 0)
    return root


@function(top=False, method=False, functional=True)
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root `(Σ xᵖ)^(1/p)` of each window of signals (N, C, L) or (C, L), for p = `norm_type`.

    As in torch the elements count with their signs, and a window that `ceil_mode` cuts short counts
    as if it were whole. Where the sum is zero, so is the gradient.

    >>> import undertow as ut
    >>> ut.nn.functional.lp_pool1d(ut.tensor([[3.0, 4.0, 6.0, 8.0]]), 2, 2)
    tensor([[ 5., 10.]])
    """
    return _lp("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@function(top=False, method=False, functional=True)
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root `(Σ xᵖ)^(1/p)` of each window of images (N, C, H, W) or (C, H, W); see `lp_pool1d`.

    >>> import undertow as ut
    >>> ut.nn.functional.lp_pool2d(ut.ones(1, 2, 2), 2, 2)
    tensor([[[2.]]])
    """
    return _lp("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@function(top=False, method=False, functional=True)
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root `(Σ xᵖ)^(1/p)` of each window of (N, C, D, H, W) or (C, D, H, W); see `lp_pool1d`.

    >>> import undertow as ut
    >>> ut.nn.functional.lp_pool3d(ut.ones(1, 2, 2, 2), 3, 2)
    tensor([[[[2.]]]])
    """
    return _lp("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


# Unpooling -----------------------------------------------------------------------------------
def _unpool(
    op: str,
    rank: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Tensor:
    check_planes(op, input, rank)
    if indices.dtype is not dtypes.int64:
        raise DTypeError(f"[{op}] indices must be int64, got {indices.dtype}")
    if indices.shape != input.shape:
        raise ShapeError(
            f"[{op}] input and indices must have one shape, got {input.shape} and {indices.shape}"
        )
    kernel = per_dim(op, "kernel_size", kernel_size, rank, 1)
    steps = kernel if stride in (None, ()) else per_dim(op, "stride", stride, rank, 1)
    pads = per_dim(op, "padding", padding, rank)
    size = tuple(
        [
            (n - 1) * step + width - 2 * pad
            for n, step, width, pad in zip(input.shape[-rank:], steps, kernel, pads, strict=True)
        ]
    )
    if output_size is not None:
        wanted = tuple(output_size)
        if len(wanted) == rank + 2:
            wanted = wanted[2:]
        given = per_dim(op, "output_size", wanted, rank, 1)
        for asked, usual, step in zip(given, size, steps, strict=True):
            if abs(asked - usual) >= step:
                raise ShapeError(
                    f"[{op}] output_size {tuple(output_size)} is not near {size}, the size that "
                    f"was pooled: it may differ by less than the stride {steps}"
                )
        size = given
    if min(size) < 1:
        raise ShapeError(f"[{op}] the output would have size {size}")
    lead = input.shape[:-rank]
    line = (*lead, math.prod(input.shape[-rank:]))
    zeros = input.new_zeros((*lead, math.prod(size)))
    out = zeros.scatter(-1, reshaped(indices, line), reshaped(input, line))
    return reshaped(out, (*lead, *size))


@function(top=False, method=False, functional=True)
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `input` at the places where `max_pool1d` found it.

    The arguments are those of the pooling. Where several sizes pool to the same, `output_size`
    tells which one it was. Of several elements for one place the last stays.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0, 5.0, 2.0, 4.0]])
    >>> ut.nn.functional.max_unpool1d(*ut.max_pool1d(x, 2, return_indices=True), 2)
    tensor([[0., 5., 0., 4.]])
    """
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@function(top=False, method=False, functional=True)
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `input` at the places where `max_pool2d` found it; see `max_unpool1d`.

    >>> import undertow as ut
    >>> ut.nn.functional.max_unpool2d(ut.tensor([[[7.0]]]), ut.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [7., 0.]]])
    """
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@function(top=False, method=False, functional=True)
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `input` at the places where `max_pool3d` found it; see `max_unpool1d`.

    >>> import undertow as ut
    >>> x = ut.rand(2, 4, 4, 4)
    >>> ut.nn.functional.max_unpool3d(*ut.max_pool3d(x, 2, return_indices=True), 2).shape
    (2, 4, 4, 4)
    """
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
