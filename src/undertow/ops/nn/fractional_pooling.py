"""Fractional max pooling: windows at random, pseudo-regular places that cover the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...core.dispatch import cast
from ...core.modes import no_grad
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import Ints, Shape, per_dim
from ..create.creation import arange, full
from ..random.random import rand
from ..shape.joining import cat
from ..shape.movement import reshaped
from .pooling import check_planes, pick


def _target(op: str, size: Shape, output_size: Any, output_ratio: Any) -> Shape:
    """How many windows there are along each dimension."""
    rank = len(size)
    if output_size is not None:
        return per_dim(op, "output_size", output_size, rank)
    if output_ratio is None:
        raise ArgumentError(f"[{op}] needs output_size or output_ratio")
    ratios = output_ratio if isinstance(output_ratio, Sequence) else (output_ratio,) * rank
    if len(ratios) != rank or not all(0 < r < 1 for r in ratios):
        raise ArgumentError(
            f"[{op}] output_ratio must be a number between 0 and 1, or {rank} of them, got "
            f"{output_ratio!r}"
        )
    return tuple([int(n * r) for n, r in zip(size, ratios, strict=True)])


def _starts(samples: Tensor, size: int, count: int, kernel: int) -> Tensor:
    """The first elements of the windows along a dimension, (…, count), from samples (…).

    Steps of two sizes in an order that the sample shifts; the last window ends with the dimension.
    """
    device = samples.device
    last = full((*samples.shape, 1), size - kernel, dtype=dtypes.int64, device=device)
    if count < 2:
        return last[..., :count]
    step = (size - kernel) / (count - 1)
    shift = samples.unsqueeze(-1)
    every = (arange(count - 1, dtype=samples.dtype, device=device) + shift) * step
    first = cast(every, dtypes.int64) - cast(shift * step, dtypes.int64)
    return cat((first, last), -1)


def _positions(samples: Tensor, size: Shape, target: Shape, kernel: Shape) -> Tensor:
    """The elements of all windows, (…, windows, elements), counted over all dimensions."""
    rank = len(size)
    found: Any = 0
    for d in range(rank):
        # In torch the samples of images are for the width first, those of volumes for the depth.
        own = samples[..., rank - 1 - d if rank == 2 else d]
        starts = _starts(own, size[d], target[d], kernel[d])
        covered = starts.unsqueeze(-1) + arange(kernel[d], device=samples.device)
        before, between, after = d, rank - 1, rank - 1 - d
        shape = (*own.shape, *(1,) * before, target[d], *(1,) * between, kernel[d], *(1,) * after)
        found = found * size[d] + reshaped(covered, shape)
    return reshaped(found, (*samples.shape[:-1], math.prod(target), math.prod(kernel)))


def _fractional(
    op: str,
    rank: int,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Tensor | None,
) -> Any:
    check_planes(op, input, rank)
    size = input.shape[-rank:]
    kernel = per_dim(op, "kernel_size", kernel_size, rank, 1)
    target = _target(op, size, output_size, output_ratio)
    for n, width, count in zip(size, kernel, target, strict=True):
        if count + width - 1 > n:
            raise ShapeError(
                f"[{op}] {target} windows of {kernel} do not fit into an input of size {size}: "
                "along each dimension there can be at most size - kernel + 1"
            )
    lead = input.shape[:-rank]
    expected = (*((1,) if len(lead) == 1 else ()), *lead, rank)
    if samples is None:
        samples = rand(expected, dtype=input.dtype, device=input.device)
    elif samples.shape != expected:
        raise ShapeError(f"[{op}] _random_samples must be {expected}, got {samples.shape}")
    elif samples.dtype is not input.dtype:
        raise DTypeError(
            f"[{op}] _random_samples must be {input.dtype} like the input, got {samples.dtype}"
        )
    with no_grad():
        drawn = reshaped(samples.detach(), (*lead, rank))
        if drawn.dtype.itemsize == 2:
            drawn = cast(drawn, dtypes.float32)
        places = _positions(drawn, size, target, kernel)
        flat = reshaped(input.detach(), (*lead, math.prod(size)))
        seen = flat.gather(-1, reshaped(places, (*lead, math.prod(places.shape[len(lead) :]))))
        best = reshaped(seen, places.shape).argmax(-1, keepdim=True)
        found = reshaped(places.gather(-1, best), (*lead, *target))
    values = pick(input, found, rank)
    return (values, found) if return_indices else values


@function(top=False, method=False, functional=True)
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows at random places of images (N, C, H, W) or (C, H, W).

    There are `output_size` windows along each dimension, or `output_ratio` of its elements. Their
    distances differ by at most one, and which is where `_random_samples` (N, C, 2) in [0, 1) tell,
    which are drawn unless given (Graham, Fractional Max-Pooling). The indices are as in
    `max_pool2d`.

    >>> import undertow as ut
    >>> x = ut.arange(25.0).reshape(1, 5, 5)
    >>> samples = ut.full((1, 1, 2), 0.5)
    >>> ut.nn.functional.fractional_max_pool2d(x, 2, output_size=3, _random_samples=samples)
    tensor([[[ 6.,  8.,  9.],
             [16., 18., 19.],
             [21., 23., 24.]]])
    """
    return _fractional(
        "fractional_max_pool2d",
        2,
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
    )


@function(top=False, method=False, functional=True)
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows at random places of volumes; see `fractional_max_pool2d`.

    >>> import undertow as ut
    >>> x = ut.rand(2, 3, 8, 8, 8)
    >>> ut.nn.functional.fractional_max_pool3d(x, 2, output_ratio=0.5).shape
    (2, 3, 4, 4, 4)
    """
    return _fractional(
        "fractional_max_pool3d",
        3,
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
    )
