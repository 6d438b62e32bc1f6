"""`segment_reduce`: sums, means, products and extremes of runs of elements."""

from __future__ import annotations

import math

from ...core.register import FUNCTIONS, function
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...shapes import wrap_dim
from ..shape.joining import cat

# By name: that of `scatter_reduce`, and what an empty run gives.
_KINDS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
}


@function(method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> Tensor:
    """Reduce runs of elements along `axis`, given by their lengths or by their first positions.

    `reduce` is sum, mean, prod, max or min. `lengths` has the leading dimensions of `data` up to
    `axis`. They add up to the size of `data` there; `offsets`, and lengths that are `unsafe`, may
    leave out elements at the ends. Each run begins with `initial`; an empty one is what the
    reduction begins with, and a NaN for a mean.

    >>> import undertow as ut
    >>> ut.segment_reduce(ut.arange(4.0), "sum", lengths=ut.tensor([1, 3]))
    tensor([0., 6.])
    """
    if indices is not None:
        raise UnsupportedError("[segment_reduce] takes lengths or offsets, not indices")
    if reduce not in _KINDS:
        raise ArgumentError(f"[segment_reduce] reduce must be one of {[*_KINDS]}, got {reduce!r}")
    if not data.is_floating_point():
        raise DTypeError(f"[segment_reduce] needs floating numbers, got {data.dtype}")
    if (lengths is None) == (offsets is None):
        raise ArgumentError("[segment_reduce] needs lengths or offsets, and not both")
    axis = wrap_dim("segment_reduce", axis, data.ndim)
    before = None
    if lengths is None:
        assert offsets is not None
        unsafe = True
        before, lengths = offsets[..., :1], offsets.diff(dim=-1)
    if axis != lengths.ndim - 1 or lengths.shape[:-1] != data.shape[:axis]:
        raise ShapeError(
            f"[segment_reduce] the runs of shape {lengths.shape} have the dimensions of data, "
            f"{data.shape}, before axis {axis}, and then the runs"
        )
    if lengths.numel() and int(lengths.min()) < 0:
        raise ArgumentError(f"[segment_reduce] lengths must not be negative, got {lengths.min()}")
    size = data.shape[axis]
    rest = size - lengths.sum(-1, keepdim=True)
    if before is not None:
        rest = rest - before
    if bool((rest < 0).any() if unsafe else (rest != 0).any()):
        raise ArgumentError(
            f"[segment_reduce] the lengths must add up to {size}, the size of data along axis "
            f"{axis}" + (", or to less" if unsafe else "")
        )
    shown = lengths.shape[-1]
    if unsafe:  # elements that no run has are runs of their own, left out at the end
        lengths = cat([rest.new_zeros(rest.shape) if before is None else before, lengths, rest], -1)
    # All rows one after the other are one row, and their runs are runs of it.
    inner = data.shape[axis + 1 :]
    flat = data.reshape(-1, *inner)
    runs = lengths.reshape(-1)
    numbers = FUNCTIONS["arange"](runs.numel(), device=data.device)
    run = numbers.repeat_interleave(runs).reshape(-1, *(1 for _ in inner)).expand(flat.shape)
    kind, start = _KINDS[reduce]
    begin = flat.new_full((runs.numel(), *inner), start if initial is None else initial)
    out = begin.scatter_reduce(0, run, flat, kind)
    if reduce == "mean":
        counts = runs.reshape(-1, *(1 for _ in inner)).to(data.dtype)
        mean = out / counts
        out = mean if initial is None else out.where(counts == 0, mean)
    out = out.reshape(*lengths.shape, *inner)
    return out.narrow(axis, 1, shown) if unsafe else out
