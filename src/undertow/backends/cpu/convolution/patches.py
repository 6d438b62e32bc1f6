"""Convolutions whose stride is the kernel: one matrix product each way, and one copy.

Note [patches]
Windows that do not overlap cut the input into patches of (channels × taps) elements, each of them
seen once. With those of an image as the rows of a matrix,
  - results are (outputs × elements) @ (elements × patches);
  - the gradient of the weight is the sum over images of (outputs × patches) @ (patches × elements);
  - the gradient of the input, a convolution whose input is dilated by the kernel, is (patches ×
    channels) @ (channels × elements), with the taps in reverse, copied to where patches belong.
Few taps along a line are faster without the copy; see Note [phases] in cook_toom_forms.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....kernel.windows import Geometry
from ...base import Backend, Shape
from ...memory import empty
from ..products.gemm import gemm
from ..products.gemm_micro import RELU

RUN = 8  # taps along a line, which are copied together: with fewer, windows and phases are faster
LEAST = 16  # rows, columns and terms of a product


def run_patches(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool
) -> bool | None:
    """Write a convolution into `out`; whether `relu` is part of it, or None if it is not for this.

    Inputs are floats of 32 or 64 bits, and not empty.
    """
    found = patches_of(x, w, geometry)
    if found is None:
        return None
    run, patches, taps = found
    return run(out, x, w, bias, patches, taps, backend, relu)


def patches_of(
    x: Any, w: Any, geometry: Geometry
) -> tuple[Callable[..., bool], Shape, Shape] | None:
    """How to convolve by patches, how many there are and of how many taps; None if not at all."""
    g, ones = geometry, (1,) * len(geometry.size)
    low = tuple([pair[0] for pair in g.padding])
    if g.stride == g.kernel and g.input_dilation == g.dilation == ones:
        run, patches, taps, begins, size = _results, g.output, g.kernel, (0,) * len(low), g.size
        terms = x.shape[2] * math.prod(taps), w.shape[1]
    elif g.dilation == g.output and g.input_dilation == g.stride == ones:
        run, patches, taps, begins, size = _weight, g.kernel, g.output, (0,) * len(low), g.size
        terms = x.shape[0] * math.prod(taps), w.shape[1]
    elif g.input_dilation == g.kernel and g.stride == g.dilation == ones:
        run, patches, taps, size = _input, g.size, g.kernel, g.output
        begins, terms = tuple([k - 1 for k in taps]), (w.shape[1] * math.prod(taps), x.shape[2])
    else:
        return None
    room = all(p * k <= n for p, k, n in zip(patches, taps, size, strict=True))
    if taps[-1] < RUN or low != begins or not room:
        return None
    if min(*terms, math.prod(patches)) < LEAST:
        return None
    return run, patches, taps


def _results(
    out: Any, x: Any, w: Any, bias: Any, patches: Shape, taps: Shape, backend: Backend, relu: bool
) -> bool:
    n, groups = x.shape[:2]
    right = _matrix(x, patches, taps, (0, 1), 2, backend).swapaxes(-1, -2)
    left = _copied(w, backend).reshape(groups, w.shape[1], -1)
    target = out if out.flags.c_contiguous else empty(out.shape, out.dtype)
    rows = bias is not None and groups == 1
    last = relu and (rows or bias is None)
    gemm(
        left,
        right,
        target.reshape(n, groups, w.shape[1], -1),
        bias.reshape(-1, 1) if rows else None,
        activation=RELU if last else None,
    )
    if target is not out:
        backend.assign(out, target)
    _add(out, None if rows else bias)
    return last


def _weight(
    out: Any, x: Any, w: Any, bias: Any, patches: Shape, taps: Shape, backend: Backend, relu: bool
) -> bool:
    channels, groups, images = x.shape[:3]
    outputs, rank = w.shape[1], len(taps)
    right = _matrix(x, patches, taps, (2, 1), 0, backend)
    left = _copied(w, backend).reshape(groups, outputs, images, -1).transpose(2, 0, 1, 3)
    made = empty((groups, outputs, right.shape[-1]), out.dtype)
    gemm(left, right, made, summed=True)
    made = made.reshape(groups, outputs, channels, *taps)
    backend.assign(out, made.transpose(2, 0, 1, *range(3, 3 + rank)))
    _add(out, bias)
    return False


def _input(
    out: Any, x: Any, w: Any, bias: Any, patches: Shape, taps: Shape, backend: Backend, relu: bool
) -> bool:
    n, groups, channels = x.shape[:3]
    wanted, rank = w.shape[1], len(taps)
    left = _copied(x, backend).reshape(n, groups, channels, -1).swapaxes(-1, -2)
    turned = w.swapaxes(1, 2)[(..., *(slice(None, None, -1),) * rank)]
    right = backend.copy(turned).reshape(groups, channels, -1)
    made = empty((n, groups, left.shape[-2], right.shape[-1]), out.dtype)
    gemm(left, right, made)
    covered = [p * k for p, k in zip(patches, taps, strict=True)]
    if list(out.shape[3:]) != covered:
        backend.assign(out, np.zeros((), out.dtype))
    places = _split(out, patches, taps)
    order = _order(rank, (0, 1), 2)
    shaped = made.reshape(n, groups, *patches, wanted, *taps)
    backend.assign(places.transpose(order), shaped)
    _add(out, bias)
    return False


def _add(out: Any, bias: Any) -> None:
    if bias is not None:
        out += bias.reshape(*bias.shape, *(1,) * (out.ndim - 3))


def _copied(x: Any, backend: Backend) -> Any:
    """`x`, in one piece."""
    return x if x.flags.c_contiguous else backend.copy(x)


def _split(x: Any, patches: Shape, taps: Shape) -> Any:
    """A view with each spatial dimension as patches and taps."""
    pairs = list(zip(patches, taps, strict=True))
    within = x[(..., *[slice(p * k) for p, k in pairs])]
    shape = [size for pair in pairs for size in pair]
    strides = [
        s for step, (_, k) in zip(x.strides[3:], pairs, strict=True) for s in (step * k, step)
    ]
    return np.lib.stride_tricks.as_strided(
        within, (*x.shape[:3], *shape), (*x.strides[:3], *strides)
    )


def _order(rank: int, outer: Sequence[int], channels: int) -> list[int]:
    """The dimensions of a split array: `outer`, patches, channels, taps."""
    spatial = range(3, 3 + 2 * rank)
    return [*outer, *spatial[::2], channels, *spatial[1::2]]


def _matrix(
    x: Any, patches: Shape, taps: Shape, outer: Sequence[int], channels: int, backend: Backend
) -> Any:
    """(images, groups, patches, elements of one), laid out."""
    split = _split(x, patches, taps).transpose(_order(len(taps), outer, channels))
    made = backend.copy(split)
    return made.reshape(*made.shape[:2], math.prod(patches), -1)
