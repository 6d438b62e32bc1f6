"""Images in another size or arrangement: interpolate, and shuffles of pixels and channels.

Note [interpolate]
Every mode is separable: along one dimension an output element is a sum of a few input elements,
each with a weight, and the dimensions are done one after the other. So interpolation is, for each
dimension, a table of positions and one of weights; its derivatives are those of indexing and
multiplying.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...core.dispatch import cast, table
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...kernel import tables
from ...shapes import Ints, Shape, as_int
from ..index.indexing import index_by
from ..shape.movement import permute, reshape, reshaped_copy
from .adaptive_pooling import adaptive_mean

_RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3, "lanczos": 2}
_MODES = ("nearest", "nearest-exact", "area", *_RANKS)
_SMOOTHED = ("bilinear", "bicubic", "lanczos")  # the modes that have antialias


def resampled(
    x: Tensor, dim: int, how: tuple[Any, ...], weigh: Any = tables.resampled_weights
) -> Tensor:
    """The weighted sum of elements along `dim`; see `tables.resampling`."""
    positions, weights = tables.resampling(*how)
    total: Tensor | None = None
    for tap in range(len(positions)):
        value = index_by(x, (table(x, tables.resampled_positions, tap, *how),), (dim,))
        if weights is not None:
            behind = (x.ndim - 1 - dim, x.dtype.numpy)
            value = value * table(x, weigh, tap, *behind, *how)
        total = value if total is None else total + value
    assert total is not None
    return total


# Arguments -----------------------------------------------------------------------------------
def _each(name: str, value: Any, rank: int) -> tuple[Any, ...]:
    listed = tuple(value) if isinstance(value, Sequence) else (value,) * rank
    if len(listed) != rank:
        raise ArgumentError(
            f"[interpolate] {name} must be a number or {rank} of them, one for each dimension "
            f"after (N, C), got {value!r}"
        )
    return listed


def _target(
    x: Tensor, size: Any, scale_factor: Any, recompute: bool
) -> tuple[Shape, tuple[Any, ...]]:
    """The size of the output, and the factors that place its elements (None: from the sizes)."""
    rank = x.ndim - 2
    if (size is None) == (scale_factor is None):
        given = "neither" if size is None else "both"
        raise ArgumentError(f"[interpolate] takes either size or scale_factor, got {given}")
    if size is not None:
        if recompute:
            raise ArgumentError("[interpolate] recompute_scale_factor has no meaning with a size")
        listed = _each("size", size, rank)
        target = tuple([as_int("interpolate", "size", n) for n in listed])
        factors: tuple[Any, ...] = (None,) * rank
    else:
        factors = tuple(map(float, _each("scale_factor", scale_factor, rank)))
        target = tuple([int(n * f) for n, f in zip(x.shape[2:], factors, strict=True)])
    if min(target) < 1:
        raise ShapeError(
            f"[interpolate] an input of size {x.shape[2:]} would get size {target}; sizes must be "
            "at least 1"
        )
    return target, (None,) * rank if recompute else factors


def _check(x: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in _MODES:
        raise UnsupportedError(f"[interpolate] mode must be one of {_MODES}, got {mode!r}")
    if x.ndim not in (3, 4, 5) or _RANKS.get(mode, x.ndim - 2) != x.ndim - 2:
        wanted = f" of {_RANKS[mode] + 2} dimensions" if mode in _RANKS else ", 3 to 5 dimensions"
        raise UnsupportedError(
            f"[interpolate] mode {mode!r} takes (N, C, …){wanted}, got shape {x.shape}"
        )
    if 0 in x.shape[2:]:
        raise ShapeError(f"[interpolate] there is nothing to resize in shape {x.shape}")
    if align_corners is not None and mode not in _RANKS:
        raise ArgumentError(f"[interpolate] mode {mode!r} takes no align_corners")
    if antialias and mode not in _SMOOTHED:
        raise ArgumentError(f"[interpolate] antialias is for {_SMOOTHED}, got mode {mode!r}")
    if mode == "lanczos" and (align_corners or not antialias):
        raise ArgumentError(
            "[interpolate] mode 'lanczos' needs antialias=True and takes no align_corners"
        )
    if mode in _RANKS and not (x.is_floating_point() or (x.dtype is dtypes.uint8 and x.ndim == 4)):
        raise DTypeError(
            f"[interpolate] mode {mode!r} takes floating tensors, and images of uint8, got "
            f"{x.dtype} of {x.ndim} dimensions; convert it with .to(ut.float32), or use "
            "mode='nearest'"
        )


def resampled_bytes(x: Tensor, target: Any, factors: Any, how: tuple[str, bool, bool]) -> Tensor:
    """An image of uint8: the widths first, then the heights, a half up, as torch rounds.

    The weights have 15 bits, as there; float64 holds their sums exactly.
    """
    mode, *rest = how
    out = cast(x, dtypes.float64)
    for d in (1, 0):
        n, m = x.shape[2 + d], target[d]
        if n != m:
            fixed = tables.fixed_point_weights
            out = resampled(out, 2 + d, (mode, n, m, factors[d], *rest), fixed)
            out = (out + 0.5).floor().clamp(0, 255)
    return cast(out, dtypes.uint8)


@function(top=False, method=False, functional=True)
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Signals, images or volumes (N, C, …) in another size, or larger by a factor.

    The modes are "nearest" (as OpenCV counts it), "nearest-exact", "linear" for (N, C, L),
    "bilinear" and "bicubic" for images, "trilinear" for volumes, "area" (means), and "lanczos" with
    antialias. `align_corners` lets the centres of the corner pixels coincide, instead of their
    outer edges. `antialias` averages over all pixels that an output pixel covers. A dimension that
    keeps its size is left as it is. Images of uint8 are rounded after each of the two dimensions.

    >>> import undertow as ut
    >>> x = ut.tensor([[[1.0, 3.0]]])
    >>> ut.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 3., 3.]]])
    >>> ut.nn.functional.interpolate(x, 3, mode="linear", align_corners=True)
    tensor([[[1., 2., 3.]]])
    """
    _check(input, mode, align_corners, antialias)
    target, factors = _target(input, size, scale_factor, bool(recompute_scale_factor))
    if mode == "area":
        return adaptive_mean("interpolate", input, target, input.ndim - 2)
    if mode in _RANKS and input.dtype is dtypes.uint8:
        return resampled_bytes(input, target, factors, (mode, bool(align_corners), bool(antialias)))
    half = mode in _RANKS and input.dtype.itemsize == 2
    out = cast(input, dtypes.float32) if half else input
    for d, (n, m, factor) in enumerate(zip(input.shape[2:], target, factors, strict=True)):
        if n != m:
            how = (mode, n, m, factor, bool(align_corners), bool(antialias))
            out = resampled(out, 2 + d, how)
    return cast(out, input.dtype) if out is not input else input.clone()


