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

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base import Backend, Shape
from ...memory import empty
from ..products.gemm import gemm
from ..products.gemm_micro import RELU
from .problem import Arrays, Problem, Way


class Patches(NamedTuple):
    """How an array is cut into patches."""

    run: Callable[..., bool]
    counts: Shape
    taps: Shape
    rows: int  # of the product, and its columns
    columns: int


def patches(p: Problem) -> Patches | None:
    """Those of a convolution; None where windows overlap or leave out elements between them."""
    g, ones, zeros = p.geometry, (1,) * len(p.geometry.size), (0,) * len(p.geometry.size)
    outputs, begins = p.w.shape[1], zeros
    if g.stride == g.kernel and g.input_dilation == g.dilation == ones:
        run, counts, taps, size = _results, g.output, g.kernel, g.size
        rows, columns = p.x.shape[2] * math.prod(taps), outputs
    elif g.dilation == g.output and g.input_dilation == g.stride == ones:
        run, counts, taps, size = _weight, g.kernel, g.output, g.size
        rows, columns = p.x.shape[0] * math.prod(taps), outputs
    elif g.input_dilation == g.kernel and g.stride == g.dilation == ones:
        run, counts, taps, size = _input, g.size, g.kernel, g.output
        rows, columns = outputs * math.prod(taps), p.x.shape[2]
        begins = tuple([k - 1 for k in taps])
    else:
        return None
    room = all(c * k <= n for c, k, n in zip(counts, taps, size, strict=True))
    if not room or tuple([low for low, _ in g.padding]) != begins:
        return None
    return Patches(run, counts, taps, rows, columns)


def plan(p: Problem) -> Way | None:
    """How to compute it so; None if it has no patches."""
    found = patches(p)
    if found is None:
        return None
    run, counts, taps, *_ = found
    single = run is _results and p.x.shape[1] == 1
    last = run is _results and (single or p.bias is None)
    return Way(functools.partial(run, counts, taps, p.relu and last), single, last)


def _results(patches: Shape, taps: Shape, relu: bool, a: Arrays, backend: Backend) -> bool:
    out, x, w, bias = a
    n, groups = x.shape[:2]
    right = _matrix(x, patches, taps, (0, 1), 2, backend).swapaxes(-1, -2)
    left = _copied(w, backend).reshape(groups, w.shape[1], -1)
    target = out if out.flags.c_contiguous else empty(out.shape, out.dtype)
    gemm(
        left,
        right,
        target.reshape(n, groups, w.shape[1], -1),
        None if bias is None else bias.reshape(-1, 1),
        activation=RELU if relu else None,
    )
    if target is not out:
        backend.assign(out, target)
    return True


def _weight(patches: Shape, taps: Shape, relu: bool, a: Arrays, backend: Backend) -> bool:
    out, x, w, _ = a
    channels, groups, images = x.shape[:3]
    outputs, rank = w.shape[1], len(taps)
    right = _matrix(x, patches, taps, (2, 1), 0, backend)
    left = _copied(w, backend).reshape(groups, outputs, images, -1).transpose(2, 0, 1, 3)
    made = empty((groups, outputs, right.shape[-1]), out.dtype)
    gemm(left, right, made, summed=True)
    made = made.reshape(groups, outputs, channels, *taps)
    backend.assign(out, made.transpose(2, 0, 1, *range(3, 3 + rank)))
    return True


def _input(patches: Shape, taps: Shape, relu: bool, a: Arrays, backend: Backend) -> bool:
    out, x, w, _ = a
    n, groups, channels = x.shape[:3]
    wanted, rank = w.shape[1], len(taps)
    left = _copied(x, backend).reshape(n, groups, channels, -1).swapaxes(-1, -2)
    turned = w.swapaxes(1, 2)[(..., *(slice(None, None, -1),) * rank)]
    right = backend.copy(turned).reshape(groups, channels, -1)
    made = empty((n, groups, left.shape[-2], right.shape[-1]), out.dtype)
    gemm(left, right, made)
    covered = [p * k for p, k in zip(patches, taps, strict=True)]
    if list(out.shape[3:]) != covered:
        backend.zero([out])
    places = _split(out, patches, taps)
    order = _order(rank, (0, 1), 2)
    shaped = made.reshape(n, groups, *patches, wanted, *taps)
    backend.assign(places.transpose(order), shaped)
    return True


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
