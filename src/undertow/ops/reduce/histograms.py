"""Histograms of values, and of points in several dimensions, between edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import dtypes
from ...core.foreign import INTEGERS
from ...core.modes import no_grad
from ...core.printing import in_lines
from ...core.register import FUNCTIONS, function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError


class Histogram(NamedTuple):
    """What `histogram` returns."""

    hist: Tensor
    bin_edges: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class Histograms(NamedTuple):
    """What `histogramdd` returns: the edges of each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]

    def __repr__(self) -> str:
        return in_lines(self)


def _edges(op: str, x: Tensor, bins: Any, limits: Sequence[float] | None) -> Tensor:
    """The edges of the bins of one coordinate: as given, or evenly spaced."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or not bins.numel():
            raise ShapeError(f"[{op}] bins must be a row of edges, got shape {bins.shape}")
        if bins.dtype is not x.dtype:
            raise DTypeError(f"[{op}] edges are {bins.dtype} and the input {x.dtype}; convert one")
        if limits is not None:
            raise ArgumentError(f"[{op}] range is for a number of bins, not for edges")
        return bins.detach()
    if not isinstance(bins, INTEGERS) or bins < 1:
        raise ArgumentError(f"[{op}] bins must be at least 1, got {bins!r}")
    if limits is not None:
        low, high = (float(v) for v in limits)
    elif x.numel():
        low, high = (float(v) for v in x.aminmax())
    else:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ArgumentError(f"[{op}] the range of bins must be finite, got {low} to {high}")
    if low > high:
        raise ArgumentError(f"[{op}] the range of bins begins at {low} and ends before, at {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    made: Tensor = FUNCTIONS["linspace"](low, high, bins + 1, dtype=x.dtype, device=x.device)
    return made


def _counted(
    op: str, points: Tensor, edges: list[Tensor], weight: Tensor | None, density: bool
) -> Tensor:
    """How many points, or what weight of them, lie in each box; the last edge counts in."""
    shape = tuple(e.numel() - 1 for e in edges)
    with no_grad():
        place = points.new_zeros((points.shape[0],), dtype=dtypes.int64)
        inside = place == (0 if edges else 1)  # without coordinates in no box, as in torch
        for i, (size, edge) in enumerate(zip(shape, edges, strict=True)):
            x = points[:, i].contiguous()
            at = FUNCTIONS["searchsorted"](edge.contiguous(), x, right=True) - 1
            at = at.where(x != edge[-1], at * 0 + size - 1)
            # A NaN lies beyond the last edge, and in no bin.
            inside = inside & (x >= edge[0]) & (x <= edge[-1])
            place = place * size + at
        place = place[inside]
    if weight is None:
        weight = points.new_ones((points.shape[0],))
    elif weight.shape != (points.shape[0],):
        raise ShapeError(f"[{op}] needs one weight for each point, got {tuple(weight.shape)}")
    elif weight.dtype is not points.dtype:
        raise DTypeError(f"[{op}] weights are {weight.dtype} and the input {points.dtype}")
    hist = weight.new_zeros((math.prod(shape),)).scatter_add(0, place, weight[inside])
    hist = hist.reshape(shape)
    if density:
        hist = hist / hist.sum()
        for i, edge in enumerate(edges):
            hist = hist / edge.diff().reshape((-1,) + (1,) * (len(edges) - 1 - i))
    return hist


@function()
def histogram(
    input: Tensor,
    bins: Tensor | int,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """How many elements lie between each two edges, or the sum of their weights.

    `bins` is a number of bins of one size, in the range of the elements unless `range` gives one,
    or the edges. With `density`, divided by the total and by each bin's width. Differentiable in
    the weights, unlike torch's.

    >>> import undertow as ut
    >>> ut.histogram(ut.tensor([1.0, 2.0, 1.0]), 3, range=(0.0, 3.0)).hist
    tensor([0., 2., 1.])
    """
    if not input.is_floating_point():
        raise DTypeError(f"[histogram] needs floating numbers, got {input.dtype}")
    x = input.detach().reshape(-1)
    edges = _edges("histogram", x, bins, range)
    if weight is not None:
        if weight.shape != input.shape:
            raise ShapeError(
                f"[histogram] weight of shape {weight.shape} does not fit input of shape "
                f"{input.shape}"
            )
        weight = weight.reshape(-1)
    hist = _counted("histogram", x.unsqueeze(1), [edges], weight, density)
    return Histogram(hist, edges.clone() if isinstance(bins, Tensor) else edges)


@function(method=False)
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histograms:
    """How many points, whose coordinates are the last dimension, lie in each box of a grid.

    `bins` is a number of bins, one for each coordinate, or edges for each; `range` has two numbers
    for each coordinate. See `histogram`.

    >>> import undertow as ut
    >>> ut.histogramdd(ut.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), 2).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    if not input.is_floating_point():
        raise DTypeError(f"[histogramdd] needs floating numbers, got {input.dtype}")
    if input.ndim < 2:
        raise ShapeError(f"[histogramdd] needs points in rows, got shape {input.shape}")
    count = input.shape[-1]
    several = list(bins) if isinstance(bins, (list, tuple)) else [bins] * count
    if len(several) != count:
        raise ArgumentError(f"[histogramdd] needs {count} numbers of bins, got {len(several)}")
    if range is not None and len(range) != 2 * count:
        raise ArgumentError(
            f"[histogramdd] needs {2 * count} numbers in range, two for each coordinate, got "
            f"{len(range)}"
        )
    points = input.detach().reshape(math.prod(input.shape[:-1]), count)
    edges = [
        _edges("histogramdd", points[:, i], b, None if range is None else range[2 * i : 2 * i + 2])
        for i, b in enumerate(several)
    ]
    if weight is not None:
        if weight.shape != input.shape[:-1]:
            raise ShapeError(
                f"[histogramdd] weight of shape {weight.shape} does not fit points of shape "
                f"{input.shape[:-1]}"
            )
        weight = weight.reshape(-1)
    hist = _counted("histogramdd", points, edges, weight, density)
    return Histograms(hist, tuple(edges))
