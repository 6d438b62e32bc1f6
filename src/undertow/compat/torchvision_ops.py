"""The operators that torchvision has in C++, as functions of the library's own ops.

`ops.load_library` defines them in place of torchvision's compiled file, so that detection models
run. Everything is made of differentiable ops: gradients of any order follow, those of `roi_align`
with respect to the boxes included, which torchvision does not have.
"""

from __future__ import annotations

import math
from typing import Any

from ..core.register import FUNCTIONAL as F
from ..core.register import FUNCTIONS as T
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ._ops import IMPLICIT, add_kernel, define

_ROIS = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_BACK = "Tensor grad, Tensor rois"
_SIZE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_BINS = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_WINDOW = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
_FILTER = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"
# The backward operators have no kernel: a derivative is that of the ops, and nobody calls them.
_SCHEMAS = {
    "_cuda_version": "() -> int",
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": f"({_ROIS}, int sampling_ratio, bool aligned) -> Tensor",
    "ps_roi_align": f"({_ROIS}, int sampling_ratio) -> (Tensor, Tensor)",
    "roi_pool": f"({_ROIS}) -> (Tensor, Tensor)",
    "ps_roi_pool": f"({_ROIS}) -> (Tensor, Tensor)",
    "deform_conv2d": f"({_FILTER}, {_WINDOW}) -> Tensor",
    "qroi_align": f"({_ROIS}, int sampling_ratio, bool aligned) -> Tensor",
    "_roi_align_backward": (
        f"({_BACK}, {_BINS}, {_SIZE}, int sampling_ratio, bool aligned) -> Tensor"
    ),
    "_ps_roi_align_backward": (
        f"({_BACK}, Tensor channel_mapping, {_BINS}, int sampling_ratio, {_SIZE}) -> Tensor"
    ),
    "_roi_pool_backward": f"({_BACK}, Tensor argmax, {_BINS}, {_SIZE}) -> Tensor",
    "_ps_roi_pool_backward": f"({_BACK}, Tensor channel_mapping, {_BINS}, {_SIZE}) -> Tensor",
    "_deform_conv2d_backward": (
        f"(Tensor grad, {_FILTER}, {_WINDOW}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
    ),
}


def define_operators() -> None:
    """Make `ops.torchvision`, once."""
    from ._ops import _OVERLOADS

    if "torchvision::nms.default" in _OVERLOADS:
        return
    for name, schema in _SCHEMAS.items():
        define(f"torchvision::{name}", schema)
        if name in _KERNELS:
            add_kernel(f"torchvision::{name}", IMPLICIT, _KERNELS[name])


# Boxes ---------------------------------------------------------------------------------------
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Any:
    """The boxes that are left if each takes away those of lower score that it overlaps."""
    if dets.ndim != 2 or dets.shape[1] != 4 or scores.shape != dets.shape[:1]:
        raise ArgumentError(
            "[torchvision.nms] wants boxes of shape (N, 4) and N scores, got "
            f"{tuple(dets.shape)} and {tuple(scores.shape)}"
        )
    order: Any = scores.detach().sort(stable=True, descending=True)[1]
    boxes: Any = dets.detach()[order]
    kept = []
    while order.shape[0]:
        kept.append(order[:1])
        apart = ~(_overlap(boxes[0], boxes[1:]).double() > iou_threshold)
        order, boxes = order[1:][apart], boxes[1:][apart]
    return T["cat"](kept) if kept else order