# Shuffles ------------------------------------------------------------------------------------
def _factor(op: str, name: str, value: Any, x: Tensor) -> int:
    factor = as_int(op, name, value)
    if factor < 1:
        raise ArgumentError(f"[{op}] {name} must be at least 1, got {factor}")
    if x.ndim < 3:
        raise ShapeError(f"[{op}] expects (…, C, H, W), got shape {x.shape}")
    return factor


@function(method=False, functional=True)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, C·r², H, W) as (…, C, H·r, W·r): r² channels become the pixels of a block.

    >>> import undertow as ut
    >>> ut.pixel_shuffle(ut.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    r = _factor("pixel_shuffle", "upscale_factor", upscale_factor, input)
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise ShapeError(
            f"[pixel_shuffle] {c} channels, as in shape {input.shape}, are no multiple of "
            f"{r}² = {r * r}"
        )
    n = len(lead)
    blocks = reshape(input, (*lead, c // (r * r), r, r, h, w))
    permuted = permute(blocks, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return reshaped_copy(permuted, (*lead, c // (r * r), h * r, w * r))


@function(method=False, functional=True)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, C, H·r, W·r) as (…, C·r², H, W): what `pixel_shuffle` undoes.

    >>> import undertow as ut
    >>> ut.pixel_unshuffle(ut.arange(4.0).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    r = _factor("pixel_unshuffle", "downscale_factor", downscale_factor, input)
    *lead, c, h, w = input.shape
    if h % r or w % r:
        raise ShapeError(
            f"[pixel_unshuffle] images of {h} × {w}, as in shape {input.shape}, do not divide into "
            f"blocks of {r} × {r}"
        )
    n = len(lead)
    blocks = reshape(input, (*lead, c, h // r, r, w // r, r))
    permuted = permute(blocks, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return reshaped_copy(permuted, (*lead, c * r * r, h // r, w // r))


@function(method=False, functional=True)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, …) with the channels of `groups` groups dealt out by turns.

    >>> import undertow as ut
    >>> ut.channel_shuffle(ut.arange(6.0).reshape(1, 6, 1), 2).flatten()
    tensor([0., 3., 1., 4., 2., 5.])
    """
    count = as_int("channel_shuffle", "groups", groups)
    if input.ndim < 3:
        raise ShapeError(f"[channel_shuffle] expects (N, C, …), got shape {input.shape}")
    n, c, *rest = input.shape
    if count < 1 or c % count:
        raise ArgumentError(
            f"[channel_shuffle] groups must divide the {c} channels of shape {input.shape}, got "
            f"{count}"
        )
    dealt = reshape(input, (n, count, c // count, *rest)).transpose(1, 2)
    return reshaped_copy(dealt, (n, c, *rest))
