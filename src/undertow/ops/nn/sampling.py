"""Sampling images at given points: grid_sample and affine_grid.

Note [grid_sample]
A point's coordinates become pixel positions, the positions are put back into the image by the
padding mode, and the value is a sum over neighbouring pixels: for every neighbour one gather of the
flattened image times a product of one weight per dimension. The derivative by the image is that of
gather, the derivative by the grid that of the weights, and so to any order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ... import dtypes
from ...backends.registry import backend_of
from ...core.dispatch import apply, cast
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated, wrap
from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...shapes import as_shape
from ..elementwise.comparison import where
from ..shape.joining import stack
from ..shape.movement import reshape

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")

# Which pixel is nearest does not change with a small move of the point: its gradient is zeros.
_unmoved = Op(
    "nearest_pixel",
    lambda k, x, grid: k.copy(x),
    inputs="x grid",
    vjp={"x": lambda g: g, "grid": lambda g, grid_shape: g.new_zeros(grid_shape)},
)


@function(top=False, method=False, functional=True)
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of images (N, C, H, W) or volumes (N, C, D, H, W) at the points of `grid`.

    `grid` is (N, …, 2) or (N, …, 3) with x first, from -1 to 1 across the image: across the centres
    of the corner pixels with `align_corners`, else across their outer edges (the default). Points
    outside see zeros, the border, or the image reflected at it.

    >>> import undertow as ut
    >>> image = ut.tensor([[[[1.0, 3.0]]]])
    >>> points = ut.tensor([[[[-1.0, 0.0], [0.0, 0.0]]]])
    >>> ut.nn.functional.grid_sample(image, points, align_corners=True)
    tensor([[[[1., 2.]]]])
    """
    op = "grid_sample"
    if mode not in _MODES:
        raise ArgumentError(f"[{op}] mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if padding_mode not in _PADDINGS:
        raise ArgumentError(
            f"[{op}] padding_mode must be one of {', '.join(_PADDINGS)}, got {padding_mode!r}"
        )
    _check_grid(op, input, grid, mode)
    sizes = input.shape[2:]
    points = math.prod(grid.shape[1:-1])
    batch, channels = input.shape[:2]
    image = input.reshape(batch, channels, math.prod(sizes))
    corners = bool(align_corners)
    taps = [  # for each dimension, the outermost first: the neighbours' positions and weights
        _taps(position, size, mode, padding_mode, corners)
        for position, size in zip(
            reversed(grid.reshape(batch, 1, points, len(sizes)).unbind(-1)), sizes, strict=True
        )
    ]
    total: Tensor | None = None
    for neighbour in itertools.product(*taps):
        flat, weight, inside = neighbour[0]
        for (position, share, within), size in zip(neighbour[1:], sizes[1:], strict=True):
            flat = flat * size + position
            weight = None if share is None or weight is None else weight * share
            inside = None if within is None or inside is None else inside & within
        value = image.gather(2, flat.expand(batch, channels, points))
        value = value if inside is None else where(inside, value, 0)
        value = value if weight is None else value * weight
        total = value if total is None else total + value
    assert total is not None
    found = reshape(total, (batch, channels, *grid.shape[1:-1]))
    return apply(_unmoved, (found, grid)) if mode == "nearest" and differentiated(grid) else found


def _check_grid(op: str, input: Tensor, grid: Tensor, mode: str) -> None:
    spatial = input.ndim - 2
    if spatial not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != spatial:
        raise ShapeError(
            f"[{op}] expects an input (N, C, H, W) with a grid (N, H', W', 2), or (N, C, D, H, W) "
            f"with (N, D', H', W', 3); got {input.shape} and {grid.shape}"
        )
    if input.shape[0] != grid.shape[0]:
        raise ShapeError(
            f"[{op}] input and grid need one batch size, got {input.shape[0]} and {grid.shape[0]}"
        )
    if 0 in input.shape[2:]:
        raise ShapeError(f"[{op}] the image is empty: {input.shape}")
    if mode == "bicubic" and spatial == 3:
        raise UnsupportedError(f"[{op}] bicubic sampling is for images (N, C, H, W) only")
    if input.dtype is not grid.dtype or not input.is_floating_point():
        raise DTypeError(
            f"[{op}] input and grid need one floating dtype, got {input.dtype} and {grid.dtype}"
        )


def _taps(
    coordinate: Tensor, size: int, mode: str, padding: str, corners: bool
) -> list[tuple[Tensor, Tensor | None, Tensor | None]]:
    """The neighbours of points along one dimension: their positions, weights, whether they exist.

    A neighbour outside the image counts as 0, and its position is some one inside. A weight of
    None is 1, and None for whether they exist means that all do.
    """
    position = _position(coordinate, size, corners)
    if mode != "bicubic":
        position = _padded(position, size, padding, corners)
    if mode == "nearest":
        return [_inside(position.detach().round(), None, size, padding)]
    low = position.detach().floor()
    t = position - low
    if mode == "bilinear":
        return [_inside(low, 1 - t, size, padding), _inside(low + 1, t, size, padding)]
    return [
        _inside(_padded(low + (i - 1), size, padding, corners), share, size, padding)
        for i, share in enumerate(_cubic(t))
    ]


def _position(coordinate: Tensor, size: int, corners: bool) -> Tensor:
    """From -1 … 1 to pixels, of which the first is at 0."""
    if corners:
        return (coordinate + 1) * ((size - 1) / 2)
    return ((coordinate + 1) * size - 1) / 2


def _cubic(t: Tensor, a: float = -0.75) -> list[Tensor]:
    """The weights of the pixels at -1, 0, 1 and 2 for a point at 0 <= t < 1 (Keys' convolution)."""

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((x - 5) * x + 8) * x * a - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _padded(position: Tensor, size: int, padding: str, corners: bool) -> Tensor:
    """Positions put back into the image, with slope 0 where they were cut off."""
    if padding == "zeros":
        return position
    if padding == "reflection":
        low, span = (0.0, float(size - 1)) if corners else (-0.5, float(size))
        if span == 0:
            return position * 0
        offset = (position - low).abs()
        turns = (offset.detach() / span).floor()
        rest = offset - turns * span
        position = where(turns % 2 == 0, rest + low, span - rest + low)
    last = size - 1
    clipped: Tensor = where(position > 0, where(position < last, position, last), 0)
    return clipped


def _inside(
    position: Tensor, weight: Tensor | None, size: int, padding: str
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """A neighbour as an index that exists; see `_taps`."""
    inside = (position >= 0) & (position < size)
    index = cast(where(inside, position, 0), dtypes.int64)
    if weight is None and padding != "zeros":
        return index, None, None
    return index, weight if weight is None else where(inside, weight, 0), inside


@function(top=False, method=False, functional=True)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` that maps an output of `size` through affine matrices.

    `theta` is (N, 2, 3) for sizes (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W).

    >>> import undertow as ut
    >>> theta = ut.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> ut.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    op = "affine_grid"
    shape = as_shape(op, size)
    spatial = len(shape) - 2
    if not theta.is_floating_point():
        raise DTypeError(f"[{op}] theta must be floating, got {theta.dtype}")
    if spatial not in (2, 3):
        raise UnsupportedError(f"[{op}] size must be (N, C, H, W) or (N, C, D, H, W), got {shape}")
    if theta.shape != (shape[0], spatial, spatial + 1):
        raise ShapeError(
            f"[{op}] size {shape} needs theta of shape {(shape[0], spatial, spatial + 1)}, "
            f"got {theta.shape}"
        )
    if 0 in shape:
        raise ShapeError(f"[{op}] size must be positive, got {shape}")
    sizes = shape[2:]
    axes = [_axis(theta, n, bool(align_corners)) for n in sizes]
    base = []
    for d in reversed(range(spatial)):  # x first
        axis = axes[d].reshape([-1 if i == d else 1 for i in range(spatial)])
        base.append(axis.expand(sizes))
    base.append(theta.new_ones(sizes))
    points = stack(base, -1).reshape(1, math.prod(sizes), spatial + 1)
    return reshape(points.matmul(theta.transpose(1, 2)), (shape[0], *sizes, spatial))


def _axis(like: Tensor, count: int, corners: bool) -> Tensor:
    """Positions from -1 to 1 of the centres of `count` pixels; a single one is at 0."""
    array = like._array
    k = backend_of(array)
    if count == 1:
        return wrap(k.full((1,), 0, array.dtype))
    step, edge = (2 / (count - 1), 1.0) if corners else (2 / count, 1 - 1 / count)
    return wrap(k.arange(-edge, step, count, array.dtype))