def _overlap(box: Any, others: Any) -> Any:
    """Common area over joint area, of one box with each of others."""
    inner = (box[2:].minimum(others[:, 2:]) - box[:2].maximum(others[:, :2])).clamp(min=0)
    common = inner.prod(1)
    return common / ((box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - common)


# Regions -------------------------------------------------------------------------------------
def roi_align(
    input: Any,
    rois: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Any:
    """Means of points in the bins of boxes, interpolated between pixels: (K, C, height, width)."""
    _check_regions("roi_align", input, rois)
    count, (_, channels, height, width) = rois.shape[0], input.shape
    ends = rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
    size = ends[:, 2:] - ends[:, :2]
    if not aligned:
        size = size.clamp(min=1.0)
    rows = _points(ends[:, 1], size[:, 1], pooled_height, sampling_ratio, height)
    columns = _points(ends[:, 0], size[:, 0], pooled_width, sampling_ratio, width)
    if 0 in (count, channels):
        return input.new_zeros((count, channels, pooled_height, pooled_width))
    # Points of a bin times their pixels, (K, bins, points): of rows, then of columns.
    (y, y_weight), (x, x_weight) = rows, columns
    inside = y[:, :, None, :, None] * width + x[:, None, :, None, :]
    place = inside + (rois[:, 0].long() * (height * width))[:, None, None, None, None]
    weight = y_weight[:, :, None, :, None] * x_weight[:, None, :, None, :]
    bins = place.shape[0] * pooled_height * pooled_width
    found = F["embedding_bag"](
        place.reshape(bins, -1),
        input.permute(0, 2, 3, 1).reshape(-1, channels),
        mode="sum",
        per_sample_weights=weight.reshape(bins, -1),
    )
    return found.reshape(count, pooled_height, pooled_width, channels).permute(0, 3, 1, 2)


def _points(start: Any, size: Any, bins: int, ratio: int, length: int) -> tuple[Any, Any]:
    """Pixels that bins along one dimension look at, and their weights: (K, bins, 2 * points)."""
    like = {"dtype": start.dtype, "device": start.device}
    step = size / bins
    points = T["full_like"](step, ratio) if ratio > 0 else step.detach().ceil().clamp(min=0)
    most = ratio if ratio > 0 else max(1, int(points.max())) if points.shape[0] else 1
    number = T["arange"](most, **like)
    shared = (number + 0.5) * (step / points.clamp(min=1))[:, None]
    at = start[:, None] + T["arange"](bins, **like) * step[:, None]
    at = at[:, :, None] + shared[:, None, :]
    counted = (at >= -1) & (at <= length) & (number < points[:, None])[:, None]
    at = at.clamp(min=0)
    low = at.detach().floor().clamp(max=length - 1)
    above = (at - low).where(low < length - 1, 0.0)
    share = counted / points.clamp(min=1)[:, None, None]
    pixels = T["cat"]([low, (low + 1).clamp(max=length - 1)], -1).long()
    return pixels, T["cat"]([(1 - above) * share, above * share], -1)


def ps_roi_align(
    input: Any,
    rois: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Any, Any]:
    """`roi_align` where every bin has channels of its own."""
    bins = pooled_height, pooled_width
    _check_channels("ps_roi_align", input, *bins)
    every = roi_align(input, rois, spatial_scale, *bins, sampling_ratio, True)
    return _own_channels(every, *bins)


def _own_channels(every: Any, height: int, width: int) -> tuple[Any, Any]:
    """Of each bin its channels, and which ones they are."""
    bins, channels = height * width, every.shape[1]
    own = every.reshape(-1, channels // bins, bins, bins).diagonal(dim1=2, dim2=3)
    found = own.reshape(every.shape[0], channels // bins, height, width)
    return found, _mapping(found)


def _mapping(found: Any) -> Any:
    """Which channel of the input each of these elements came from."""
    numbers = T["arange"](math.prod(found.shape[1:]), device=found.device).int()
    return numbers.reshape(found.shape[1:]).expand(found.shape).contiguous()


def roi_pool(
    input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Any, Any]:
    """The largest pixel of each bin of boxes that are rounded to pixels, and where it is."""
    _check_regions("roi_pool", input, rois)
    channels, height, width = input.shape[1:]
    values, places = [], []
    for picture, left, top, right, bottom in _rounded(rois, spatial_scale):
        rows = _spans(top, max(bottom - top + 1, 1), pooled_height, height)
        columns = _spans(left, max(right - left + 1, 1), pooled_width, width)
        for (y, y_end), (x, x_end) in ((r, c) for r in rows for c in columns):
            if y >= y_end or x >= x_end:
                values.append(input.new_zeros(channels))
                places.append(values[-1].int() - 1)
                continue
            value, place = input[picture, :, y:y_end, x:x_end].flatten(1).max(1)
            across = x_end - x
            values.append(value)
            places.append(((y + place // across) * width + x + place % across).int())
    shape = (rois.shape[0], pooled_height, pooled_width, channels)
    if not values:
        empty = input.new_zeros(shape).permute(0, 3, 1, 2)
        return empty, empty.int()
    largest, where = (T["stack"](f).reshape(shape).permute(0, 3, 1, 2) for f in (values, places))
    return largest, where


def ps_roi_pool(
    input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Any, Any]:
    """The mean of each bin of boxes that are rounded to pixels, with channels of its own."""
    _check_regions("ps_roi_pool", input, rois)
    bins, (channels, height, width) = (pooled_height, pooled_width), input.shape[1:]
    _check_channels("ps_roi_pool", input, *bins)
    means = []
    for picture, left, top, right, bottom in _rounded(rois, spatial_scale):
        rows = _spans(top, max(bottom - top, 1), pooled_height, height - 1)
        columns = _spans(left, max(right - left, 1), pooled_width, width - 1)
        places = [(y, x) for y in rows for x in columns]
        for number, ((y, y_end), (x, x_end)) in enumerate(places):
            own = input[picture, number :: len(places), y:y_end, x:x_end].flatten(1)
            means.append(own.mean(1) if own.shape[1] else own.sum(1))
    shape = (rois.shape[0], *bins, channels // (pooled_height * pooled_width))
    found = T["stack"](means) if means else input.new_zeros(shape)
    found = found.reshape(shape).permute(0, 3, 1, 2)
    return found, _mapping(found)


def _rounded(rois: Any, scale: float) -> Any:
    """Picture, left, top, right and bottom of every box, in whole pixels; halves away from 0."""
    scaled = rois[:, 1:].detach() * scale
    ends = (scaled.abs() + 0.5).floor().copysign(scaled).long()
    return T["cat"]([rois[:, :1].detach().long(), ends], 1).tolist()


def _spans(start: int, size: int, bins: int, most: int) -> list[tuple[int, int]]:
    """First and last + 1 pixel of every bin."""
    step = size / bins

    def kept(place: float) -> int:
        return min(max(int(place) + start, 0), most)

    return [(kept(step * b // 1), kept(-(-step * (b + 1) // 1))) for b in range(bins)]


def _check_regions(op: str, input: Any, rois: Any) -> None:
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise ArgumentError(
            f"[torchvision.{op}] wants boxes of shape (K, 5), the number of a picture first; got "
            f"{tuple(rois.shape)}"
        )
    if input.dtype != rois.dtype:
        raise ArgumentError(
            f"[torchvision.{op}] wants one dtype, got {input.dtype} and boxes of {rois.dtype}"
        )


def _check_channels(op: str, input: Any, height: int, width: int) -> None:
    if input.shape[1] % (height * width):
        raise ArgumentError(
            f"[torchvision.{op}] has {height} x {width} bins, so the channels must be a multiple "
            f"of {height * width}; got {input.shape[1]}"
        )


# Convolution ---------------------------------------------------------------------------------
def deform_conv2d(
    input: Any,
    weight: Any,
    offset: Any,
    mask: Any,
    bias: Any,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Any:
    """A convolution whose windows look at pixels that are moved by `offset`, and times `mask`."""
    batch, channels, height, width = input.shape
    tall, wide = weight.shape[2:]
    out = offset.shape[2:]
    moved = offset.reshape(batch, offset_groups, tall, wide, 2, *out)
    like = {"dtype": offset.dtype, "device": offset.device}

    def grid(size: int, window: int, stride: int, pad: int, dilation: int) -> Any:
        inner = T["arange"](window, **like) * dilation - pad
        return inner[:, None] + T["arange"](size, **like) * stride

    rows = grid(out[0], tall, stride_h, pad_h, dilation_h)[:, None, :, None]
    columns = grid(out[1], wide, stride_w, pad_w, dilation_w)[None, :, None, :]
    y, x = moved[:, :, :, :, 0] + rows, moved[:, :, :, :, 1] + columns
    pixels = input.reshape(batch, offset_groups, channels // offset_groups, height * width)
    seen = _between(pixels, y, x, height, width)
    if use_mask:
        seen = seen * mask.reshape(batch, offset_groups, 1, -1)
    seen = seen.reshape(batch, groups, channels // groups * tall * wide, -1)
    found = weight.reshape(groups, weight.shape[0] // groups, -1) @ seen
    return found.reshape(batch, weight.shape[0], *out) + bias[:, None, None]


def _between(pixels: Any, y: Any, x: Any, height: int, width: int) -> Any:
    """Pictures (N, G, C, height * width) at points between pixels (N, G, …), zero outside."""
    top, left = y.detach().floor(), x.detach().floor()
    down, right = y - top, x - left
    found: Any = 0
    for row, y_weight in ((top, 1 - down), (top + 1, down)):
        for column, x_weight in ((left, 1 - right), (left + 1, right)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = (row * width + column).where(inside, 0.0).long().flatten(2)[:, :, None]
            share = (y_weight * x_weight * inside).flatten(2)[:, :, None]
            place = place.expand(*pixels.shape[:3], place.shape[-1])
            found = found + pixels.gather(3, place) * share
    return found


_KERNELS: dict[str, Any] = {
    "_cuda_version": lambda: -1,
    "nms": nms,
    "roi_align": roi_align,
    "ps_roi_align": ps_roi_align,
    "roi_pool": roi_pool,
    "ps_roi_pool": ps_roi_pool,
    "deform_conv2d": deform_conv2d,
}
